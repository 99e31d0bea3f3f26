"""A skip fails where every layer must run, and a failing test shows what the components said meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampled_groups import TEST_BED

pytestmark = TEST_BED

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
REPOSITORY = CONFTEST.parents[1]

SKIPS = "import pytest\ndef test_it():\n    pytest.skip('no root here')\n"
SPEAKS = """
def test_before(): ...

def test_it(component_logs, tmp_path):
    with component_logs["engine"].open("a") as log:
        log.write("during the test\\n")
    assert False
"""
LOGS = """
import pytest
@pytest.fixture(scope="session", autouse=True)
def engine(component_logs, tmp_path_factory):
    log = tmp_path_factory.mktemp("engine") / "log"
    log.write_text("before the test\\n")
    component_logs["engine"] = log
"""


def run(folder: Path, test: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(test)
    plain = {name: value for name, value in os.environ.items() if name not in {"CI", "HERMETIC_REQUIRE_ALL"}}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--rootdir",
        ".",
    ]
    return subprocess.run(
        [*command, "test_it.py"],
        cwd=folder,
        # no plugins: loading those takes longer than the tests
        env={**plain, "PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


ASKS = "import pytest\n{}\ndef test_it(cluster): ...\n"
GIVEN = "@pytest.mark.parametrize('cluster', ['aks-1'])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text() + LOGS)
    return tmp_path


def test_skip_is_a_skip_on_a_workstation(folder: Path) -> None:
    assert "1 skipped" in run(folder, SKIPS).stdout


@pytest.mark.parametrize("variable", [{"CI": "true"}, {"HERMETIC_REQUIRE_ALL": "1"}])
def test_skip_is_a_failure_where_every_layer_must_run(variable: dict[str, str], folder: Path) -> None:
    outcome = run(folder, SKIPS, **variable)

    assert "1 failed" in outcome.stdout
    assert "no root here (a skip is a failure here" in outcome.stdout


def test_failing_test_shows_the_logs_of_its_own_time(folder: Path) -> None:
    output = run(folder, SPEAKS).stdout

    assert "log of engine" in output
    assert "during the test" in output
    assert "before the test" not in output.split("log of engine")[1]


@pytest.mark.parametrize(("given", "needed"), [("", True), (GIVEN, False)], ids=["fixture", "parameter"])
def test_programs_are_built_for_a_fixture_and_not_for_a_parameter_of_its_name(
    given: str, needed: bool, folder: Path
) -> None:
    done = run(folder, ASKS.format(given), XDG_CACHE_HOME=str(folder / "cache"), PATH="")

    assert ("Go is not installed" in done.stdout + done.stderr) is needed
    assert ("1 skipped" if needed else "1 passed") in done.stdout

"""Large enumerations: everything with --full, nearly so in CI, elsewhere a sample that its seed draws again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import NO_COMMIT, Sample, commit, lines

pytestmark = pytest.mark.sampled(3, of="samples of tests")

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
REPOSITORY = CONFTEST.parents[1]
CASES = range(1000)
PROPERTY = """
from hypothesis import settings

def test_examples():
    print("examples", settings.default.max_examples, settings.default.derandomize)
"""
TESTS = """
import pytest

@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(20))
def test_numbers(number): ...

@pytest.mark.parametrize("share", range(2))
def test_cases(sample, share):
    print("drawn", share, list(sample.of("cases", range(share, 100, 2), 4)))

@pytest.mark.sampled(2, in_ci=5)
@pytest.mark.parametrize("number", range(30))
def test_costly(number): ...

def test_costly_cases(sample):
    print("costly", list(sample.of("costly cases", range(40), 3, in_ci=7)))

@pytest.mark.sampled(0)
@pytest.mark.parametrize("number", range(2))
def test_long(number): ...

def test_other(): ...
"""
NAMED_TESTS = """
import pytest

pytestmark = pytest.mark.sampled(2, of="slow tests")

@pytest.mark.parametrize("number", range(3))
def test_slow(number): ...

def test_slower(): ...
"""


def sample(
    seed: str | None, test: str = "test_it.py::test_it", *, is_in_ci: bool = False
) -> tuple[Sample, list[object]]:
    recorded: list[object] = []
    return Sample(seed, test, lambda _name, value: recorded.append(value), is_in_ci), recorded


def test_without_a_seed_nothing_is_left_out_and_no_sample_recorded() -> None:
    everything, recorded = sample(None)
    assert everything.of("cases", CASES, 10) == CASES
    assert recorded == []


def test_a_seed_draws_the_same_again_and_other_cases_elsewhere() -> None:
    first, recorded = sample("a")
    tried = first.of("cases", CASES, 10)
    assert len(set(tried)) == 10
    assert list(tried) == sorted(tried)
    assert recorded == [("cases", 10, 1000)]
    assert sample("a")[0].of("cases", CASES, 10) == tried
    assert sample("b")[0].of("cases", CASES, 10) != tried
    assert first.of("other cases", CASES, 10) != tried
    assert sample("a", "test_it.py::test_other")[0].of("cases", CASES, 10) != tried


def test_over_many_seeds_every_case_is_tried() -> None:
    tried = {case for seed in range(200) for case in sample(str(seed))[0].of("cases", range(50), 5)}
    assert tried == set(range(50))


def test_few_cases_are_all_tried() -> None:
    drawing, recorded = sample("a")
    assert drawing.of("cases", range(10), 10) == range(10)
    assert recorded == []


def test_ci_draws_from_what_names_a_part_for_it_and_from_nothing_else() -> None:
    drawing, recorded = sample("a", is_in_ci=True)
    assert drawing.of("cases", CASES, 10) == CASES
    assert recorded == []
    tried = drawing.of("costly cases", CASES, 10, in_ci=100)
    assert len(set(tried)) == 100
    assert recorded == [("costly cases", 100, 1000)]
    assert sample("b", is_in_ci=True)[0].of("costly cases", CASES, 10, in_ci=100) != tried
    assert sample(None, is_in_ci=True)[0].of("costly cases", CASES, 10, in_ci=100) == CASES


def test_elsewhere_the_part_of_ci_is_not_the_sample() -> None:
    assert len(sample("a")[0].of("costly cases", CASES, 10, in_ci=100)) == 10


def test_parts_of_one_enumeration_are_added_up() -> None:
    printed = lines([("plants", 2, 10), ("plants", 3, 11), ("seeds", 1, 5)], "cafe")
    assert printed[:2] == ["plants: sample of 5 of 21", "seeds: sample of 1 of 5"]
    assert "--replay cafe" in printed[2]
    assert lines([], "cafe") == []


def run(folder: Path, *arguments: str, tests: str = ".", **environment: str) -> str:
    """What pytest says of these tests."""
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    (folder / "test_it.py").write_text(TESTS)
    (folder / "test_named.py").write_text(NAMED_TESTS)
    plain = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    plugins = ["-p", "xdist", "-p", "no:cacheprovider"]  # no others: loading them takes longer than these tests
    command = [sys.executable, "-m", "pytest", "-v", "-rP", *plugins, "-c", "/dev/null"]
    done = subprocess.run(
        [*command, "--rootdir", ".", *arguments, tests],
        cwd=folder,
        env={**plain, "PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tried_in(output: str) -> list[str]:
    """Tests that passed, and what was drawn within them; workers of pytest-xdist end in any order."""
    return sorted(set(re.findall(r"test_\w+\[\d+\]|drawn .*|costly \[.*", output)))


def test_a_run_elsewhere_tries_a_sample_that_workers_share_and_its_seed_repeats(tmp_path: Path) -> None:
    output = run(tmp_path, "--numprocesses", "2")
    assert "11 passed" in output
    assert "slow tests: sample of 2 of 4" in output
    assert "test_it.py::test_numbers: sample of 3 of 20" in output
    assert "test_it.py::test_long: not tried" in output
    assert "cases: sample of 8 of 100" in output
    assert "test_it.py::test_costly: sample of 2 of 30" in output
    assert "costly cases: sample of 3 of 40" in output
    (seed,) = re.findall(r"--replay (\w+)", output)
    again = run(tmp_path, "--replay", seed)
    assert "11 passed, 49 deselected" in again
    assert tried_in(again) == tried_in(output)


@pytest.mark.parametrize("variable", [{"CI": "true"}, {}], ids=["CI", "elsewhere"])
def test_with_full_nothing_is_left_out(variable: dict[str, str], tmp_path: Path) -> None:
    output = run(tmp_path, "--full", **variable)
    assert "60 passed" in output
    assert "sample of" not in output
    assert f"drawn 0 {list(range(0, 100, 2))}" in output
    assert f"costly {list(range(40))}" in output


def test_in_ci_the_commit_draws_from_what_names_a_part_and_nothing_else_is_left_out(tmp_path: Path) -> None:
    output, again = run(tmp_path, "--numprocesses", "2", CI="true"), run(tmp_path, CI="true")
    assert "35 passed, 25 deselected" in again
    assert f"drawn 0 {list(range(0, 100, 2))}" in output
    assert re.findall(r".*: sample of .*", output) == [
        "test_it.py::test_costly: sample of 5 of 30",
        "costly cases: sample of 7 of 40",
    ]
    assert f"seed {commit()}: CI=true and --replay {commit()} tries the same, --full everything" in output
    assert tried_in(again) == tried_in(output)
    assert tried_in(run(tmp_path, "--replay", "other", CI="true")) != tried_in(output)


def test_outside_a_repository_ci_draws_a_fixed_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", os.devnull)
    assert commit() == NO_COMMIT


def test_one_command_runs_every_case_of_which_ci_tries_a_part() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    (command,) = re.findall(r"^test-every-case:.*\n\t.* \$\(EVERY_CASE\) --full .*$", makefile, re.MULTILINE)
    shown = subprocess.run(
        ["make", "--dry-run", "test-every-case"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    drawn_from = {
        str(path.relative_to(REPOSITORY))
        for path in CONFTEST.parent.glob("*/test_*.py")
        if path != Path(__file__) and re.search(r"\bin_ci=", path.read_text())
    }
    assert command
    assert drawn_from
    assert drawn_from == set(re.findall(r"tests/[\w/]+\.py", shown))


def test_one_that_is_named_runs(tmp_path: Path) -> None:
    assert "1 passed" in run(tmp_path, tests="test_it.py::test_numbers[17]")
    assert "2 passed" in run(tmp_path, tests="test_it.py::test_long")
    assert "1 passed" in run(tmp_path, tests="test_named.py::test_slower")


def test_one_file_runs_all_that_have_a_name(tmp_path: Path) -> None:
    assert "4 passed" in run(tmp_path, tests="test_named.py")
    assert "1 passed" in run(tmp_path, "-k", "slower")


@pytest.mark.parametrize(
    ("variable", "examples"), [({}, "examples 20 False"), ({"CI": "true"}, "examples 60 True")], ids=["elsewhere", "CI"]
)
def test_properties_try_fewer_examples_outside_ci(variable: dict[str, str], examples: str, tmp_path: Path) -> None:
    folder = tmp_path / "property"
    folder.mkdir()
    (folder / "conftest.py").write_text((CONFTEST.parent / "property" / "conftest.py").read_text())
    (folder / "test_examples.py").write_text(PROPERTY)
    output = run(tmp_path, "property", **variable)
    assert examples in output
    assert ("examples of each property: sample of 20 of 60" in output) is (not variable)

"""Builds are keyed by their sources, made once however many ask, and fail in words that help."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed import programs as builds
from testbed.errors import BuildError, CannotRunError
from testbed.programs import CONTROL_PLANE_FAMILIES, FAMILIES, NODE_FAMILIES, Family, cache_folder, programs, require_go
from tests.sampled_groups import TEST_BED

pytestmark = TEST_BED

# Answers for its version, and "builds" by copying main.go to the output, or fails as main.go says.
FAKE_GO = """#!/bin/sh
if [ "$1" = env ]; then echo {version}; exit; fi
while [ $# -gt 2 ]; do
    [ "$1" = -C ] && sources=$2
    [ "$1" = -o ] && output=$2
    shift
done
main="$sources/$2/main.go"
if grep -q nonsense "$main"; then echo "undefined: nonsense" >&2; exit 1; fi
sleep 0.3
cp "$main" "$output" && chmod +x "$output"
"""


@pytest.fixture
def install_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a Go of some version in front of whatever this machine has."""

    def install(version: str) -> None:
        folder = tmp_path / "go"
        folder.mkdir()
        (folder / "go").write_text(FAKE_GO.format(version=version))
        (folder / "go").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return install


@pytest.fixture
def little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install_go: Callable[[str], None]) -> Family:
    """A family of one program, with a cache, a module folder and a Go of its own."""
    install_go("go1.26.8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    family = Family("little", {"little": "./little"}, module=tmp_path / "modules")
    monkeypatch.setitem(FAMILIES, "little", family)
    source(family).parent.mkdir(parents=True)
    for pins in ("go.mod", "go.sum"):
        (family.module / pins).touch()
    source(family).write_text("package main\n")
    return family


def source(family: Family) -> Path:
    return family.module / family.name / "main.go"


@pytest.mark.parametrize("version", ["go1.25.9", "go1.19.8"])
def test_old_go_is_named_with_what_is_needed(version: str, install_go: Callable[[str], None]) -> None:
    install_go(version)

    with pytest.raises(CannotRunError, match=rf"{version} is too old: .* needs Go >= 1\.26"):
        require_go()


@pytest.mark.parametrize("version", ["go1.26", "go1.26.8", "go1.27rc1", "go2.0"])
def test_new_go_is_taken(version: str, install_go: Callable[[str], None]) -> None:
    install_go(version)

    require_go()


def test_missing_go_is_named_with_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(CannotRunError, match=r"Go is not installed: .* needs Go >= 1\.26"):
        require_go()


def test_built_program_is_found_without_building_again(
    little: Family, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = programs(little.name)["little"]
    assert os.access(first, os.X_OK)
    assert "little: built in" in capsys.readouterr().err

    monkeypatch.setenv("PATH", str(tmp_path))  # no Go any more, and none needed
    assert programs(little.name)["little"] == first
    assert capsys.readouterr().err == ""


def test_long_build_shows_that_it_is_alive(
    little: Family, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "PROGRESS_SECONDS", 0.05)

    programs(little.name)

    output = capsys.readouterr().err.splitlines()
    assert "little: building little" in output[0]
    assert "little: still building (0 s)" in output[1]
    assert "little: built in" in output[-1]


def test_changed_source_is_built_beside_the_old_one(little: Family) -> None:
    before = programs(little.name)["little"]

    source(little).write_text("package main // new\n")
    after = programs(little.name)["little"]

    assert before.is_file()
    assert after.is_file()
    assert before != after


def test_compiler_error_is_shown_and_leaves_nothing_half_built(little: Family) -> None:
    source(little).write_text("nonsense\n")

    with pytest.raises(BuildError, match="undefined: nonsense"):
        programs(little.name)

    assert [path.name for path in cache_folder().iterdir()] == [".little.lock"]


def test_leftovers_of_a_killed_builder_are_cleared(little: Family) -> None:
    abandoned = cache_folder() / ".little-partial-abc"
    abandoned.mkdir(parents=True)

    programs(little.name)

    assert not abandoned.exists()


def _build(family: str, results: multiprocessing.Queue) -> None:
    results.put(str(programs(family)["little"]))


def test_builders_at_the_same_time_build_once(little: Family, capfd: pytest.CaptureFixture[str]) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    builders = [context.Process(target=_build, args=(little.name, results)) for _ in range(3)]
    for builder in builders:
        builder.start()

    paths = {results.get(timeout=60) for _ in builders}

    for builder in builders:
        builder.join()
    assert len(paths) == 1
    assert capfd.readouterr().err.count("built in") == 1


def test_every_pinned_family_has_a_key_of_its_own() -> None:
    assert len({family.key for family in FAMILIES.values()}) == len(FAMILIES)


def test_unknown_family_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        builds.main(["kubernetes", "nonsense"])

    assert ended.value.code == 2
    assert "no such family: nonsense (there are kubernetes, etcd" in capsys.readouterr().err


@pytest.mark.parametrize(("user", "families"), [(0, NODE_FAMILIES), (1000, CONTROL_PLANE_FAMILIES)])
def test_the_demo_builds_what_it_can_run_and_no_more(user: int, families: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "id").write_text(f"#!/bin/sh\necho {user}\n")
    (tmp_path / "id").chmod(0o755)
    ran = subprocess.run(
        ["make", "--dry-run", "demo"],
        cwd=builds.MODULES.parents[1],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    built = re.findall(r"-m testbed programs([^>]*)", ran.stdout)
    assert [names.split() for names in built] == [list(families)]

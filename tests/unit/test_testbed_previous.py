"""Which commit an upgrade begins at: one whose image is another, in whole clones and in shallow ones."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from testbed import previous as module
from testbed.errors import BuildError
from testbed.previous import previous
from tests.sampled_groups import TEST_BED

pytestmark = TEST_BED


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "cache")
    (tmp_path / "cache").mkdir()


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@contoso.example", "-c", "protocol.file.allow=always"]
    return subprocess.run(
        ["git", *named, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def commit(folder: Path, file: str, content: str) -> str:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "--message", file)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "operator/a.py", "one")
    return folder


def test_it_is_the_commit_before_the_last_change_of_what_ships(repository: Path) -> None:
    before = commit(repository, "docs/a.md", "one")
    commit(repository, "operator/a.py", "two")
    commit(repository, "docs/a.md", "two")
    previous_release = previous(repository)
    assert (previous_release.commit, previous_release.differs) == (before, True)
    assert (previous_release.source / "operator" / "a.py").read_text() == "one"


def test_what_is_not_committed_comes_after_the_last_commit(repository: Path) -> None:
    head = commit(repository, "operator/a.py", "two")
    (repository / "operator" / "b.py").write_text("new")
    assert previous(repository).commit == head


def test_a_shallow_clone_is_deepened(repository: Path, tmp_path: Path) -> None:
    before = git(repository, "rev-parse", "HEAD")
    commit(repository, "operator/a.py", "two")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository}", "shallow")
    previous_release = previous(tmp_path / "shallow")
    assert (previous_release.commit, previous_release.differs) == (before, True)


def test_where_that_cannot_be_it_says_so(repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = commit(repository, "operator/a.py", "two")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository}", "shallow")
    shutil.rmtree(repository)
    previous_release = previous(tmp_path / "shallow")
    assert (previous_release.commit, previous_release.differs) == (head, False)
    assert "holds no earlier commit" in capsys.readouterr().err


def test_outside_of_a_clone_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="a clone by git"):
        previous(tmp_path)

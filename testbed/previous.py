"""What the commit before would have shipped: its sources out of git, kept in the cache folder, for tests of upgrades.

The commit is the newest one whose image differs from that of the working tree. A clone that is too shallow to hold it
is deepened by one commit; where that cannot be, `previous` gives the commit that is there and says that it is no
other.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testbed.console import say
from testbed.errors import BuildError
from testbed.programs import cache_folder, only_builder

REPOSITORY = Path(__file__).resolve().parent.parent
# What the image and the chart are made of.
INSIDE = ("operator", "requirements.lock", "charts", "manifests", "crds")
DEEPEN = ("fetch", "--quiet", "--deepen=1")
DEEPEN_SECONDS = 60


@dataclass(frozen=True)
class Previous:
    """A commit and its sources; `differs` is False where the clone holds no earlier commit."""

    commit: str
    source: Path
    differs: bool


def previous(repository: Path = REPOSITORY) -> Previous:
    """The sources before the last change of what ships. Raises BuildError outside of a clone by git."""
    commit, differs = _commit(repository)
    folder = cache_folder() / f"previous-{commit[:16]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with only_builder("previous"):
            if not folder.is_dir():
                _unpack(repository, commit, folder)
    return Previous(commit, folder, differs)


def _commit(repository: Path) -> tuple[str, bool]:
    head = _git(repository, "rev-parse", "HEAD")
    if _git(repository, "status", "--porcelain", "--", *INSIDE):
        return head, True
    changed = _git(repository, "rev-list", "--max-count=1", "HEAD", "--", *INSIDE)
    if not (before := _parent(repository, changed)):
        _deepen(repository)
        changed = _git(repository, "rev-list", "--max-count=1", "HEAD", "--", *INSIDE)
        before = _parent(repository, changed)
    if not before:
        say("this clone holds no earlier commit: an upgrade is one to the same release")
    return before or head, bool(before)


def _parent(repository: Path, commit: str) -> str:
    done = _run(repository, "rev-parse", "--verify", "--quiet", f"{commit}^")
    return done.stdout.decode().strip()


def _deepen(repository: Path) -> None:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    command = ["timeout", str(DEEPEN_SECONDS), "git", *DEEPEN]
    subprocess.run(command, cwd=repository, env=environment, capture_output=True, check=False)


def _unpack(repository: Path, commit: str, folder: Path) -> None:
    """Works beside the final place and renames: an interrupted unpacking is never taken for a whole one."""
    done = _run(repository, "archive", commit)
    if done.returncode != 0:
        raise BuildError(f"git archive {commit}: {done.stderr.decode().strip()}")
    partial = Path(tempfile.mkdtemp(prefix=".previous-", dir=folder.parent))
    try:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(partial, filter="data")
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _git(repository: Path, *arguments: str) -> str:
    done = _run(repository, *arguments)
    if done.returncode != 0:
        raise BuildError(f"the commit before is known in a clone by git alone: {done.stderr.decode().strip()}")
    return done.stdout.decode().strip()


def _run(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=False)

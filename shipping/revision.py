"""The commit that an artifact is built from, and how artifacts name it.

The labels and annotations are those of https://github.com/opencontainers/image-spec/blob/main/annotations.md. Every
value follows from the commit, so that two builds of it have the same bytes.
"""

from __future__ import annotations

import os
import platform
import subprocess
import tomllib
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hermetic import __version__
from testbed.errors import BuildError

REPOSITORY = Path(__file__).resolve().parent.parent
_URLS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
HOME: str = _URLS["Homepage"]
SOURCE: str = _URLS["Source"]
"""Where the sources are, unless HERMETIC_SOURCE names the repository that the builder uses."""
SOURCE_VARIABLE, EPOCH = "HERMETIC_SOURCE", "SOURCE_DATE_EPOCH"
TITLE, VENDOR, LICENCE = "hermetic", "Hermetic", "Apache-2.0"
SUPPLIER = f"Organization: {VENDOR}"
DESCRIPTION = "GPU inference in clusters that must never reach the internet"
CHANGED = "-dirty"
"""Follows the commit where tracked files differ from it: nothing can be rebuilt from such a revision."""
_OCI = "org.opencontainers.image."


@dataclass(frozen=True)
class Revision:
    """A commit: 40 hexadecimal digits (and `-dirty`), empty outside of a clone by git, and its time."""

    commit: str
    created: datetime
    source: str = SOURCE

    @property
    def moment(self) -> str:
        """The time of the commit, by RFC 3339 in UTC."""
        return self.created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def annotations(self, title: str = TITLE) -> dict[str, str]:
        """The annotations of an artifact of this commit."""
        named = {
            "created": self.moment,
            "description": DESCRIPTION,
            "licenses": LICENCE,
            "revision": self.commit,
            "source": self.source,
            "title": title,
            "vendor": VENDOR,
            "version": __version__,
        }
        return {_OCI + name: value for name, value in named.items() if value}


def revision_of(source: Path = REPOSITORY) -> Revision:
    """The commit that is checked out there; SOURCE_DATE_EPOCH overrides its time. Raises BuildError."""
    url = os.environ.get(SOURCE_VARIABLE) or SOURCE
    if not (source / ".git").exists():
        return Revision("", datetime.fromtimestamp(int(os.environ.get(EPOCH) or 0), UTC), url)
    commit, seconds = git("log", "-1", "--format=%H %ct", source=source).split()
    is_changed = git("status", "--porcelain", "--untracked-files=no", source=source)
    created = datetime.fromtimestamp(int(os.environ.get(EPOCH) or seconds), UTC)
    return Revision(commit + (CHANGED if is_changed else ""), created, url)


def build_facts(revision: Revision) -> dict[str, str]:
    """What the command line and bundle.json say of a commit."""
    return {"created": revision.moment, "revision": revision.commit, "source": revision.source}


def builder() -> dict[str, str]:
    """The parts of this machine that the bytes depend on: archives are compressed by Python's zlib."""
    return {"python": platform.python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}


def git(*arguments: str, source: Path = REPOSITORY) -> str:
    """What git prints about a clone. Raises BuildError."""
    done = subprocess.run(["git", *arguments], cwd=source, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"a release is built from a clone by git: {done.stderr.strip()}")
    return done.stdout.strip()

"""The commit that this package was built from. A package that is run out of a checkout does not say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

BUILD_FILE = "build.json"
"""In the package `hermetic` of an image and of a command line in one file; a wheel and a checkout have none."""


@dataclass(frozen=True, slots=True)
class Build:
    """Commit, repository and time (RFC 3339) of the sources; each empty where it is not recorded."""

    revision: str = ""
    source: str = ""
    created: str = ""


def this_build() -> Build:
    """What was recorded when this package was built."""
    file = files("hermetic") / BUILD_FILE
    if not file.is_file():
        return Build()
    recorded = json.loads(file.read_text(encoding="utf-8"))
    return Build(recorded["revision"], recorded["source"], recorded["created"])

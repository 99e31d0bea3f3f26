"""The table of flags and environment variables of the release that is stood in for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES = Path(__file__).resolve().parent.parent / "tables"


@dataclass(frozen=True)
class Table:
    """As derived from the published package; `flags` by name, each with its shape."""

    version: str
    flags: dict[str, dict[str, Any]]
    environment: frozenset[str]
    shorthands: dict[str, str]


def table_of(version: str, folder: Path = TABLES) -> Table:
    """The table of the version's minor release. Raises FileNotFoundError where the image has none."""
    minor = ".".join(version.split(".")[:2])
    if not (folder / f"{minor}.json").exists():  # SGLang has a table for each release
        minor = version
    stated = json.loads((folder / f"{minor}.json").read_text())
    return Table(version, stated["flags"], frozenset(stated["environment"]), stated["shorthands"])

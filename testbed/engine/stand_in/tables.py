"""The table of flags and environment variables of the vLLM version that is stood in for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES = Path(__file__).resolve().parent.parent / "tables"


@dataclass(frozen=True)
class Table:
    """As derived from vLLM's source distribution; `flags` by name, each with its shape."""

    version: str
    flags: dict[str, dict[str, Any]]
    environment: frozenset[str]
    shorthands: dict[str, str]


def table_of(version: str, folder: Path = TABLES) -> Table:
    """The table of the version's minor release. Raises FileNotFoundError where the image has none."""
    minor = ".".join(version.split(".")[:2])
    stated = json.loads((folder / f"{minor}.json").read_text())
    return Table(version, stated["flags"], frozenset(stated["environment"]), stated["shorthands"])

"""How the stand-in behaves in a test: `stand-in.json` in the model folder, so that the pod itself stays as rendered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

FILE = "stand-in.json"


@dataclass(frozen=True)
class Behaviour:
    """Every key of the file, with what holds without it; durations in seconds.

    `fail_with` names a failure of failures.py, raised when `load_seconds` are over. `traceback` is "full" (as long as
    vLLM's own, which pushes a worker's root cause out of a 2048 byte termination message) or "short".
    `die_after_seconds` is counted from being ready; 0 is never. `join_seconds`: for so long the members of a group wait
    for each other. `hung_shutdown_seconds`: a member that hangs ends so long after SIGTERM. `of_rank`: by the rank as
    text, keys that hold for this member of a group alone. `start_seconds` pass before it joins.
    """

    load_seconds: float = 0.0
    fail_with: str = ""
    traceback: str = "full"
    seconds_per_token: float = 0.01
    teardown_seconds: float = 0.0
    die_after_seconds: float = 0.0
    start_seconds: float = 0.0
    join_seconds: float = 600.0
    hung_shutdown_seconds: float = 9.0
    of_rank: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_behaviour(folder: Path, rank: int = 0) -> Behaviour:
    """What the folder asks of this member. Raises ValueError for an unknown key: a typo would test nothing."""
    file = folder / FILE
    if not file.is_file():
        return Behaviour()
    document: dict[str, Any] = json.loads(file.read_text())
    document |= document.get("of_rank", {}).get(str(rank), {})
    known = {entry.name for entry in fields(Behaviour)}
    if unknown := sorted(set(document) - known):
        raise ValueError(f"{file}: unknown {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return Behaviour(**document)

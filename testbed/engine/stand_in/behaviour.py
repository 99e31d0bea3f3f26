"""How the stand-in behaves in a test: `stand-in.json` in the model folder, so that the pod itself stays as rendered."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

FILE = "stand-in.json"


@dataclass(frozen=True)
class Behaviour:
    """Every key of the file, with what holds without it; durations in seconds.

    `fail_with` names a failure of failures.py, raised when `load_seconds` are over. `traceback` is "full" (as long as
    vLLM's own, which pushes a worker's root cause out of a 2048 byte termination message) or "short".
    `die_after_seconds` is counted from being ready; 0 is never.
    """

    load_seconds: float = 0.0
    fail_with: str = ""
    traceback: str = "full"
    seconds_per_token: float = 0.01
    teardown_seconds: float = 0.0
    die_after_seconds: float = 0.0


def read_behaviour(folder: Path) -> Behaviour:
    """The behaviour that the folder asks for. Raises ValueError for an unknown key: a typo would test nothing."""
    file = folder / FILE
    if not file.is_file():
        return Behaviour()
    document = json.loads(file.read_text())
    known = {entry.name for entry in fields(Behaviour)}
    if unknown := sorted(set(document) - known):
        raise ValueError(f"{file}: unknown {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return Behaviour(**document)

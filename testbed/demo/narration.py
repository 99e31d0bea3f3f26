"""The output of the demo: chapters, lines with the time, and a table of phases."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

_began = time.monotonic()
PHASE_SECONDS = 180
"""How long a phase may take on a machine that others use as well; an idle one needs a few seconds."""
COLUMNS = (22, 6, 24, 44)


def chapter(title: str) -> None:
    """Begin a part of the demo."""
    print(f"\n== {title}", flush=True)


def show(line: str) -> None:
    """One line with the time since the start."""
    print(f"{time.monotonic() - _began:6.1f} s  {line}", flush=True)


def row(*cells: str) -> None:
    """One row of the table of phases."""
    print(
        "          " + " ".join(cell.ljust(width) for cell, width in zip(cells, COLUMNS, strict=True)).rstrip(),
        flush=True,
    )


def watch_phases(
    statuses: Callable[[], list[dict[str, Any]]], done: Callable[[dict[str, str]], bool], seconds: float = PHASE_SECONDS
) -> bool:
    """Print a row whenever a Ready reason changes, until `done(reasons by name)`; False when time is up."""
    seen: dict[str, str] = {}
    last_message = ""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for item in statuses():
            name, ready = item["metadata"]["name"], _ready(item)
            if seen.get(name) != ready["reason"]:
                seen[name] = ready["reason"]
                same = ready["message"] and ready["message"] == last_message
                row(name, ready["status"], ready["reason"], "the same" if same else _short(ready["message"]))
                last_message = ready["message"]
        if done(seen):
            return True
        time.sleep(0.3)
    print(f"still not there after {seconds:.0f} s", file=sys.stderr)
    return False


def _ready(item: dict[str, Any]) -> dict[str, str]:
    conditions = item.get("status", {}).get("conditions", [])
    unseen = {"status": "-", "reason": "(not seen yet)", "message": ""}
    return next((c for c in conditions if c["type"] == "Ready"), unseen)


def _short(message: str) -> str:
    return message if len(message) <= 100 else message[:97] + "..."

"""One file per figure: what was measured, on what, and when the numbers came from one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.machine import facts
from testbed.programs import KUBERNETES_VERSION

FOLDER = Path(__file__).parent / "results"

Result = dict[str, Any]


def save(name: str, figures: dict[str, Any], load_before: float) -> Path:
    """Write `results/NAME.json` and return its path."""
    path = FOLDER / f"{name}.json"
    result = {"machine": facts(KUBERNETES_VERSION), "loadBefore": load_before, "figures": figures}
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path


def load(name: str) -> Result | None:
    """The newest result of this name; None when there is none yet."""
    path = FOLDER / f"{name}.json"
    result: Result | None = json.loads(path.read_text()) if path.exists() else None
    return result

"""What a measured command costs is its own, whatever the process that measures holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench import launched

HELD = 200 * 1024 * 1024
MOST_MIB = 60


def _cost_of(folder: Path, *program: str) -> tuple[int, dict[str, float]]:
    file = folder / "cost.json"
    command = [sys.executable, "-I", "-S", launched.__file__, str(file), sys.executable, "-I", "-S", "-c", *program]
    return subprocess.call(command), json.loads(file.read_text())


def test_the_memory_of_the_one_who_measures_is_not_counted(tmp_path: Path) -> None:
    buffer = b"x" * HELD
    code, cost = _cost_of(tmp_path, "pass")
    assert (code, len(buffer)) == (0, HELD)
    assert 0 < cost["peak_rss"] <= MOST_MIB


def test_that_of_the_command_is_and_its_exit_code_is_handed_on(tmp_path: Path) -> None:
    code, cost = _cost_of(tmp_path, f"import sys; held = b'x' * {HELD}; sys.exit(3)")
    assert code == 3
    assert cost["peak_rss"] >= HELD / 1024**2
    assert cost["cpu_seconds"] > 0

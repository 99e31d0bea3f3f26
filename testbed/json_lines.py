"""Logs with a JSON object on each line, read while their program still writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def json_lines(log: Path, offset: int = 0) -> list[dict[str, Any]]:
    """The objects from byte `offset` on; a last line without its end is not read, nor is one that is no object."""
    with log.open("rb") as stream:
        stream.seek(offset)
        return [json.loads(line) for line in stream if line.startswith(b"{") and line.endswith(b"\n")]

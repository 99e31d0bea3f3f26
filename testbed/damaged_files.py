"""Damage to files that a verification has to find."""

from __future__ import annotations

from pathlib import Path


def flip_a_bit(path: Path, at: int = -1) -> None:
    """Changes one bit and nothing that a stat shows but the time."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)

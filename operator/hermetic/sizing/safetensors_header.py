"""Parses one entry of an untrusted safetensors header."""

from __future__ import annotations

from typing import Any


def tensor_bytes(name: str, tensor: Any) -> tuple[str, int]:
    """Number format and bytes of one tensor. Raises ValueError for an invalid entry."""
    offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
    number_format = tensor.get("dtype") if isinstance(tensor, dict) else None
    if not isinstance(number_format, str) or not 0 < len(number_format) <= 64:
        raise ValueError(f"tensor {name[:80]!r} has no number format")
    if not (isinstance(offsets, list) and len(offsets) == 2 and all(type(one) is int for one in offsets)):
        raise ValueError(f"tensor {name[:80]!r} has no offsets")
    begin, end = offsets
    if not 0 <= begin <= end:
        raise ValueError(f"tensor {name[:80]!r} ends before it begins")
    return number_format, end - begin

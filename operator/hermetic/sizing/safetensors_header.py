"""What a parsed safetensors header adds up to, whoever wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def bytes_by_format(header: object) -> Mapping[str, int]:
    """Bytes of the tensors of one file by number format. Raises ValueError for what no header says."""
    if not isinstance(header, dict):
        raise ValueError("the header is no object")  # noqa: TRY004 - of the file, not of the caller
    found: dict[str, int] = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        number_format, size = _size(name, tensor)
        found[number_format] = found.get(number_format, 0) + size
        if len(found) > 32:
            raise ValueError("the header names more than 32 number formats")
    return found


def _size(name: str, tensor: Any) -> tuple[str, int]:
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

"""Whether a GGUF file is complete: its header names every tensor, whose bytes must be there.

The form: "GGUF" of the documentation of ggml (docs/gguf.md), versions 2 and 3, little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hermetic.weights.opened import OpenedFile

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_ENTRIES = 2**20
_LARGEST_HEADER = 2**29
_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value by its type."""
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74),
    18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2),
    26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
}  # fmt: skip
"""(elements, bytes) of a block by the number format of a tensor; of others only the offset is checked."""


class _CutError(Exception):
    pass


class _Header:
    def __init__(self, file: OpenedFile) -> None:
        self._chunks: Iterator[bytes] = file.chunks()
        self._buffer, self._from = b"", 0
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next bytes. Raises _CutError where the file has fewer."""
        if self.at + count > _LARGEST_HEADER:
            raise _CutError
        while len(self._buffer) - self._from < count:
            chunk = next(self._chunks, b"")
            if not chunk:
                raise _CutError
            self._buffer, self._from = self._buffer[self._from :] + chunk, 0
        content = self._buffer[self._from : self._from + count]
        self._from += count
        self.at += count
        return content

    def number(self, form: str = "<Q") -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def text(self) -> bytes:
        return self.take(self.number())


def wrong_with_gguf(file: OpenedFile) -> tuple[str, str] | None:
    """(expected, found) of a file that is none, or is cut short; None where it is complete."""
    if file.head[:4] != _MAGIC:
        return "a GGUF file", "an empty file" if file.size == 0 else "another content"
    header = _Header(file)
    try:
        header.take(4)
        version = header.number("<I")
        if version not in _VERSIONS:
            return None  # big-endian, or of another release: nothing more is known about it
        end = _end_of_tensors(header)
    except _CutError:
        return "a GGUF file", f"one that is cut short in its header: it has {file.size} bytes"
    return None if file.size >= end else (f"at least {end} bytes", f"{file.size} bytes")


def _end_of_tensors(header: _Header) -> int:
    tensors, entries = header.number(), header.number()
    if max(tensors, entries) > _MOST_ENTRIES:
        raise _CutError
    alignment = 32
    for _ in range(entries):
        key, kind = header.text(), header.number("<I")
        if key == b"general.alignment" and kind == 4:
            alignment = max(1, header.number("<I"))
        else:
            _skip(header, kind)
    ends = [_end_of(header) for _ in range(tensors)]
    begin = -(-header.at // alignment) * alignment
    return begin + max(ends, default=0) if tensors else header.at


def _skip(header: _Header, kind: int) -> None:
    if kind == _STRING:
        header.text()
    elif kind == _ARRAY:
        inner, count = header.number("<I"), header.number()
        if inner in _SIZES:
            header.take(_SIZES[inner] * count)
        else:
            for _ in range(count):
                _skip(header, inner)
    elif kind in _SIZES:
        header.take(_SIZES[kind])
    else:
        raise _CutError


def _end_of(header: _Header) -> int:
    header.text()
    elements = 1
    for _ in range(min(header.number("<I"), 16)):
        elements *= header.number()
    kind, offset = header.number("<I"), header.number()
    count, size = _BLOCKS.get(kind, (1, 0))
    return offset + -(-elements // count) * size

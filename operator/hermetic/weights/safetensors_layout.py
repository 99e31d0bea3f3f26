"""Whether the header of a safetensors file fits the file: every byte belongs to one tensor, and none is missing.

The header is read as a stream, so a false length in it costs no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hermetic.weights.streamed_json import JsonStream, NotJsonError

LARGEST_HEADER = 100_000_000
"""Bytes: the limit of the safetensors library itself."""
MOST_TENSORS = 2**18
METADATA = "__metadata__"
LARGEST_METADATA = 2**24
"""Bytes. The library has no limit but that of the header."""
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
_MOST_DIMENSIONS = 64
_PREFIX = 8
_SHIFT = 2**64


def wrong_with_length(size: int, length: int) -> tuple[str, str] | None:
    """What is wrong with a file of `size` bytes whose header claims `length`: (expected, found); None: nothing."""
    if size < _PREFIX or length > size - _PREFIX:
        return f"at least {length + _PREFIX} bytes for the header", f"{size} bytes"
    if length > LARGEST_HEADER:
        return f"a header of at most {LARGEST_HEADER} bytes", f"{length} bytes"
    return None


def wrong_with_header(
    size: int, length: int, chunks: Iterable[bytes], on_tensor: Callable[[str], object]
) -> tuple[str, str] | None:
    """The same check of the header's content, which arrives in pieces. `on_tensor` gets the name of each tensor."""
    try:
        spans = _spans(chunks, on_tensor)
    except NotJsonError as error:
        return "a header in JSON with the place of every tensor", str(error)
    at = 0
    for span in sorted(spans):
        begin, end = divmod(span, _SHIFT)
        if begin != at:
            explanation = "overlap" if begin < at else "leave a hole"
            return f"a tensor from byte {at}", f"one from byte {begin}: tensors {explanation}"
        at = end
    expected_size = _PREFIX + length + at
    return None if expected_size == size else (f"{expected_size} bytes", f"{size} bytes")


def _spans(chunks: Iterable[bytes], on_tensor: Callable[[str], object]) -> list[int]:
    """Begin and end of each tensor, packed into one number: a header may have a quarter of a million."""
    stream = JsonStream(chunks)
    spans = []
    for name in stream.keys(MOST_TENSORS):
        if name == METADATA:
            must_be_texts(stream.value(LARGEST_METADATA))
            continue
        begin, end = _span(name, stream.value())
        spans.append(begin * _SHIFT + end)
        on_tensor(name)
    stream.finish()
    return spans


def must_be_texts(metadata: Any) -> None:
    """Raises NotJsonError unless it is an object of texts, or null: the library refuses anything else."""
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(text, str) for text in metadata.values())
    ):
        raise NotJsonError(f"{METADATA} is not an object of texts")


def _span(name: str, tensor: Any) -> tuple[int, int]:
    shown = name[:100]
    match tensor:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [begin, end], **other_fields} if not other_fields:
            numbers = [*shape, begin, end]
        case _:
            raise NotJsonError(f"tensor {shown!r} is not exactly dtype, shape and data_offsets")
    if len(shape) > _MOST_DIMENSIONS or not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        raise NotJsonError(f"tensor {shown!r} has a shape or offsets that are not whole numbers")
    if end < begin:
        raise NotJsonError(f"tensor {shown!r} ends at byte {end}, before byte {begin} where it begins")
    if dtype in _BITS:
        elements = 1
        for dimension in shape:
            elements *= dimension
        if elements * _BITS[dtype] != 8 * (end - begin):
            raise NotJsonError(f"tensor {shown!r} has {end - begin} bytes, and its shape and {dtype} need others")
    return begin, end

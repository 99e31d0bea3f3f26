"""Protocol buffers by hand: enough of the wire format for the kubelet's plug-in sockets, without generated code."""

from __future__ import annotations

from collections.abc import Iterator

Value = str | bytes | int | bool
VARINT, BYTES = 0, 2
FIXED_LENGTHS = {1: 8, 5: 4}


def field(number: int, value: Value) -> bytes:
    """One encoded field: numbers and flags as varints, text, bytes and encoded messages with their length."""
    if isinstance(value, int):
        return _varint(number << 3 | VARINT) + _varint(int(value))
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | BYTES) + _varint(len(content)) + content


class Message:
    """A decoded message, read by field number. What is not there reads as the empty value, as in proto3."""

    def __init__(self, encoded: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in _decoded(encoded):
            self._fields.setdefault(number, []).append(value)

    def number(self, number: int) -> int:
        value = self._last(number, 0)
        return value if isinstance(value, int) else 0

    def flag(self, number: int) -> bool:
        return bool(self.number(number))

    def text(self, number: int) -> str:
        return self._bytes(number).decode()

    def texts(self, number: int) -> list[str]:
        return [value.decode() for value in self._fields.get(number, []) if isinstance(value, bytes)]

    def message(self, number: int) -> Message:
        return Message(self._bytes(number))

    def messages(self, number: int) -> list[Message]:
        return [Message(value) for value in self._fields.get(number, []) if isinstance(value, bytes)]

    def mapping(self, number: int) -> dict[str, str]:
        """A `map<string, string>`: on the wire a list of (1: key, 2: value) messages."""
        return {entry.text(1): entry.text(2) for entry in self.messages(number)}

    def _bytes(self, number: int) -> bytes:
        value = self._last(number, b"")
        return value if isinstance(value, bytes) else b""

    def _last(self, number: int, absent: int | bytes) -> int | bytes:
        return self._fields.get(number, [absent])[-1]


def _decoded(encoded: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(encoded):
        key, position = _read_varint(encoded, position)
        if key & 7 == VARINT:
            value, position = _read_varint(encoded, position)
            yield key >> 3, value
            continue
        length = FIXED_LENGTHS.get(key & 7)
        if length is None:
            length, position = _read_varint(encoded, position)
        yield key >> 3, encoded[position : position + length]
        position += length


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(encoded: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = encoded[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position

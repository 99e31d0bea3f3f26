"""JSON read as a stream: the caller walks through objects and lists, and only small values are kept in memory.

Strict: a duplicate key, NaN, a value above its size limit, deep nesting and a missing end are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hermetic.signing.canonical_json import nesting

LARGEST_VALUE = 2**16
"""Bytes of a value that is read as a whole."""
DEEPEST = 32
MOST_KEYS = 256
_BLANKS = " \t\r\n"
_TRIM = 2**18


class NotJsonError(ValueError):
    """The stream is not the expected JSON; the text says why."""


class JsonStream:
    """Reads bytes as they arrive. `offset` is the position in the stream of what is read next.

    The text is decoded as Latin-1, one character for each byte, so that offsets are those of the file; each value is
    then decoded as UTF-8.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._text = ""
        self._at = 0
        self._before = 0
        self._decoder = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)

    @property
    def offset(self) -> int:
        """Bytes that were consumed so far."""
        return self._before + self._at

    def keys(self, most: int = MOST_KEYS) -> Iterator[str]:
        """The keys of the object that begins here; each key's value must be read before the next key."""
        hashes: set[int] = set()
        self._take("{")
        if self._peek() != "}":
            while True:
                key = self.value()
                if not isinstance(key, str):
                    raise NotJsonError("a key is not a text")
                if hash(key) in hashes or len(hashes) == most:
                    raise NotJsonError(f"'{key[:64]}' occurs twice in one object, or the object has too many keys")
                hashes.add(hash(key))
                self._take(":")
                yield key
                if self._peek() != ",":
                    break
                self._take(",")
        self._take("}")

    def items(self) -> Iterator[Any]:
        """The values of the list that begins here."""
        self._take("[")
        if self._peek() != "]":
            while True:
                yield self.value()
                if self._peek() != ",":
                    break
                self._take(",")
        self._take("]")

    def value(self, largest: int = LARGEST_VALUE) -> Any:
        """The value that begins here, of at most so many bytes, however they arrive."""
        first = self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except NotJsonError:
                raise
            except RecursionError:
                raise NotJsonError("it is nested too deeply") from None
            except (ValueError, IndexError) as error:
                if len(self._text) - self._at > largest:
                    raise self._is_too_large(largest) from error
                if not self._fill_twice():
                    raise NotJsonError(
                        f"at byte {self.offset}: the value is not JSON, or its end is missing"
                    ) from error
                continue
            # a number or a literal may continue in the next bytes
            if end < len(self._text) or first in '"{[' or not self._fill():
                break
        if end - self._at > largest:
            raise self._is_too_large(largest)
        text = self._text[self._at : end]
        self._at = end
        if nesting(text) > DEEPEST:
            raise NotJsonError(f"it is nested more than {DEEPEST} deep")
        return value if text.isascii() else self._as_utf8(text)

    def span_of_text(self) -> tuple[int, int]:
        """Skips the string that begins here and returns its begin and end in the stream, without quotes.

        Raises NotJsonError if it contains an escape: Base64 needs none.
        """
        self._take('"')
        start = self.offset
        while True:
            end = self._text.find('"', self._at)
            part = self._text[self._at : end if end >= 0 else len(self._text)]
            if "\\" in part:
                raise NotJsonError("there is an escape in what should be Base64")
            self._at += len(part)
            if end >= 0:
                break
            if not self._fill():
                raise NotJsonError("the end of a text is missing")
        finish = self.offset
        self._at += 1
        return start, finish

    def finish(self) -> None:
        """Raises NotJsonError if anything but whitespace follows."""
        while True:
            if self._text[self._at :].strip(_BLANKS):
                raise NotJsonError(f"at byte {self.offset}: there is more after the end")
            self._at = len(self._text)
            if not self._fill():
                return

    def _peek(self) -> str:
        while True:
            while self._at < len(self._text):
                if (character := self._text[self._at]) not in _BLANKS:
                    return character
                self._at += 1
            if not self._fill():
                raise NotJsonError("the end is missing")

    def _take(self, character: str) -> None:
        if self._peek() != character:
            raise NotJsonError(f"at byte {self.offset}: '{character}' is expected")
        self._at += 1

    def _fill(self) -> bool:
        chunk = next(self._chunks, b"")
        if not chunk:
            return False
        if self._at > _TRIM or self._at == len(self._text):
            self._before += self._at
            self._text, self._at = self._text[self._at :], 0
        self._text += chunk.decode("latin-1")
        return True

    def _fill_twice(self) -> bool:
        """Fills until there is twice as much to read: each attempt to parse a value begins at its begin."""
        target_length = 2 * (len(self._text) - self._at)
        has_grown = False
        while len(self._text) - self._at < target_length and self._fill():
            has_grown = True
        return has_grown

    def _is_too_large(self, largest: int) -> NotJsonError:
        return NotJsonError(f"at byte {self.offset}: no value of at most {largest} bytes")

    def _as_utf8(self, text: str) -> Any:
        try:
            return self._decoder.decode(text.encode("latin-1").decode("utf-8"))
        except UnicodeDecodeError:
            raise NotJsonError("it is not UTF-8") from None


def read_small(content: bytes) -> Any:
    """The only value of a small file, parsed as strictly. Raises NotJsonError."""
    return _read(content, "utf-8", _refuse_constant)


def read_configuration(content: bytes) -> Any:
    """As `read_small`, with NaN and Infinity, which Python's json writes and reads, and behind a byte order mark.

    Published configurations have them: `"time_step_limit": [0.0, Infinity]` in Mamba2Config of transformers.
    """
    return _read(content, "utf-8-sig", float)


def _read(content: bytes, encoding: str, parse_constant: Callable[[str], Any]) -> Any:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        raise NotJsonError("it is not UTF-8") from None
    if nesting(text) > DEEPEST:
        raise NotJsonError(f"it is nested more than {DEEPEST} deep")
    try:
        return json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=parse_constant).decode(text)
    except NotJsonError:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJsonError(f"it is not JSON: {error}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise NotJsonError("a key occurs twice in one object")
    return fields


def _refuse_constant(name: str) -> Any:
    raise NotJsonError(f"it holds {name}, which JSON does not have")

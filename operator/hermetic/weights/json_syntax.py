"""Whether a large file is JSON, in memory that does not depend on its size: a tokenizer has tens of megabytes.

Texts, other values and inner containers are reduced to one character each; what stands between two brackets must then
be one of few sequences. The grammar is that of RFC 8259, with NaN and Infinity, which Python's json writes and reads.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

from hermetic.weights.streamed_json import NotJsonError

_LITERAL = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|NaN|-?Infinity")
_IN_LITERALS = b"-+.0123456789EINaefilnrstuy"
_LONGEST_LITERAL = 2**12
_WRONG_ESCAPE = re.compile(rb'\\(?!["/bfnrt]|u[0-9a-fA-F]{4})')
"""Once pairs of backslashes are gone."""
_UNFINISHED_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_CONTROLS = bytes(range(32))
_RESERVED = b"\\TVC\v\f"
"""Not in any literal: a backslash, what texts, values and containers are reduced to, and blanks of Python alone."""
_LEAF_LIST = re.compile(rb"\[(?:[TVC](?:,[TVC])*+)?\]")
_LEAF_OBJECT = re.compile(rb"\{(?:T:[TVC](?:,T:[TVC])*+)?\}")
_BRACKETS = re.compile(rb"[\[\]{}]")
_CLOSES = {b"]": b"[", b"}": b"{"}
_DEEPEST = 512
# By (container, whether its first value is still to come, whether the next bracket opens): what may stand before that.
_SEQUENCES = {
    (b"[", True, True): re.compile(rb"(?:[TVC],)*+"),
    (b"[", True, False): re.compile(rb"(?:[TVC](?:,[TVC])*+)?"),
    (b"[", False, True): re.compile(rb",(?:[TVC],)*+"),
    (b"[", False, False): re.compile(rb"(?:,[TVC])*+"),
    (b"{", True, True): re.compile(rb"(?:T:[TVC],)*+T:"),
    (b"{", True, False): re.compile(rb"(?:T:[TVC](?:,T:[TVC])*+)?"),
    (b"{", False, True): re.compile(rb",(?:T:[TVC],)*+T:"),
    (b"{", False, False): re.compile(rb"(?:,T:[TVC])*+"),
    (b"", True, True): re.compile(rb""),
}
_REPEATED = ((re.compile(rb"(?:T:[TVC],){2,}+"), b"T:V,"), (re.compile(rb"(?<!:)(?:[TVC],){2,}+"), b"V,"))


def wrong_with_json(chunks: Iterable[bytes]) -> str | None:
    """Why these pieces of one file are no JSON object and no JSON list; None where they are one."""
    scan = _Scan()
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in chunks:
            decoder.decode(chunk)
            scan.add(chunk)
        decoder.decode(b"", final=True)
        scan.end()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    except NotJsonError as error:
        return str(error)
    return None


class _Scan:
    """The brackets that are open, and what followed the last one."""

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self._is_first, self._is_over, self._in_text = True, False, False
        self._escape = self._literal = self._pending = b""

    def add(self, chunk: bytes) -> None:
        """Reads one more piece."""
        # Escapes become one character that is neither quote nor backslash; one that is cut waits for its rest.
        content = (self._escape + chunk).replace(b"\\\\", b"..")
        unfinished = _UNFINISHED_ESCAPE.search(content)
        self._escape = unfinished[0] if unfinished else b""
        content = content[: len(content) - len(self._escape)]
        if _WRONG_ESCAPE.search(content):
            raise NotJsonError("a '\\' begins no escape")
        parts = content.replace(b'\\"', b"..").split(b'"')
        inside = b"".join(parts[0 if self._in_text else 1 :: 2])
        outside = parts[1 if self._in_text else 0 :: 2]
        if inside.translate(None, _CONTROLS) != inside:
            raise NotJsonError("a text has a control character in it")
        begins_inside = self._in_text
        self._in_text = self._in_text == (len(parts) % 2 == 1)
        between = b"".join(outside)
        if between.translate(None, _RESERVED) != between:
            raise NotJsonError("characters outside of its texts are not a value")
        self._read((b"T" if begins_inside and outside else b"") + b"T".join(outside), is_cut=not self._in_text)

    def end(self) -> None:
        """Raises NotJsonError unless everything is complete."""
        if self._in_text or self._escape:
            raise NotJsonError("its end is missing: a text does not end")
        self._read(b"", is_cut=False)
        if self._open:
            raise NotJsonError(f"its end is missing: {len(self._open)} brackets are open")
        if not self._is_over:
            raise NotJsonError("it is empty" if not self._pending else "there is no object and no list")

    def _read(self, outside: bytes, *, is_cut: bool) -> None:
        outside = self._literal + outside
        # A literal at the end may continue in the next piece.
        self._literal = outside[len(outside.rstrip(_IN_LITERALS)) :] if is_cut else b""
        if len(self._literal) > _LONGEST_LITERAL:
            raise NotJsonError("there is no object and no list" if not self._open else "a number has no end")
        outside = outside[: len(outside) - len(self._literal)]
        # Runs of blanks first: they are most of a file that is indented, and two values must not become one.
        outside = _LITERAL.sub(b"V", b" ".join(outside.split()))
        reduced = self._pending + outside.replace(b" ", b"")
        reduced = _LEAF_OBJECT.sub(b"C", _LEAF_LIST.sub(b"C", reduced))
        at = 0
        for bracket in _BRACKETS.finditer(reduced):
            self._step(reduced[at : bracket.start()], bracket[0])
            at = bracket.end()
        self._pending = reduced[at:]
        for repeated, once in _REPEATED:
            self._pending = repeated.sub(once, self._pending)
        if not self._open and self._pending == b"C" and not self._is_over:
            self._is_over, self._pending = True, b""
        if self._is_over and self._pending:
            raise NotJsonError("there is more after the end")

    def _step(self, before: bytes, bracket: bytes) -> None:
        container = self._open[-1] if self._open else b""
        opens = bracket not in _CLOSES
        sequence = _SEQUENCES.get((container, self._is_first, opens))
        if self._is_over or sequence is None or sequence.fullmatch(before) is None:
            raise NotJsonError(f"'{bracket.decode()}' is not expected where it is")
        if opens:
            if len(self._open) == _DEEPEST:
                raise NotJsonError(f"it is nested more than {_DEEPEST} deep")
            self._open.append(bracket)
        elif self._open.pop() != _CLOSES[bracket]:
            raise NotJsonError(f"'{bracket.decode()}' closes another bracket")
        self._is_first = opens
        self._is_over = not self._open

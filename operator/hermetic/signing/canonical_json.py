"""JSON with one parsed value and one byte form.

Written by RFC 8785, for the values that evidence has: objects, lists, text, integers up to 2**53 - 1, true, false and
null. Fractions are excluded: nothing here needs them, and canonical forms differ in them.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from hermetic.signing.faults import EnvelopeFault, refused

DEEPEST = 24
LARGEST_INTEGER = 2**53 - 1

_DIGITS = len(str(LARGEST_INTEGER)) + 1
_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = re.compile(r"[^\[\]{}]+")
_BEGUN = re.compile(r"-|tr?u?|fa?l?s?|nu?l?|u[0-9a-fA-F]{0,4}")


def canonical(value: Any) -> bytes:
    """The bytes of RFC 8785. Raises ValueError for what is not allowed: fractions, huge numbers, invalid text."""
    _must_be_plain(value)
    text = json.dumps(_in_order(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def read_json(content: bytes, subject: str) -> Any:
    """The one value that the bytes hold; `what` names them in messages. Raises EnvelopeRefused.

    Refused: bytes that are not UTF-8, a missing end, a duplicate key, NaN and the infinities, fractions, integers
    beyond 2**53 - 1, anything after the value, and nesting beyond DEEPEST.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        cut = error.end == len(content) and error.reason == "unexpected end of data"
        raise refused(
            EnvelopeFault.TRUNCATED if cut else EnvelopeFault.MALFORMED, f"{subject} is not UTF-8: {error}"
        ) from None
    if nesting(text) > DEEPEST:
        raise refused(EnvelopeFault.NESTED_TOO_DEEPLY, f"{subject} is nested more than {DEEPEST} deep")
    try:
        return json.loads(
            text,
            object_pairs_hook=lambda pairs: _without_duplicates(pairs, subject),
            parse_int=lambda digits: _integer(digits, subject),
            parse_float=lambda digits: _refuse_number(digits, subject),
            parse_constant=lambda name: _refuse_number(name, subject),
        )
    except json.JSONDecodeError as error:
        refusal = EnvelopeFault.TRUNCATED if _is_cut_short(text, error) else EnvelopeFault.MALFORMED
        raise refused(refusal, f"{subject} is not JSON: {error}") from None


def read_canonical_json(content: bytes, subject: str) -> Any:
    """As `read_json`, and the bytes must be exactly those that `canonical` writes."""
    value = read_json(content, subject)
    try:
        same = canonical(value) == content
    except ValueError as error:  # a lone surrogate
        raise refused(EnvelopeFault.MALFORMED, f"{subject} holds {error}") from None
    if not same:
        raise refused(EnvelopeFault.NOT_CANONICAL, f"{subject} is not canonical JSON (RFC 8785)")
    return value


def nesting(text: str) -> int:
    """How deep objects and lists are nested, to be asked before a recursive parser runs.

    Linear, for text that is no JSON too: an unterminated string ends with the text.
    """
    depth = deepest = 0
    for bracket in _NO_BRACKETS.sub("", _STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _in_order(value: Any) -> Any:
    """Keys by their UTF-16 code units: beyond U+FFFF that order differs from the order of code points."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value, key=lambda key: key.encode("utf-16-be"))}
    return [_in_order(item) for item in value] if isinstance(value, list | tuple) else value


def _must_be_plain(value: Any) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"a key that is not a text: {key!r}")  # noqa: TRY004 - a value that cannot be written
            _must_be_plain(key)
            _must_be_plain(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _must_be_plain(item)
    elif isinstance(value, str):
        if not value.isascii():
            _must_be_unicode(value)
    elif value is not None and not isinstance(value, int):
        raise ValueError(f"a {type(value).__name__}, {value!r}, which evidence cannot hold")
    elif value is not None and abs(value) > LARGEST_INTEGER:
        raise ValueError(f"the number {value}, which not every reader can hold")


def _must_be_unicode(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"text that is not Unicode: {error.reason}") from error


def _without_duplicates(pairs: list[tuple[str, Any]], subject: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise refused(EnvelopeFault.DUPLICATE_KEYS, f"{subject} contains '{key[:64]}' twice in one object")
        fields[key] = value
    return fields


def _integer(digits: str, subject: str) -> int:
    if len(digits) > _DIGITS or abs(number := int(digits)) > LARGEST_INTEGER:
        _refuse_number(digits, subject)
    return number


def _refuse_number(digits: str, subject: str) -> NoReturn:
    shown = digits if len(digits) <= 32 else f"{digits[:32]}..."
    raise refused(
        EnvelopeFault.MALFORMED, f"{subject} holds the number {shown}: only whole numbers up to 2**53 - 1 are"
    )


def _is_cut_short(text: str, error: json.JSONDecodeError) -> bool:
    remainder = text[error.pos :]
    return not remainder.strip() or error.msg.startswith("Unterminated string") or bool(_BEGUN.fullmatch(remainder))

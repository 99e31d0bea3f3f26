"""Makes text from outside safe to show: control characters are replaced."""

from __future__ import annotations

import re

# Characters that XML 1.0 forbids, and control characters of terminals; a lone surrogate cannot be encoded at all.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BLANKS = re.compile(r"\s+")


def printable(text: str) -> str:
    """The text with control characters, and those that change the direction of text, replaced by U+FFFD."""
    return _DIRECTION.sub("\ufffd", _UNPRINTABLE.sub("\ufffd", text))


def one_line(text: str) -> str:
    """Printable text without line breaks or surrounding blanks; "-" where nothing is left."""
    return _BLANKS.sub(" ", printable(text)).strip() or "-"

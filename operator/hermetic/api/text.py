"""Text for people: safe to show (control characters are replaced), and of bounded length."""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def cut(text: str, longest: int) -> str:
    """The text; a longer one is cut and ends with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def first_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` texts, and how many more there are: "a, b and 3 more"; with "; " "a; b; and 3 more"."""
    rest = len(texts) - most
    more = f"{'; and' if separator == '; ' else ' and'} {rest} more" if rest > 0 else ""
    return separator.join(texts[:most]) + more

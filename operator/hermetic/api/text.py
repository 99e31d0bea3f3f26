"""Text that came from outside, before it is shown: what a terminal or a reader would obey is made visible."""

from __future__ import annotations

import re

# What XML 1.0 cannot hold at all, and what a terminal would obey; a lone surrogate cannot even be encoded.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BLANKS = re.compile(r"\s+")


def printable(text: str) -> str:
    """The text with every character that a reader could not see, or that would turn others around, made visible."""
    return _DIRECTION.sub("\ufffd", _UNPRINTABLE.sub("\ufffd", text))


def one_line(text: str) -> str:
    """Printable text without line breaks or blanks at its ends; "-" where nothing is left."""
    return _BLANKS.sub(" ", printable(text)).strip() or "-"

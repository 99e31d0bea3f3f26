"""Text for people: safe to show (control characters are replaced), of bounded length, and in lines and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# Characters that XML 1.0 forbids, and control characters of terminals; a lone surrogate cannot be encoded at all. The
# separators of lines and paragraphs of Unicode begin a line in many programs, and a terminal shows nothing for them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# Those that change the direction of text, and those without a width, by which two texts that differ look the same.
_INVISIBLE = re.compile(
    "[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_BLANKS = re.compile(r"\s+")


def printable(text: str) -> str:
    """The text with control characters, and invisible ones such as marks of direction, replaced by U+FFFD."""
    return _INVISIBLE.sub("\ufffd", _UNPRINTABLE.sub("\ufffd", text))


def one_line(text: str) -> str:
    """Printable text without line breaks or surrounding blanks; "-" where nothing is left."""
    return _BLANKS.sub(" ", printable(text)).strip() or "-"


def single_line(text: str, longest: int) -> str:
    """The text as one printable line of at most `longest` characters; "" where it is blank."""
    if len(text) <= longest and text.isprintable():
        return text
    return cut(one_line(text), longest) if text.strip() else ""


def cut(text: str, longest: int) -> str:
    """The text; a longer one is cut and ends with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cut_middle(text: str, longest: int) -> str:
    """The text; a longer one loses its middle.

    Messages of programs begin with the object and end with the cause: paths and identifiers stand between them.
    """
    if len(text) <= longest:
        return text
    head = (longest - 1) // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def first_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` texts, and how many more there are: "a, b and 3 more"; with "; " "a; b; and 3 more"."""
    omitted = len(texts) - most
    more = f"{'; and' if separator == '; ' else ' and'} {omitted} more" if omitted > 0 else ""
    return separator.join(texts[:most]) + more


def wrapped(text: str, width: int, indent: str = "", hanging: str | None = None) -> Iterator[str]:
    """The text in lines of this width, the first with `indent`, the others with `hanging`; 0: in one line.

    Lines break between words. A word that is longer than a line, an ARM id, has a line of its own.
    """
    if not width or len(indent) + len(text) <= width:
        yield f"{indent}{text}".rstrip()
        return
    import textwrap  # few lines are longer than a terminal is wide

    below = indent if hanging is None else hanging
    shape = textwrap.TextWrapper(
        width, initial_indent=indent, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )
    yield from shape.wrap(text)


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table as lines: columns are two blanks apart. Raises ValueError where rows differ in their number of cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

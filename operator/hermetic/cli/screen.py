"""Status reports on a screen: wrapped between words and coloured on a terminal, else plain."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from hermetic.api.text import printable
from hermetic.cli.options import color_is_unwanted
from hermetic.cli.output import echo, shown
from hermetic.cli.status.report import DeploymentReport
from hermetic.cli.status.text import COLUMNS, StatusLine, blocked, cluster_lines, headline, lines, table
from hermetic.cli.wrapping import columns, fitted, in_rows, wrapped

# From this width on the text of a line is beside its label; on a narrower terminal it is below.
ROOMY = 80
COLOURED = 60
LABEL_WIDTH, WORD_WIDTH = 18, 7
COMMAND_INDENT = "    "
BELOW = " " * 6
STRONG = "strong"
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "good": {"fg": "green"},
    "bad": {"fg": "red", "bold": True},
    "unsure": {"fg": "yellow"},
    STRONG: {"bold": True},
}
_TONE_OF_TRUTH = {"True": "good", "False": "bad"}


def show_one(report: DeploymentReport, now: datetime) -> None:
    """One deployment in full."""
    for row in wrapped(printable(headline(report)), columns(), hanging="  "):
        _put((row, STRONG))
    for line in lines(report, now):
        if line.command:
            echo(f"{COMMAND_INDENT}{line.text}")
        else:
            _show(line)


def _show(line: StatusLine) -> None:
    """Label, word and text. Commands are printed elsewhere: they stay one line, however long."""
    width = columns()
    is_roomy = not width or width >= ROOMY
    start = f"  {line.label:<{LABEL_WIDTH}}  {line.word:<{WORD_WIDTH}}  "
    rows = list(wrapped(printable(line.text), width, " " * len(start) if is_roomy else BELOW))
    if is_roomy:
        # the text is wrapped in its column, and the label replaces its indent
        first = (rows or [""])[0][len(start) :]
        word = f"{line.word:<{WORD_WIDTH}}"
        _put((f"  {line.label:<{LABEL_WIDTH}}  ", ""), (word, line.tone), (f"  {first}", ""))
        rows = rows[1:]
    elif line.label:
        _put((f"  {line.label}: ", ""), (line.word, line.tone))
    for row in rows:
        if row.strip():
            echo(row)


def show_many(reports: Sequence[DeploymentReport], now: datetime) -> None:
    """A table, below it what blocks each, and last the state of the proof of isolation."""
    rows = [tuple(printable(cell or "-") for cell in row) for row in table(reports)]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    width = columns()
    if not width or sum(widths) + 2 * (len(widths) - 1) <= width:
        _put(("  ".join(map(str.ljust, COLUMNS, widths)), STRONG))
        for row in rows:
            _put(*_coloured(map(str.ljust, row, widths)))
    else:
        for row in rows:
            _stacked(row, width)
    for line in _below(reports, now):
        for part in fitted(printable(line), width):
            echo(part)


def _below(reports: Sequence[DeploymentReport], now: datetime) -> Iterator[str]:
    yield from blocked(reports)
    if reports and (proof := reports[0].proof) is not None:
        yield from cluster_lines(proof, now)


def _stacked(row: Sequence[str], width: int) -> None:
    """One row of a table that is wider than the terminal: namespace and name, then each cell with its column."""
    cells = dict(zip(COLUMNS, row, strict=True))
    _put((f"{cells['NAMESPACE']}/{cells['NAME']}", STRONG))
    pieces = [f"{name.lower()} {cell}" for name, cell in cells.items() if name not in {"NAMESPACE", "NAME"}]
    for line in in_rows(pieces, width, "  "):
        echo(line)


def _coloured(cells: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Cells with two blanks between, each with its style: READY is coloured by its value."""
    for name, cell in zip(COLUMNS, cells, strict=True):
        yield cell, _TONE_OF_TRUTH.get(cell.strip(), "unsure") if name == "READY" else ""
        yield "  ", ""


def _put(*parts: tuple[str, str]) -> None:
    """One line of parts (text, style), without trailing blanks."""
    styled_parts = [(shown(text), _STYLES.get(style, {})) for text, style in parts]
    while styled_parts and not styled_parts[-1][0].strip():
        styled_parts.pop()
    if styled_parts:
        styled_parts[-1] = (styled_parts[-1][0].rstrip(), styled_parts[-1][1])
    styled = (click.style(text, **style) if style else text for text, style in styled_parts)
    click.echo("".join(styled if _has_colours() else (text for text, _ in styled_parts)))


def _has_colours() -> bool:
    """Not with --no-color, NO_COLOR or TERM=dumb, and not where a terminal is too narrow for layout."""
    context = click.get_current_context(silent=True)
    plain = color_is_unwanted() or (context is not None and context.color is False)
    return sys.stdout.isatty() and not plain and columns() >= COLOURED

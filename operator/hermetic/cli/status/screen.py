"""Status reports on a screen: wrapped between words and coloured on a terminal, else plain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from hermetic.api.text import printable, wrapped
from hermetic.cli.status.report import DeploymentReport
from hermetic.cli.status.text import (
    COLUMNS,
    LEFT_OUT,
    WIDE_COLUMNS,
    StatusLine,
    blocked,
    cluster_lines,
    headline,
    lines,
    table,
)
from hermetic.cli.terminal import STRONG, columns, echo, echo_toned, fitted, in_rows

# From this width on the text of a line is beside its label; on a narrower terminal it is below.
ROOMY = 80
LABEL_WIDTH, WORD_WIDTH = 18, 7
COMMAND_INDENT = "    "
BELOW = " " * 6
_TONE_OF_TRUTH = {"True": "good", "False": "bad"}


def show_one(report: DeploymentReport, now: datetime, *, everything: bool = False) -> None:
    """One deployment in full; with `everything` also every finding on the cluster."""
    for row in wrapped(printable(headline(report)), columns(), hanging="  "):
        echo_toned((row, STRONG))
    for line in lines(report, now, everything=everything):
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
        echo_toned((f"  {line.label:<{LABEL_WIDTH}}  ", ""), (word, line.tone), (f"  {first}", ""))
        rows = rows[1:]
    elif line.label:
        echo_toned((f"  {line.label}: ", ""), (line.word, line.tone))
    for row in rows:
        if row.strip():
            echo(row)


def show_many(
    reports: Sequence[DeploymentReport], now: datetime, *, everything: bool = False, wide: bool = False
) -> None:
    """A table, below it what blocks each, and last the state of the proof of isolation.

    A narrow terminal loses columns first (LEFT_OUT), and only then the form of a table. `wide`: every column.
    """
    rows = [dict(zip(WIDE_COLUMNS, (printable(cell or "-") for cell in row), strict=True)) for row in table(reports)]
    width = columns()
    names = list(WIDE_COLUMNS if wide else COLUMNS)
    for name in () if wide else LEFT_OUT:
        if width and _table_width(names, rows) > width:
            names.remove(name)
    if not width or _table_width(names, rows) <= width:
        widths = {name: _column_width(name, rows) for name in names}
        echo_toned(("  ".join(name.ljust(widths[name]) for name in names), STRONG))
        for row in rows:
            echo_toned(*_coloured({name: row[name].ljust(widths[name]) for name in names}))
    else:
        for row in rows:
            _stacked(row if wide else {name: row[name] for name in COLUMNS}, width)
    for line in _below(reports, now, everything=everything):
        for part in fitted(printable(line), width):
            echo(part)


def _column_width(name: str, rows: Sequence[Mapping[str, str]]) -> int:
    return max(len(name), *(len(row[name]) for row in rows))


def _table_width(names: Sequence[str], rows: Sequence[Mapping[str, str]]) -> int:
    return sum(_column_width(name, rows) for name in names) + 2 * (len(names) - 1)


def _below(reports: Sequence[DeploymentReport], now: datetime, *, everything: bool) -> Iterator[str]:
    yield from blocked(reports)
    if reports and (proof := reports[0].proof) is not None:
        yield from cluster_lines(proof, now, everything=everything)


def _stacked(cells: Mapping[str, str], width: int) -> None:
    """One row of a table that is wider than the terminal: namespace and name, then each cell with its column."""
    echo_toned((f"{cells['NAMESPACE']}/{cells['NAME']}", STRONG))
    pieces = [f"{name.lower()} {cell}" for name, cell in cells.items() if name not in {"NAMESPACE", "NAME"}]
    for line in in_rows(pieces, width, "  "):
        echo(line)


def _coloured(cells: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Cells with two blanks between, each with its style: READY is coloured by its value."""
    for name, cell in cells.items():
        yield cell, _TONE_OF_TRUTH.get(cell.strip(), "unsure") if name == "READY" else ""
        yield "  ", ""

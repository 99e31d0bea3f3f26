"""An audit report on a screen: coloured on a terminal, else plain."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping

import click

from hermetic.audit.findings import CheckPage, Report
from hermetic.audit.report.table import WIDTH, Tone, lines
from hermetic.cli.output import shown

WIDEST = 140
_COLORS: Mapping[Tone, dict[str, object]] = {
    Tone.BAD: {"fg": "red", "bold": True},
    Tone.UNSURE: {"fg": "yellow"},
    Tone.GOOD: {"fg": "green"},
    Tone.STRONG: {"bold": True},
    Tone.PLAIN: {},
}


def show(report: Report, pages: Mapping[str, CheckPage], *, plain: bool) -> None:
    """Writes the table to standard output, as wide as the terminal."""
    is_terminal = sys.stdout.isatty()
    colored = is_terminal and not plain
    width = min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDEST) if is_terminal else WIDTH
    for line in lines(report, pages, width=width):
        text = shown(line.text.rstrip())
        click.echo(click.style(text, **_COLORS[line.tone]) if colored else text)  # type: ignore[arg-type]

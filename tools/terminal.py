"""Commands run on a pseudo-terminal, and what they print as an SVG picture: text, no script, no font to fetch.

A picture has a fixed number of columns; a longer line goes on in the next row, where possible after a blank. The
command chooses the colours.
"""

from __future__ import annotations

import os
import re
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from pathlib import Path

from rich.color import parse_rgb_hex
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS = 100


def _theme(paper_and_ink: str, colors: str) -> TerminalTheme:
    """A theme of colours in hexadecimal: background and text, then the eight of a terminal from black to white."""
    background, foreground, *normal = (parse_rgb_hex(color) for color in f"{paper_and_ink} {colors}".split())
    return TerminalTheme(background, foreground, [(color.red, color.green, color.blue) for color in normal])


THEMES = {
    "light": _theme("f6f8fa 1f2328", "1f2328 b3121d 17653a 855300 0b57b8 5b3fa8 006068 55606f"),
    "dark": _theme("0d1117 e6edf3", "30363d ff8d8d 7fd6a2 f3bf5c 8abaff c3aefc 76e3ea a3b0bf"),
}
"""Background, text, and the eight colours of a terminal, with the contrast of the audit's HTML report."""
OUTSIDE = frozenset({"MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKELEVEL", "NO_COLOR", "FORCE_COLOR"})
"""Variables of whoever starts the recording that change what a command prints: those of make and of colours."""
SVG = Path(__file__).with_name("templates") / "terminal.svg"
"""The template of rich without its fonts, which a browser would fetch from another host."""


@dataclass(frozen=True)
class Run:
    """One command as a person types it, and what it printed with the escape sequences of its colours.

    `rows`: how many rows of the output a picture shows, and below them how many were left out; None shows all.
    """

    typed: str
    output: str
    rows: int | None = None


def output_on_terminal(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """The exit code of a command, and everything that it writes to a terminal of `COLUMNS` columns."""
    controller, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (50, COLUMNS))
    inherited = {name: value for name, value in os.environ.items() if name not in OUTSIDE}
    variables = {**inherited, **environment, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    with subprocess.Popen(
        command, cwd=folder, env=variables, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    ) as process:
        os.close(terminal)
        output = b"".join(iter(lambda: _read(controller), b""))
    os.close(controller)
    return process.returncode, output.decode(errors="replace").replace("\r\n", "\n")


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 1 << 16)
    except OSError:  # Linux reports the end of a terminal as an error, not as an empty read
        return b""


def rows_of(output: str) -> list[Text]:
    """The output as rows of at most `COLUMNS` characters, in colour; a row that was written anew counts once."""
    console = _console()
    lines = [Text.from_ansi(line) for line in output.rstrip("\n").split("\n")]
    return [row for line in lines for row in (line.wrap(console, COLUMNS, overflow="fold") if line else [line])]


def picture(runs: Sequence[Run], name: str, theme: str) -> str:
    """The commands and their output as one SVG. `name` is the title of the window, `theme` one of `THEMES`."""
    console = _console()
    rows = [row for run in runs for row in (*_rows_of_run(run), Text(""))]
    for row in rows:
        console.print(row, no_wrap=True, overflow="ignore", crop=False, highlight=False)
    template = (
        SVG.read_text(encoding="utf-8")
        .replace("NAME", _for_template(name))
        .replace("TEXT", _for_template("\n".join(map(str, rows))))
    )
    svg = console.export_svg(title=name, theme=THEMES[theme], code_format=template, unique_id="terminal")
    svg = re.sub(r"<text [^>]*>\s*</text>", "", svg)  # the line breaks
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"


def _rows_of_run(run: Run) -> list[Text]:
    prompt = Text.assemble(("$ ", "bold green"), (run.typed, "bold"))
    rows = rows_of(run.output)
    left_out = 0 if run.rows is None else len(rows) - run.rows
    if left_out <= 0:
        return [prompt, *rows]
    return [prompt, *rows[: run.rows], Text(f"... ({left_out} more lines)", "italic")]


def _console() -> Console:
    """A console that records what is printed to it, and prints nothing."""
    return Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False
    )


def _for_template(text: str) -> str:
    """The text as XML in a format string."""
    return escape(text).replace("{", "{{").replace("}", "}}")

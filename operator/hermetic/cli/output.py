"""Output streams: data to standard output, UTF-8 independent of the terminal; notes to standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from hermetic.api.text import printable
from hermetic.cli.wrapping import columns, fitted


def write(text: str) -> None:
    """Data for programs: YAML and JSON are UTF-8 by definition."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def write_json(value: Any) -> None:
    """One JSON document, indented, keys in their order."""
    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def note(text: str) -> None:
    """A note for people, not for programs: a comment, in case both streams end in one file."""
    click.echo(f"# {printable(text)}", err=True)


def echo(text: str) -> None:
    """Text for people, in characters that the terminal can show."""
    click.echo(shown(text))


def echo_fitted(line: str) -> None:
    """The same for one line of a report, wrapped between words on a narrow terminal."""
    for part in fitted(printable(line), columns()):
        echo(part)


def shown(text: str) -> str:
    """The text in characters that standard output can show, without control characters."""
    encoding = sys.stdout.encoding or "utf-8"
    return printable(text).encode(encoding, errors="backslashreplace").decode(encoding)

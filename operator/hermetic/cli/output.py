"""Where words go: data to standard output, in UTF-8 whatever the terminal says; notes to standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from hermetic.api.text import printable
from hermetic.cli.wrapping import columns, fitted


def write(text: str) -> None:
    """Data that a program may read: YAML and JSON are UTF-8 by definition."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def write_json(value: Any) -> None:
    """One JSON document, indented, keys in their order."""
    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def note(text: str) -> None:
    """Something that a person should know and a program need not: a comment, should both streams end in one file."""
    click.echo(f"# {printable(text)}", err=True)


def say(text: str) -> None:
    """Words for people, in what the terminal can show."""
    click.echo(shown(text))


def say_fitted(line: str) -> None:
    """The same of one line of a report, wrapped between words where the terminal is narrower."""
    for part in fitted(printable(line), columns()):
        say(part)


def shown(text: str) -> str:
    """The text in letters that standard output can show, and nothing that a terminal would obey."""
    encoding = sys.stdout.encoding or "utf-8"
    return printable(text).encode(encoding, errors="backslashreplace").decode(encoding)

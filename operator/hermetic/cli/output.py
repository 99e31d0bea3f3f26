"""Where words go: data to standard output, in UTF-8 whatever the terminal says; notes to standard error."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import click

_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def write(text: str) -> None:
    """Data that a program may read: YAML and JSON are UTF-8 by definition."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def write_json(value: Any) -> None:
    """One JSON document, indented, keys in their order."""
    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def printable(text: str) -> str:
    """The text without what a terminal would obey: an engine's last words are shown here, and anybody's error."""
    return _OBEYED.sub("?", text)


def note(text: str) -> None:
    """Something that a person should know and a program need not: a comment, should both streams end in one file."""
    click.echo(f"# {printable(text)}", err=True)


def say(text: str) -> None:
    """Words for people, in what the terminal can show."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(printable(text).encode(encoding, errors="backslashreplace").decode(encoding))

"""Strings in OSCAL's data types: names are XML tokens, values single lines, prose is Markdown."""

from __future__ import annotations

import re

from hermetic.api.text import one_line

NAMESPACE = "https://hermetic.dev/ns/oscal"
_NOT_IN_TOKEN = re.compile(r"[^\w.\-]")
_MARKDOWN = re.compile(r"([\\<\[`])")


def prop(name: str, value: str) -> dict[str, str]:
    """One property in our namespace: `name` must be a token already, `value` becomes a single line, never empty."""
    return {"name": name, "ns": NAMESPACE, "value": one_line(value)}


def markup(text: str) -> str:
    """Text escaped so that Markdown renders it as plain text: no tag, no link, no code span."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def token(text: str) -> str:
    """An XML token of the text: a letter or '_' first, then letters, digits, '.', '-' and '_'."""
    shown = _NOT_IN_TOKEN.sub("_", text)
    return shown if shown[:1].isalpha() or shown[:1] == "_" else f"_{shown}"

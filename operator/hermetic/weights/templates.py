"""Whether a chat template is one: parsed as transformers parses it, and never run.

`_cached_compile_jinja_template` of transformers (utils/chat_template_utils.py) has the extensions `loopcontrols` and a
tag `generation`. Filters and functions are looked up when the template runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

from hermetic.weights.opened import OpenedFile

LARGEST_TEMPLATE = 2**20
_NAME = re.compile(r".+\.(?:jinja|jinja2|j2)")


def wrong_with_template_file(file: OpenedFile) -> tuple[str, str] | None:
    """(expected, found) of a template that is cut, empty or none; None for any other file."""
    if not _NAME.fullmatch(file.name.casefold()):
        return None
    if file.size > LARGEST_TEMPLATE:
        return f"at most {LARGEST_TEMPLATE} bytes", f"{file.size} bytes"
    try:
        text = file.bytes_at(0, LARGEST_TEMPLATE).decode()
    except UnicodeDecodeError:
        return "a chat template", "content that is not UTF-8"
    return wrong_with_template(text)


def wrong_with_template(text: str) -> tuple[str, str] | None:
    """The same of a template that is a value of a configuration."""
    if not text.strip():
        return "a chat template", "an empty one"
    if "\0" in text:
        return "a chat template", "one with a NUL"
    from jinja2 import TemplateSyntaxError

    try:
        _environment().parse(text)
    except TemplateSyntaxError as error:
        return "a chat template in Jinja", f"line {error.lineno}: {str(error.message)[:200]}"
    except (RecursionError, ValueError, OverflowError) as error:
        return "a chat template in Jinja", f"one that cannot be parsed: {type(error).__name__}"
    return None


def templates_in(configuration: Any) -> Iterator[str]:
    """The templates of a tokenizer's or processor's configuration: one text, texts by name, or a list of both."""
    templates = configuration.get("chat_template") if isinstance(configuration, dict) else None
    if isinstance(templates, str):
        yield templates
    elif isinstance(templates, dict):
        yield from (text for text in templates.values() if isinstance(text, str))
    elif isinstance(templates, list):
        named = (entry.get("template") for entry in templates if isinstance(entry, dict))
        yield from (text for text in named if isinstance(text, str))


@cache
def _environment() -> Environment:
    """Loaded only where a model has a template."""
    from jinja2 import Environment, nodes
    from jinja2.ext import Extension
    from jinja2.parser import Parser

    class Generation(Extension):
        """`{% generation %}` marks what a model answers, for training."""

        tags = {"generation"}  # noqa: RUF012 - the form of jinja2

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    return Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])  # noqa: S701

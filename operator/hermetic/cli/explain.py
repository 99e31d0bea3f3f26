"""`hermetic explain`: what a code, a reason, a condition, a check or a reserved name means, and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

import click

from hermetic.api.text import wrapped
from hermetic.audit.remedies.steps import WARNING, steps_of
from hermetic.cli.explanations import Page, Sort, page_of, pages
from hermetic.cli.options import common_options
from hermetic.cli.terminal import beside, columns, echo, write_json
from hermetic.errors import InputError

SCHEMA = "hermetic.dev/explanation/v1"
WIDTH = 100
_PLURALS = {
    Sort.REFUSAL: "refusals of attestations",
    Sort.CHAIN: "findings about a chain of attestations",
    Sort.WEIGHTS: "findings about weights",
}


@click.command(
    "explain",
    context_settings={"ignore_unknown_options": True},  # a reserved flag is a valid NAME
    epilog="Example: hermetic explain IsolationEvidenceStale\n\n"
    "Example: hermetic explain HRM-API-001\n\n"
    "Example: hermetic explain subnet-default-outbound\n\n"
    "Example: hermetic explain --trust-remote-code",
)
@click.argument("name", required=False, metavar="[NAME]")
@common_options(cluster=False)
def command(name: str | None, output: str) -> None:
    """Explain an error code, a reason, a condition, a check, or a reserved flag or variable. Works offline.

    Without NAME: everything that can be explained.
    """
    if name is None:
        _list_all(output)
        return
    page = page_of(name)
    if page is None:
        raise InputError(f"nothing is called '{name}'{_did_you_mean(name)}", fix=_where_else(name))
    if output == "json":
        write_json({"schema": SCHEMA, **_as_json(page)})
    else:
        echo("\n".join(_as_text(page)))


def _list_all(output: str) -> None:
    if output == "json":
        write_json({"schema": SCHEMA, "pages": [_as_json(page) for page in pages().values()]})
        return
    for sort in Sort:
        of_sort = [page for page in pages().values() if page.sort is sort]
        widest = max(len(page.name) for page in of_sort)
        echo(_PLURALS.get(sort, f"{sort.value}s"))
        for page in of_sort:
            for line in beside(page.name, widest, page.meaning, columns()):
                echo(line)


def _as_text(page: Page) -> Iterator[str]:
    yield f"{page.name} ({page.sort.value})"
    yield from _paragraph("", page.meaning)
    if page.remedy:
        yield from _what_to_do(page.remedy)
    for title, text in (page.more or {}).items():
        yield from _paragraph(title, text)


def _paragraph(title: str, text: str) -> Iterator[str]:
    yield ""
    if title:
        yield f"{title}:"
    yield from map(_indented, text.splitlines())


def _what_to_do(remedy: str) -> Iterator[str]:
    """Separates prose and commands: a command is never wrapped, so that it can be copied."""
    yield from _paragraph("What to do", "")
    for position, step in enumerate(steps_of(remedy)):
        if position:
            yield ""
        if step.explanation:
            yield _indented(step.explanation)
        if step.warning:
            yield _indented(f"{WARNING} {step.warning}")
        if step.commands and (step.explanation or step.warning):
            yield ""
        yield from (f"    {command}" for command in step.commands)


def _indented(line: str) -> str:
    return "\n".join(wrapped(line, min(WIDTH, columns() or WIDTH), "  ", "    "))


def _as_json(page: Page) -> dict[str, Any]:
    return {
        "name": page.name,
        "sort": page.sort.value,
        "meaning": page.meaning,
        "remedy": page.remedy,
        "more": dict(page.more or {}),
    }


def _where_else(name: str) -> str:
    if re.fullmatch(r"(spec|status)(\.\w+)*", name):
        return f"docs/api.md describes fields (with a cluster: kubectl explain modeldeployment.{name})"
    return "hermetic explain lists every name"


def _did_you_mean(name: str) -> str:
    if name.startswith(("spec.", "status.")):
        return ""
    names = {page.casefold(): page for page in pages()}
    near = difflib.get_close_matches(name.casefold(), names, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(names[key] for key in near)}?" if near else ""

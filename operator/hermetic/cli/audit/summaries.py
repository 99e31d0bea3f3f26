"""Summaries on standard output and in files, and the JSON reports that a summary is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from hermetic.audit.checks.registry import PAGES
from hermetic.audit.result.comparison import NotABaseline
from hermetic.audit.summary.cluster_result import StoredReport
from hermetic.audit.summary.forms import SCHEMA, rendered
from hermetic.audit.summary.summary import Summary, summarize
from hermetic.cli.audit.files import content_of, write_file
from hermetic.cli.exit_codes import write_to_devnull
from hermetic.cli.terminal import echo_fitted, write
from hermetic.errors import InputError

SUMMARY = "summary"
"""The name of the files of a summary beside the reports."""
ENDINGS = {".txt": "table", ".json": "json", ".csv": "csv", ".html": "html", ".htm": "html"}


def write_summary(summary: Summary, form: str, files: Sequence[Path]) -> None:
    """Write the files, then print the summary. A closed pipe keeps the exit code. Raises Unreachable."""
    for file in files:
        write_file(file, rendered(form_of(file), summary))
    try:
        if form == "table":
            for line in rendered(form, summary).splitlines():
                echo_fitted(line)
        else:
            write(rendered(form, summary))
    except BrokenPipeError:
        write_to_devnull()


def form_of(file: Path) -> str:
    """The form that the ending of a file selects. Raises InputError for another ending."""
    form = ENDINGS.get(file.suffix.lower())
    if form is None:
        raise InputError(
            f"--out {file}: the ending '{file.suffix}' selects no form of a summary",
            fix=f"use one of {', '.join(ENDINGS)}",
        )
    return form


def summary_of_files(names: Sequence[Path], *, now: datetime, max_age: timedelta) -> Summary:
    """The summary of reports that lie in files, or in folders (*.json). Raises InputError, Unreachable."""
    reports = list(_reports_in(names))
    if not reports:
        raise InputError("no JSON report was found", fix="hermetic audit --clusters FILE --reports FOLDER")
    try:
        return summarize(reports, PAGES, now=now, max_age=max_age)
    except NotABaseline as error:
        raise InputError(str(error), fix="name reports that 'hermetic audit -o json' or --reports wrote") from error


def _reports_in(names: Sequence[Path]) -> Iterator[StoredReport]:
    for name in names:
        for file in sorted(name.glob("*.json")) if name.is_dir() else (name,):
            content = content_of(file)
            if not _is_summary(content):
                page = file.with_suffix(".html")
                yield StoredReport(content, str(file), page.name if name.is_dir() and page.exists() else "")


def _is_summary(content: bytes) -> bool:
    """Whether this is the JSON of a summary, which lies beside the reports."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("schema") == SCHEMA

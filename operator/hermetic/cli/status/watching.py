"""`hermetic status --watch`: the report again whenever it changes, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import click

from hermetic.cli.status.reading import StatusRequest, read_reports
from hermetic.cli.status.report import DeploymentReport
from hermetic.cli.terminal import note
from hermetic.errors import HermeticError, NotFound

EVERY_SECONDS = 2.0

Show = Callable[[Sequence[DeploymentReport], str | None], None]
Wait = Callable[[float], Awaitable[object]]


async def watch_reports(status_request: StatusRequest, show: Show, wait: Wait = asyncio.sleep) -> None:
    """Read and show every two seconds. A terminal is drawn anew; elsewhere a report is printed once it differs.

    A server that does not answer is noted once, and asked again. Raises NotFound for a NAME that is not there.
    """
    shown: Sequence[DeploymentReport] | None = None
    noted = ""
    while True:
        try:
            reports, namespace = await read_reports(status_request)
        except NotFound:
            raise
        except HermeticError as error:
            if noted != error.message:
                note(f"not read, and asked again: {error.message}")
            noted = error.message
        else:
            noted, states = "", [_without_log(report) for report in reports]
            if sys.stdout.isatty():
                click.clear()
            if sys.stdout.isatty() or states != shown:
                show(reports, namespace)
            shown = states
        await wait(EVERY_SECONDS)


def _without_log(report: DeploymentReport) -> DeploymentReport:
    """A line of a log is no change of the state: a file would grow with the log."""
    return report if report.start is None else replace(report, start=replace(report.start, log=""))

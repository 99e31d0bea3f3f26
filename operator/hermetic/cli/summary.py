"""`hermetic summary`: the results of several clusters from their stored JSON reports."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from hermetic.cli.audit.files import must_be_writable
from hermetic.cli.audit.summaries import form_of, summary_of_files, write_summary
from hermetic.cli.exit_codes import OF_VERDICT
from hermetic.cli.options import Amount, common_options
from hermetic.controller.clock import SystemClock

_FILE = click.Path(path_type=Path)
LONGEST_AGE_HOURS = 24 * 366


@click.command(
    "summary",
    epilog="Example: hermetic summary reports\n\n"
    "Example: hermetic summary reports --out summary.html --out summary.csv\n\n"
    "Exit codes: that of the worst cluster. 0 Pass, 1 Fail, 2 wrong input, 3 Unknown, 4 not reachable.",
)
@click.argument("reports", nargs=-1, required=True, type=_FILE, metavar="FOLDER|FILE...")
@click.option(
    "--max-age",
    type=Amount(min=0.1, max=LONGEST_AGE_HOURS),
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="A Pass that is older is Unknown.",
)
@click.option(
    "--out", type=_FILE, multiple=True, help="Also write a file; its ending selects the form. May be repeated."
)
@common_options(cluster=False, lists=("csv", "html"))
def command(reports: tuple[Path, ...], max_age: float, output: str, out: tuple[Path, ...]) -> int:
    """Summarize audits of several clusters: verdicts, causes, age of the evidence, changes.

    Reads JSON reports and contacts no host. Of several reports about one cluster the newest counts. Its changes are
    those since its baseline, else since the report before it.
    """
    for file in out:
        form_of(file)
    must_be_writable(out)
    summary = summary_of_files(reports, now=SystemClock().now(), max_age=timedelta(hours=max_age))
    write_summary(summary, "table" if output == "text" else output, out)
    return OF_VERDICT[summary.verdict.value]

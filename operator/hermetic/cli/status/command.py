"""`hermetic status`: what serves, what does not, and the remedy."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from hermetic.cli.options import common_options
from hermetic.cli.status.document import status_document
from hermetic.cli.status.reading import StatusRequest, read_reports
from hermetic.cli.status.report import DeploymentReport
from hermetic.cli.terminal import note, write, write_json
from hermetic.errors import InputError

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ReportForm:
    """`output` is -o. `everything`: the findings on the cluster in full."""

    output: str
    is_single: bool
    everything: bool


@click.command(
    "status",
    epilog="Example: hermetic status\n\n"
    "Example: hermetic status llama-3-1-8b -n inference --watch\n\n"
    "Example: hermetic status -A -l team=search -o wide\n\n"
    "Example: hermetic status -A -o json\n\n"
    "Example: hermetic status -A --out status.html",
)
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--namespace", "-n", help="Namespace. Default: that of the kubeconfig's context, else 'default'.")
@click.option("--all-namespaces", "-A", is_flag=True, help="Every namespace.")
@click.option("--selector", "-l", default="", help="Only models with these labels, as kubectl takes them: 'team=a'.")
@click.option("--watch", "-w", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
@click.option("--isolation", "everything", is_flag=True, help="Show the findings on the cluster in full.")
@click.option("--out", type=click.Path(path_type=Path), help="Also write a page for a browser: NAME.html.")
@common_options(cluster=True, lists=("wide", "yaml"))
def command(name: str | None, **options: Any) -> None:
    """Show what serves, what does not, and the command that fixes it.

    With NAME everything about one ModelDeployment, else a table of all in the namespace. Reads ModelDeployments, their
    pods, the EgressAudit and, of a model that starts, the end of one log; writes nothing to the cluster. Exit code 0
    whatever the state is: it was shown.
    """
    status_request = StatusRequest(
        name or "",
        options["namespace"],
        options["all_namespaces"],
        options["selector"],
        options["kubeconfig"],
        options["context"],
    )
    form = ReportForm(options["output"], is_single=bool(name), everything=options["everything"])
    _refuse_contradictions(status_request, form, is_watched=options["watch"])
    if options["out"] is not None:
        _must_be_a_page(options["out"], is_watched=options["watch"])
    if options["watch"]:
        from hermetic.cli.status.watching import watch_reports

        asyncio.run(watch_reports(status_request, lambda reports, namespace: show(reports, namespace, form)))
        return
    reports, namespace = asyncio.run(read_reports(status_request))
    if (file := options["out"]) is not None:
        from hermetic.cli.audit.files import write_file
        from hermetic.cli.status.page import status_page

        write_file(file, status_page(reports, datetime.now(UTC)))
    show(reports, namespace, form)


def _refuse_contradictions(status_request: StatusRequest, form: ReportForm, *, is_watched: bool) -> None:
    namespace = status_request.namespace
    if status_request.everywhere and (status_request.name or namespace):
        raise InputError(
            "-A goes with neither NAME nor -n", fix="hermetic status -A, or hermetic status NAME -n NAMESPACE"
        )
    if status_request.name and status_request.labels:
        raise InputError("-l does not go with NAME", fix="leave out one of them")
    if namespace is not None and DNS_LABEL.fullmatch(namespace) is None:
        raise InputError(f"'{namespace}' cannot be the name of a namespace", fix="'kubectl get namespaces' lists them")
    if is_watched and form.output in {"json", "yaml"}:
        raise InputError("--watch shows text: it goes with neither -o json nor -o yaml", fix="leave out --watch")


def _must_be_a_page(file: Path, *, is_watched: bool) -> None:
    """Raises InputError, Unreachable for a file that cannot be written as a page."""
    from hermetic.cli.audit.files import must_be_writable

    if is_watched:
        raise InputError("--out goes with one report, not with --watch", fix="leave out one of them")
    if file.suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"--out {file}: a page ends with .html", fix=f"--out {file.with_suffix('.html')}")
    must_be_writable([file])


def show(reports: Sequence[DeploymentReport], namespace: str | None, form: ReportForm) -> None:
    """Print the reports; a note where there is none. `namespace`: the namespace that was read, None for all."""
    now = datetime.now(UTC)
    if form.output == "json":
        write_json(status_document(reports, now))
    elif form.output == "yaml":
        from hermetic.api.kubernetes_yaml import dump

        write(dump(status_document(reports, now)))
    elif form.is_single:
        from hermetic.cli.status.screen import show_one

        show_one(reports[0], now, everything=form.everything)
    elif reports:
        from hermetic.cli.status.screen import show_many

        show_many(reports, now, everything=form.everything, wide=form.output == "wide")
    else:
        elsewhere = f"namespace '{namespace}'; 'hermetic status -A' shows every namespace"
        note(f"no ModelDeployment in {elsewhere if namespace else 'any namespace'}")

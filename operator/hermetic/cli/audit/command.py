"""`hermetic audit`: whether node subnets have an egress path, from Azure, cluster objects and probe packets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermetic.cli.audit.files import (
    content_of,
    must_be_earlier,
    must_be_writable,
    read_earlier,
    read_exceptions,
    read_policy,
    replaced_reports,
    run_of,
    write_file,
)
from hermetic.cli.audit.formats import FORMS, form_of_file, rendered
from hermetic.cli.exit_codes import OF_VERDICT, write_to_devnull
from hermetic.cli.options import Amount, no_color_option
from hermetic.cli.running import run
from hermetic.cli.terminal import columns, echo_toned, note, write
from hermetic.errors import InputError

if TYPE_CHECKING:
    from hermetic.audit.model.findings import CheckPage
    from hermetic.audit.result.report import Report
    from hermetic.cli.audit.signing import Signing

DEFAULT_BUDGET = 120.0
WIDEST_TABLE = 140
PROBE_NAMESPACE = "hermetic-probe"


NOT_WITH_CHECK_ACCESS = ("kube", "probe", "snapshot", "save_snapshot", "baseline", "out", "sign")
_FILE = click.Path(path_type=Path)


@click.command(
    "audit",
    epilog="Example: hermetic audit --azure /subscriptions/…/managedClusters/aks-gpu\n\n"
    "Example: hermetic audit --azure ID --kube --probe --out report.html --out findings.sarif\n\n"
    "Example: hermetic audit --azure ID --sign platform.key --attestation attestation.yaml\n\n"
    "Example: hermetic audit --azure ID --snapshot estate.json -o json\n\n"
    "Example: hermetic audit --clusters clusters.txt --reports reports\n\n"
    "Exit codes: 0 Pass, 1 Fail, 2 wrong input, 3 Unknown, 4 not reachable.",
)
@click.option(
    "--azure",
    metavar="ID",
    multiple=True,
    help="Ask Azure (read only) about the cluster of this ARM id. May be repeated, with --reports.",
)
@click.option("--clusters", metavar="FILE", help="Ask Azure about each cluster of this file, an ARM id a line; or '-'.")
@click.option(
    "--reports", type=_FILE, metavar="FOLDER", help="Where the reports of several clusters go, and their summary."
)
@click.option("--kube", is_flag=True, help="Ask the cluster of the kubeconfig about its own objects.")
@click.option("--probe", is_flag=True, help="Try the egress paths with packets, from pods of that cluster.")
@click.option(
    "--probe-image",
    metavar="IMAGE",
    help="Image of the probe by digest; anything with python3. Default: that of the cluster's EgressAudit.",
)
@click.option("--probe-namespace", default=PROBE_NAMESPACE, show_default=True, help="Where the probe's pods run.")
@click.option(
    "--profile",
    type=click.Choice(["sealed", "filtered"]),
    default="sealed",
    show_default=True,
    help="sealed: no egress path. filtered: one declared firewall is allowed, and evaluated.",
)
@click.option("--policy", type=_FILE, help="Everything that is allowed (YAML or JSON).")
@click.option("--exceptions", type=_FILE, help="Findings that are accepted (YAML or JSON).")
@click.option(
    "--retry-budget",
    type=Amount(min=0),
    default=DEFAULT_BUDGET,
    show_default=True,
    metavar="SECONDS",
    help="Waiting in all before what Azure does not answer is Unknown.",
)
@click.option("--snapshot", type=_FILE, help="Evaluate what was saved; no host is contacted.")
@click.option("--save-snapshot", type=_FILE, help="Save everything that was collected.")
@click.option("--check-access", is_flag=True, help="Only list the reads that Azure would refuse; nothing is audited.")
@click.option("--baseline", type=_FILE, help="Report what changed since this earlier report (-o json).")
@click.option("--arm-endpoint", metavar="URL", help="Management endpoint of another cloud; the only host talked to.")
@click.option(
    "--discovery",
    type=click.Choice(["graph", "list"]),
    default="graph",
    show_default=True,
    help="How resources are found. list: never by Resource Graph.",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(FORMS),
    metavar="FORM",
    help=f"Form of the report on standard output: {', '.join(FORMS)}. Default: table.",
)
@click.option(
    "--out", type=_FILE, multiple=True, help="Also write a file; its ending selects the format. May be repeated."
)
@click.option("--sign", type=_FILE, metavar="KEY", help="Sign the report with this private key.")
@click.option("--attestation", type=_FILE, help="Where the signed report goes.")
@click.option("--previous", type=_FILE, help="The attestation that this one follows.")
@click.option(
    "--previous-key",
    "previous_keys",
    multiple=True,
    metavar="FILE",
    help="Public key of that one, where it is another.",
)
@click.option(
    "--valid-hours", type=Amount(min=0.1, max=168), default=24.0, show_default=True, help="How long evidence counts."
)
@click.option(
    "--kubeconfig", help="Kubeconfig file. Default: $KUBECONFIG, the pod's service account, or ~/.kube/config."
)
@click.option("--context", help="Context of the kubeconfig.")
@no_color_option
def command(**options: Any) -> int:
    """Audit a cluster for egress paths.

    Azure is only ever read. What cannot be seen is Unknown, never Pass, and the missing permission is named.
    docs/audit.md explains how to run, read, sign and import it.
    """
    if len(options["azure"]) > 1 or options["clusters"] is not None or options["reports"] is not None:
        from hermetic.cli.audit.several import audit_several

        return audit_several(options)
    return _audit({**options, "azure": next(iter(options["azure"]), None)})


def _audit(options: dict[str, Any]) -> int:
    _must_fit_together(options)
    forms = {file: form_of_file(file, options["output"]) for file in options["out"]}
    if options["check_access"]:
        return _check_access(options)
    policy = read_policy(options["policy"], options["profile"]).with_hermetic_in(options["probe_namespace"])
    # Imports that cost start-up time come after the command line is checked.
    from hermetic.audit.checks.registry import PAGES
    from hermetic.audit.result.comparison import compare
    from hermetic.cli.audit.reporting import earlier_reports, idle_exceptions, old_pins, report_of, with_openings
    from hermetic.cli.audit.sources import AuditSources, collect

    exceptions = read_exceptions(options["exceptions"], PAGES)
    replaced = replaced_reports(file for file, form in forms.items() if form == "json")
    baseline = read_earlier(options["baseline"], options["azure"]) if options["baseline"] is not None else None
    signing = _signing(options)
    if signing is not None and signing.previous is not None:
        from hermetic.cli.audit.signing import attested_private

        policy = policy.model_copy(update={"attested_private": attested_private(signing.previous)})
    collected = run(
        collect(AuditSources(**{name: options[name] for name in AuditSources.__dataclass_fields__}), policy)
    )
    report = replace(report_of(collected, policy, exceptions), run=run_of(options["policy"], options["exceptions"]))
    if baseline is not None:
        must_be_earlier(options["baseline"], baseline, report.cluster)
        report = replace(report, comparison=compare(baseline, report))
    previous = signing.previous if signing is not None else None
    report = with_openings(report, earlier_reports(baseline, replaced, previous))
    for file, form in forms.items():
        write_file(file, rendered(form, report, PAGES))
    _print(report, options["output"] or "table", [str(file) for file in options["out"]])
    if signing is not None:
        from hermetic.cli.audit.signing import sign

        sign(signing, collected, report, options)
    for sentence in (*report.notes, *idle_exceptions(exceptions, report), *old_pins(report)):
        note(sentence)
    return OF_VERDICT[report.verdict.value]


def _check_access(options: dict[str, Any]) -> int:
    from hermetic.cli.audit.access import check_access

    as_json = options["output"] == "json"
    coroutine = check_access(
        options["azure"], arm_endpoint=options["arm_endpoint"], retry_budget=options["retry_budget"], as_json=as_json
    )
    return asyncio.run(coroutine)


def _must_fit_together(options: dict[str, Any]) -> None:
    """Raises InputError, Unreachable for options with which no audit is possible."""
    if not (options["azure"] is not None or options["kube"] or options["probe"] or options["snapshot"]):
        raise InputError("no source is named", fix="at least one of --azure ID, --kube, --probe (or --snapshot FILE)")
    if options["check_access"] and (options["azure"] is None or options["output"] not in {None, "table", "json"}):
        raise InputError("--check-access asks Azure, and prints a table or JSON", fix="--azure ID --check-access")
    if options["check_access"] and any(options[name] for name in NOT_WITH_CHECK_ACCESS):
        raise InputError("--check-access audits nothing, so it has no result to save or sign", fix="leave them out")
    if options["probe_image"] and not options["probe"]:
        raise InputError("--probe-image is for --probe", fix="--probe --probe-image IMAGE@sha256:…")
    if (options["sign"] is None) != (options["attestation"] is None):
        raise InputError("--sign and --attestation belong together", fix="--sign KEY --attestation FILE")
    if options["sign"] is None and (options["previous"] is not None or options["previous_keys"]):
        raise InputError("--previous is for a report that is signed", fix="--sign KEY --attestation FILE")
    if options["sign"] is not None and options["azure"] is None and options["snapshot"] is None:
        raise InputError("only what Azure was asked can be signed: the cluster sees the rest itself", fix="--azure ID")
    if options["previous_keys"] and options["previous"] is None:
        raise InputError("--previous-key is the key of --previous", fix="--previous FILE --previous-key FILE")
    written = (*options["out"], options["save_snapshot"], options["attestation"])
    must_be_writable(file for file in written if file is not None)
    if options["kubeconfig"] and os.pathsep not in options["kubeconfig"]:
        content_of(Path(options["kubeconfig"]))


def _signing(options: dict[str, Any]) -> Signing | None:
    if options["sign"] is None:
        return None
    from hermetic.cli.audit.signing import signing_of

    return signing_of(options)


def _print(report: Report, form: str, files: Sequence[str]) -> None:
    """Writes the report to standard output. A closed pipe keeps the exit code: `| head` must not hide a Fail."""
    try:
        _write_report(report, form, files)
    except BrokenPipeError:
        write_to_devnull()


def _write_report(report: Report, form: str, files: Sequence[str]) -> None:
    from hermetic.audit.checks.registry import PAGES

    if form == "table":
        _show_table(report, PAGES, files)
        return
    if form == "json":
        from hermetic.audit.report.json_form import pieces

        for piece in pieces(report, PAGES):
            write(piece)
        return
    text = rendered(form, report, PAGES)
    write(text if text.endswith("\n") else text + "\n")


def _show_table(report: Report, pages: Mapping[str, CheckPage], files: Sequence[str]) -> None:
    """Writes the table as wide as the terminal. A terminal gets the verdict at the end as well."""
    from hermetic.audit.report.table import WIDTH, closing_lines, lines

    width = min(columns(), WIDEST_TABLE)
    for line in lines(report, pages, width=width or WIDTH):
        echo_toned((line.text, line.tone))
    for line in closing_lines(report, pages, files, width=width) if width else ():
        echo_toned((line.text, line.tone))

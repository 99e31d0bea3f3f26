"""`hermetic audit`: whether node subnets have an egress path, from Azure, cluster objects and probe packets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
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
    run_of,
    write_file,
)
from hermetic.cli.audit.formats import FORMS, form_of_file, rendered
from hermetic.cli.exit_codes import DONE, FAILED, UNKNOWN, write_to_devnull
from hermetic.cli.options import Amount, color_is_unwanted
from hermetic.cli.output import note, write
from hermetic.cli.running import run
from hermetic.errors import InputError

if TYPE_CHECKING:
    from hermetic.audit.exceptions import Exceptions
    from hermetic.audit.findings import Report
    from hermetic.audit.policy import Policy
    from hermetic.cli.audit.signing import Signing
    from hermetic.cli.audit.sources import Collected

EXIT_CODES = {"Pass": DONE, "Fail": FAILED, "Unknown": UNKNOWN}
DEFAULT_BUDGET = 120.0
PROBE_NAMESPACE = "hermetic-probe"


NOT_WITH_CHECK_ACCESS = ("kube", "probe", "snapshot", "save_snapshot", "baseline", "out", "sign")
_FILE = click.Path(path_type=Path)


@click.command(
    "audit",
    epilog="Example: hermetic audit --azure /subscriptions/…/managedClusters/aks-gpu\n\n"
    "Example: hermetic audit --azure ID --kube --probe --out report.html --out findings.sarif\n\n"
    "Example: hermetic audit --azure ID --sign platform.key --attestation attestation.yaml\n\n"
    "Example: hermetic audit --azure ID --snapshot estate.json -o json\n\n"
    "Exit codes: 0 Pass, 1 Fail, 2 wrong input, 3 Unknown, 4 not reachable.",
)
@click.option("--azure", metavar="ID", help="Ask Azure (read only) about the cluster of this ARM id.")
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
@click.option("--policy", type=_FILE, help="What is allowed at all (YAML or JSON).")
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
@click.option("--no-color", is_flag=True, help="Plain text.")
def command(**options: Any) -> int:
    """Audit a cluster for egress paths.

    Azure is only ever read. What cannot be seen is Unknown, never Pass, and the missing permission is named.
    docs/audit.md explains how to run, read, sign and import it.
    """
    return _audit(options)


def _audit(options: dict[str, Any]) -> int:
    _must_fit_together(options)
    if options["check_access"]:
        return _check_access(options)
    policy = read_policy(options["policy"], options["profile"]).with_hermetic_in(options["probe_namespace"])
    # Imports that cost start-up time come after the command line is checked.
    from hermetic.audit.checks.registry import PAGES
    from hermetic.audit.comparison import compare
    from hermetic.cli.audit.sources import AuditSources, collect

    exceptions = read_exceptions(options["exceptions"], PAGES)
    baseline = read_earlier(options["baseline"], options["azure"]) if options["baseline"] is not None else None
    signing = _signing(options)
    if signing is not None and signing.previous is not None:
        from hermetic.cli.audit.signing import attested_private

        policy = policy.model_copy(update={"attested_private": attested_private(signing.previous)})
    collected = run(
        collect(AuditSources(**{name: options[name] for name in AuditSources.__dataclass_fields__}), policy)
    )
    report = replace(_report(collected, policy, exceptions), run=run_of(options["policy"], options["exceptions"]))
    if baseline is not None:
        must_be_earlier(options["baseline"], baseline, report.cluster)
        report = replace(report, comparison=compare(baseline, report))
    for file in options["out"]:
        write_file(file, rendered(form_of_file(file, options["output"]), report, PAGES))
    _print(report, options["output"] or "table", plain=options["no_color"])
    if signing is not None:
        from hermetic.cli.audit.signing import sign

        sign(signing, collected, report, options)
    for sentence in (*report.notes, *_idle(exceptions, report), *_old_pins(report)):
        note(sentence)
    return EXIT_CODES[report.verdict.value]


def _check_access(options: dict[str, Any]) -> int:
    from hermetic.cli.audit.access import check_access

    as_json = options["output"] == "json"
    asked = check_access(
        options["azure"], arm_endpoint=options["arm_endpoint"], retry_budget=options["retry_budget"], as_json=as_json
    )
    return asyncio.run(asked)


def _must_fit_together(options: dict[str, Any]) -> None:
    """Raises InputError, Unreachable for options with which no audit is possible."""
    if not (options["azure"] is not None or options["kube"] or options["probe"] or options["snapshot"]):
        raise InputError("no source is named", fix="at least one of --azure ID, --kube, --probe (or --snapshot FILE)")
    if options["check_access"] and (options["azure"] is None or options["output"] not in {None, "table", "json"}):
        raise InputError("--check-access asks Azure, and prints a table or JSON", fix="--azure ID --check-access")
    if options["check_access"] and any(options[name] for name in NOT_WITH_CHECK_ACCESS):
        raise InputError("--check-access audits nothing, so there is nothing to save or sign", fix="leave them out")
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


def _report(collected: Collected, policy: Policy, exceptions: Exceptions) -> Report:
    from hermetic import __version__
    from hermetic.audit.run import audit

    return audit(
        collected.estate,
        collected.findings,
        policy,
        exceptions,
        started_at=collected.started_at,
        finished_at=collected.finished_at,
        version=__version__,
    )


def _print(report: Report, form: str, *, plain: bool) -> None:
    """Writes the report to standard output. A closed pipe keeps the exit code: `| head` must not hide a Fail."""
    try:
        _shown(report, form, plain=plain)
    except BrokenPipeError:
        write_to_devnull()


def _shown(report: Report, form: str, *, plain: bool) -> None:
    from hermetic.audit.checks.registry import PAGES

    if form == "table":
        from hermetic.cli.audit.screen import show

        show(report, PAGES, plain=plain or color_is_unwanted())
        return
    if form == "json":
        from hermetic.audit.report.json_form import pieces

        for piece in pieces(report):
            write(piece)
        return
    text = rendered(form, report, PAGES)
    write(text if text.endswith("\n") else text + "\n")


def _idle(exceptions: Exceptions, report: Report) -> Iterator[str]:
    """A sentence for each exception that accepts nothing although its check ran; often a typing error."""
    from hermetic.audit.findings import Verdict

    not_asked = {check for checks in report.not_asked.values() for check in checks}
    excepted = [finding for finding in report.findings if finding.verdict is Verdict.EXCEPTED]
    for one in exceptions.exceptions:
        if one.term.has_ended(report.finished_at.date()) or one.check in not_asked:
            continue
        if not any(one.is_about(finding) for finding in excepted):
            named = f"the exception of {one.owner} for {one.check} on {one.resource}"
            yield f"{named} matches no finding that is Fail or Unknown"


def _old_pins(report: Report) -> Iterator[str]:
    """A sentence if the Azure specifications that this release was compared with are too old."""
    from hermetic.audit.estate.azure.pins import note_on_age

    if "azure" not in report.not_asked and (sentence := note_on_age(report.finished_at.date())):
        yield sentence

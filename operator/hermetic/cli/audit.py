"""`hermetic audit`: is there a way out? Asked of Azure, of the cluster, and of packets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermetic.cli.audit_files import read_exceptions, read_policy, write_file
from hermetic.cli.audit_forms import FORMS, form_of_file, told
from hermetic.cli.failures import DONE, FAILED, UNKNOWN
from hermetic.cli.options import color_is_unwanted
from hermetic.cli.output import note, write
from hermetic.errors import InputError

if TYPE_CHECKING:
    from hermetic.audit.exceptions import Exceptions
    from hermetic.audit.findings import Report
    from hermetic.audit.policy import Policy
    from hermetic.cli.audit_sources import Collected, Wish

EXIT_CODES = {"Pass": DONE, "Fail": FAILED, "Unknown": UNKNOWN}
DEFAULT_BUDGET = 120.0


@dataclass(frozen=True, slots=True)
class Signing:
    """What --sign and its companions say."""

    key: Path
    attestation: Path
    previous: Path | None
    previous_keys: tuple[str, ...]
    valid_for: timedelta


@click.command(
    "audit",
    epilog="Example: hermetic audit --azure /subscriptions/…/managedClusters/aks-gpu\n\n"
    "Example: hermetic audit --azure ID --kube --probe --probe-image IMAGE@sha256:… --out report.html\n\n"
    "Example: hermetic audit --azure ID --sign key.pem --attestation attestation.yaml\n\n"
    "Exit codes: 0 Pass, 1 Fail, 2 wrong input, 3 Unknown, 4 not reachable.",
)
@click.option("--azure", metavar="ID", help="Ask Azure (read only) about the cluster of this ARM id.")
@click.option("--kube", is_flag=True, help="Ask the cluster of the kubeconfig about its own objects.")
@click.option("--probe", is_flag=True, help="Try the ways out with packets, from pods of that cluster.")
@click.option("--probe-image", metavar="IMAGE", help="Image of the probe by digest; anything with python3.")
@click.option("--probe-namespace", default="hermetic-system", show_default=True, help="Where the probe's pods run.")
@click.option("--profile", type=click.Choice(["sealed", "filtered"]), default="sealed", show_default=True)
@click.option("--policy", type=click.Path(path_type=Path), help="What is allowed at all (YAML or JSON).")
@click.option("--exceptions", type=click.Path(path_type=Path), help="Findings that are accepted (YAML or JSON).")
@click.option(
    "--retry-budget", type=click.FloatRange(min=0), default=DEFAULT_BUDGET, show_default=True, metavar="SECONDS"
)
@click.option("--snapshot", type=click.Path(path_type=Path), help="Judge what was saved; no host is talked to.")
@click.option("--save-snapshot", type=click.Path(path_type=Path), help="Save everything that was collected.")
@click.option("--arm-endpoint", metavar="URL", help="Management endpoint of another cloud; the only host talked to.")
@click.option("--discovery", type=click.Choice(["graph", "list"]), default="graph", show_default=True)
@click.option("--output", "-o", type=click.Choice(FORMS), help="Form of the report on standard output. Default: table.")
@click.option(
    "--out", type=click.Path(path_type=Path), multiple=True, help="Also write a file; its ending says the form."
)
@click.option("--sign", type=click.Path(path_type=Path), metavar="KEY", help="Sign the report with this private key.")
@click.option("--attestation", type=click.Path(path_type=Path), help="Where the signed report goes.")
@click.option("--previous", type=click.Path(path_type=Path), help="The attestation that this one follows.")
@click.option(
    "--previous-key",
    "previous_keys",
    multiple=True,
    metavar="FILE",
    help="Public key of that one, where it is another.",
)
@click.option("--valid-hours", type=click.FloatRange(min=0.1, max=168), default=24.0, show_default=True)
@click.option(
    "--kubeconfig", help="Kubeconfig file. Default: $KUBECONFIG, the pod's service account, or ~/.kube/config."
)
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--no-color", is_flag=True, help="Plain text.")
def command(**said: Any) -> int:
    """Audit a cluster for ways out.

    Azure is only ever read. What cannot be seen is Unknown, never Pass, and the missing permission is named.
    docs/audit.md tells how to run, read, sign and carry it.
    """
    return _audit(said)


def _audit(said: dict[str, Any]) -> int:
    signing = _signing(said)
    policy = read_policy(said["policy"], said["profile"])
    exceptions = read_exceptions(said["exceptions"])
    # What costs start-up time is imported when there is nothing left to refuse.
    from hermetic.audit.checks.registry import PAGES
    from hermetic.cli.audit_sources import collect

    wish = _wish(said)
    collected = asyncio.run(collect(wish, policy))
    report = _report(collected, policy, exceptions)
    if said["output"] is not None or not said["out"]:
        _tell(report, said["output"] or "table", plain=said["no_color"])
    for file in said["out"]:
        write_file(file, told(form_of_file(file, said["output"]), report, PAGES))
    if signing is not None:
        from hermetic.cli.audit_signing import sign

        sign(wish, collected, report, signing, said)
    for sentence in report.notes:
        note(sentence)
    return EXIT_CODES[report.verdict.value]


def _signing(said: dict[str, Any]) -> Signing | None:
    if (said["sign"] is None) != (said["attestation"] is None):
        raise InputError("--sign and --attestation belong together", fix="--sign KEY --attestation FILE")
    if said["sign"] is None:
        if said["previous"] is not None:
            raise InputError("--previous is for a report that is signed", fix="--sign KEY --attestation FILE")
        return None
    return Signing(
        said["sign"],
        said["attestation"],
        said["previous"],
        said["previous_keys"],
        timedelta(hours=said["valid_hours"]),
    )


def _wish(said: dict[str, Any]) -> Wish:
    from hermetic.cli.audit_sources import Wish

    if not (said["azure"] or said["kube"] or said["probe"] or said["snapshot"]):
        raise InputError("nobody is asked", fix="at least one of --azure ID, --kube, --probe (or --snapshot FILE)")
    if said["probe"] and not said["probe_image"] and not said["snapshot"]:
        raise InputError("--probe needs an image", fix="--probe-image IMAGE@sha256:…, anything that has python3")
    wanted = Wish.__dataclass_fields__.keys()
    return Wish(**{key: value for key, value in said.items() if key in wanted})


def _report(collected: Collected, policy: Policy, exceptions: Exceptions) -> Report:
    from hermetic import __version__
    from hermetic.audit.auditing import audit

    return audit(
        collected.estate,
        policy,
        exceptions,
        started_at=collected.started_at,
        finished_at=collected.finished_at,
        version=__version__,
    )


def _tell(report: Report, form: str, *, plain: bool) -> None:
    from hermetic.audit.checks.registry import PAGES

    if form == "table":
        from hermetic.cli.audit_screen import show

        show(report, PAGES, plain=plain or color_is_unwanted())
        return
    text = told(form, report, PAGES)
    write(text if text.endswith("\n") else text + "\n")

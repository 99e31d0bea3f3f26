"""Reports as text: one in full, or a table of many with what blocks them below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import Reason
from hermetic.api.text import first_of
from hermetic.audit.report.resources import readable
from hermetic.cli.status.isolation import SOON, Proof
from hermetic.cli.status.report import ConditionRow, DeploymentReport

Tone = Literal["plain", "good", "bad", "unsure"]

_LABELS = {
    ConditionType.IMAGES_PINNED: "images pinned",
    ConditionType.WEIGHTS_VERIFIED: "weights verified",
    ConditionType.MODEL_FITS: "model fits",
    ConditionType.CACHES_USED: "compile caches",
    ConditionType.ISOLATION_VERIFIED: "isolation verified",
    ConditionType.ENDPOINT_PRIVATE: "endpoint private",
    ConditionType.AVAILABLE: "serving",
}
_WORDS: dict[str, tuple[str, Tone]] = {
    "True": ("yes", "good"),
    "False": ("NO", "bad"),
    "Unknown": ("unknown", "unsure"),
}
MOST_FINDINGS = 5
COLUMNS = ("NAMESPACE", "NAME", "ENGINE", "GPUS", "SERVING", "READY", "REASON", "ENDPOINT")


@dataclass(frozen=True, slots=True)
class StatusLine:
    """One line about a deployment: the subject, the answer in a word, the details.

    A `command` is never wrapped, so that it can be copied.
    """

    label: str
    word: str
    text: str
    tone: Tone = "plain"
    command: bool = False


def headline(report: DeploymentReport) -> str:
    """The deployment in one line."""
    parts = (report.name, report.engine, report.gpus, f"weights from {report.weights}" if report.weights else "")
    return "  ".join(part for part in parts if part)


def lines(report: DeploymentReport, now: datetime) -> Iterator[StatusLine]:
    """All lines about one deployment, each remedy directly below its subject."""
    shown = [(kind, one) for kind in _LABELS if (one := report.condition(kind)) is not None]
    blamed = next((kind for kind, one in shown if _is_cause(one, report.ready)), None)
    message = report.ready.reason if blamed is not None else _joined(report.ready.reason, report.ready.message)
    yield from _with_remedy("ready", report.ready, message, report, here=blamed is None)
    if report.endpoint:
        yield StatusLine("", "", report.endpoint)
    for kind, one in shown:
        yield from _with_remedy(_LABELS[kind], one, _message(kind, one, report, now), report, here=kind is blamed)
        if kind is ConditionType.ISOLATION_VERIFIED and report.proof is not None:
            yield from proof_lines(report.proof, now)
    for pod in report.pods:
        if pod.state != "ready":
            where = f", on {pod.node}" if pod.node else ""
            yield StatusLine("", "", f"pod {pod.name}: {pod.state}, {pod.restarts} restarts{where}")


def proof_lines(proof: Proof, now: datetime) -> Iterator[StatusLine]:
    """The verdict on the cluster and its age, then each kind of evidence that is missing or soon expires."""
    yield StatusLine("", "", ", ".join((f"verdict on the cluster: {proof.verdict or 'none yet'}", *_ages(proof, now))))
    for row in proof.evidence_rows:
        if row.truth != "True" or row.reason in SOON:
            yield StatusLine("", "", f"{row.name}: {row.reason}: {row.message}")
    yield from _finding_lines(proof)


def _finding_lines(proof: Proof) -> Iterator[StatusLine]:
    """The worst findings that the EgressAudit lists, each with its remedy, and where to find the others."""
    for one in proof.findings[:MOST_FINDINGS]:
        about = readable(one.resource)
        yield StatusLine("", "", f"{one.severity} {one.verdict}: {one.check}, {about}: {one.message}")
        if one.remedy:
            yield StatusLine("", "", f"fix: {one.remedy}")
    more = len(proof.findings[MOST_FINDINGS:]) + proof.more
    if more:
        yield StatusLine("", "", f"and {more} more: kubectl describe egressaudits.hermetic.dev cluster")


def _ages(proof: Proof, now: datetime) -> Iterator[str]:
    if proof.attested is not None:
        yield f"attested {ago(proof.attested, now)}"
    if proof.expires is not None and proof.expires > now:
        yield f"expires in {ago(now, proof.expires).removesuffix(' ago')}"
    if proof.probed is not None:
        yield f"probed {ago(proof.probed, now)}"


def cluster_lines(proof: Proof, now: datetime) -> Iterator[str]:
    """The same, with its remedy, for below a table."""
    yield ""
    yield from (line.text for line in proof_lines(proof, now))
    if proof.remedy is not None:
        yield f"  fix: {proof.remedy.advice}"
        yield from (f"    {command}" for command in proof.remedy.commands)


def table(reports: Iterable[DeploymentReport]) -> Iterator[tuple[str, ...]]:
    """One row per deployment, in the order of COLUMNS."""
    for report in reports:
        yield (
            report.namespace,
            report.name,
            report.engine.replace(" ", "-"),
            report.gpus.split(" ")[0],
            f"{report.serving}/{report.wanted}",
            report.ready.truth,
            report.ready.reason,
            report.endpoint,
        )


def blocked(reports: Sequence[DeploymentReport]) -> Iterator[str]:
    """What blocks the deployments, each reason once: which deployments, the first message, the remedy of the first."""
    by_reason: dict[str, list[DeploymentReport]] = {}
    for report in reports:
        if report.ready.truth != "True":
            by_reason.setdefault(report.ready.reason, []).append(report)
    for reason, held in by_reason.items():
        first = held[0]
        yield ""
        yield f"{reason}: {first_of([f'{one.namespace}/{one.name}' for one in held], 1)}"
        yield f"  {first.ready.message}"
        if first.remedy is not None:
            yield f"  fix: {first.remedy.advice}"
            yield from (f"    {command}" for command in first.remedy.commands)


def ago(moment: datetime, now: datetime) -> str:
    """How long ago, in one unit."""
    seconds = max(0, round((now - moment).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size or (seconds >= size and unit != "d"):
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def _with_remedy(
    label: str, one: ConditionRow, text: str, report: DeploymentReport, *, here: bool
) -> Iterator[StatusLine]:
    word, tone = _WORDS.get(one.truth, _WORDS["Unknown"])
    if label == _LABELS[ConditionType.ISOLATION_VERIFIED] and one.reason == Reason.ISOLATION_EVIDENCE_STALE:
        word = "STALE"
    effect = f"  <- {report.blocks}" if here and report.blocks else ""
    yield StatusLine(label, word, text + effect, tone)
    if here and report.remedy is not None:
        yield StatusLine("", "", f"fix: {report.remedy.advice}")
        yield from (StatusLine("", "", command, command=True) for command in report.remedy.commands)


def _is_cause(one: ConditionRow, ready: ConditionRow) -> bool:
    return ready.truth != "True" and one.truth != "True" and one.reason == ready.reason


def _message(kind: ConditionType, one: ConditionRow, report: DeploymentReport, now: datetime) -> str:
    if kind is ConditionType.ISOLATION_VERIFIED and report.evidence is not None:
        return f"{one.message} (evidence observed {ago(report.evidence, now)})"
    return one.message


def _joined(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason

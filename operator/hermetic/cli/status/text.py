"""Reports as text: one in full, or a table of many with what blocks them below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import Reason
from hermetic.api.text import first_of
from hermetic.api.times import spell_duration
from hermetic.audit.report.resources import readable
from hermetic.cli.benchmarks import BenchmarkRecord, changes, last_comparable, summary
from hermetic.cli.status.isolation import SOON, Proof, open_findings
from hermetic.cli.status.report import SERVED, AdapterRow, ConditionRow, DeploymentReport
from hermetic.cli.status.starting import start_text

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
_ADAPTER_WORDS: dict[str, tuple[str, Tone]] = {
    SERVED: ("yes", "good"),
    "RollingOut": ("partly", "unsure"),
    "Pending": ("NO", "bad"),
}
MOST_FINDINGS = 5
MOST_REFUSALS = 3
COLUMNS = ("NAMESPACE", "NAME", "ENGINE", "GPUS", "SERVING", "READY", "REASON", "ENDPOINT")
WIDE_COLUMNS = (*COLUMNS, "MODEL", "PHASE")
LEFT_OUT = ("ENDPOINT", "GPUS", "ENGINE")
"""Columns that a narrow terminal does not show, in the order in which they are left out."""


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


def lines(report: DeploymentReport, now: datetime, *, everything: bool = False) -> Iterator[StatusLine]:
    """All lines about one deployment, each remedy directly below its subject.

    Isolation is one line, with `everything` or where it is what keeps the model from being ready all of its findings.
    """
    shown = [(kind, condition) for kind in _LABELS if (condition := report.condition(kind)) is not None]
    blamed = next((kind for kind, condition in shown if _is_cause(condition, report.ready)), None)
    message = report.ready.reason if blamed is not None else _joined(report.ready.reason, report.ready.message)
    yield from _with_remedy("ready", report.ready, message, report, here=blamed is None)
    if report.endpoint:
        yield StatusLine("endpoint", "", report.endpoint)
    if report.start is not None:
        yield StatusLine("starting", "", start_text(report.start, now))
    for kind, condition in shown:
        is_in_full = everything or kind is blamed
        text = _message(kind, condition, report, now, is_in_full=is_in_full)
        yield from _with_remedy(_LABELS[kind], condition, text, report, here=kind is blamed)
        if kind is ConditionType.ISOLATION_VERIFIED and report.proof is not None and is_in_full:
            yield from proof_lines(report.proof, now)
    yield from _adapter_lines(report.adapters)
    if report.benchmarks:
        yield StatusLine("benchmark", "", _benchmark_text(report.benchmarks, now))
    for pod in report.pods:
        if pod.state != "ready":
            where = f", on {pod.node}" if pod.node else ""
            yield StatusLine("", "", f"pod {pod.name}: {pod.state}, {pod.restarts} restarts{where}")


def _adapter_lines(adapters: Sequence[AdapterRow]) -> Iterator[StatusLine]:
    for index, adapter in enumerate(adapters):
        word, tone = _ADAPTER_WORDS.get(adapter.state, _WORDS["Unknown"])
        details = adapter.reason or adapter.digest
        text = f"{adapter.name}: {adapter.state}{f', {details}' if details else ''}"
        yield StatusLine("adapters" if not index else "", word, text, tone)


def _benchmark_text(benchmarks: Sequence[BenchmarkRecord], now: datetime) -> str:
    """The newest result, and the change of its rate since the last one of the same fingerprint."""
    newest, before = benchmarks[0], last_comparable(benchmarks[1:], benchmarks[0].fingerprint)
    text = f"{summary(newest)}, {ago(newest.at, now)}, with {newest.fingerprint['engine'] or 'an unknown engine'}"
    change = changes(before, newest).get("outputTokensPerSecond") if before is not None else None
    if before is None or change is None:
        return text
    return f"{text}; {change:+.1f} % output tokens/s since the last of the same fingerprint, {ago(before.at, now)}"


def proof_summary(proof: Proof, now: datetime) -> str:
    """The verdict on the cluster in one line: its age, what is open, what should be renewed, where to read more."""
    soon = (f"{row.name}: {row.reason}" for row in proof.evidence_rows if row.truth == "True" and row.reason in SOON)
    parts = (f"verdict on the cluster: {proof.verdict or 'none yet'}", *_ages(proof, now), open_findings(proof), *soon)
    more = "; 'hermetic status --isolation' lists the findings" if open_findings(proof) else ""
    return ", ".join(part for part in parts if part) + more


def proof_lines(proof: Proof, now: datetime) -> Iterator[StatusLine]:
    """The verdict on the cluster and its age, then each kind of evidence that is missing or soon expires."""
    yield StatusLine("", "", ", ".join((f"verdict on the cluster: {proof.verdict or 'none yet'}", *_ages(proof, now))))
    for row in proof.evidence_rows:
        if row.truth != "True" or row.reason in SOON:
            yield StatusLine("", "", f"{row.name}: {row.reason}: {row.message}")
    if proof.refusals:
        yield StatusLine("", "", _refusals(proof))
    yield from _finding_lines(proof)


def _refusals(proof: Proof) -> str:
    """The refused attestations in one line: the first ones with their reasons, and the number of the others."""
    names = [f"{refusal.name} ({refusal.reason})" for refusal in proof.refusals]
    more = len(names[MOST_REFUSALS:]) + proof.more_refusals
    other_names = f" and {more} more: kubectl describe egressaudits.hermetic.dev cluster" if more else ""
    return f"refused attestations: {', '.join(names[:MOST_REFUSALS])}{other_names}"


def _finding_lines(proof: Proof) -> Iterator[StatusLine]:
    """The worst findings that the EgressAudit lists, each with its remedy, and where to find the others."""
    for finding in proof.findings[:MOST_FINDINGS]:
        about = readable(finding.resource)
        yield StatusLine("", "", f"{finding.severity} {finding.verdict}: {finding.check}, {about}: {finding.message}")
        if finding.remedy:
            yield StatusLine("", "", f"fix: {finding.remedy}")
    more = len(proof.findings[MOST_FINDINGS:]) + proof.more
    if more:
        yield StatusLine("", "", f"and {more} more: kubectl describe egressaudits.hermetic.dev cluster")


def _ages(proof: Proof, now: datetime) -> Iterator[str]:
    if proof.attested is not None:
        yield f"attested {ago(proof.attested, now)}"
    if proof.expires is not None and proof.expires > now:
        yield f"expires in {spell_duration(proof.expires - now, units=1)}"
    if proof.probed is not None:
        yield f"probed {ago(proof.probed, now)}"


def cluster_lines(proof: Proof, now: datetime, *, everything: bool = True) -> Iterator[str]:
    """The state of the proof with its remedy, for below a table: in one line where it holds, else in full."""
    yield ""
    if proof.verdict == "Pass" and not everything:
        yield proof_summary(proof, now)
    else:
        yield from (line.text for line in proof_lines(proof, now))
    if proof.remedy is not None:
        yield f"  fix: {proof.remedy.advice}"
        yield from (f"    {command}" for command in proof.remedy.commands)


def table(reports: Iterable[DeploymentReport]) -> Iterator[tuple[str, ...]]:
    """One row per deployment, in the order of WIDE_COLUMNS."""
    for report in reports:
        yield (
            report.namespace,
            report.name,
            report.engine.replace(" ", "-"),
            report.gpus.split(" ")[0],
            f"{report.serving}/{report.desired}",
            report.ready.truth,
            report.ready.reason,
            report.endpoint,
            report.model,
            report.start.phase if report.start is not None else "",
        )


def blocked(reports: Sequence[DeploymentReport]) -> Iterator[str]:
    """What blocks the deployments, each reason once: which deployments, the first message, the remedy of the first."""
    by_reason: dict[str, list[DeploymentReport]] = {}
    for report in reports:
        if report.ready.truth != "True":
            by_reason.setdefault(report.ready.reason, []).append(report)
    for reason, blocked_reports in by_reason.items():
        first = blocked_reports[0]
        yield ""
        yield f"{reason}: {first_of([f'{report.namespace}/{report.name}' for report in blocked_reports], 1)}"
        yield f"  {first.ready.message}"
        if first.remedy is not None:
            yield f"  fix: {first.remedy.advice}"
            yield from (f"    {command}" for command in first.remedy.commands)


def ago(moment: datetime, now: datetime) -> str:
    """How long ago, in one unit."""
    return f"{spell_duration(now - moment, units=1)} ago"


def _with_remedy(
    label: str, condition_row: ConditionRow, text: str, report: DeploymentReport, *, here: bool
) -> Iterator[StatusLine]:
    word, tone = _WORDS.get(condition_row.truth, _WORDS["Unknown"])
    if label == _LABELS[ConditionType.ISOLATION_VERIFIED] and condition_row.reason == Reason.ISOLATION_EVIDENCE_STALE:
        word = "STALE"
    effect = f"  <- {report.blocks}" if here and report.blocks else ""
    yield StatusLine(label, word, text + effect, tone)
    if here and report.remedy is not None:
        yield StatusLine("", "", f"fix: {report.remedy.advice}")
        yield from (StatusLine("", "", command, command=True) for command in report.remedy.commands)


def _is_cause(condition_row: ConditionRow, ready: ConditionRow) -> bool:
    return ready.truth != "True" and condition_row.truth != "True" and condition_row.reason == ready.reason


def _message(
    kind: ConditionType, condition_row: ConditionRow, report: DeploymentReport, now: datetime, *, is_in_full: bool
) -> str:
    if kind is ConditionType.ISOLATION_VERIFIED and report.proof is not None and not is_in_full:
        text = proof_summary(report.proof, now)
        return text if condition_row.truth == "True" else f"{condition_row.message}; {text}"
    if kind is ConditionType.ISOLATION_VERIFIED and report.evidence is not None:
        return f"{condition_row.message} (evidence observed {ago(report.evidence, now)})"
    return condition_row.message


def _joined(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason

"""`hermetic status --out status.html`: the state as one file, in the style of the audit's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hermetic import __version__
from hermetic.api.times import spell_duration, timestamp
from hermetic.audit.report.page import as_page
from hermetic.cli.status.isolation import Proof
from hermetic.cli.status.report import DeploymentReport
from hermetic.cli.status.starting import start_text
from hermetic.cli.status.text import proof_summary

_TONES = {"True": "Pass", "False": "Fail"}


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model on the page. `tone` is the verdict whose colours it has, `start` its start in one line or ""."""

    report: DeploymentReport
    tone: str
    start: str


def status_page(reports: Sequence[DeploymentReport], now: datetime) -> str:
    """The whole page: it fetches nothing and runs no script."""
    proof = next((report.proof for report in reports if report.proof is not None), None)
    moment = timestamp(now)
    content = {
        "models": [_view(report, now) for report in reports],
        "serving_models": sum(report.ready.truth == "True" for report in reports),
        "proof": proof,
        "summary": proof_summary(proof, now) if proof is not None else "",
        "countdown": _countdown(proof, now) if proof is not None else "",
        "moment": moment,
        "version": __version__,
    }
    return as_page("status.html.j2", content, f"Hermetic status  {moment}")


def _view(report: DeploymentReport, now: datetime) -> ModelView:
    start = start_text(report.start, now) if report.start is not None else ""
    return ModelView(report, _TONES.get(report.ready.truth, "Unknown"), start)


def _countdown(proof: Proof, now: datetime) -> str:
    """How long the evidence of Azure still counts."""
    if proof.expires is None:
        return ""
    moment = timestamp(proof.expires)
    if proof.expires <= now:
        return f"The evidence of Azure expired at {moment}."
    return f"The evidence of Azure counts for {spell_duration(proof.expires - now)} more, until {moment}."

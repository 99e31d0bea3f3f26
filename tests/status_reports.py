"""Models, pods and audits as `hermetic status` reads them, and a terminal to print on."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hermetic.cli.status import screen
from hermetic.cli.status.report import DeploymentReport, report
from hermetic.cli.status.text import headline, lines
from tests.scenarios import Manifest, a_share_model, a_verdict, an_egress_audit

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def seen(
    manifest: Manifest, ready: str = "True", reason: str = "Serving", message: str = "", **status: Any
) -> Manifest:
    """The deployment after the operator has reconciled it; `conditions` are further ones."""
    conditions = [condition("Ready", ready, reason, message), *status.pop("conditions", ())]
    metadata = {**manifest["metadata"], "namespace": "inference", "uid": "u", "generation": 3}
    return {
        **manifest,
        "metadata": metadata,
        "status": {"observedGeneration": 3, "conditions": conditions, **status},
    }


def condition(kind: str, truth: str, reason: str, message: str = "") -> Manifest:
    return {"type": kind, "status": truth, "reason": reason, "message": message, "observedGeneration": 3}


def a_pod(name: str, *, ready: bool = False, waiting: str = "", **metadata: Any) -> Manifest:
    state = {"waiting": {"reason": waiting}} if waiting else {"running": {}}
    return {
        "metadata": {"name": name, "namespace": "inference", **metadata},
        "spec": {"nodeName": "aks-gpu-1"},
        "status": {
            "phase": "Running" if ready else "Pending",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "engine", "restartCount": 3, "state": state}],
        },
    }


def plain(deployment: DeploymentReport) -> str:
    return "\n".join(
        [headline(deployment), *(f"{line.label}|{line.word}|{line.text}" for line in lines(deployment, NOW))]
    )


def stale(pods: list[Manifest]) -> DeploymentReport:
    message = "the evidence was observed at 2026-11-19T10:00:00Z, and 24 h is the oldest allowed"
    conditions = [
        condition("ImagesPinned", "True", "PinnedByDigest", "every image is named by digest and allowed here"),
        condition("IsolationVerified", "Unknown", "IsolationEvidenceStale", message),
        condition("Available", "True", "Serving", "2 of 2 replicas serve"),
    ]
    deployment = seen(a_share_model(replicas=2), "False", "IsolationEvidenceStale", message, conditions=conditions)
    audit = {**an_egress_audit(), "status": a_verdict("Pass")}
    azure = {"observedAt": "2026-11-19T10:00:00Z", "expiresAt": "2026-11-21T10:00:00Z"}
    audit["status"]["evidence"] |= {"azure": azure, "probe": {"observedAt": "2026-11-20T11:30:00Z", "nodes": 2}}
    return report(deployment, pods, audit)


def an_audit(reason: str, message: str, *further_conditions: Manifest, verdict: str = "Unknown") -> Manifest:
    audit = {**an_egress_audit(), "status": a_verdict(verdict, message=message)}
    truth = "True" if verdict == "Pass" else "False"
    audit["status"]["conditions"] = [condition("Ready", truth, reason, message), *further_conditions]
    return audit


class Terminal(io.StringIO):
    """A screen of a given width."""

    def isatty(self) -> bool:
        return True


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, **environ: str) -> str:
    """Everything that status can show, on a screen of this width."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": str(columns), **environ}.items():
        monkeypatch.setenv(name, value)
    stale_report = stale([a_pod("a", ready=True), a_pod("b", waiting="[bold]CrashLoopBackOff")])
    screen.show_one(stale_report, NOW)
    screen.show_many([stale_report], NOW)
    return terminal.getvalue()


def starting_model(*, seconds: int = 130, load: int | None = 44, **status: Any) -> DeploymentReport:
    """A model whose engine has been loading for so many seconds."""
    pod = a_pod("llama-1", creationTimestamp="2026-11-20T11:50:00Z")
    began = (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    pod["status"]["containerStatuses"][0] |= {"restartCount": 0, "state": {"running": {"startedAt": began}}}
    plan = {"load": {"leastSeconds": load}} if load is not None else {}
    message = "0 of 1 replicas serve; pods are starting"
    deployment = seen(a_share_model(), "False", "Starting", message, plan=plan, **status)
    return report(deployment, [pod], None)


def proven(**status: Any) -> DeploymentReport:
    """A model that serves, on a cluster whose verdict is Pass with findings."""
    audit = an_audit("IsolationProven", "no egress path was found", verdict="Pass")
    warning = {"check": "node-resolv", "severity": "low", "verdict": "Fail", "resource": "node/a", "message": "m"}
    audit["status"] |= {"findings": [warning] * 2, "counts": {"fail": 2, "warnings": 2}}
    azure = {"observedAt": "2026-11-20T11:00:00Z", "expiresAt": "2026-11-21T11:00:00Z"}
    audit["status"]["evidence"] = {"azure": azure, "probe": {"observedAt": "2026-11-20T11:30:00Z", "nodes": 1}}
    conditions = [condition("IsolationVerified", "True", "IsolationProven", "fresh evidence shows it")]
    url = {"url": "http://10.0.0.4:8000/v1"}
    deployment = seen(a_share_model(), "True", "Serving", "1 of 1 serve", conditions=conditions, endpoint=url, **status)
    return report(deployment, [a_pod("a", ready=True)], audit)

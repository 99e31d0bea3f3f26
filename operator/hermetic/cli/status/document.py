"""The report of `hermetic status` as one document for programs: `hermetic.dev/status/v1`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hermetic.api.times import timestamp
from hermetic.cli.status import isolation
from hermetic.cli.status.report import DeploymentReport
from hermetic.cli.status.starting import StartReport

SCHEMA = "hermetic.dev/status/v1"


def status_document(reports: Sequence[DeploymentReport], now: datetime) -> dict[str, Any]:
    """`isolation` is absent where the EgressAudit does not exist or cannot be read; `start` is None where none runs."""
    proof = next((report.proof for report in reports if report.proof is not None), None)
    proven = {"isolation": isolation.as_json(proof)} if proof is not None else {}
    return {"schema": SCHEMA, **proven, "deployments": [_deployment(report, now) for report in reports]}


def _start(start: StartReport | None, now: datetime) -> dict[str, Any] | None:
    if start is None:
        return None
    return {
        "pod": start.pod,
        "phase": start.phase,
        "since": timestamp(start.since),
        "deadline": timestamp(start.deadline) if start.deadline is not None else "",
        "elapsedSeconds": round(start.elapsed(now).total_seconds()),
        "predictedLoadSeconds": start.predicted_seconds,
        "log": start.log,
    }


def _deployment(deployment_report: DeploymentReport, now: datetime) -> dict[str, Any]:
    remedy = deployment_report.remedy
    return {
        "namespace": deployment_report.namespace,
        "name": deployment_report.name,
        "engine": deployment_report.engine,
        "model": deployment_report.model,
        "gpus": deployment_report.gpus,
        "weights": deployment_report.weights,
        "replicas": {"wanted": deployment_report.desired, "serving": deployment_report.serving},
        "endpoint": deployment_report.endpoint,
        "ready": deployment_report.ready.truth,
        "reason": deployment_report.ready.reason,
        "message": deployment_report.ready.message,
        "blocks": deployment_report.blocks,
        "fix": remedy.advice if remedy is not None else "",
        "commands": list(remedy.commands) if remedy is not None else [],
        "evidenceObservedAt": timestamp(deployment_report.evidence) if deployment_report.evidence is not None else "",
        "start": _start(deployment_report.start, now),
        "adapters": [
            {"name": adapter.name, "state": adapter.state, "digest": adapter.digest, "reason": adapter.reason}
            for adapter in deployment_report.adapters
        ],
        "benchmark": benchmarks[0].as_json() if (benchmarks := deployment_report.benchmarks) else None,
        "conditions": [
            {
                "type": condition.type,
                "status": condition.truth,
                "reason": condition.reason,
                "message": condition.message,
            }
            for condition in deployment_report.conditions
        ],
        "pods": [
            {"name": pod.name, "state": pod.state, "restarts": pod.restarts, "node": pod.node}
            for pod in deployment_report.pods
        ],
    }

"""Publishes findings: as metrics, and as an OpenReports ClusterReport where the cluster serves that kind."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog

from hermetic import __version__
from hermetic.api.egressaudit import EgressAuditSpec
from hermetic.audit.checks.registry import PAGES
from hermetic.audit.model.findings import Verdict
from hermetic.audit.report.openreports import NAME, cluster_report
from hermetic.audit.result.report import Report
from hermetic.audit.verdict.inputs import VerdictInputs, age_of
from hermetic.audit.verdict.overall import Standing
from hermetic.controller.telemetry import Telemetry
from hermetic.errors import Forbidden, NotFound, Rejected
from hermetic.kinds import CLUSTER_REPORT, EGRESS_AUDIT
from hermetic.kube.paging import named
from hermetic.ports import KubeApi, Manifest

DIGEST = "hermetic.dev/findings"

log = structlog.get_logger(__name__)


class Publisher:
    """Writes the report when its findings differ from those of the live one."""

    def __init__(self, api: KubeApi, telemetry: Telemetry) -> None:
        self._api = api
        self._telemetry = telemetry
        self._published: str | None = None

    async def publish(
        self, audit: Mapping[str, Any], spec: EgressAuditSpec, inputs: VerdictInputs, standing: Standing, at: datetime
    ) -> list[str]:
        """Update the metrics, and the report if its findings changed; returns what was written."""
        accepted = inputs.choice.accepted
        age = age_of(accepted, spec) if accepted is not None else None
        self._telemetry.record_isolation(standing.verdict, standing.findings, age)
        digest = _digest(standing)
        if digest == self._published:
            return []
        written = False
        try:
            if self._published is not None or digest != await self._digest_of_the_live_one():
                await self._api.apply(_manifest(audit, spec, standing, at, digest))
                written = True
        except (Forbidden, NotFound, Rejected) as refusal:
            # The ClusterReport CRD and the right to write it are optional; the verdict does not depend on them.
            log.info("report not published", because=refusal.message)
        # After a refusal, tried again when the findings change.
        self._published = digest
        return [f"ClusterReport/{NAME}"] if written else []

    def report_verdict_alone(self, verdict: Verdict) -> None:
        """Report a verdict without findings in the metrics."""
        self._telemetry.record_isolation(verdict, (), None)

    def forget(self) -> None:
        """Clear the metrics of a deleted audit; its report is garbage-collected, as the audit owns it."""
        self._published = None
        self._telemetry.record_isolation(None, (), None)

    async def _digest_of_the_live_one(self) -> str:
        """Digest on the live report; "" where there is none. Raises NotFound where the kind is not served."""
        live = await named(self._api, CLUSTER_REPORT, NAME)
        return "" if live is None else str((live["metadata"].get("annotations") or {}).get(DIGEST, ""))


def _digest(standing: Standing) -> str:
    """Digest of the findings without their evidence, which differs at every evaluation.

    Messages of Pass and NotApplicable are left out too: they count pods, and change with every pod.
    """
    fine = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    compared = (
        replace(one, evidence=(), message="" if one.verdict in fine else one.message) for one in standing.findings
    )
    found = (standing.verdict, tuple(compared))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _manifest(
    audit: Mapping[str, Any], spec: EgressAuditSpec, standing: Standing, at: datetime, digest: str
) -> Manifest:
    report = Report(
        cluster=spec.cluster,
        sources=("azure", "kube", "probe"),
        profile=spec.profile.lower(),
        started_at=at,
        finished_at=at,
        findings=standing.findings,
        notes=standing.notes,
        tool_version=__version__,
    )
    manifest: Manifest = cluster_report(report, PAGES)
    manifest["metadata"]["annotations"][DIGEST] = digest
    owner = {"apiVersion": EGRESS_AUDIT.api_version, "kind": EGRESS_AUDIT.kind}
    owner |= {key: audit["metadata"][key] for key in ("name", "uid")}
    manifest["metadata"]["ownerReferences"] = [owner]
    return manifest

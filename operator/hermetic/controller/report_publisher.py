"""What the audit found, for others: metrics always, an OpenReports ClusterReport where the cluster knows that kind."""

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
from hermetic.audit.findings import Report, Verdict
from hermetic.audit.report.openreports import NAME, cluster_report
from hermetic.audit.verdict.inputs import Looks, age_of
from hermetic.audit.verdict.overall import Standing
from hermetic.controller.telemetry import Telemetry
from hermetic.errors import Forbidden, NotFound, Rejected
from hermetic.kinds import CLUSTER_REPORT, EGRESS_AUDIT
from hermetic.kube.lookup import named
from hermetic.ports import KubeApi, Manifest

DIGEST = "hermetic.dev/findings"

log = structlog.get_logger(__name__)


class Publisher:
    """Tells it once: a report is written when its findings are others than those of the one that is there."""

    def __init__(self, api: KubeApi, telemetry: Telemetry) -> None:
        self._api = api
        self._telemetry = telemetry
        self._published: str | None = None

    async def publish(
        self, audit: Mapping[str, Any], spec: EgressAuditSpec, looks: Looks, standing: Standing, at: datetime
    ) -> list[str]:
        """Tell it, if it says anything new; returns what was written."""
        accepted = looks.choice.accepted
        ends_at = age_of(accepted, spec).ends_at if accepted is not None else None
        self._telemetry.tell_isolation(standing.verdict, standing.findings, ends_at)
        digest = _digest(standing)
        if digest == self._published:
            return []
        written = False
        try:
            if self._published is not None or digest != await self._digest_of_the_live_one():
                await self._api.apply(_manifest(audit, spec, standing, at, digest))
                written = True
        except (Forbidden, NotFound, Rejected) as refusal:
            # Where nobody installed the kind there is nobody to tell. The verdict does not hang on it.
            log.info("report not published", because=refusal.message)
        # Asked again when there is something new to say.
        self._published = digest
        return [f"ClusterReport/{NAME}"] if written else []

    def tell_nothing(self, verdict: Verdict) -> None:
        """This is the verdict, and there are no findings that speak for it."""
        self._telemetry.tell_isolation(verdict, (), None)

    def forget(self) -> None:
        """There is no audit any more; its report goes with it, for it is owned by it."""
        self._published = None
        self._telemetry.tell_isolation(None, (), None)

    async def _digest_of_the_live_one(self) -> str:
        """What an earlier process has written; "" where there is nothing. NotFound where there is no such kind."""
        live = await named(self._api, CLUSTER_REPORT, NAME)
        return "" if live is None else str((live["metadata"].get("annotations") or {}).get(DIGEST, ""))


def _digest(standing: Standing) -> str:
    """Of what was found, not of what it was found by: evidence of the cluster is another at every look.

    What is fine says how many pods it saw, which is another number with every pod.
    """
    fine = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    told = (replace(one, evidence=(), message="" if one.verdict in fine else one.message) for one in standing.findings)
    found = (standing.verdict, tuple(told))
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

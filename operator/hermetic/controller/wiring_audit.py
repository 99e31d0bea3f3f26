"""The composition root of the audit in the cluster: loaded when there is an EgressAudit."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermetic.audit.attestation.cluster_identity import ca_fingerprint
from hermetic.audit.estate.kubernetes.platform import KUBE_SYSTEM
from hermetic.audit.policy import Policy
from hermetic.controller.auditor import Auditor, ClusterIdentity
from hermetic.controller.operator import JUDGE, JUDGE_SECONDS
from hermetic.controller.prober import Prober
from hermetic.controller.publishing import Publisher
from hermetic.controller.shared import Shared
from hermetic.controller.sight import Sight
from hermetic.errors import NotFound
from hermetic.kinds import NAMESPACE
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import Connection
from hermetic.kube.lookup import named


def assemble_audit(shared: Shared) -> tuple[Auditor, Sight]:
    """Who judges, and what keeps the cluster in sight for it."""
    queue, configuration = shared.queue, shared.configuration
    sight = Sight(shared.api, shared.clock, on_change=lambda: queue.add_after(JUDGE, JUDGE_SECONDS, routine=True))
    auditor = Auditor(
        api=shared.fenced,
        store=shared.store,
        sight=sight,
        prober=Prober(shared.fenced, shared.clock, configuration.probe_namespace),
        publisher=Publisher(shared.fenced, shared.telemetry),
        recorder=shared.recorder,
        clock=shared.clock,
        identity=lambda: _identified(shared.api, shared.connection),
        on_verdict=queue.add_all,
        policy=Policy(
            allowed_registries=tuple(registry.host for registry in configuration.registries),
            allowed_dns_servers=tuple(configuration.allowed_dns_servers),
            hermetic_namespaces=(configuration.lease.namespace, configuration.probe_namespace),
        ),
    )
    return auditor, sight


async def _identified(api: KubernetesApi, connection: Connection) -> ClusterIdentity:
    """By what this cluster is known to those who attest it. Raises NotFound where that is not to be seen."""
    pem = await asyncio.to_thread(Path(connection.ca_file).read_bytes) if connection.ca_file else None
    found = await named(api, NAMESPACE, KUBE_SYSTEM)
    if found is None:
        words = f"there is no namespace '{KUBE_SYSTEM}' by which to know the cluster"
        raise NotFound(words, status=404, reason="NotFound")
    return ClusterIdentity(ca_fingerprint(pem) if pem else None, str(found["metadata"]["uid"]))

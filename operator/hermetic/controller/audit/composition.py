"""The composition root of the audit in the cluster: loaded when there is an EgressAudit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from hermetic.audit.attestation.cluster_identity import ca_fingerprint
from hermetic.audit.estate.kubernetes.platform import KUBE_SYSTEM
from hermetic.audit.policy.declarations import Policy
from hermetic.controller.audit.auditor import Auditor, ClusterIdentity
from hermetic.controller.audit.cluster_cache import ClusterCache
from hermetic.controller.audit.evaluation_client import EvaluationClient
from hermetic.controller.audit.faults import AuditFaults
from hermetic.controller.audit.lazy_auditor import EVALUATE, EVALUATE_SECONDS
from hermetic.controller.audit.probe_scheduler import Prober
from hermetic.controller.audit.report_publisher import Publisher
from hermetic.controller.context import Shared
from hermetic.errors import NotFound
from hermetic.kinds import NAMESPACE, Kind
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import Connection
from hermetic.kube.owners import Key
from hermetic.kube.paging import named
from hermetic.kube.reflector import Feed


def assemble_audit(
    shared: Shared, faults: AuditFaults, feeds: Callable[[Kind], Feed | None]
) -> tuple[Auditor, ClusterCache]:
    """Return the auditor, and the cluster cache that it reads and whose watches `feeds` are fed from."""
    queue, configuration = shared.queue, shared.configuration
    cluster_cache = ClusterCache(
        shared.api,
        shared.clock,
        on_change=lambda: queue.add_after(EVALUATE, EVALUATE_SECONDS, routine=True),
        faults=faults,
        feeds=feeds,
    )
    auditor = Auditor(
        api=shared.api,
        store=shared.store,
        cluster_cache=cluster_cache,
        prober=Prober(shared.api, shared.clock, configuration.probe_namespace),
        evaluate=EvaluationClient(),
        faults=faults,
        publisher=Publisher(shared.api, shared.telemetry),
        recorder=shared.recorder,
        clock=shared.clock,
        identity=lambda: _identified(shared.api, shared.connection),
        on_verdict=lambda concerned: _on_verdict(shared, concerned),
        close_gate=shared.pod_gate.close,
        policy=Policy(
            allowed_registries=tuple(registry.host for registry in configuration.registries),
            additional_private_ranges=tuple(configuration.additional_private_ranges),
            allowed_dns_servers=tuple(configuration.allowed_dns_servers),
            harmless_kinds=tuple(configuration.harmless_kinds),
            trusted_node_agents=tuple(configuration.trusted_node_agents),
            hermetic_namespaces=(configuration.lease.namespace, configuration.probe_namespace),
        ),
    )
    return auditor, cluster_cache


def _on_verdict(shared: Shared, concerned: frozenset[Key]) -> None:
    """Renew the Lease before queueing the deployments: its annotations decide whether their pods are admitted."""
    shared.pod_gate.refresh()
    shared.queue.add_all(concerned)


async def _identified(api: KubernetesApi, connection: Connection) -> ClusterIdentity:
    """CA fingerprint and kube-system uid, which attestations name. Raises NotFound without that namespace."""
    pem = await asyncio.to_thread(Path(connection.ca_file).read_bytes) if connection.ca_file else None
    found = await named(api, NAMESPACE, KUBE_SYSTEM)
    if found is None:
        words = f"there is no namespace '{KUBE_SYSTEM}' by which to know the cluster"
        raise NotFound(words, status=404, reason="NotFound")
    return ClusterIdentity(ca_fingerprint(pem) if pem else None, str(found["metadata"]["uid"]))

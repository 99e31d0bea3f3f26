"""The operator's own parts, put together around a cluster in memory, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.audit.model.findings import Finding
from hermetic.audit.policy.declarations import Policy
from hermetic.controller.audit.auditor import Auditor, ClusterIdentity
from hermetic.controller.audit.cluster_cache import ClusterCache
from hermetic.controller.audit.evaluation_case import Case
from hermetic.controller.audit.faults import AuditFaults
from hermetic.controller.audit.lazy_auditor import EVALUATE, EVALUATE_SECONDS, LazyAuditor
from hermetic.controller.audit.probe_scheduler import Prober
from hermetic.controller.audit.report_publisher import Publisher
from hermetic.controller.manager import Manager
from hermetic.controller.pod_gate import PodGate
from hermetic.controller.reconciler import Reconciler
from hermetic.controller.telemetry import Telemetry
from hermetic.controller.volume_gc import VolumeCollector
from hermetic.controller.workqueue import WorkQueue
from hermetic.kinds import Kind
from hermetic.kube.lease import LeaderLease
from hermetic.kube.owners import Key
from hermetic.kube.recorder import EventRecorder
from hermetic.kube.reflector import Feed
from hermetic.kube.store import Store
from hermetic.kube.store_watches import StoreWatches
from hermetic.kube.watch_specs import PRIMARY_WATCHES
from tests.attestations import CA, UID
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.lease_in_memory import LeaseInMemory
from tests.fakes.virtual_loop import VirtualClock
from tests.scenarios import a_baked_model, reporting

NAMESPACE = "team-a"
PROBES = "hermetic-probe"
RESYNC_SECONDS = 600
POLICY: dict[str, Any] = {
    "registries": [{"host": "contoso.azurecr.io", "namespaces": ["*"]}],
    "shares": [{"account": "contosomodels", "share": "models", "namespaces": ["*"]}],
    "resyncSeconds": RESYNC_SECONDS,
    "isolation": {"minimumEnforcement": "Off"},
    "integrity": {"minimumPolicy": "Off"},
}
MOMENT = 1.0  # of virtual time: longer than any write takes


@contextlib.asynccontextmanager
async def running(
    cluster: ClusterInMemory,
    *,
    workers: int = 8,
    reflectors: bool = False,
    namespaces: tuple[str, ...] = (),
    renew: Callable[[PodGate], None] = lambda _pod_gate: None,
    lease: LeaseInMemory | None = None,
    policy: dict[str, Any] | None = None,
) -> AsyncIterator[Manager]:
    """The operator at work on the cluster, primed; what was there before it started is listed, not watched.

    With `reflectors` it watches by its own, as in a process; otherwise the cluster reports every change to it. `renew`
    is called for each renewal of the Lease that the pod gate asks for; with `lease` a real LeaderLease keeps that one.
    `policy` adds keys to the configuration.
    """
    configuration, clock = (
        Configuration.model_validate({**POLICY, **(policy or {}), "watchNamespaces": list(namespaces)}),
        VirtualClock(),
    )
    store, telemetry = Store(configuration), Telemetry()
    queue: WorkQueue[Key] = WorkQueue(clock.monotonic, jitter=lambda: 1.0)
    recorder = EventRecorder(cluster, instance="tests", clock=clock, on_loss=telemetry.count_lost_event)
    judge_soon = partial(queue.add_after, EVALUATE, EVALUATE_SECONDS, routine=True)
    faults = AuditFaults(clock, count=telemetry.count_audit_fault, on_fault=judge_soon)

    pod_gate = PodGate(configuration, store, clock)
    pod_gate.renew = lambda: renew(pod_gate)
    keeper = await _leading(lease, pod_gate, clock) if lease is not None else None

    def on_verdict(concerned: frozenset[Key]) -> None:
        pod_gate.refresh()
        queue.add_all(concerned)

    def feed(kind: Kind) -> Feed | None:
        return following.feed(kind)

    cluster_cache = ClusterCache(cluster, clock, on_change=judge_soon, faults=faults, feeds=feed)
    auditor = Auditor(
        api=cluster,
        store=store,
        cluster_cache=cluster_cache,
        prober=Prober(cluster, clock, PROBES),
        evaluate=JudgedHere(),
        faults=faults,
        publisher=Publisher(cluster, telemetry),
        recorder=recorder,
        clock=clock,
        identity=_identity,
        on_verdict=on_verdict,
        close_gate=pod_gate.close,
        policy=Policy(allowed_registries=("contoso.azurecr.io",), hermetic_namespaces=("hermetic-system", PROBES)),
    )

    async def make() -> tuple[Auditor, ClusterCache]:
        return auditor, cluster_cache

    lazy_auditor = LazyAuditor(store, make, faults)
    operator = Manager(
        api=cluster,
        store=store,
        queue=queue,
        reconciler=Reconciler(cluster, store, recorder, clock),
        sweeper=VolumeCollector(cluster, store),
        auditor=lazy_auditor,
        telemetry=telemetry,
        clock=clock,
        namespaces=namespaces,
        resync_seconds=RESYNC_SECONDS,
        pod_gate=pod_gate,
    )
    following = StoreWatches(
        cluster, store, see=operator.see, relist=operator.relist, listed=operator.listed, namespaces=namespaces
    )
    await operator.prime()
    renew(pod_gate)
    cluster.see = partial(_as_kopf, operator) if reflectors else operator.see
    coroutines = [
        operator.work(workers),
        lazy_auditor.run(),
        recorder.run(),
        *([following.run()] if reflectors else []),
    ]
    work = [
        asyncio.ensure_future(coroutine) for coroutine in coroutines + ([keeper.keep()] if keeper is not None else [])
    ]
    try:
        yield operator
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _leading(lease: LeaseInMemory, pod_gate: PodGate, clock: VirtualClock) -> LeaderLease:
    leader = LeaderLease(lease, namespace="ops", identity="operator", clock=clock, annotations=pod_gate.annotations)
    pod_gate.renew, pod_gate.renewed = leader.renew_soon, leader.renewed
    await leader.acquire()
    return leader


def _as_kopf(operator: Manager, manifest: Manifest, *, gone: bool) -> None:
    if any(watched.kind.kind == manifest["kind"] for watched in PRIMARY_WATCHES):
        operator.see(manifest, gone=gone)


class JudgedHere:
    """As the process that judges, without a process: everything else has its turn before the findings are there."""

    async def __call__(self, case: Case) -> tuple[Finding, ...]:
        await asyncio.sleep(0)
        return case.findings()

    async def close(self) -> None:
        """It holds nothing."""


async def _identity() -> ClusterIdentity:
    return ClusterIdentity(CA, UID)


async def rest(seconds: float = MOMENT) -> None:
    """Let the operator do what there is to do."""
    await asyncio.sleep(seconds)


def a_model(name: str = "llama", **spec: Any) -> Manifest:
    """A deployment with four children that needs no evidence."""
    manifest = reporting(a_baked_model(name, **spec))
    manifest["metadata"]["namespace"] = NAMESPACE
    return manifest


def where(kind: str, name: str = "llama") -> Coordinates:
    """The coordinates of a child."""
    return (kind, NAMESPACE, name)


def written(cluster: ClusterInMemory, name: str = "llama") -> list[str]:
    """What was written of one deployment so far, events apart: `Service`, `status`, `-PodDisruptionBudget`."""
    return list(_words(cluster, name))


def _words(cluster: ClusterInMemory, name: str) -> Iterator[str]:
    for verb, (kind, _, of) in cluster.writes:
        if of == name:
            yield {"patch": kind, "patch status": "status", "delete": f"-{kind}"}[verb]


def ready(cluster: ClusterInMemory, name: str = "llama") -> Manifest:
    """The Ready condition, {} before there is one."""
    return condition(cluster, "Ready", name)


def condition(cluster: ClusterInMemory, kind: str, name: str = "llama") -> Manifest:
    """The condition of this type, {} before there is one."""
    conditions = cluster.objects[where("ModelDeployment", name)].get("status", {}).get("conditions", ())
    return next((candidate for candidate in conditions if candidate["type"] == kind), {})


def reason(cluster: ClusterInMemory, name: str = "llama") -> str:
    """The reason of Ready."""
    return str(ready(cluster, name).get("reason", ""))

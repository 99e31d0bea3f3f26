"""The composition root: makes every part and passes it to the others; decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import structlog

from hermetic import __version__
from hermetic.api.configuration import Configuration
from hermetic.controller.audit.faults import AuditFaults
from hermetic.controller.audit.lazy_auditor import EVALUATE, EVALUATE_SECONDS, LazyAuditor
from hermetic.controller.clock import SystemClock
from hermetic.controller.context import Shared
from hermetic.controller.heartbeat import Heartbeat
from hermetic.controller.http import serving_health
from hermetic.controller.kopf_runtime import EventHandlers, watch
from hermetic.controller.manager import Manager
from hermetic.controller.pod_gate import PodGate
from hermetic.controller.reconciler import Reconciler
from hermetic.controller.telemetry import Telemetry
from hermetic.controller.volume_gc import VolumeCollector
from hermetic.controller.workqueue import WorkQueue
from hermetic.kinds import Kind
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import Connection, find_connection
from hermetic.kube.lease import RELEASE, LeaderLease, LeaseTiming, fence
from hermetic.kube.owners import Key
from hermetic.kube.recorder import EventRecorder
from hermetic.kube.reflector import Feed
from hermetic.kube.store import Store
from hermetic.kube.store_watches import StoreWatches
from hermetic.kube.tls_buffers import limit_read_buffers

if TYPE_CHECKING:
    from hermetic.controller.audit.auditor import Auditor
    from hermetic.controller.audit.cluster_cache import ClusterCache

log = structlog.get_logger(__name__)

# Together less than the ten seconds that are promised for shutdown, even when the API server never answers.
DRAIN_SECONDS = 4.0
FLUSH_SECONDS = 2.0
RELEASE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class OperatorParts:
    """The parts of one operator process."""

    operator: Manager
    following: StoreWatches
    auditor: LazyAuditor
    recorder: EventRecorder
    lease: LeaderLease
    api: KubernetesApi
    telemetry: Telemetry


def assemble(configuration: Configuration, connection: Connection, telemetry: Telemetry) -> OperatorParts:
    """Make every part of one process."""
    clock = SystemClock()
    limit = asyncio.Semaphore(configuration.max_requests_in_flight)
    api = KubernetesApi(connection, limit=limit, on_request=telemetry.count_request)
    store = Store(configuration)
    pod_gate = PodGate(configuration, store, clock)
    lease = LeaderLease(
        api,
        namespace=configuration.lease.namespace,
        identity=_identity(),
        clock=clock,
        timing=LeaseTiming(release_within=RELEASE_SECONDS),
        annotations=lambda: {**pod_gate.annotations(), RELEASE: __version__},
    )
    pod_gate.renew, pod_gate.renewed = lease.renew_soon, lease.renewed
    api.ask_before_writing(fence(lambda: lease.held))
    queue: WorkQueue[Key] = WorkQueue(clock.monotonic)
    telemetry.watch_queue(lambda: len(queue), queue.oldest_age)
    recorder = EventRecorder(api, instance=socket.gethostname(), clock=clock, on_loss=telemetry.count_lost_event)
    telemetry.watch_events(lambda: recorder.unposted)
    shared = Shared(configuration, connection, api, store, queue, recorder, clock, telemetry, pod_gate)
    faults = AuditFaults(
        clock,
        count=telemetry.count_audit_fault,
        on_fault=lambda: queue.add_after(EVALUATE, EVALUATE_SECONDS, routine=True),
    )
    auditor = LazyAuditor(store, lambda: _audit(shared, faults, following.feed), faults)
    operator = Manager(
        api=api,
        store=store,
        queue=queue,
        reconciler=Reconciler(api, store, recorder, clock),
        sweeper=VolumeCollector(api, store),
        auditor=auditor,
        telemetry=telemetry,
        clock=clock,
        namespaces=tuple(configuration.watch_namespaces),
        resync_seconds=configuration.resync_seconds,
        pod_gate=pod_gate,
    )
    following = StoreWatches(
        api,
        store,
        see=operator.see,
        relist=operator.relist,
        listed=operator.listed,
        namespaces=tuple(configuration.watch_namespaces),
    )
    return OperatorParts(operator, following, auditor, recorder, lease, api, telemetry)


ALLOCATIONS_PER_COLLECTION = 20_000
"""Objects that are made until the youngest are collected, 700 by default: nearly all of them are freed without it. The
collections took 6 % of the processor time of a burst."""


async def _audit(
    shared: Shared, faults: AuditFaults, feeds: Callable[[Kind], Feed | None]
) -> tuple[Auditor, ClusterCache]:
    # In a thread: it takes a second of processor time, and many on a busy machine, which the Lease would not outlast.
    await asyncio.to_thread(import_module, "hermetic.controller.audit.composition")
    from hermetic.controller.audit.composition import (
        assemble_audit,
    )  # costs 20 MiB, and is not needed without an EgressAudit

    parts = assemble_audit(shared, faults, feeds)
    gc.freeze()
    return parts


async def run(configuration: Configuration, *, kubeconfig: str | None, context: str | None) -> None:
    """Run the operator until a signal comes or the Lease is lost."""
    limit_read_buffers()
    connection = await find_connection(kubeconfig=kubeconfig, context=context)
    parts = assemble(configuration, connection, Telemetry())
    heartbeat = Heartbeat(parts.operator.failure, SystemClock().monotonic)
    beating = asyncio.create_task(heartbeat.run())
    try:
        async with serving_health(
            configuration.http_port,
            failure=heartbeat.failure,
            ready=lambda: parts.operator.primed,
            metrics=parts.telemetry.render,
        ):
            stop = _stop_on_signals()
            if await _acquire(parts.lease, stop):
                await _lead(parts, configuration, connection, stop)
    finally:
        beating.cancel()
        await parts.api.close()


async def _acquire(lease: LeaderLease, stop: asyncio.Event) -> bool:
    """Wait for the Lease; False when a signal came first."""
    acquiring, stopping = asyncio.ensure_future(lease.acquire()), asyncio.ensure_future(stop.wait())
    await asyncio.wait({acquiring, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not acquiring.done():
        acquiring.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await acquiring
        return False
    await acquiring
    return True


async def _lead(
    parts: OperatorParts, configuration: Configuration, connection: Connection, stop: asyncio.Event
) -> None:
    """Watch and reconcile until `stop` is set, then shut down in order: finish writes, release the Lease."""
    parts.telemetry.leader.set(1)
    keeper = asyncio.create_task(parts.lease.keep())
    keeper.add_done_callback(lambda _: stop.set())
    work: list[asyncio.Task[None]] = []

    async def started() -> None:
        await parts.operator.prime()
        gc.freeze()  # a full garbage collection over all loaded modules would block the event loop
        gc.set_threshold(ALLOCATIONS_PER_COLLECTION)
        work.append(asyncio.create_task(_work(parts, configuration.workers)))
        work[0].add_done_callback(lambda _: stop.set())
        log.info("ready", deployments=parts.operator.deployments)

    cut: list[str] = []

    async def stopping() -> None:
        # kopf receives the signals by now: set our own flag as well, or what waits for it would delay the end.
        stop.set()
        if not await drain(parts.operator, parts.recorder, work):
            cut.append("a write was cut off, and may still land")

    try:
        operator = parts.operator
        audience = EventHandlers(started, operator.see, operator.started_over, stopping)
        await watch(audience, connection, namespaces=configuration.watch_namespaces, stop=stop)
    finally:
        parts.telemetry.leader.set(0)
        keeper.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await keeper
        finally:
            await release_lease(parts.lease, cut)
    for task in work:
        if not task.cancelled():
            task.result()  # the workers end by themselves only on a defect: raise it, so that the process fails


async def _work(parts: OperatorParts, workers: int) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(parts.following.run())
        group.create_task(parts.auditor.run())
        group.create_task(parts.recorder.run())
        group.create_task(parts.operator.work(workers))


async def drain(operator: Manager, recorder: EventRecorder, work: list[asyncio.Task[None]]) -> bool:
    """Let writes and Events in flight end, then stop the workers. Returns whether every write ended by itself."""
    operator.stop_taking()
    ended = False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            await operator.drained()
            await recorder.flushed(FLUSH_SECONDS)
            ended = True
    for task in work:
        task.cancel()
    await asyncio.gather(*work, return_exceptions=True)
    return ended


async def release_lease(lease: LeaderLease, cut: list[str]) -> None:
    """Release the Lease. Keep it where a write may still arrive: the next leader then waits until the Lease expires."""
    if cut:
        log.warning("lease not released", because=cut[0])
        return
    await lease.release()


def _stop_on_signals() -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def _identity() -> str:
    """Unique among processes that can run at the same time. A restarted container of one pod is the same one again."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{os.environ.get('POD_UID') or uuid.uuid4()}"

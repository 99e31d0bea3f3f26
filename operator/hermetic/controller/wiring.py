"""The composition root: every part is made here and handed to the others; nothing is decided."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

import structlog

from hermetic.api.configuration import Configuration
from hermetic.audit.attestation.cluster_identity import ca_fingerprint
from hermetic.controller.auditor import Auditor, ClusterIdentity
from hermetic.controller.clock import SystemClock
from hermetic.controller.fence import FencedApi
from hermetic.controller.http import serve_health
from hermetic.controller.operator import JUDGE, JUDGE_SECONDS, Operator
from hermetic.controller.prober import Prober
from hermetic.controller.publishing import Publisher
from hermetic.controller.reconciler import Reconciler
from hermetic.controller.shell import Audience, watch
from hermetic.controller.sight import Sight
from hermetic.controller.sweeper import Sweeper
from hermetic.controller.telemetry import Telemetry
from hermetic.controller.workqueue import WorkQueue
from hermetic.errors import NotFound
from hermetic.kinds import NAMESPACE
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import Connection, find_connection
from hermetic.kube.following import Following
from hermetic.kube.lease import LeaderLease, LeaseTiming
from hermetic.kube.recorder import EventRecorder
from hermetic.kube.store import Key, Store

log = structlog.get_logger(__name__)

# Together less than the ten seconds that are promised for the end, even when the API server never answers.
DRAIN_SECONDS = 4.0
RELEASE_SECONDS = 3.0
KUBE_SYSTEM = "kube-system"


@dataclass(frozen=True, slots=True)
class Parts:
    """One operator process, put together."""

    operator: Operator
    following: Following
    sight: Sight
    lease: LeaderLease
    api: KubernetesApi
    telemetry: Telemetry


def assemble(configuration: Configuration, connection: Connection, telemetry: Telemetry) -> Parts:
    """Make every part of one process."""
    clock = SystemClock()
    limit = asyncio.Semaphore(configuration.max_requests_in_flight)
    api = KubernetesApi(connection, limit=limit, on_request=telemetry.count_request)
    lease = LeaderLease(
        api,
        namespace=configuration.lease.namespace,
        identity=_identity(),
        clock=clock,
        timing=LeaseTiming(release_within=RELEASE_SECONDS),
    )
    fenced = FencedApi(api, may_write=lambda: lease.held)
    store = Store(configuration)
    queue: WorkQueue[Key] = WorkQueue(clock.monotonic)
    telemetry.watch_queue(lambda: len(queue), queue.oldest_age)
    recorder = EventRecorder(fenced, instance=socket.gethostname(), clock=clock)
    sight = Sight(api, clock, on_change=lambda: queue.add_after(JUDGE, JUDGE_SECONDS, routine=True))
    auditor = Auditor(
        api=fenced,
        store=store,
        sight=sight,
        prober=Prober(fenced, clock, configuration.probe_namespace),
        publisher=Publisher(fenced, telemetry),
        recorder=recorder,
        clock=clock,
        identity=lambda: _identified(api, connection),
        on_verdict=queue.add_all,
        registries=tuple(registry.host for registry in configuration.registries),
    )
    operator = Operator(
        api=fenced,
        store=store,
        queue=queue,
        reconciler=Reconciler(fenced, store, recorder, clock),
        sweeper=Sweeper(fenced, store),
        auditor=auditor,
        telemetry=telemetry,
        clock=clock,
        namespaces=tuple(configuration.watch_namespaces),
        resync_seconds=configuration.resync_seconds,
    )
    following = Following(
        api, store, see=operator.see, look=operator.look, namespaces=tuple(configuration.watch_namespaces)
    )
    return Parts(operator, following, sight, lease, api, telemetry)


async def run(configuration: Configuration, *, kubeconfig: str | None, context: str | None) -> None:
    """Run the operator until a signal comes or the Lease is lost."""
    connection = await find_connection(kubeconfig=kubeconfig, context=context)
    parts = assemble(configuration, connection, Telemetry())
    health = await serve_health(
        configuration.http_port,
        trouble=parts.operator.trouble,
        ready=lambda: parts.operator.primed,
        metrics=parts.telemetry.render,
    )
    stop = _stop_on_signals()
    try:
        if await _acquire(parts.lease, stop):
            await _lead(parts, configuration, connection, stop)
    finally:
        await health.cleanup()
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


async def _lead(parts: Parts, configuration: Configuration, connection: Connection, stop: asyncio.Event) -> None:
    """Watch and work until told to stop, then let go in order: finish writes, give the Lease back."""
    parts.telemetry.leader.set(1)
    keeper = asyncio.create_task(parts.lease.keep())
    keeper.add_done_callback(lambda _: stop.set())
    work: list[asyncio.Task[None]] = []

    async def started() -> None:
        await parts.operator.prime()
        work.append(asyncio.create_task(_work(parts, configuration.workers)))
        work[0].add_done_callback(lambda _: stop.set())
        log.info("ready", deployments=parts.operator.deployments)

    async def stopping() -> None:
        # A signal is kopf's to see by now, and whoever waits for our own flag would hold up the end.
        stop.set()
        await _drain(parts.operator, work)

    try:
        operator = parts.operator
        audience = Audience(started, operator.see, operator.started_over, stopping)
        await watch(audience, connection, namespaces=configuration.watch_namespaces, stop=stop)
    finally:
        parts.telemetry.leader.set(0)
        keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeper
        await parts.lease.release()
    for task in work:
        if not task.cancelled():
            task.result()  # work ends by itself only when it is broken: the process says so and fails


async def _work(parts: Parts, workers: int) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(parts.following.run())
        group.create_task(parts.sight.run())
        group.create_task(parts.operator.work(workers))


async def _drain(operator: Operator, work: list[asyncio.Task[None]]) -> None:
    """Let writes in flight end, then stop the workers."""
    operator.stop_taking()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            await operator.drained()
    for task in work:
        task.cancel()
    await asyncio.gather(*work, return_exceptions=True)


def _stop_on_signals() -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


async def _identified(api: KubernetesApi, connection: Connection) -> ClusterIdentity:
    """By what this cluster is known to those who attest it. Raises NotFound where that is not to be seen."""
    pem = await asyncio.to_thread(Path(connection.ca_file).read_bytes) if connection.ca_file else None
    async for page, _ in api.pages(NAMESPACE, field_selector=f"metadata.name={KUBE_SYSTEM}"):
        for found in page:
            return ClusterIdentity(ca_fingerprint(pem) if pem else None, str(found["metadata"]["uid"]))
    raise NotFound(f"there is no namespace '{KUBE_SYSTEM}' by which to know the cluster", status=404, reason="NotFound")


def _identity() -> str:
    """Unique among processes that can run at the same time. A restarted container of one pod is the same one again."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{os.environ.get('POD_UID') or uuid.uuid4()}"

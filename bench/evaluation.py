"""How long the evaluation of a large cluster holds the event loop, and how long it takes: seconds without other work.

The API server is simulated in this process from JSON, so parsing, projecting, packing and sending are the product's
own; the lists feed the operator's store as well. While the cluster is listed and evaluated, a task sleeps again and
again; what it sleeps too long is what the loop was held for by something else. For comparison the same case is
evaluated in the loop, and in a thread.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.large_cluster import large_cluster
from hermetic.api.configuration import Configuration
from hermetic.audit.model.findings import Finding
from hermetic.audit.policy.declarations import Policy
from hermetic.controller.audit.cluster_cache import ClusterCache
from hermetic.controller.audit.evaluation_case import Case
from hermetic.controller.audit.evaluation_client import EvaluationClient
from hermetic.controller.audit.faults import AuditFaults
from hermetic.controller.clock import SystemClock
from hermetic.kinds import Kind
from hermetic.kube.list_json import parsed_list
from hermetic.kube.store import Store
from hermetic.kube.store_watches import StoreWatches
from hermetic.kube.watch_specs import WatchSpec
from hermetic.ports import Manifest

PODS = 10_000
ROUNDS = 3
PROBE_SECONDS = 0.002
OF_A_PAGE = 250
"""Objects of some two KiB, as the client asks for."""
CLUSTER = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/aks"

Figures = dict[str, Any]
Evaluate = Callable[[Case], Awaitable[tuple[Finding, ...]]]


class SimulatedApi:
    """The lists of a cluster, page by page, as `ports.ClusterReader`; its watches are silent."""

    def __init__(self, objects: list[Manifest]) -> None:
        texts: dict[tuple[str, str], list[str]] = {}
        for manifest in objects:
            texts.setdefault((manifest["apiVersion"], manifest["kind"]), []).append(json.dumps(manifest))
        self._found = texts

    async def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """As a client parses them."""
        narrowed = namespace or label_selector or field_selector
        texts = [] if narrowed else self._found.get((kind.api_version, kind.kind), [])
        for start in range(0, max(1, len(texts)), OF_A_PAGE):
            body = '{"items":[' + ",".join(texts[start : start + OF_A_PAGE]) + "]}"
            await asyncio.sleep(0.001)  # the network
            page = await parsed_list(body.encode())
            yield [{**manifest, "apiVersion": kind.api_version, "kind": kind.kind} for manifest in page["items"]], "9"

    async def watch(
        self,
        kind: Kind,  # noqa: ARG002
        *,
        since: str,  # noqa: ARG002
        namespace: str | None = None,  # noqa: ARG002
        label_selector: str = "",  # noqa: ARG002
        field_selector: str = "",  # noqa: ARG002
    ) -> AsyncGenerator[tuple[str, Manifest], None]:
        """Nothing happens."""
        await asyncio.Event().wait()
        yield "", {}

    async def discovered(self, path: str) -> Manifest:  # noqa: ARG002
        """Every kind that was listed."""
        return {"kind": "APIGroupDiscoveryList", "items": []}


class Loop:
    """How long others were kept from the event loop, in milliseconds, while it is entered.

    By the clock, which a busy machine makes longer, and by the processor time of each step of the loop, which it does
    not.
    """

    def __init__(self) -> None:
        self._late: list[float] = []
        self._steps: list[float] = []
        self._began = 0.0

    async def __aenter__(self) -> Loop:
        self._began = time.perf_counter()
        self._task = asyncio.create_task(self._probe())
        self._run = asyncio.Handle._run  # noqa: SLF001 - there is no other hook around a step

        def timed(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            self._run(handle)
            self._steps.append(1000 * (time.thread_time() - began))

        asyncio.Handle._run = timed  # type: ignore[method-assign,assignment] # noqa: SLF001
        return self

    async def __aexit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began
        await asyncio.sleep(2 * PROBE_SECONDS)
        asyncio.Handle._run = self._run  # type: ignore[method-assign] # noqa: SLF001
        self._task.cancel()

    async def _probe(self) -> None:
        while True:
            asleep = time.perf_counter()
            await asyncio.sleep(PROBE_SECONDS)
            self._late.append(1000 * (time.perf_counter() - asleep - PROBE_SECONDS))

    def figures(self) -> Figures:
        """Longest, 99th percentile, and the seconds that it was entered."""
        late = sorted(self._late)
        return {
            "seconds": round(self.seconds, 2),
            "longest_ms": round(late[-1], 1),
            "p99_ms": round(late[int(0.99 * (len(late) - 1))], 1),
            "longest_step_cpu_ms": round(max(self._steps), 1),
        }


def measure(pods: int = PODS) -> Figures:
    """Listing, and then evaluating: apart as the operator does it, in the loop, and in a thread."""
    return asyncio.run(_measured(pods))


async def _measured(pods: int) -> Figures:
    objects, clock = large_cluster(pods), SystemClock()
    faults = AuditFaults(clock, count=lambda _part: None)
    api, store = SimulatedApi(objects), Store(Configuration())
    watches = StoreWatches(api, store, see=_see(store), relist=_no_list, listed=lambda _kind, _keys: None)
    cluster_cache = ClusterCache(api, clock, on_change=lambda: None, faults=faults, feeds=watches.feed)
    gc.collect()
    gc.freeze()  # what the bench itself holds is not the operator's
    async with Loop() as listing:
        cluster_cache.start()
        following = asyncio.create_task(cluster_cache.run())
        while cluster_cache.seen_at is None:  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.01)
    client = EvaluationClient()
    async with Loop() as nothing:
        await asyncio.sleep(3)
    figures: Figures = {"rest": nothing.figures(), "pods": pods, "objects": len(objects), "listing": listing.figures()}
    figures["apart"] = [await _round(cluster_cache, client) for _ in range(ROUNDS)]
    figures["process_peak_rss"] = _peak(client.pid)
    await client.close()
    figures["operator_peak_rss"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    figures["thread"] = [await _round(cluster_cache, _in_a_thread) for _ in range(ROUNDS)]
    figures["loop"] = [await _round(cluster_cache, _in_the_loop)]
    following.cancel()
    return figures


def _see(store: Store) -> Callable[..., None]:
    def see(manifest: Manifest, *, gone: bool) -> None:
        (store.drop if gone else store.put)(manifest)

    return see


async def _no_list(watched: WatchSpec) -> None:
    raise AssertionError(f"{watched.kind.plural} is fed")


async def _round(cluster_cache: ClusterCache, evaluate: Evaluate) -> Figures:
    cluster_cache._cause = (-1, "")  # noqa: SLF001 - as after a change
    async with Loop() as loop:
        await asyncio.sleep(0.05)
        await cluster_cache.cause()
        await evaluate(Case(CLUSTER, Policy(), cluster_cache.observed(), None))
    return loop.figures()


async def _in_a_thread(case: Case) -> tuple[Finding, ...]:
    return await asyncio.to_thread(case.findings)


async def _in_the_loop(case: Case) -> tuple[Finding, ...]:
    return case.findings()


def _peak(pid: int | None) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return round(int(lines["VmHWM"].split()[0]) / 1024, 1)

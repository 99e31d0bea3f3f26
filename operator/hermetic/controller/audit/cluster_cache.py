"""Cluster cache for the audit, started when an EgressAudit exists."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermetic.api.condition_updates import is_true
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.verdict.node_places import NodePlace, PlacedNodes, place_of_ready_node, placed_nodes
from hermetic.collect.kube.cache import CacheSnapshot, ClusterObservations, ObservedList
from hermetic.collect.kube.cache_watches import CacheWatches
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.collect.probe.job import pool_and_subnet_of
from hermetic.controller.audit.faults import AuditFaults
from hermetic.kinds import Kind
from hermetic.kube.cooperative import cooperatively
from hermetic.kube.reflector import Feed
from hermetic.ports import Clock, ClusterReader

NODES, SERVICES = ListRequest(Node, EVERYWHERE), ListRequest(Service, EVERYWHERE)
READ_AT_ONCE = 100
AGAIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class NodesRead:
    """What the nodes of one revision show.

    `identities`: (pool, subnet, name, machine) of each, sorted; `ready_places`: (pool, subnet) of those that are ready.
    """

    revision: int = -1
    identities: tuple[tuple[str, str, str, str], ...] = ()
    ready_places: frozenset[tuple[str, str]] = frozenset()
    placed: tuple[PlacedNodes, ...] = ()


class ClusterCache:
    """Lists and watches everything that the checks read; without an EgressAudit nothing is listed or watched.

    `feeds`: as of `CacheWatches`.
    """

    def __init__(
        self,
        api: ClusterReader,
        clock: Clock,
        *,
        on_change: Callable[[], None],
        faults: AuditFaults,
        feeds: Callable[[Kind], Feed | None] = lambda _kind: None,
    ) -> None:
        self._clock = clock
        self._observations = ClusterObservations()
        self._faults = faults
        self._observing = CacheWatches(
            api,
            self._observations,
            on_change=on_change,
            on_fault=lambda error: faults.met("collection", error),
            feeds=feeds,
        )
        self._started = asyncio.Event()
        self._cause: tuple[int, str] = (-1, "")
        self._nodes = NodesRead()

    async def run(self) -> None:
        """Wait for `start`, then list and watch until cancelled."""
        await self._started.wait()
        while True:
            try:
                await self._observing.run()
            except Exception as error:  # noqa: BLE001 - a defect of the audit must not end the operator
                self._faults.met("collection", error)
            await asyncio.sleep(AGAIN_SECONDS)

    def start(self) -> None:
        """Start listing and watching: there is an EgressAudit."""
        self._started.set()

    @property
    def seen_at(self) -> datetime | None:
        """Now, since watches are open; None until every list was read once or is known to be unreadable."""
        return self._clock.now() if self._observations.is_complete else None

    @property
    def revision(self) -> int:
        """Grows with every change of a field that a check reads."""
        return self._observations.revision

    def observed(self) -> CacheSnapshot:
        return self._observations.observed()

    async def ready_places(self) -> frozenset[tuple[str, str]]:
        """(pool, subnet) of every ready node."""
        return (await self._read_nodes()).ready_places

    async def cause(self) -> str:
        """A text that changes when the probe should run again: with nodes, pools, subnets and load balancers."""
        revision = self.revision
        if self._cause[0] != revision:
            nodes = await self._read_nodes()
            services = self.observed().lists[SERVICES]
            balancers = sorted([found async for one in _bodies(services) for found in _balancers(one)])
            self._cause = (revision, json.dumps([nodes.identities, balancers]))
        return self._cause[1]

    async def node_places(self) -> tuple[PlacedNodes, ...]:
        """The places of the ready nodes."""
        return (await self._read_nodes()).placed

    async def _read_nodes(self) -> NodesRead:
        """What this cache tells of the nodes; they are read again when a field that a check reads changed."""
        revision = self.revision
        if self._nodes.revision != revision:
            identities: list[tuple[str, str, str, str]] = []
            ready_places: set[tuple[str, str]] = set()
            placed: list[tuple[str, NodePlace]] = []
            async for body in _bodies(self.observed().lists[NODES]):
                name = str(body["metadata"].get("name", ""))
                identities.append((*pool_and_subnet_of(body), name, _machine(body)))
                if is_true(body, "Ready"):
                    ready_places.add(pool_and_subnet_of(body))
                if (place := place_of_ready_node(body)) is not None:
                    placed.append((name, place))
            self._nodes = NodesRead(revision, tuple(sorted(identities)), frozenset(ready_places), placed_nodes(placed))
        return self._nodes


def _machine(node: Mapping[str, Any]) -> str:
    """What changes where a machine is replaced or reimaged under its name."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return json.dumps([(node.get("spec") or {}).get("providerID"), info.get("machineID"), info.get("bootID")])


async def _bodies(observed_list: ObservedList) -> AsyncIterator[Mapping[str, Any]]:
    """The parsed objects of a list, yielding to the event loop after each `READ_AT_ONCE`."""
    async for body in cooperatively(observed_list.bodies.values(), every=READ_AT_ONCE):
        yield json.loads(body)


def _balancers(one: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    spec, metadata = one.get("spec") or {}, one["metadata"]
    if spec.get("type") == "LoadBalancer":
        ingress = ((one.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        yield (metadata.get("namespace", ""), metadata["name"], json.dumps(ingress, sort_keys=True))

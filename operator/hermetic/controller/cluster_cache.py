"""Cluster cache for the audit, started when an EgressAudit exists."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.collect.kube.cache import CacheSnapshot, ClusterObservations, ObservedList
from hermetic.collect.kube.cache_watches import CacheWatches
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.collect.probe.job import place_of
from hermetic.controller.audit_faults import AuditFaults
from hermetic.kinds import Kind
from hermetic.kube.cooperative import cooperatively
from hermetic.kube.reflector import Feed
from hermetic.ports import Clock, ClusterReader

NODES, SERVICES = ListRequest(Node, EVERYWHERE), ListRequest(Service, EVERYWHERE)
READ_AT_ONCE = 100
AGAIN_SECONDS = 10.0


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

    async def cause(self) -> str:
        """A text that changes when the probe should run again: with nodes, pools, subnets and load balancers."""
        revision = self.revision
        if self._cause[0] != revision:
            seen = self.observed().lists
            nodes = sorted([(*place_of(one), one["metadata"].get("name", "")) async for one in _bodies(seen[NODES])])
            balancers = sorted([found async for one in _bodies(seen[SERVICES]) for found in _balancers(one)])
            self._cause = (revision, json.dumps([nodes, balancers]))
        return self._cause[1]


async def _bodies(seen: ObservedList) -> AsyncIterator[Mapping[str, Any]]:
    """The parsed objects of a list, yielding to the event loop after each `READ_AT_ONCE`."""
    async for body in cooperatively(seen.bodies.values(), every=READ_AT_ONCE):
        yield json.loads(body)


def _balancers(one: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    spec, metadata = one.get("spec") or {}, one["metadata"]
    if spec.get("type") == "LoadBalancer":
        ingress = ((one.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        yield (metadata.get("namespace", ""), metadata["name"], json.dumps(ingress, sort_keys=True))

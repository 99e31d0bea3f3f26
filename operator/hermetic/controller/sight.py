"""The cluster's own objects as the audit sees them, from the moment on at which somebody wants an audit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from hermetic.audit.estate.kubernetes.all_kinds import question
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.questions import Answer, Question
from hermetic.collect.kube.observations import ClusterObservations
from hermetic.collect.kube.observing import Observing
from hermetic.collect.probe.seats import place_of
from hermetic.ports import Clock, ClusterReader


class Sight:
    """Everything that the checks read, kept in sight; without an EgressAudit it costs nothing."""

    def __init__(self, api: ClusterReader, clock: Clock, *, on_change: Callable[[], None]) -> None:
        self._clock = clock
        self._observations = ClusterObservations()
        self._observing = Observing(api, self._observations, on_change=on_change)
        self._wanted = asyncio.Event()
        self._cause: tuple[int, str] = (-1, "")

    async def run(self) -> None:
        """Watch from when it is wanted, until cancelled."""
        await self._wanted.wait()
        await self._observing.run()

    def want(self) -> None:
        """There is an EgressAudit: begin to look."""
        self._wanted.set()

    @property
    def seen_at(self) -> datetime | None:
        """Now, for watches go on; None until every list was read once, or is known not to be readable."""
        return self._clock.now() if self._observations.is_complete else None

    @property
    def revision(self) -> int:
        """Grows whenever something changed that a check reads."""
        return self._observations.revision

    def answers(self) -> Mapping[Question, Answer]:
        """What every list holds now; a list that may not be read is a problem. Costs as the cluster is large."""
        return self._observations.answers()

    def cause(self) -> str:
        """A text that changes when the probe should run again: with machines, their subnets, and load balancers."""
        if self._cause[0] != self.revision:
            self._cause = (self.revision, _cause(self.answers()))
        return self._cause[1]


def _cause(answers: Mapping[Question, Answer]) -> str:
    nodes = sorted(
        (*place_of(one), one["metadata"].get("name", "")) for one in _bodies(answers, question(Node, EVERYWHERE))
    )
    return json.dumps([nodes, sorted(_balancers(_bodies(answers, question(Service, EVERYWHERE))))])


def _balancers(services: Iterator[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for one in services:
        spec, metadata = one.get("spec") or {}, one["metadata"]
        if spec.get("type") == "LoadBalancer":
            ingress = ((one.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
            yield (metadata.get("namespace", ""), metadata["name"], json.dumps(ingress, sort_keys=True))


def _bodies(answers: Mapping[Question, Answer], asked: Question) -> Iterator[Mapping[str, Any]]:
    yield from (body.value for body in answers[asked].bodies)

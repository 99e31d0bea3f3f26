"""Rounds of the probe, one after another: due by time, or because something changed that could open a way.

What a round brought stays in the cluster (its finished Jobs) until the next two have ended, so a restarted operator
goes on where it was and probes nothing twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from hermetic.api.egressaudit import Probe
from hermetic.audit.estate.questions import Answer
from hermetic.audit.standing.looks import ProbeRound
from hermetic.collect.probe.job import (
    POOL_ANNOTATION,
    RUN_LABEL,
    SELECTOR,
    SUBNET_ANNOTATION,
    ProbePods,
    Seat,
)
from hermetic.collect.probe.readings import Round
from hermetic.collect.probe.running import LOOK_AGAIN_SECONDS, PATIENCE_SECONDS, Probing
from hermetic.collect.probe.seats import seats
from hermetic.kinds import JOB
from hermetic.ports import Clock, KubeApi

RETRY_SECONDS = 300
"""A round that did not answer from everywhere is repeated after this, however long the interval is."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ended:
    """A round that is over: its name, when it ended, from where, and what came of it."""

    run: str
    at: datetime
    seats: tuple[Seat, ...]
    answer: Answer

    def told(self) -> ProbeRound:
        """As the verdict takes it."""
        silent = (self.answer.problem.detail,) if self.answer.problem is not None else ()
        if not self.seats:
            silent = ("any node: none is there to probe from",)
        return ProbeRound(self.at, len(self.seats), silent)


@dataclass(slots=True)
class Going:
    """A round that is not over."""

    run: str
    seats: tuple[Seat, ...]
    refused: Mapping[str, str]
    until: float


class Prober:
    """Keeps the newest round, and starts the next when it is due. One at a time."""

    def __init__(self, api: KubeApi, clock: Clock, namespace: str) -> None:
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self._ended: Ended | None = None
        self._going: Going | None = None
        self._has_looked_back = False

    @property
    def newest(self) -> Ended | None:
        """The newest round that is over."""
        return self._ended

    async def advance(self, wanted: Probe, cause: str) -> float:
        """Do what is due; returns after how many seconds there is more to do.

        `cause` names everything whose change asks for a new round: another text, another round. Raises what the API
        server says that may pass by itself.
        """
        probing = Probing(self._api, ProbePods(namespace=self._namespace, image=wanted.image))
        if not self._has_looked_back:
            await self._look_back(probing)
            self._has_looked_back = True
        if self._going is None and self._due_in(wanted, cause) <= 0:
            await self._start(probing, cause)
        if self._going is not None:
            await self._look(probing, self._going)
        return LOOK_AGAIN_SECONDS if self._going is not None else self._due_in(wanted, cause)

    def forget(self) -> None:
        """Nobody wants a probe any more."""
        self._ended = self._going = None
        self._has_looked_back = False

    def _due_in(self, wanted: Probe, cause: str) -> float:
        if self._ended is None or not self._ended.run.endswith(_mark(cause)):
            return 0.0
        failed = self._ended.told().silent
        interval = min(wanted.interval_seconds, RETRY_SECONDS) if failed else wanted.interval_seconds
        return (self._ended.at + timedelta(seconds=interval) - self._clock.now()).total_seconds()

    async def _start(self, probing: Probing, cause: str) -> None:
        chosen = seats(await probing.nodes())
        run = f"{self._clock.now():%Y%m%dt%H%M%S}-{_mark(cause)}"
        refused = await probing.start(run, chosen)
        log.info("probe started", run=run, seats=len(chosen), refused=len(refused))
        self._going = Going(run, chosen, refused, self._clock.monotonic() + PATIENCE_SECONDS)

    async def _look(self, probing: Probing, going: Going) -> None:
        found = await probing.look(going.run, going.seats, going.refused)
        if found.awaited and self._clock.monotonic() < going.until:
            return
        self._ended = Ended(going.run, self._when(found), going.seats, found.answer)
        self._going = None
        problem = found.answer.problem
        log.info("probe ended", run=going.run, answers=len(found.answer.bodies), problem=problem and problem.detail)

    async def _look_back(self, probing: Probing) -> None:
        """Find the newest round of an earlier process; one that did not answer from everywhere is not worth it."""
        by_run: dict[str, list[Mapping[str, Any]]] = {}
        async for page, _ in self._api.pages(JOB, namespace=self._namespace, label_selector=SELECTOR):
            for job in page:
                by_run.setdefault(job["metadata"]["labels"].get(RUN_LABEL, ""), []).append(job)
        for run in sorted(by_run, reverse=True):
            chosen = _seats_of(by_run[run])
            found = await probing.look(run, chosen)
            if found.answer.problem is None and chosen:
                self._ended = Ended(run, self._when(found), chosen, found.answer)
                return

    def _when(self, found: Round) -> datetime:
        """The oldest answer: what a pod saw first may have changed since."""
        told = [str(body.value["observedAt"]) for body in found.answer.bodies if body.value["observedAt"]]
        return min((datetime.fromisoformat(one) for one in told), default=self._clock.now())


def _mark(cause: str) -> str:
    return hashlib.sha256(cause.encode()).hexdigest()[:8]


def _seats_of(jobs: Sequence[Mapping[str, Any]]) -> tuple[Seat, ...]:
    return tuple(sorted({_seat_of(job) for job in jobs}, key=lambda seat: (seat.pool, seat.subnet)))


def _seat_of(job: Mapping[str, Any]) -> Seat:
    annotations = job["metadata"].get("annotations") or {}
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    node = str(terms[0]["matchFields"][0]["values"][0])
    return Seat(annotations.get(POOL_ANNOTATION, ""), annotations.get(SUBNET_ANNOTATION, ""), node)

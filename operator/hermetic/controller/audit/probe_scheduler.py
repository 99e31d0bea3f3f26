"""Schedules rounds of the probe, one at a time: by interval, or after a change that could open an egress path.

The finished Jobs of a round stay in the cluster for longer than the round counts: a restarted operator reads them and
repeats no round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from hermetic.api.condition_updates import is_true
from hermetic.api.egressaudit import Probe
from hermetic.api.times import CLOCK_SKEW
from hermetic.audit.estate.questions import Answer
from hermetic.audit.model.findings import Verdict
from hermetic.audit.verdict.inputs import PROBE_ROUNDS_LEFT_OUT, ProbeRound
from hermetic.collect.probe.job import (
    POOL_ANNOTATION,
    RUN_LABEL,
    SELECTOR,
    SUBNET_ANNOTATION,
    ProbedNode,
    ProbePods,
    place_of,
    probed_nodes,
)
from hermetic.collect.probe.readings import Round, wanted_pods
from hermetic.collect.probe.running import PATIENCE_SECONDS, POLL_SECONDS, Probing
from hermetic.collect.probe.targets import Targets
from hermetic.kinds import JOB, THE_EGRESS_AUDIT
from hermetic.ports import Clock, KubeApi

DOUBTS_IN_A_ROW = 4
"""Rounds in a row in which the same pool and subnet is Unknown, before the last good round stops counting."""
EARLIER_ROUNDS = 8
"""Finished rounds before the newest that a restarted operator reads: retries back off, so more do not fit into the time
for which a round counts."""
AT_LEAST_BETWEEN_SECONDS = 30
"""Least seconds between rounds, however often the cause changes: nodes come one by one, load balancers in steps."""
_BEGAN = "%Y%m%dt%H%M%S"
KEPT_LONGER_SECONDS = 600
"""Seconds that the Jobs of a round are kept beyond the time for which the round counts."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ended:
    """A finished round: its name, its time, its nodes and its answer."""

    run: str
    at: datetime
    probed_nodes: tuple[ProbedNode, ...]
    answer: Answer

    @property
    def covered_places(self) -> frozenset[tuple[str, str]]:
        """(pool, subnet) of the places from which every vantage has answered."""
        vantages: dict[tuple[str, str], set[bool]] = {}
        for body in self.answer.bodies:
            place = (str(body.value["pool"]), str(body.value["subnet"]))
            vantages.setdefault(place, set()).add(bool(body.value["hostNetwork"]))
        return frozenset(place for place, networks in vantages.items() if networks == {False, True})

    @property
    def silent_places(self) -> frozenset[str]:
        """Resources of the places from which an answer is missing."""
        probed = {(node.pool, node.subnet) for node in self.probed_nodes}
        return frozenset(f"agentPools/{pool}/subnets/{subnet}" for pool, subnet in probed - self.covered_places)

    def as_evidence(self, ready_places: frozenset[tuple[str, str]] = frozenset()) -> ProbeRound:
        """The round in the form that the verdict takes. `ready_places` are those that it must cover."""
        silent = (self.answer.problem.detail,) if self.answer.problem is not None else ()
        if not self.probed_nodes:
            silent = ("any node: none is there to probe from",)
        uncovered = sorted(ready_places - self.covered_places)
        names = tuple(f"pool {pool}, subnet {subnet}" for pool, subnet in uncovered)
        return ProbeRound(self.at, len(self.probed_nodes), silent, names)


@dataclass(slots=True)
class Going:
    """A round in progress; `until` is a monotonic time."""

    run: str
    probed_nodes: tuple[ProbedNode, ...]
    until: float
    was_started: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)


class Prober:
    """Keeps the newest finished round and starts the next when it is due, one at a time."""

    def __init__(self, api: KubeApi, clock: Clock, namespace: str) -> None:
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self._ended: Ended | None = None
        self._going: Going | None = None
        self._targets: Targets | None = None
        self._has_read_earlier_rounds = False
        self._earlier: list[Ended] = []
        self._last_good: Ended | None = None
        self._verdict: Verdict | None = None
        self._doubts: dict[str, int] = {}
        self._doubtful_rounds = 0
        self._turn = 0
        self._again: frozenset[str] = frozenset()
        self._wanted: Probe | None = None
        self._wanted_cause = ""

    @property
    def unjudged(self) -> Ended | None:
        """The newest finished round while `judge` was not called for it."""
        return self._ended if self._verdict is None else None

    def take_earlier(self) -> list[Ended]:
        """The finished rounds of an earlier process, oldest first, and only once.

        They are judged before the newest one if that is doubtful: an earlier good round then counts.
        """
        earlier, self._earlier = self._earlier, []
        return earlier

    @property
    def counted(self) -> Ended | None:
        """The round that counts: the newest, or the last good one while the newest is doubtful.

        The good one counts until it is two intervals old, and no longer once the same place was doubtful in
        DOUBTS_IN_A_ROW rounds, which ask different nodes where the pool has several.
        """
        good = self._last_good
        if self._verdict is not Verdict.UNKNOWN or good is None or self._wanted is None:
            return self._ended
        ends_at = good.at + timedelta(seconds=PROBE_ROUNDS_LEFT_OUT * self._wanted.interval_seconds)
        if self._clock.now() >= ends_at or max(self._doubts.values(), default=0) >= DOUBTS_IN_A_ROW:
            return self._ended
        return good

    def judge(self, ended: Ended, verdict: Verdict, unknown: frozenset[str]) -> None:
        """Record the verdict of a finished round, and the resources that it leaves Unknown; oldest round first."""
        if ended is self._ended:
            self._verdict = verdict
        if verdict is Verdict.UNKNOWN:
            places = frozenset(name for name in unknown if name.startswith("agentPools/")) | ended.silent_places
            self._doubts = {place: self._doubts.get(place, 0) + 1 for place in places or {"cluster"}}
            self._doubtful_rounds += 1
            return
        self._doubts, self._doubtful_rounds = {}, 0
        self._last_good = ended if verdict is Verdict.PASS else None
        failed = verdict is Verdict.FAIL
        self._again = frozenset(node.node for node in ended.probed_nodes) if failed else frozenset()

    def next_step_in(self) -> float:
        """Seconds until the next step after the newest round was judged."""
        if self._going is not None or self._wanted is None:
            return POLL_SECONDS
        return max(POLL_SECONDS, self._due_in(self._wanted, self._wanted_cause))

    @property
    def newest(self) -> Ended | None:
        """The newest finished round."""
        return self._ended

    @property
    def is_first(self) -> bool:
        """Whether a round is in progress and none has finished before it."""
        return self._ended is None and self._going is not None

    async def advance(self, wanted: Probe, cause: str) -> float:
        """Take the steps that are due; returns the seconds until the next one.

        A changed `cause` makes a new round due. Raises the errors of the API server; the next call continues from
        there.
        """
        self._wanted, self._wanted_cause = wanted, cause
        probing = Probing(self._api, self._pods(wanted, self._agreed(wanted)))
        if not self._has_read_earlier_rounds:
            await self._adopt_earlier_rounds(probing)
            self._has_read_earlier_rounds = True
        if self._going is None and self._due_in(wanted, cause) <= 0:
            self._going = self._next(probed_nodes(await probing.nodes(), self._turn, self._again), cause)
            self._turn += 1
        if self._going is not None:
            await self._go_on(probing, self._going)
        return POLL_SECONDS if self._going is not None else self._due_in(wanted, cause)

    def forget(self) -> None:
        """Drop all rounds: no probe is configured."""
        self._drop()
        self._has_read_earlier_rounds = False

    def _drop(self) -> None:
        self._ended = self._going = self._last_good = self._verdict = None
        self._earlier, self._doubts, self._doubtful_rounds = [], {}, 0

    def _agreed(self, wanted: Probe) -> Targets:
        """The wanted targets. Rounds with other targets are dropped: they prove nothing about these."""
        targets = targets_of(wanted)
        if targets != self._targets:
            self._drop()
            self._targets = targets
        return targets

    def _pods(self, wanted: Probe, targets: Targets) -> ProbePods:
        kept = PROBE_ROUNDS_LEFT_OUT * wanted.interval_seconds + PATIENCE_SECONDS + KEPT_LONGER_SECONDS
        return ProbePods(
            namespace=self._namespace, image=wanted.image, targets=targets, audit=THE_EGRESS_AUDIT, kept_seconds=kept
        )

    def _due_in(self, wanted: Probe, cause: str) -> float:
        ended = self._ended
        if ended is None:
            return 0.0
        if not ended.run.endswith(_mark(cause)):
            interval = AT_LEAST_BETWEEN_SECONDS if ended.probed_nodes else 0
        elif self._verdict is Verdict.UNKNOWN:
            interval = min(wanted.interval_seconds, retry_after_seconds(self._doubtful_rounds))
        else:
            interval = wanted.interval_seconds
        now = self._clock.now()
        if ended.at > now + CLOCK_SKEW:  # this clock was set back: how old the round is, is not known
            return 0.0
        return (ended.at + timedelta(seconds=interval) - now).total_seconds()

    def _next(self, chosen: tuple[ProbedNode, ...], cause: str) -> Going:
        run = f"{self._clock.now():{_BEGAN}}-{_mark(cause)}"
        return Going(run, chosen, self._clock.monotonic() + PATIENCE_SECONDS)

    async def _go_on(self, probing: Probing, going: Going) -> None:
        if not going.was_started:
            going.refused = await probing.start(going.run, going.probed_nodes)
            going.was_started = True
            log.info("probe started", run=going.run, seats=len(going.probed_nodes), refused=len(going.refused))
        found = await probing.read(going.run, going.probed_nodes, going.refused)
        if found.awaited and self._clock.monotonic() < going.until:
            return
        self._ended = Ended(going.run, self._when(going.run, found), going.probed_nodes, found.answer)
        self._going = self._verdict = None
        problem = found.answer.problem
        log.info("probe ended", run=going.run, answers=len(found.answer.bodies), problem=problem and problem.detail)

    async def _adopt_earlier_rounds(self, probing: Probing) -> None:
        """Adopt the newest round of an earlier process, finished or not, if it covers every present pool and subnet.

        Finished rounds before it are kept for the case that the newest one is doubtful.
        """
        by_run: dict[str, list[Mapping[str, Any]]] = {}
        async for page, _ in self._api.pages(JOB, namespace=self._namespace, label_selector=SELECTOR):
            for job in page:
                by_run.setdefault(job["metadata"]["labels"].get(RUN_LABEL, ""), []).append(job)
        places = {place_of(node) for node in await probing.nodes()}
        newest, *earlier = sorted(by_run, reverse=True) or ("",)
        await self._adopt_newest(probing, newest, by_run.get(newest, ()), places)
        if self._ended is not None or self._going is not None:
            ended = [await self._ended_round(probing, run, by_run[run]) for run in earlier[:EARLIER_ROUNDS]]
            self._earlier = [one for one in reversed(ended) if one is not None]

    async def _adopt_newest(
        self, probing: Probing, run: str, jobs: Sequence[Mapping[str, Any]], places: set[tuple[str, str]]
    ) -> None:
        nodes = _nodes_of(jobs)
        if not nodes or places - {(node.pool, node.subnet) for node in nodes}:
            return
        self._ended = await self._ended_round(probing, run, jobs)
        if self._ended is None and len(jobs) == len(wanted_pods(nodes)) and not all(_is_over(job) for job in jobs):
            self._going = Going(run, nodes, self._clock.monotonic() + PATIENCE_SECONDS, was_started=True)

    async def _ended_round(self, probing: Probing, run: str, jobs: Sequence[Mapping[str, Any]]) -> Ended | None:
        """The round of these Jobs, if all of its pods are there and have answered or failed."""
        nodes = _nodes_of(jobs)
        if not nodes or len(jobs) != len(wanted_pods(nodes)):
            return None
        state = await probing.read(run, nodes)
        return None if state.awaited else Ended(run, self._when(run, state), nodes, state.answer)

    def _when(self, run: str, found: Round) -> datetime:
        """Time of the oldest answer: its observations may be outdated first.

        Answers have the times of their nodes' clocks, which may be ahead. By this operator's clock a round ends at most
        so long after it began, and not after now.
        """
        as_evidence = [str(body.value["observedAt"]) for body in found.answer.bodies if body.value["observedAt"]]
        latest = (self._clock.now(), *(began + timedelta(seconds=PATIENCE_SECONDS) for began in _began(run)))
        return min((*latest, *map(datetime.fromisoformat, as_evidence)))


def retry_after_seconds(doubtful_rounds: int) -> int:
    """Seconds after which a doubtful round is repeated: at once after the first, then twice as long each time."""
    return 0 if doubtful_rounds <= 1 else int(AT_LEAST_BETWEEN_SECONDS * 2 ** min(doubtful_rounds - 2, 12))


def targets_of(wanted: Probe) -> Targets:
    """The targets of a spec. Raises pydantic's ValidationError for values that the CRD admits and no probe can call."""
    return Targets.model_validate(wanted.targets.model_dump(exclude_unset=True))


def _began(run: str) -> Iterator[datetime]:
    """When the round began, by its name; nothing where another program gave it."""
    try:
        yield datetime.strptime(run.partition("-")[0], _BEGAN).replace(tzinfo=UTC)
    except ValueError:
        return


def _mark(cause: str) -> str:
    return hashlib.sha256(cause.encode()).hexdigest()[:8]


def _is_over(job: Mapping[str, Any]) -> bool:
    """Whether the Job is complete or failed; if its pod is gone, so is its answer."""
    return is_true(job, "Complete") or is_true(job, "Failed")


def _nodes_of(jobs: Sequence[Mapping[str, Any]]) -> tuple[ProbedNode, ...]:
    return tuple(
        sorted({_probed_node_of(job) for job in jobs}, key=lambda probed_node: (probed_node.pool, probed_node.subnet))
    )


def _probed_node_of(job: Mapping[str, Any]) -> ProbedNode:
    annotations = job["metadata"].get("annotations") or {}
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    node = str(terms[0]["matchFields"][0]["values"][0])
    return ProbedNode(annotations.get(POOL_ANNOTATION, ""), annotations.get(SUBNET_ANNOTATION, ""), node)

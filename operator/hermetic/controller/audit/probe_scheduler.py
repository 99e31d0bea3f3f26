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
    pool_and_subnet_of,
    probed_nodes,
)
from hermetic.collect.probe.readings import Round, expected_pods
from hermetic.collect.probe.running import PATIENCE_SECONDS, POLL_SECONDS, ProbeRounds
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
_START_FORMAT = "%Y%m%dt%H%M%S"
KEPT_LONGER_SECONDS = 600
"""Seconds that the Jobs of a round are kept beyond the time for which the round counts."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FinishedRound:
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
            pool_subnet = (str(body.value["pool"]), str(body.value["subnet"]))
            vantages.setdefault(pool_subnet, set()).add(bool(body.value["hostNetwork"]))
        return frozenset(pool_subnet for pool_subnet, networks in vantages.items() if networks == {False, True})

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
class RoundInProgress:
    """A round in progress; `deadline` is a monotonic time."""

    run: str
    probed_nodes: tuple[ProbedNode, ...]
    deadline: float
    was_started: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)


class Prober:
    """Keeps the newest finished round and starts the next when it is due, one at a time."""

    def __init__(self, api: KubeApi, clock: Clock, namespace: str) -> None:
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self._newest: FinishedRound | None = None
        self._in_progress: RoundInProgress | None = None
        self._targets: Targets | None = None
        self._has_read_earlier_rounds = False
        self._earlier: list[FinishedRound] = []
        self._last_good: FinishedRound | None = None
        self._verdict: Verdict | None = None
        self._doubts: dict[str, int] = {}
        self._doubtful_rounds = 0
        self._turn = 0
        self._leaking_nodes: frozenset[str] = frozenset()
        self._probe: Probe | None = None
        self._cause = ""

    @property
    def unjudged(self) -> FinishedRound | None:
        """The newest finished round while `judge` was not called for it."""
        return self._newest if self._verdict is None else None

    def take_earlier(self) -> list[FinishedRound]:
        """The finished rounds of an earlier process, oldest first, and only once.

        They are judged before the newest one if that is doubtful: an earlier good round then counts.
        """
        earlier, self._earlier = self._earlier, []
        return earlier

    @property
    def counted(self) -> FinishedRound | None:
        """The round that counts: the newest, or the last good one while the newest is doubtful.

        The good one counts until it is two intervals old, and no longer once the same place was doubtful in
        DOUBTS_IN_A_ROW rounds, which ask different nodes where the pool has several.
        """
        good = self._last_good
        if self._verdict is not Verdict.UNKNOWN or good is None or self._probe is None:
            return self._newest
        ends_at = good.at + timedelta(seconds=PROBE_ROUNDS_LEFT_OUT * self._probe.interval_seconds)
        if self._clock.now() >= ends_at or max(self._doubts.values(), default=0) >= DOUBTS_IN_A_ROW:
            return self._newest
        return good

    def judge(self, finished: FinishedRound, verdict: Verdict, unknown: frozenset[str]) -> None:
        """Record the verdict of a finished round, and the resources that it leaves Unknown; oldest round first."""
        if finished is self._newest:
            self._verdict = verdict
        if verdict is Verdict.UNKNOWN:
            resources = frozenset(name for name in unknown if name.startswith("agentPools/")) | finished.silent_places
            self._doubts = {resource: self._doubts.get(resource, 0) + 1 for resource in resources or {"cluster"}}
            self._doubtful_rounds += 1
            return
        self._doubts, self._doubtful_rounds = {}, 0
        self._last_good = finished if verdict is Verdict.PASS else None
        failed = verdict is Verdict.FAIL
        self._leaking_nodes = frozenset(node.node for node in finished.probed_nodes) if failed else frozenset()

    def next_step_in(self) -> float:
        """Seconds until the next step after the newest round was judged."""
        if self._in_progress is not None or self._probe is None:
            return POLL_SECONDS
        return max(POLL_SECONDS, self._due_in(self._probe, self._cause))

    @property
    def newest(self) -> FinishedRound | None:
        """The newest finished round."""
        return self._newest

    @property
    def is_first(self) -> bool:
        """Whether a round is in progress and none has finished before it."""
        return self._newest is None and self._in_progress is not None

    async def advance(self, probe: Probe, cause: str) -> float:
        """Take the steps that are due; returns the seconds until the next one.

        A changed `cause` makes a new round due. Raises the errors of the API server; the next call continues from
        there.
        """
        self._probe, self._cause = probe, cause
        probing = ProbeRounds(self._api, self._pods(probe, self._update_targets(probe)))
        if not self._has_read_earlier_rounds:
            await self._adopt_earlier_rounds(probing)
            self._has_read_earlier_rounds = True
        if self._in_progress is None and self._due_in(probe, cause) <= 0:
            self._in_progress = self._new_round(
                probed_nodes(await probing.nodes(), self._turn, self._leaking_nodes), cause
            )
            self._turn += 1
        if self._in_progress is not None:
            await self._continue_round(probing, self._in_progress)
        return POLL_SECONDS if self._in_progress is not None else self._due_in(probe, cause)

    def forget(self) -> None:
        """Drop all rounds: no probe is configured."""
        self._drop()
        self._has_read_earlier_rounds = False

    def _drop(self) -> None:
        self._newest = self._in_progress = self._last_good = self._verdict = None
        self._earlier, self._doubts, self._doubtful_rounds = [], {}, 0

    def _update_targets(self, probe: Probe) -> Targets:
        """The wanted targets. Rounds with other targets are dropped: they prove nothing about these."""
        targets = targets_of(probe)
        if targets != self._targets:
            self._drop()
            self._targets = targets
        return targets

    def _pods(self, probe: Probe, targets: Targets) -> ProbePods:
        kept_seconds = PROBE_ROUNDS_LEFT_OUT * probe.interval_seconds + PATIENCE_SECONDS + KEPT_LONGER_SECONDS
        return ProbePods(
            namespace=self._namespace,
            image=probe.image,
            targets=targets,
            audit=THE_EGRESS_AUDIT,
            kept_seconds=kept_seconds,
        )

    def _due_in(self, probe: Probe, cause: str) -> float:
        newest = self._newest
        if newest is None:
            return 0.0
        if not newest.run.endswith(_cause_digest(cause)):
            interval = AT_LEAST_BETWEEN_SECONDS if newest.probed_nodes else 0
        elif self._verdict is Verdict.UNKNOWN:
            interval = min(probe.interval_seconds, retry_after_seconds(self._doubtful_rounds))
        else:
            interval = probe.interval_seconds
        now = self._clock.now()
        if newest.at > now + CLOCK_SKEW:  # this clock was set back: how old the round is, is not known
            return 0.0
        return (newest.at + timedelta(seconds=interval) - now).total_seconds()

    def _new_round(self, nodes: tuple[ProbedNode, ...], cause: str) -> RoundInProgress:
        run = f"{self._clock.now():{_START_FORMAT}}-{_cause_digest(cause)}"
        return RoundInProgress(run, nodes, self._clock.monotonic() + PATIENCE_SECONDS)

    async def _continue_round(self, probing: ProbeRounds, in_progress: RoundInProgress) -> None:
        if not in_progress.was_started:
            in_progress.refused = await probing.start(in_progress.run, in_progress.probed_nodes)
            in_progress.was_started = True
            log.info(
                "probe started",
                run=in_progress.run,
                seats=len(in_progress.probed_nodes),
                refused=len(in_progress.refused),
            )
        round_state = await probing.read(in_progress.run, in_progress.probed_nodes, in_progress.refused)
        if round_state.awaited and self._clock.monotonic() < in_progress.deadline:
            return
        self._newest = FinishedRound(
            in_progress.run,
            self._observed_at(in_progress.run, round_state),
            in_progress.probed_nodes,
            round_state.answer,
        )
        self._in_progress = self._verdict = None
        problem = round_state.answer.problem
        log.info(
            "probe ended",
            run=in_progress.run,
            answers=len(round_state.answer.bodies),
            problem=problem and problem.detail,
        )

    async def _adopt_earlier_rounds(self, probing: ProbeRounds) -> None:
        """Adopt the newest round of an earlier process, finished or not, if it covers every present pool and subnet.

        Finished rounds before it are kept for the case that the newest one is doubtful.
        """
        jobs_by_run: dict[str, list[Mapping[str, Any]]] = {}
        async for page, _ in self._api.pages(JOB, namespace=self._namespace, label_selector=SELECTOR):
            for job in page:
                jobs_by_run.setdefault(job["metadata"]["labels"].get(RUN_LABEL, ""), []).append(job)
        pool_subnets = {pool_and_subnet_of(node) for node in await probing.nodes()}
        newest, *earlier = sorted(jobs_by_run, reverse=True) or ("",)
        await self._adopt_newest(probing, newest, jobs_by_run.get(newest, ()), pool_subnets)
        if self._newest is not None or self._in_progress is not None:
            finished_rounds = [
                await self._finished_round(probing, run, jobs_by_run[run]) for run in earlier[:EARLIER_ROUNDS]
            ]
            self._earlier = [finished for finished in reversed(finished_rounds) if finished is not None]

    async def _adopt_newest(
        self, probing: ProbeRounds, run: str, jobs: Sequence[Mapping[str, Any]], pool_subnets: set[tuple[str, str]]
    ) -> None:
        nodes = _nodes_of(jobs)
        if not nodes or pool_subnets - {(node.pool, node.subnet) for node in nodes}:
            return
        self._newest = await self._finished_round(probing, run, jobs)
        if self._newest is None and len(jobs) == len(expected_pods(nodes)) and not all(_is_over(job) for job in jobs):
            self._in_progress = RoundInProgress(
                run, nodes, self._clock.monotonic() + PATIENCE_SECONDS, was_started=True
            )

    async def _finished_round(
        self, probing: ProbeRounds, run: str, jobs: Sequence[Mapping[str, Any]]
    ) -> FinishedRound | None:
        """The round of these Jobs, if all of its pods are there and have answered or failed."""
        nodes = _nodes_of(jobs)
        if not nodes or len(jobs) != len(expected_pods(nodes)):
            return None
        round_state = await probing.read(run, nodes)
        return (
            None
            if round_state.awaited
            else FinishedRound(run, self._observed_at(run, round_state), nodes, round_state.answer)
        )

    def _observed_at(self, run: str, round_state: Round) -> datetime:
        """Time of the oldest answer: its observations may be outdated first.

        Answers have the times of their nodes' clocks, which may be ahead. By this operator's clock a round ends at most
        so long after it began, and not after now.
        """
        observed_times = [
            str(body.value["observedAt"]) for body in round_state.answer.bodies if body.value["observedAt"]
        ]
        latest = (self._clock.now(), *(start + timedelta(seconds=PATIENCE_SECONDS) for start in _start_times(run)))
        return min((*latest, *map(datetime.fromisoformat, observed_times)))


def retry_after_seconds(doubtful_rounds: int) -> int:
    """Seconds after which a doubtful round is repeated: at once after the first, then twice as long each time."""
    return 0 if doubtful_rounds <= 1 else int(AT_LEAST_BETWEEN_SECONDS * 2 ** min(doubtful_rounds - 2, 12))


def targets_of(probe: Probe) -> Targets:
    """The targets of a spec. Raises pydantic's ValidationError for values that the CRD admits and no probe can call."""
    return Targets.model_validate(probe.targets.model_dump(exclude_unset=True))


def _start_times(run: str) -> Iterator[datetime]:
    """When the round began, by its name; nothing where another program gave it."""
    try:
        yield datetime.strptime(run.partition("-")[0], _START_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return


def _cause_digest(cause: str) -> str:
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

"""Keeps the EgressAudit's status current: evaluates attestations, cluster objects and the probe at every change.

The isolation gate uses the last verdict until another is written. So an evaluation that fails must write a status too:
Unknown, unless the API server could not be reached or gave an answer that is retried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import structlog
from pydantic import ValidationError

from hermetic.api.condition_updates import dated
from hermetic.api.conditions import ConditionType
from hermetic.api.egressaudit import EgressAuditSpec
from hermetic.api.validation_errors import first_problem
from hermetic.audit.attestation.choosing import ChosenAttestation
from hermetic.audit.attestation.imports import read_imports
from hermetic.audit.attestation.verification import Expected, Newest
from hermetic.audit.model.findings import Finding, Verdict, overall
from hermetic.audit.policy.declarations import Policy, Profile
from hermetic.audit.result.run import settled
from hermetic.audit.verdict.inputs import ProbeRound, VerdictInputs, probe_ends_at
from hermetic.audit.verdict.overall import Standing, exceptions_of, refusal_updates, standing_of
from hermetic.audit.verdict.probe_rounds import round_outcome
from hermetic.audit.verdict.status import next_change, status_of, status_unfounded, status_unreadable
from hermetic.controller.audit.attestation_cache import Attestations
from hermetic.controller.audit.cluster_cache import ClusterCache
from hermetic.controller.audit.evaluation_case import Case
from hermetic.controller.audit.evaluation_client import EvaluationFailed
from hermetic.controller.audit.faults import AuditFaults
from hermetic.controller.audit.probe_scheduler import FinishedRound, Prober, targets_of
from hermetic.controller.audit.refusal_events import RefusalEvents
from hermetic.controller.audit.report_publisher import Publisher
from hermetic.controller.condition_events import announcements, ready_change
from hermetic.controller.reconciler import Outcome
from hermetic.controller.status_writes import write_status
from hermetic.errors import (
    Forbidden,
    HermeticError,
    KeyUnusable,
    NotFound,
    NotLeading,
    Rejected,
    ServerError,
    Throttled,
    Unreachable,
)
from hermetic.kinds import EGRESS_AUDIT, THE_EGRESS_AUDIT
from hermetic.kube.owners import Key
from hermetic.kube.recorder import EventRecorder
from hermetic.kube.store import Store
from hermetic.plan.status import same_status
from hermetic.ports import Clock, KubeApi
from hermetic.signing.keys import TrustedKeys, read_public_key, trusted

UNTIL_SEEN_SECONDS = 1.0
PROBE_AGAIN_SECONDS = 60.0
CONFIRM_SECONDS = 300.0
"""The longest time between two evaluations: a Pass that is not confirmed again stops counting (`plan.isolation`)."""

Status = dict[str, Any]
Manifest = Mapping[str, Any]
StatusWithoutVerdict = Callable[[int, Manifest, str, datetime], Status]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """What an attestation must name to be of this cluster; None is not compared."""

    ca_fingerprint: str | None
    kube_system_uid: str


class Evaluator(Protocol):
    """Evaluates a case without blocking the event loop."""

    async def __call__(self, case: Case) -> tuple[Finding, ...]:
        """Return the findings of a case."""
        ...

    async def close(self) -> None:
        """Release its resources."""
        ...


class Auditor:
    """Evaluates the one EgressAudit of the cluster and writes its status."""

    def __init__(  # noqa: PLR0913 - the composition root passes each part once
        self,
        *,
        api: KubeApi,
        store: Store,
        cluster_cache: ClusterCache,
        prober: Prober,
        evaluate: Evaluator,
        faults: AuditFaults,
        publisher: Publisher,
        recorder: EventRecorder,
        clock: Clock,
        identity: Callable[[], Awaitable[ClusterIdentity]],
        on_verdict: Callable[[frozenset[Key]], None],
        close_gate: Callable[[], Awaitable[None]],
        policy: Policy,
    ) -> None:
        self._api = api
        self._store = store
        self._cluster_cache = cluster_cache
        self._prober = prober
        self._evaluate_case = evaluate
        self._publisher = publisher
        self._recorder = recorder
        self._clock = clock
        self._identify = identity
        self._identity: ClusterIdentity | None = None
        self._on_verdict = on_verdict
        self._close_gate = close_gate
        self.policy = policy
        self._faults = faults
        self._not_before = 0.0
        self._broken_at: object = None
        self._attestations = Attestations(store, faults)
        self._findings: tuple[object, tuple[Finding, ...]] = (None, ())
        self._refusal_events = RefusalEvents(recorder)

    async def close(self) -> None:
        """End the evaluation process."""
        await self._evaluate_case.close()

    async def evaluate(self) -> Outcome:
        """Evaluate the audit, and write the status if it changed. Raises errors that are worth a retry."""
        live = self._store.object(EGRESS_AUDIT, THE_EGRESS_AUDIT)
        if live is None or live["metadata"].get("deletionTimestamp"):
            self._prober.forget()
            self._publisher.forget()
            await self._record(None)
            return Outcome()
        self._cluster_cache.start()
        if self._cluster_cache.seen_at is None:
            # The status of an earlier process stays until this one has listed everything once.
            return Outcome(requeue_after=UNTIL_SEEN_SECONDS)
        if (wait := self._not_before - self._clock.monotonic()) > 0 and self._broken_at == _edition(live):
            return Outcome(requeue_after=wait)  # a repeated defect must not write each time
        outcome = Outcome()
        try:
            return await self._attempt(live, outcome)
        except (Forbidden, NotFound, Rejected) as error:
            await self._give_up(live, status_unfounded, f"the audit cannot go on: {error.message}", outcome)
            raise
        except HermeticError:
            raise
        except Exception as error:  # noqa: BLE001 - after a defect no earlier verdict may stay without confirmation
            return await self._broken(live, error, outcome)

    async def _attempt(self, live: Manifest, outcome: Outcome) -> Outcome:
        try:
            spec = EgressAuditSpec.model_validate(live.get("spec") or {}, extra="ignore")
            keys = trusted(
                read_public_key(one.name, one.public_key, not_after=one.not_after) for one in spec.trusted_keys
            )
            if spec.probe is not None:
                targets_of(spec.probe)
        except (ValidationError, KeyUnusable) as error:
            await self._give_up(live, status_unreadable, _in_words(error), outcome)
            return outcome
        probe_error = await self._evaluate_spec(live, spec, keys, outcome)
        if isinstance(probe_error, Throttled | Unreachable):
            raise probe_error
        if probe_error is not None:
            log.warning("probe not run", because=probe_error.message, again_in=PROBE_AGAIN_SECONDS)
            outcome.requeue_after = min(outcome.requeue_after or PROBE_AGAIN_SECONDS, PROBE_AGAIN_SECONDS)
        return outcome

    async def _evaluate_spec(
        self, live: Manifest, spec: EgressAuditSpec, keys: TrustedKeys, outcome: Outcome
    ) -> HermeticError | None:
        """Collect the inputs, evaluate, write the status; returns the error that stopped the probe, if any."""
        began, before = self._clock.now(), live.get("status") or {}
        expected = await self._expected(spec, before)
        choice = await self._attestations.choose(keys, expected, read_imports(before), began)
        probe_again_in, probe_error = await self._probe(spec, choice)
        inputs = await self._verdict_inputs(spec, choice, probe_error)
        if probe_again_in is not None:
            probe_again_in = self._prober.next_step_in()
        if not self._is_current(live):
            return probe_error  # changed or deleted meanwhile: its watch event queues the audit again
        now = self._clock.now()
        standing = standing_of(spec, inputs, now)
        holds = self._counts_until_the_probe_is_back(live, spec, inputs, standing)
        await self._record(began if holds or standing.verdict is Verdict.PASS else None)
        if holds:
            outcome.requeue_after = probe_again_in
            return probe_error
        await self._write_status(
            live, status_of(spec, live["metadata"]["generation"], inputs, standing, before, now), outcome
        )
        self._refusal_events.record(live, refusal_updates(choice), choice.digests.keys())
        outcome.wrote += await self._published(live, spec, inputs, standing, now)
        following = next_change(spec, inputs, now)
        moments = [
            CONFIRM_SECONDS,
            probe_again_in,
            (following - now).total_seconds() + 1 if following is not None else None,
            self._faults.ends_in(),
        ]
        outcome.requeue_after = min(moment for moment in moments if moment is not None)
        return probe_error

    async def _published(
        self, live: Manifest, spec: EgressAuditSpec, inputs: VerdictInputs, standing: Standing, now: datetime
    ) -> list[str]:
        try:
            return await self._publisher.publish(live, spec, inputs, standing, now)
        except HermeticError:
            raise
        except Exception as error:  # noqa: BLE001 - the verdict does not depend on the report
            self._faults.met("report", error)
            return []

    async def _expected(self, spec: EgressAuditSpec, before: Manifest) -> Expected:
        self._identity = self._identity or await self._identify()
        accepted = before.get("newestAccepted")
        newest = Newest(accepted["digest"], datetime.fromisoformat(accepted["observedAt"])) if accepted else None
        return Expected(
            cluster_arm_id=spec.cluster,
            api_server_ca_fingerprint=self._identity.ca_fingerprint,
            kube_system_uid=self._identity.kube_system_uid,
            profile=_profile(spec),
            policy_digests=tuple(spec.policy_digests),
            max_age_seconds=spec.max_evidence_age_seconds,
            newest=newest,
        )

    async def _probe(
        self, spec: EgressAuditSpec, choice: ChosenAttestation
    ) -> tuple[float | None, HermeticError | None]:
        """Advance the probe; returns seconds until its next step, or the error: the other inputs do not wait for it."""
        if spec.probe is None:
            self._prober.forget()
            return None, None
        attested = choice.accepted.digest if choice.accepted is not None else ""
        try:
            return await self._prober.advance(spec.probe, f"{await self._cluster_cache.cause()}\n{attested}"), None
        except NotLeading:
            raise
        except HermeticError as probe_error:
            return None, probe_error
        except Exception as error:  # noqa: BLE001 - the probe is reported as failed, and all else is evaluated
            self._faults.met("probe", error)
            return None, ServerError(f"the probe failed: {error!r}", status=0)

    def _is_current(self, live: Manifest) -> bool:
        """Whether uid and generation are still those of `live`: evaluation takes seconds."""
        newest = (self._store.object(EGRESS_AUDIT, THE_EGRESS_AUDIT) or {}).get("metadata") or {}
        return all(newest.get(key) == live["metadata"].get(key) for key in ("uid", "generation"))

    async def _verdict_inputs(
        self, spec: EgressAuditSpec, choice: ChosenAttestation, probe_error: HermeticError | None
    ) -> VerdictInputs:
        kubernetes_at = self._cluster_cache.seen_at
        await self._judge_newest_round(spec)
        counted = self._prober.counted
        ready_places = await self._cluster_cache.ready_places()
        return VerdictInputs(
            choice=choice,
            cluster_findings=await self._cluster_findings(spec, counted),
            kubernetes_at=kubernetes_at,
            probe=counted.as_evidence(ready_places) if counted is not None else None,
            probe_error=probe_error.message if probe_error is not None else "",
            nodes=await self._cluster_cache.node_places(),
        )

    async def _judge_newest_round(self, spec: EgressAuditSpec) -> None:
        """Tell the prober what its newest round shows: a doubtful one is repeated, and the last good one counts."""
        if (finished := self._prober.unjudged) is None:
            return
        verdict, unknown = await self._round_outcome(spec, finished)
        if verdict is Verdict.UNKNOWN:
            for earlier in self._prober.take_earlier():
                self._prober.judge(earlier, *await self._round_outcome(spec, earlier))
        self._prober.judge(finished, verdict, unknown)

    async def _round_outcome(self, spec: EgressAuditSpec, finished: FinishedRound) -> tuple[Verdict, frozenset[str]]:
        findings, _ = settled(
            await self._cluster_findings(spec, finished), exceptions_of(spec), self._clock.now().date()
        )
        return round_outcome(findings)

    async def _cluster_findings(self, spec: EgressAuditSpec, newest: FinishedRound | None) -> tuple[Finding, ...]:
        """Findings of the cluster; evaluated again when a field that a check reads or the counted round changed."""
        basis = (self._cluster_cache.revision, newest.run if newest is not None else "", spec.profile, spec.cluster)
        if self._findings[0] != basis:
            policy = self.policy.model_copy(update={"profile": _profile(spec)})
            probe = newest.answer if newest is not None else None
            findings = await self._evaluate_case(Case(spec.cluster, policy, self._cluster_cache.observed(), probe))
            self._findings = (basis, findings)
        return self._findings[1]

    def _counts_until_the_probe_is_back(
        self, live: Manifest, spec: EgressAuditSpec, inputs: VerdictInputs, standing: Standing
    ) -> bool:
        """Whether to keep the Pass of an earlier process because only this process's first probe round is missing.

        It is kept for minutes at most: while that round runs, if the earlier round still counts, every finding is Pass,
        and the attestation is the same.
        """
        if not self._prober.is_first or overall(standing.findings) is not Verdict.PASS:
            return False
        if standing.lacking is None or standing.lacking.type is not ConditionType.PROBE_CURRENT:
            return False
        status, accepted = live.get("status") or {}, inputs.choice.accepted
        if accepted is None or accepted.digest != (status.get("newestAccepted") or {}).get("digest"):
            return False
        probed = ((status.get("evidence") or {}).get("probe") or {}).get("observedAt")
        if not probed or status.get("observedGeneration") != live["metadata"]["generation"]:
            return False
        counts_until = probe_ends_at(ProbeRound(datetime.fromisoformat(probed), 0), spec)
        return status.get("verdict") == Verdict.PASS and counts_until is not None and self._clock.now() < counts_until

    async def _broken(self, live: Manifest, error: Exception, outcome: Outcome) -> Outcome:
        self._faults.met("check", error)
        pause = self._faults.pause()
        self._not_before, self._broken_at = self._clock.monotonic() + pause, _edition(live)
        problem = str(error) if isinstance(error, EvaluationFailed) else repr(error)
        await self._give_up(live, status_unfounded, f"the audit is broken: {problem}", outcome)
        outcome.requeue_after = pause
        return outcome

    async def _record(self, confirmed_at: datetime | None) -> None:
        """Record a Pass of this time, or (None) that there is none; the Lease is closed before a status says so."""
        self._on_verdict(self._store.record_evaluation(confirmed_at=confirmed_at))
        await self._close_gate()

    async def _give_up(self, live: Manifest, status: StatusWithoutVerdict, message: str, outcome: Outcome) -> None:
        before, generation = live.get("status") or {}, live["metadata"]["generation"]
        await self._record(None)
        await self._write_status(live, status(generation, before, message, self._clock.now()), outcome)
        self._publisher.report_verdict_alone(Verdict.UNKNOWN)

    async def _write_status(self, live: Manifest, written_status: Status, outcome: Outcome) -> None:
        before, generation = live.get("status") or {}, live["metadata"]["generation"]
        if (fault := self._faults.condition()) is not None:
            written_status["conditions"].append(dated(fault, generation, before, self._clock.now()))
        if same_status(written_status, before):
            return
        try:
            # Written over the uid and version that were read: findings must not reach a successor of the same name, and
            # condition times follow from the previous status.
            written = await write_status(self._api, EGRESS_AUDIT, live, written_status)
        except NotFound:
            return  # deleted meanwhile
        self._on_verdict(self._store.put(written))  # put now: the store ignores the watch event of our own write
        outcome.wrote.append("status")
        if (change := ready_change(before, written_status)) is not None:
            log.info(
                "verdict changed", before=before.get("verdict", "none"), after=written_status.get("verdict", "none"),
                reason=change.reason, because=change.message,
            )  # fmt: skip
        for one in announcements(before, written_status):
            self._recorder.record(written, severity=one.severity, reason=one.reason, action=one.action, note=one.note)


def _edition(live: Manifest) -> tuple[str, int]:
    """Uid and generation."""
    return (live["metadata"]["uid"], live["metadata"].get("generation", 0))


def _profile(spec: EgressAuditSpec) -> Profile:
    """The profile as reports spell it. The firewall of `filtered` is checked by the attestation, so no id is needed."""
    return "sealed" if spec.profile == "Sealed" else "filtered"


def _in_words(error: ValidationError | HermeticError) -> str:
    return error.message if isinstance(error, HermeticError) else first_problem(error)

"""The EgressAudit, kept true: attestations, the cluster's own objects and the probe, judged at every change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import ValidationError

from hermetic.api.egressaudit import EgressAuditSpec
from hermetic.audit.attestation.choosing import Choice, choose
from hermetic.audit.attestation.keys import read_public_key, trusted
from hermetic.audit.attestation.verification import Expected, Newest
from hermetic.audit.auditing import judge
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Question, Source
from hermetic.audit.findings import Finding
from hermetic.audit.policy import Policy
from hermetic.audit.standing.looks import Looks
from hermetic.audit.standing.telling import next_look, status_of, status_unreadable
from hermetic.audit.standing.verdict import judge_standing
from hermetic.collect.probe.readings import question as probe_question
from hermetic.controller.announcements import announcements
from hermetic.controller.prober import Prober
from hermetic.controller.publishing import Publisher
from hermetic.controller.reconciler import Outcome
from hermetic.controller.sight import Sight
from hermetic.errors import HermeticError, NotFound
from hermetic.kinds import EGRESS_ATTESTATION, EGRESS_AUDIT
from hermetic.kube.recorder import EventRecorder
from hermetic.kube.store import Store
from hermetic.plan.status import same_status
from hermetic.ports import Clock, KubeApi

NAME = "cluster"
UNTIL_SEEN_SECONDS = 1.0

Status = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """By what this cluster is known; None is not asked of an attestation."""

    ca_fingerprint: str | None
    kube_system_uid: str | None


class Auditor:
    """Judges the one EgressAudit of the cluster."""

    def __init__(  # noqa: PLR0913 - the composition root hands in each part once
        self,
        *,
        api: KubeApi,
        store: Store,
        sight: Sight,
        prober: Prober,
        publisher: Publisher,
        recorder: EventRecorder,
        clock: Clock,
        identity: Callable[[], Awaitable[ClusterIdentity]],
    ) -> None:
        self._api = api
        self._store = store
        self._sight = sight
        self._prober = prober
        self._publisher = publisher
        self._recorder = recorder
        self._clock = clock
        self._identify = identity
        self._identity: ClusterIdentity | None = None

    async def look(self) -> Outcome:
        """Judge what there is to go by, and say it when it is news. Raises what may pass by itself."""
        live = self._store.object(EGRESS_AUDIT, NAME)
        if live is None:
            self._prober.forget()
            return Outcome()
        self._sight.want()
        seen_at = self._sight.seen_at
        if seen_at is None:
            # What an earlier process said stands until this one has seen as much.
            return Outcome(look_again_in=UNTIL_SEEN_SECONDS)
        outcome = Outcome()
        now, generation, before = self._clock.now(), live["metadata"]["generation"], live.get("status") or {}
        try:
            spec = EgressAuditSpec.model_validate(live.get("spec") or {}, extra="ignore")
            keys = trusted(
                read_public_key(one.name, one.public_key, not_after=one.not_after) for one in spec.trusted_keys
            )
        except (ValidationError, HermeticError) as error:
            await self._say(live, status_unreadable(generation, before, _in_words(error), now), outcome)
            return outcome
        choice = choose(self._store.objects(EGRESS_ATTESTATION), keys, await self._expected(spec, before), now)
        moments = [await self._probe(spec, choice)]
        looks = self._looks(spec, choice, seen_at)
        standing = judge_standing(spec, looks, now)
        await self._say(live, status_of(spec, generation, looks, standing, before, now), outcome)
        outcome.wrote += await self._publisher.publish(spec, looks, standing, now)
        following = next_look(spec, looks, now)
        moments += [(following - now).total_seconds() + 1] if following is not None else []
        outcome.look_again_in = min((moment for moment in moments if moment is not None), default=None)
        return outcome

    async def _expected(self, spec: EgressAuditSpec, before: Mapping[str, Any]) -> Expected:
        profile: Literal["sealed", "filtered"] = "sealed" if spec.profile == "Sealed" else "filtered"
        self._identity = self._identity or await self._identify()
        accepted = before.get("newestAccepted")
        newest = Newest(accepted["digest"], datetime.fromisoformat(accepted["observedAt"])) if accepted else None
        return Expected(
            cluster_arm_id=spec.cluster,
            api_server_ca_fingerprint=self._identity.ca_fingerprint,
            kube_system_uid=self._identity.kube_system_uid,
            profile=profile,
            max_age_seconds=spec.max_evidence_age_seconds,
            newest=newest,
        )

    async def _probe(self, spec: EgressAuditSpec, choice: Choice) -> float | None:
        if spec.probe is None:
            self._prober.forget()
            return None
        attested = choice.accepted.digest if choice.accepted is not None else ""
        return await self._prober.advance(spec.probe, f"{self._sight.cause()}\n{attested}")

    def _looks(self, spec: EgressAuditSpec, choice: Choice, seen_at: datetime) -> Looks:
        answers = dict(self._sight.answers())
        sources: set[Source] = {"kube"}
        newest = self._prober.newest
        if newest is not None:
            answers[probe_question(spec.cluster)] = newest.answer
            sources.add("probe")
        return Looks(
            choice=choice,
            cluster_findings=_findings(spec.cluster, sources, answers),
            kubernetes_at=seen_at,
            probe=newest.told() if newest is not None else None,
        )

    async def _say(self, live: Mapping[str, Any], said: Status, outcome: Outcome) -> None:
        before = live.get("status") or {}
        if same_status(said, before):
            return
        manifest = {
            "apiVersion": EGRESS_AUDIT.api_version,
            "kind": EGRESS_AUDIT.kind,
            "metadata": {"name": live["metadata"]["name"]},
            "status": said,
        }
        try:
            written = await self._api.apply_status(manifest)
        except NotFound:
            return  # deleted meanwhile: nobody is left to read it
        self._store.put(written)
        outcome.wrote.append("status")
        for one in announcements(before, said):
            await self._recorder.record(
                written, severity=one.severity, reason=one.reason, action=one.action, note=one.note
            )


def _findings(cluster: str, sources: set[Source], answers: Mapping[Question, Answer]) -> tuple[Finding, ...]:
    return judge(Estate(cluster, sources, answers), Policy())


def _in_words(error: ValidationError | HermeticError) -> str:
    if isinstance(error, HermeticError):
        return error.message
    first = error.errors(include_url=False)[0]
    return f"`{'.'.join(str(part) for part in ('spec', *first['loc']))}`: {first['msg']}"

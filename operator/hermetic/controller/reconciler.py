"""One reconcile: take a snapshot, plan, write what differs, write the status."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import structlog
from pydantic import ValidationError

from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.api.validation_errors import first_problem
from hermetic.controller.condition_events import announcements, ready_change
from hermetic.controller.drift_backoff import DriftBackoff
from hermetic.controller.status_writes import write_status
from hermetic.errors import ApiRefused, Conflict, HermeticError, NotFound, ServerError, Throttled
from hermetic.kinds import BY_KIND, MODEL_DEPLOYMENT
from hermetic.kube.owners import Key
from hermetic.kube.paging import named
from hermetic.kube.recorder import EventRecorder
from hermetic.kube.store import Store
from hermetic.objects.children import CHILDREN, Child
from hermetic.plan.api_rejections import ApiRejection, refusal
from hermetic.plan.child_states import is_ours, obstacle
from hermetic.plan.desired_children import SpecRendering
from hermetic.plan.planning import exposed, plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import same_status, status, status_unreadable
from hermetic.plan.writes import Change, Deletion, Plan
from hermetic.ports import Clock, KubeApi, Manifest

log = structlog.get_logger(__name__)

Version = tuple[str, int]  # (uid, generation): another spec is another generation
REMEMBERED_SPECS = 256
"""Specs with their rendered children, some 40 KiB each, of ModelDeployments that are not at rest."""


@dataclass(slots=True)
class Outcome:
    """What one reconcile wrote, what was refused, and after how many seconds to reconcile again without an event.

    `children_pending`, `status_pending`: what it left to the next pass. `concerned`: other deployments affected by the
    status; it is in the store already, so its watch event will queue none of them.
    """

    wrote: list[str] = field(default_factory=list)
    refusals: tuple[ApiRejection, ...] = ()
    requeue_after: float | None = None
    children_pending: bool = False
    status_pending: bool = False
    concerned: frozenset[Key] = frozenset()


class Reconciler:
    """Brings one ModelDeployment at a time to its spec. Raises errors that are worth a retry."""

    def __init__(self, api: KubeApi, store: Store, recorder: EventRecorder, clock: Clock) -> None:
        self._api = api
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._backoff = DriftBackoff()
        self._terminating: dict[Key, str] = {}
        self._deleted: dict[Key, frozenset[str]] = {}
        self._specs: OrderedDict[Key, tuple[Version, SpecRendering | str]] = OrderedDict()

    async def reconcile(self, key: Key) -> Outcome:
        """Take a snapshot, plan, write, update the status.

        Reads from the API server only after a conflict, and the children of which the store has the head alone.
        """
        for kind, (namespace, name) in self._store.incomplete(key):
            if (live := await named(self._api, kind, name, namespace=namespace or None)) is not None:
                self._store.put(live)
        snapshot = self._snapshot(key)
        if snapshot is None:
            self._forget(key)
            return Outcome()
        if self._terminating.get(key) == snapshot.owner.uid:
            return Outcome()
        outcome = Outcome()
        rendering = self._read_spec(key, snapshot)
        if isinstance(rendering, str):
            outcome.refusals = await self._delete_all(key, exposed(snapshot), outcome)
            await self._write_status(key, snapshot, status_unreadable(snapshot, rendering, self._clock.now()), outcome)
            return outcome
        decided = plan(rendering.spec, snapshot, self._clock.now(), rendering)
        outcome.refusals = await self._carry_out(key, decided, outcome)
        if outcome.wrote and not outcome.refusals:
            # The key is queued again behind the others. So of two hundred objects at once, all have NetworkPolicies
            # before the first has a Deployment, and all have Deployments before the first has a status.
            outcome.status_pending = True
            if not _urgent(decided):
                return outcome
            # Report an urgent delete (a public Service) now: the next pass may no longer see the object, and then only
            # creates it again.
        # Without a write nothing was waited for, so nothing was seen meanwhile.
        after = self._snapshot(key) if outcome.wrote or outcome.refusals else snapshot
        if after is None or after.deleting or not _is_same_generation(snapshot, after):
            return outcome  # the change is queued; write no status for another generation
        computed = status(rendering.spec, after, decided, outcome.refusals, self._clock.now())
        await self._write_status(key, after, computed, outcome)
        self._conclude(key, after, decided, outcome)
        return outcome

    def _conclude(self, key: Key, snapshot: ClusterSnapshot, decided: Plan, outcome: Outcome) -> None:
        """Note when to reconcile again, and what the next reconcile needs to know."""
        if any(refused.reason is Reason.NAMESPACE_TERMINATING for refused in outcome.refusals):
            # Final: every further write is refused until the object itself is gone.
            self._terminating[key] = snapshot.owner.uid
        outcome.requeue_after = self._requeue_after(key, decided)
        if not outcome.wrote and (snapshot.condition(ConditionType.READY) or {}).get("status") == "True":
            self._specs.pop(key, None)  # at rest: the next reconcile may come in hours

    def _forget(self, key: Key) -> None:
        self._backoff.forget(key)
        self._terminating.pop(key, None)
        self._deleted.pop(key, None)
        self._specs.pop(key, None)

    def _snapshot(self, key: Key) -> ClusterSnapshot | None:
        return self._store.snapshot(key, backed_off=self._backoff.backed_off(key, self._clock.monotonic()))

    def _read_spec(self, key: Key, snapshot: ClusterSnapshot) -> SpecRendering | str:
        """The spec, or a message why this version cannot read it.

        Validated once per generation of an object until it is at rest, and rendered once for the same inputs.
        """
        version = (snapshot.owner.uid, snapshot.generation)
        known = self._specs.get(key)
        if known is not None and known[0] == version:
            self._specs.move_to_end(key)
            return known[1]
        spec = _read((self._store.manifest(key) or {}).get("spec") or {})
        read = spec if isinstance(spec, str) else SpecRendering(spec)
        self._specs[key] = (version, read)
        while len(self._specs) > REMEMBERED_SPECS:
            self._specs.popitem(last=False)
        return read

    async def _carry_out(self, key: Key, decided: Plan, outcome: Outcome) -> tuple[ApiRejection, ...]:
        """Make the urgent deletes, then apply the waves of this pass; when nothing is to apply, make all deletes.

        A refusal of one object does not stop the others of its wave: a public Service is deleted even if every apply is
        refused.
        """
        self._deleted[key] = self._deleted.get(key, frozenset()) & {deletion.uid for deletion in decided.delete}
        refused = await self._delete_all(key, _urgent(decided), outcome)
        if not decided.apply:
            return (*refused, *await self._delete_all(key, decided.delete, outcome))
        written = 0
        for wave in _waves_of_a_pass(decided.apply):
            rejections = await self._apply_all(key, wave, outcome)
            refused = (*refused, *rejections)
            if rejections:
                break
            written += len(wave)
        outcome.children_pending = written < len(decided.apply)
        return refused

    async def _delete_all(self, key: Key, deletions: Sequence[Deletion], outcome: Outcome) -> tuple[ApiRejection, ...]:
        """Delete each object once: until its watch event arrives, the snapshot still lists it as to be deleted."""
        refused: list[ApiRejection] = []
        for deletion in deletions:
            requested = self._deleted.get(key, frozenset())
            if deletion.uid in requested:
                continue
            try:
                await self._delete(deletion, outcome)
            except HermeticError as error:
                if not _is_final(error):
                    raise
                refused.append(refusal(f"{deletion.kind.kind} '{deletion.name}'", error))
            else:
                self._deleted[key] = requested | {deletion.uid}
        return tuple(refused)

    async def _apply_all(self, key: Key, changes: Sequence[Change], outcome: Outcome) -> tuple[ApiRejection, ...]:
        answers = await asyncio.gather(
            *(self._apply(key, change, outcome) for change in changes), return_exceptions=True
        )
        refused: list[ApiRejection] = []
        for change, answer in zip(changes, answers, strict=True):
            if isinstance(answer, HermeticError) and _is_final(answer):
                refused.append(refusal(_subject(change), answer))
            elif isinstance(answer, ApiRejection):
                refused.append(answer)
        if (broken := next((answer for answer in answers if _is_to_be_tried_again(answer)), None)) is not None:
            for rejection in refused:  # retried with the rest; until then not in the status
                log.warning("refused", ns=key[0], name=key[1], reason=rejection.reason, because=rejection.message)
            raise broken
        return tuple(refused)

    async def _apply(self, key: Key, change: Change, outcome: Outcome) -> ApiRejection | None:
        try:
            if change.patch is not None:
                live = await self._api.patch(dict(change.patch))
            else:
                live = await self._api.apply(_cautious(change))
        except Conflict as conflict:
            if change.why != "absent":
                raise
            return await self._in_the_way(key, change, conflict)
        self._backoff.applied(key, change, self._clock.monotonic())
        self._store.put(live)
        outcome.wrote.append(f"{change.manifest['kind']}/{change.manifest['metadata']['name']} ({change.why})")
        return None

    async def _in_the_way(self, key: Key, change: Change, conflict: Conflict) -> ApiRejection | None:
        """Handle a create whose name is taken: by an object whose watch event is late, or by one of another owner.

        Returns the rejection for an object of another owner; otherwise raises the conflict, to be retried.
        """
        manifest, snapshot = change.manifest, self._snapshot(key)
        kind, name = BY_KIND[manifest["kind"]], manifest["metadata"]["name"]
        live = await named(self._api, kind, name, namespace=manifest["metadata"].get("namespace"))
        if live is not None and snapshot is not None and not is_ours(live, snapshot.owner):
            block = obstacle(live, snapshot.owner)
            return ApiRejection(_subject(change), block.reason, block.message)
        if live is not None:
            self._store.put(live)
        raise conflict

    async def _delete(self, deletion: Deletion, outcome: Outcome) -> None:
        await self._api.delete(
            deletion.kind,
            namespace=deletion.namespace,
            name=deletion.name,
            uid=deletion.uid,
            resource_version=deletion.resource_version,
        )
        outcome.wrote.append(f"-{deletion.kind.kind}/{deletion.name} ({deletion.why})")

    async def _write_status(
        self, key: Key, snapshot: ClusterSnapshot, computed: dict[str, Any], outcome: Outcome
    ) -> None:
        """Write the status if it changed, and record an Event for each condition that changed."""
        if same_status(computed, snapshot.status):
            return
        namespace, name = key
        # With the uid: the status must not reach a successor of the same name. With the version: condition times
        # follow from the previous status; an outdated one, or one that another operator has overwritten, would move
        # them.
        metadata = {
            "namespace": namespace,
            "name": name,
            "uid": snapshot.owner.uid,
            "resourceVersion": snapshot.resource_version,
            "generation": snapshot.generation,
        }
        try:
            # Its watch event may come before the answer.
            with self._store.expected_statuses.expecting(key, computed):
                live = await write_status(
                    self._api, MODEL_DEPLOYMENT, {"metadata": metadata, "status": snapshot.status}, computed
                )
        except NotFound:
            return  # deleted meanwhile
        outcome.concerned = self._store.put(live) - {key}
        outcome.wrote.append("status")
        if (change := ready_change(snapshot.status, computed)) is not None:
            log.info(
                "model state changed", ns=namespace, name=name, before=change.before, after=change.after,
                reason=change.reason, because=change.message,
            )  # fmt: skip
        for event in announcements(snapshot.status, computed):
            self._recorder.record(
                live, severity=event.severity, reason=event.reason, action=event.action, note=event.note
            )

    def _requeue_after(self, key: Key, decided: Plan) -> float | None:
        moments = [self._backoff.next_retry(key, self._clock.monotonic())]
        if decided.requeue_at is not None:
            # One second late: a pass just before the deadline would find the evidence still valid.
            moments.append((decided.requeue_at - self._clock.now()).total_seconds() + 1)
        return min((moment for moment in moments if moment is not None), default=None)


def _read(spec: Mapping[str, Any]) -> ModelDeploymentSpec | str:
    try:
        # A newer CRD may have fields that this version does not know: they are ignored.
        return ModelDeploymentSpec.model_validate(spec, extra="ignore")
    except ValidationError as error:
        return first_problem(error)


def _waves_of_a_pass(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """The changes of each wave, which may be written at the same time, up to what runs pods.

    That is a pass of its own: it is decided after everything before it was written, in case the gate closed meanwhile.
    """
    waves = sorted({_child(change).wave for change in changes})
    for wave in waves:
        members = [change for change in changes if _child(change).wave == wave]
        runs_pods = any(_child(change).runs_pods for change in members)
        if runs_pods and wave != waves[0]:
            return
        yield members
        if runs_pods:
            return


def _child(change: Change) -> Child:
    return CHILDREN[change.manifest["kind"]]


def _urgent(decided: Plan) -> tuple[Deletion, ...]:
    return tuple(deletion for deletion in decided.delete if deletion.urgent)


def _subject(change: Change) -> str:
    return f"{change.manifest['kind']} '{change.manifest['metadata']['name']}'"


def _cautious(change: Change) -> Manifest:
    """The manifest as it is sent. An absent child may only be created: apply would take over another owner's object.

    resourceVersion 1 ensures that: the API server ignores a resourceVersion when it creates, and refuses (409) any but
    the latest when the object exists; no object ever has version 1.
    """
    manifest = dict(change.manifest)
    if change.why != "absent":
        return manifest
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "1"}}


def _is_same_generation(before: ClusterSnapshot, after: ClusterSnapshot) -> bool:
    """Whether both are of one generation of one object."""
    return (before.owner, before.generation) == (after.owner, after.generation)


def _is_to_be_tried_again(answer: object) -> TypeGuard[BaseException]:
    return isinstance(answer, BaseException) and not (isinstance(answer, HermeticError) and _is_final(answer))


def _is_final(error: HermeticError) -> bool:
    """Whether the refusal goes into the status; every other error is retried first."""
    return isinstance(error, ApiRefused) and not isinstance(error, (Conflict, Throttled, ServerError))

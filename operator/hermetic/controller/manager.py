"""Workers that process the queue, and the periodic resync that repairs what a watch has missed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import structlog

from hermetic.api.conditions import ConditionType
from hermetic.controller.audit.lazy_auditor import EVALUATE, LazyAuditor
from hermetic.controller.model_info import ModelInfo, model_info
from hermetic.controller.pod_gate import PodGate
from hermetic.controller.reconciler import Outcome, Reconciler
from hermetic.controller.telemetry import Telemetry
from hermetic.controller.volume_gc import VolumeCollector
from hermetic.controller.workqueue import LONGEST_DELAY, WorkQueue
from hermetic.errors import HermeticError, NotLeading, ServerError, Throttled, Unreachable
from hermetic.kinds import (
    BY_KIND,
    CORE_EVENT,
    EGRESS_ATTESTATION,
    EGRESS_AUDIT,
    MODEL_DEPLOYMENT,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    ROUTES,
    SERVICE,
    Kind,
)
from hermetic.kube.owners import Key
from hermetic.kube.store import Store
from hermetic.kube.store_lists import relist
from hermetic.kube.watch_specs import ALL_WATCHES, PRIMARY_WATCHES, WatchSpec
from hermetic.ports import Clock, KubeApi

log = structlog.get_logger(__name__)

# Not deployments: namespaces are never empty.
SWEEP: Key = ("", "sweep persistentvolumes")
NAME_MODELS: Key = ("", "name models to the pod gate")
RESYNC: Key = ("", "resync")
"""Never queued: it names the resync in logs."""


def _relist_key(kind: Kind) -> Key:
    """Of routes several versions are listed."""
    return ("", " ".join(filter(None, ("list", kind.plural, kind.version if kind in ROUTES else "", kind.part))))


RELIST_KEYS: dict[Key, WatchSpec] = {_relist_key(watched.kind): watched for watched in ALL_WATCHES}
SWEEPING_KINDS = frozenset((MODEL_DEPLOYMENT, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM))
PRIMARY_KINDS = frozenset(watched.kind for watched in PRIMARY_WATCHES)
AUDIT_KINDS = frozenset((EGRESS_AUDIT, EGRESS_ATTESTATION))
# Optional for decisions: without them messages explain less why a pod is pending, and a model that needs image volumes
# is not refused although no node mounts them: the kubelet then refuses its pods.
DETAIL_KINDS = frozenset((NODE, CORE_EVENT))

STUCK_SECONDS = 300.0
FIRST_VERDICT_SECONDS, FIRST_VERDICT_AGAIN_SECONDS = 60.0, 0.2
PRIME_AGAIN_SECONDS = 2.0
# Seconds. A starting child causes five or six events: one routine reconcile serves all that come in this time. The
# change of a Service is not routine: it may have been given a public address.
GATHER_SECONDS = 0.5
# Seconds. A sweep reads every volume, so a thousand volumes that come or go at once share one.
SWEEP_SECONDS = 2.0
# Seconds. Models that are created together are named in one renewal of the Lease.
NAME_MODELS_SECONDS = 0.5
OUTAGE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 30.0
# Bad gateway, service unavailable, gateway timeout: answers of a proxy whose API server is down.
AWAY = frozenset({502, 503, 504})


class Manager:
    """Turns events into queued keys and works on them. Independent of what delivers the events."""

    def __init__(  # noqa: PLR0913 - the composition root passes each part once
        self,
        *,
        api: KubeApi,
        store: Store,
        queue: WorkQueue[Key],
        reconciler: Reconciler,
        sweeper: VolumeCollector,
        auditor: LazyAuditor,
        telemetry: Telemetry,
        clock: Clock,
        namespaces: tuple[str, ...],
        resync_seconds: int,
        pod_gate: PodGate | None = None,
    ) -> None:
        self._api = api
        self._store = store
        self._queue = queue
        self._reconciler = reconciler
        self._sweeper = sweeper
        self._auditor = auditor
        self.telemetry = telemetry
        self._clock = clock
        self._namespaces = namespaces
        self._resync_seconds = resync_seconds
        self._pod_gate = pod_gate
        self._primed_at: float | None = None
        self._throttled_key: Key | None = None
        self._throttled_until = 0.0
        self._unlisted: dict[str, str] = {}
        telemetry.watch_conditions(self._conditions)
        telemetry.watch_models(self._models)

    # ------------------------------------------------------------------ called by kopf_runtime and the reflectors

    def see(self, manifest: Mapping[str, Any], *, gone: bool) -> None:
        """Store the object of a watch event and queue the ModelDeployments concerned. Never raises or blocks."""
        concerned, kind = self._store.drop(manifest) if gone else self._store.put(manifest), BY_KIND[manifest["kind"]]
        for key in concerned:
            if kind in PRIMARY_KINDS:
                self._queue.add(key)
            else:
                self._queue.gather(key, GATHER_SECONDS, routine=kind is not SERVICE)
        if kind is MODEL_DEPLOYMENT and not gone and self._pod_gate is not None and self._pod_gate.is_unnamed(manifest):
            self._queue.add_after(NAME_MODELS, NAME_MODELS_SECONDS, routine=True)
        if kind in AUDIT_KINDS:
            self._queue.add(EVALUATE)
        if kind in SWEEPING_KINDS and (gone or kind is PERSISTENT_VOLUME):
            self._queue.add_after(SWEEP, SWEEP_SECONDS, routine=True)

    def started_over(self, kind: Kind) -> None:
        """Queue a list of the kind: kopf's new list and watch do not report what was deleted since our last list."""
        for key, watched in RELIST_KEYS.items():
            if watched.kind is kind:
                self._queue.add(key)

    async def relist(self, watched: WatchSpec) -> None:
        """List a kind anew and queue the ModelDeployments concerned."""
        listed = partial(self.listed, watched.kind)
        await relist(self._api, self._store, watched, self._namespaces, listed=listed)

    def listed(self, kind: Kind, concerned: frozenset[Key]) -> None:
        """Queue the ModelDeployments that a list of the kind concerns."""
        self._enqueue(concerned)
        if concerned and self.primed and kind in SWEEPING_KINDS:
            # An object missing from the list was deleted, as by a DELETED event.
            self._queue.add_after(SWEEP, SWEEP_SECONDS, routine=True)

    async def prime(self) -> None:
        """List everything before the first decision, however long it takes; then queue every deployment once."""
        while not self.primed:
            try:
                await self._relist_all()
            except HermeticError as error:
                log.warning("not primed yet", because=error.message, code=error.code, again_in=PRIME_AGAIN_SECONDS)
                await asyncio.sleep(PRIME_AGAIN_SECONDS)
        self._enqueue_everything()

    async def work(self, workers: int) -> None:
        """Reconcile until cancelled."""
        await self._confirm_the_verdict()
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker())
            group.create_task(self._resync())

    def stop_taking(self) -> None:
        """Start no further key; keys in progress go on."""
        self._queue.pause(float("inf"))

    async def drained(self) -> None:
        """Wait until no key is in progress."""
        await self._queue.all_done()

    # ------------------------------------------------------------------ health

    @property
    def deployments(self) -> int:
        """How many ModelDeployments are known."""
        return self._store.count(MODEL_DEPLOYMENT)

    @property
    def primed(self) -> bool:
        """Whether everything was listed at least once."""
        return self._primed_at is not None

    def failure(self) -> str:
        """Why this process should be restarted; "" if healthy."""
        if self._queue.oldest_age() > STUCK_SECONDS and self._queue.in_progress:
            return f"the oldest piece of work is {self._queue.oldest_age():.0f} s old"
        if self._primed_at is not None and self._clock.monotonic() - self._primed_at > 3 * self._resync_seconds + 60:
            since = f"everything was last listed {self._clock.monotonic() - self._primed_at:.0f} s ago"
            return "; ".join((since, *(f"{kind}: {why}" for kind, why in self._unlisted.items())))
        return ""

    # ------------------------------------------------------------------ the loops

    async def _confirm_the_verdict(self) -> None:
        """Evaluate the audit before the first deployment: a Pass of an earlier process may no longer hold.

        If it is not confirmed in time, deployments are reconciled all the same, with the gate closed for new pods.
        """
        until = self._clock.monotonic() + FIRST_VERDICT_SECONDS
        while self._store.awaits_evaluation and self._clock.monotonic() < until:
            await self._handle(EVALUATE)
            await asyncio.sleep(FIRST_VERDICT_AGAIN_SECONDS)

    async def _worker(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._handle(key)
            finally:
                self._queue.done(key)

    async def _handle(self, key: Key) -> None:
        started = self._clock.monotonic()
        try:
            self._settle(key, await self._one(key), started)
        except NotLeading:
            return  # this process is shutting down
        except Throttled as error:
            again = self._throttled(key, error.retry_after)
            self._report(key, started, "retried", because=error.message, again_in=round(again, 1))
        except HermeticError as error:
            again = self._queue.add_failed(key, longest=_longest_backoff(error))
            self._report(key, started, "retried", because=error.message, code=error.code, again_in=round(again, 1))
        except Exception as error:  # noqa: BLE001 - a defect must not end the worker: it is logged and tried again
            self._report_defect(key, started, error, again_in=self._queue.add_failed(key))

    def _throttled(self, key: Key, retry_after: float) -> float:
        """Park one key for the Retry-After of the answer, which may come from a webhook and concern this object alone.

        If a second key is throttled meanwhile, the API server itself is busy: the whole queue pauses for
        LONGEST_PAUSE_SECONDS at most. Returns the seconds until the key is due again.
        """
        now, wait = self._clock.monotonic(), min(retry_after, LONGEST_DELAY)
        if self._throttled_key not in (None, key) and now < self._throttled_until:
            self._queue.pause(min(wait, LONGEST_PAUSE_SECONDS))
        self._throttled_key, self._throttled_until = key, max(self._throttled_until, now + wait)
        self._queue.park(key, wait)
        return wait

    async def _one(self, key: Key) -> Outcome:
        if key == SWEEP:
            swept = await self._sweeper.sweep()
            return Outcome([f"-PersistentVolume/{name}" for name in swept.removed], swept.refusals)
        if key == NAME_MODELS and self._pod_gate is not None:
            self._pod_gate.renew()
            return Outcome()
        if key == EVALUATE:
            return await self._auditor.evaluate()
        if key in RELIST_KEYS:
            await self.relist(RELIST_KEYS[key])
            return Outcome()
        return await self._reconciler.reconcile(key)

    def _settle(self, key: Key, outcome: Outcome, started: float) -> None:
        self._enqueue(outcome.concerned)
        if outcome.refusals:
            again = self._queue.add_failed(key)
            first = outcome.refusals[0]
            self._report(
                key, started, "refused", wrote=outcome.wrote, reason=first.reason, because=first.message,
                again_in=round(again, 1),
            )  # fmt: skip
            return
        self._queue.forget_failures(key)
        if outcome.status_pending and outcome.children_pending:
            self._queue.add(key, routine=True)
        elif outcome.status_pending:
            # The controllers of Kubernetes act on the children at once: one status tells both.
            self._queue.gather(key, GATHER_SECONDS, routine=True)
        if outcome.requeue_after is not None:
            self._queue.add_after(key, outcome.requeue_after)
        self._report(key, started, "written" if outcome.wrote else "unchanged", wrote=outcome.wrote)

    def _report(self, key: Key, started: float, result: str, **facts: Any) -> None:
        seconds = self._clock.monotonic() - started
        self.telemetry.reconciles.labels(result=result).inc()
        self.telemetry.duration.observe(seconds)
        if result == "unchanged":
            log.debug("reconcile", ns=key[0], name=key[1], result=result, ms=round(seconds * 1000, 1), **facts)
        else:
            log.info("reconcile", ns=key[0], name=key[1], result=result, ms=round(seconds * 1000, 1), **facts)

    def _report_defect(self, key: Key, started: float, error: Exception, *, again_in: float) -> None:
        """An exception that is no HermeticError, with its trace."""
        log.error("reconcile failed", ns=key[0], name=key[1], again_in=round(again_in, 1), exc_info=error)
        self._report(key, started, "retried", because=repr(error), again_in=round(again_in, 1))

    async def _resync(self) -> None:
        """List everything again and again. What fails is tried again; `failure` reports it when it lasts."""
        while True:
            await asyncio.sleep(self._resync_seconds)
            started, again_in = self._clock.monotonic(), self._resync_seconds
            try:
                await self._relist_all()
            except HermeticError as error:
                self._report(RESYNC, started, "retried", because=error.message, code=error.code, again_in=again_in)
            except Exception as error:  # noqa: BLE001 - the end of this task would end the process
                self._report_defect(RESYNC, started, error, again_in=again_in)
            self._enqueue_everything()

    def _enqueue_everything(self) -> None:
        for key in (*self._store.deployments(), SWEEP, EVALUATE):
            self._queue.add(key, routine=True)

    async def _relist_all(self) -> None:
        """List every kind, also after one that fails; then raise the first error of a kind that decisions need.

        The version of the API server is asked for as well: the control plane may be upgraded under a running operator.
        """
        failed: dict[Kind, HermeticError] = {}
        for key, watched in RELIST_KEYS.items():
            error = await self._relisted(key, watched)
            if error is not None and watched.kind not in DETAIL_KINDS and not watched.optional:
                failed[watched.kind] = error
        self._unlisted = {kind.plural: error.message for kind, error in failed.items()}
        if failed:
            raise next(iter(failed.values()))
        self._store.server_version = await self._api.server_version()
        self._primed_at = self._clock.monotonic()
        self.telemetry.last_relist.set(self._clock.now().timestamp())

    async def _relisted(self, key: Key, watched: WatchSpec) -> HermeticError | None:
        """List a kind; returns why it failed. After a defect it is queued: its back-off is shorter than the resync."""
        started = self._clock.monotonic()
        try:
            await self.relist(watched)
        except HermeticError as error:
            log.warning("not listed", kind=watched.kind.plural, because=error.message, code=error.code)
            return error
        except Exception as error:  # noqa: BLE001 - a defect in one kind must not keep the others from being listed
            self._report_defect(key, started, error, again_in=self._queue.add_failed(key))
            return ServerError(f"listing failed: {error!r}", status=0)
        return None

    def _conditions(self) -> Mapping[tuple[str, str], int]:
        """Number of ModelDeployments by (condition, status)."""
        counts: dict[tuple[str, str], int] = {(kind.value, "True"): 0 for kind in ConditionType}
        for key in self._store.deployments():
            manifest = self._store.manifest(key) or {}
            for condition in (manifest.get("status") or {}).get("conditions") or ():
                pair = (condition["type"], condition["status"])
                counts[pair] = counts.get(pair, 0) + 1
        return counts

    def _models(self) -> Iterator[ModelInfo]:
        for key in tuple(self._store.deployments()):
            if (manifest := self._store.manifest(key)) is not None:
                yield model_info(manifest)

    def _enqueue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._queue.add(key)


def _longest_backoff(error: HermeticError) -> float:
    """The longest pause after an error, in seconds: short when the server is down, as no object is at fault then."""
    away = isinstance(error, Unreachable) or (isinstance(error, ServerError) and error.status in AWAY)
    return OUTAGE_SECONDS if away else LONGEST_DELAY

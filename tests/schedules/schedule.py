"""One schedule: operators that start and are killed in a faulty cluster, and what is there at the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.controller.audit.faults import AuditFaults
from hermetic.controller.audit.lazy_auditor import LazyAuditor
from hermetic.controller.manager import Manager
from hermetic.controller.reconciler import Reconciler
from hermetic.controller.telemetry import Telemetry
from hermetic.controller.volume_gc import VolumeCollector
from hermetic.controller.workqueue import WorkQueue
from hermetic.errors import HermeticError, ServerError
from hermetic.kube.owners import Key
from hermetic.kube.recorder import EventRecorder
from hermetic.kube.store import Store
from hermetic.kube.store_watches import StoreWatches
from hermetic.kube.watch_specs import PRIMARY_WATCHES, WatchSpec
from hermetic.objects.children import CHILD_KINDS
from tests.controller.running import NAMESPACE, POLICY, RESYNC_SECONDS, a_model
from tests.fakes.virtual_loop import VirtualClock, virtually
from tests.scenarios import Manifest, a_share_model, reporting
from tests.schedules.faulty_cluster import FaultyCluster

OWNED = frozenset(kind.kind for kind in CHILD_KINDS if kind.namespaced)
CALM_SECONDS = 4 * RESYNC_SECONDS
STEPS = 12
UID = re.compile(r"uid-\d+")
SUFFIX = re.compile(r"(?<=-)[0-9a-f]{8,10}\b|(?<=pod-template\": \")[0-9a-f]{16}")  # they follow the owner's uid
ADDRESS = re.compile(r"\b10\.96\.\d+\.\d+\b")
NOT_COMPARED = frozenset({"Node", "Pod"})
"""Which pod is on which node is not the operator's work."""

Step = Callable[["ScheduleRun"], Awaitable[None]]


class Clock(VirtualClock):
    """Wall time may jump, monotonic time never does."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


@dataclass
class ScheduleRun:
    """The operators that run now."""

    cluster: FaultyCluster
    clock: Clock = field(default_factory=Clock)
    running: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """One more operator."""
        self.running.append(asyncio.ensure_future(_operator(self.cluster, self.clock)))

    async def kill(self) -> None:
        """The oldest operator ends in the middle of whatever it does."""
        task = self.running.pop(0)
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


async def _operator(cluster: FaultyCluster, clock: Clock) -> None:
    configuration = Configuration.model_validate(POLICY)
    store, telemetry = Store(configuration), Telemetry()
    queue: WorkQueue[Key] = WorkQueue(clock.monotonic, jitter=cluster.chance.random)
    recorder = EventRecorder(cluster, instance="schedules", clock=clock)
    faults = AuditFaults(clock, count=telemetry.count_audit_fault)
    operator = Manager(
        api=cluster,
        store=store,
        queue=queue,
        reconciler=Reconciler(cluster, store, recorder, clock),
        sweeper=VolumeCollector(cluster, store),
        auditor=LazyAuditor(store, _no_audit, faults),
        telemetry=telemetry,
        clock=clock,
        namespaces=(),
        resync_seconds=RESYNC_SECONDS,
    )
    following = StoreWatches(cluster, store, see=operator.see, relist=operator.relist, listed=operator.listed)
    await operator.prime()
    async with asyncio.TaskGroup() as group:
        group.create_task(operator.work(4))
        group.create_task(following.run())
        group.create_task(recorder.run())
        for watched in PRIMARY_WATCHES:
            group.create_task(_as_kopf(cluster, operator, watched))


async def _no_audit() -> Any:
    raise AssertionError("there is no EgressAudit")


async def _as_kopf(cluster: FaultyCluster, operator: Manager, watched: WatchSpec) -> None:
    """List, tell of everything, watch from there; a watch that was forgotten begins with a list."""
    since = ""
    while True:
        try:
            if not since:
                async for items, version in cluster.pages(watched.kind):
                    since = version
                    for item in items:
                        operator.see(item, gone=False)
                operator.started_over(watched.kind)
            async with contextlib.aclosing(cluster.watch(watched.kind, since=since)) as events:
                async for event_type, manifest in events:
                    since = manifest["metadata"]["resourceVersion"]
                    operator.see(manifest, gone=event_type == "DELETED")
        except HermeticError as error:
            if isinstance(error, ServerError) and error.status == 410:
                since = ""
            await asyncio.sleep(1.0)


# ---------------------------------------------------------------------- what people and rivals do

SHARES = ("llama-3-1-8b/fp8", "llama-3-1-8b/bf16")


def _a_share(folder: str) -> Manifest:
    manifest = reporting(a_share_model("share"))
    manifest["metadata"]["namespace"] = NAMESPACE
    manifest["spec"]["weights"]["azureFiles"]["folder"] = folder
    return manifest


def _apply_or_delete(run: ScheduleRun) -> None:
    """A user applies a deployment, with one of a few specs, or deletes it."""
    cluster, chance = run.cluster, run.cluster.chance
    if cluster.terminating:
        return
    desired = chance.choice([a_model(drainSeconds=chance.choice([5, 30])), _a_share(chance.choice(SHARES))])
    where = ("ModelDeployment", NAMESPACE, desired["metadata"]["name"])
    if where in cluster.objects and chance.random() < 0.3:
        cluster.remove(*where)
    elif where in cluster.objects:
        cluster.edit(where, lambda live: live.update(spec=desired["spec"]))
    else:
        cluster.put(desired)


async def _edit(run: ScheduleRun) -> None:
    _apply_or_delete(run)


async def _storm(run: ScheduleRun) -> None:
    """A rival edits or deletes children as fast as it can."""
    for _ in range(run.cluster.chance.randint(1, 8)):
        children = [where for where in run.cluster.objects if where[0] in OWNED]
        if children:
            _rival(run.cluster, run.cluster.chance.choice(sorted(children)))
        await asyncio.sleep(run.cluster.chance.uniform(0.0, 0.5))


def _rival(cluster: FaultyCluster, where: tuple[str, str, str]) -> None:
    if cluster.chance.random() < 0.4:
        cluster.remove(*where)
    elif where[0] in {"Deployment", "Service"}:
        cluster.edit(where, lambda live: live["spec"].update(_THEIRS[where[0]]))


_THEIRS: dict[str, Manifest] = {"Deployment": {"replicas": 7}, "Service": {"type": "NodePort"}}


async def _kill(run: ScheduleRun) -> None:
    await run.kill()
    await asyncio.sleep(run.cluster.chance.uniform(0.0, 5.0))
    run.start()


async def _two(run: ScheduleRun) -> None:
    """A second operator starts while the first goes on, as one that was paused does; then the first ends."""
    run.start()
    await asyncio.sleep(run.cluster.chance.uniform(0.5, 20.0))
    await run.kill()


async def _cut(run: ScheduleRun) -> None:
    run.cluster.cut_watches(forgets=run.cluster.chance.random() < 0.5)


async def _silence(run: ScheduleRun) -> None:
    run.cluster.silent_until = asyncio.get_running_loop().time() + run.cluster.chance.uniform(1.0, 40.0)


async def _clock(run: ScheduleRun) -> None:
    run.clock.ahead = timedelta(seconds=run.cluster.chance.uniform(-3600, 3600))


async def _namespace(run: ScheduleRun) -> None:
    """The namespace is deleted: nothing can be made in it, then all goes, then it may be made again."""
    cluster = run.cluster
    cluster.terminating = True
    await asyncio.sleep(cluster.chance.uniform(0.1, 3.0))
    for where in [where for where in cluster.objects if where[1] == NAMESPACE]:
        if where in cluster.objects:
            cluster.remove(*where)
            await asyncio.sleep(cluster.chance.uniform(0.0, 0.1))
    await asyncio.sleep(cluster.chance.uniform(0.1, 5.0))
    for where in [where for where in cluster.objects if where[1] == NAMESPACE]:
        cluster.remove(*where)
    cluster.terminating = False


OPERATOR_ACTS: dict[str, Step] = {
    "operator killed": _kill,
    "two operators": _two,
    "watches broken": _cut,
    "watches silent": _silence,
}
"""What befalls the operator alone."""
ACTS: dict[str, Step] = {
    "spec edited": _edit,
    "spec edited again": _edit,
    "storm of a rival": _storm,
    **OPERATOR_ACTS,
    "clock jumped": _clock,
    "namespace deleted": _namespace,
}


# ---------------------------------------------------------------------- a whole schedule


@dataclass(frozen=True)
class Ended:
    """What is wrong in the end, () where nothing is; and how often what befell it.

    longest: seconds, by what lasted so long, of schedules that measure some.
    """

    wrong: tuple[str, ...]
    faults_injected: Mapping[str, int]
    longest: Mapping[str, float] = field(default_factory=dict)


def schedule(seed: int) -> Ended:
    """Live through the schedule of this seed."""
    random.seed(seed)  # the product spreads its pauses by chance
    return virtually(lambda: _ended(seed))


async def _ended(seed: int) -> Ended:
    cluster = FaultyCluster(seed)
    async with running_operator(cluster) as run:
        cluster.put(a_model())
        cluster.put(_a_share(SHARES[0]))
        for _ in range(cluster.chance.randint(3, STEPS)):
            await befall(run, ACTS)
        complaints = await calm_down(run)
    wrong = (*complaints, *differences(cluster, await _undisturbed(cluster)), *dict.fromkeys(cluster.lies))
    return Ended(wrong, cluster.faults_injected)


async def befall(run: ScheduleRun, acts: Mapping[str, Step]) -> None:
    """One act, with or without faults of requests around it, and a pause."""
    cluster = run.cluster
    cluster.trouble = cluster.chance.choice([0.0, 0.1, 0.3])
    name = cluster.chance.choice(sorted(acts))
    cluster.faults_injected[name] = cluster.faults_injected.get(name, 0) + 1
    await acts[name](run)
    await asyncio.sleep(cluster.chance.choice([0.01, 0.2, 2.0, 30.0]))


async def calm_down(run: ScheduleRun) -> list[str]:
    """Let everything come to rest without faults; returns what is wrong then: an operator that ended, and writes."""
    cluster = run.cluster
    cluster.trouble, cluster.silent_until = 0.0, 0.0
    await asyncio.sleep(CALM_SECONDS)
    at_rest = len(cluster.writes)
    await asyncio.sleep(CALM_SECONDS)
    complaints = [f"the operator ended: {task!r}" for task in run.running if task.done()]
    if written := cluster.writes[at_rest:]:
        complaints.append(f"{len(written)} writes at rest: {written[:5]}")
    return complaints


@contextlib.asynccontextmanager
async def running_operator(cluster: FaultyCluster) -> AsyncIterator[ScheduleRun]:
    """An operator at work on the cluster, with the cluster's own controllers."""
    run, controllers = ScheduleRun(cluster), asyncio.ensure_future(cluster.control())
    run.start()
    try:
        yield run
    finally:
        tasks = [*run.running, controllers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _undisturbed(cluster: FaultyCluster) -> FaultyCluster:
    """What an operator makes of the same specs where nothing goes wrong."""
    calm = FaultyCluster(0)
    async with running_operator(calm):
        apply_models_of(cluster, calm)
        await asyncio.sleep(60)
    return calm


def apply_models_of(cluster: FaultyCluster, calm: FaultyCluster) -> None:
    """Apply what is wanted in the one cluster in the other, as a user would."""
    for model in cluster.of_kind("ModelDeployment"):
        bare = {key: model[key] for key in ("apiVersion", "kind", "spec")}
        calm.put({**bare, "metadata": {key: model["metadata"][key] for key in ("name", "namespace")}})


def differences(cluster: FaultyCluster, calm: FaultyCluster) -> list[str]:
    """Divergences, orphans, duplicates and statuses that say something else than without disturbance."""
    ends, expected = _end_state(cluster), _end_state(calm)
    differences = [f"missing: {name}" for name in expected.keys() - ends.keys()]
    differences += [f"orphan or duplicate: {name}" for name in ends.keys() - expected.keys()]
    both = sorted(ends.keys() & expected.keys())
    differ = [f"{name}: {ends[name]} and not {expected[name]}" for name in both if ends[name] != expected[name]]
    return sorted(differences) + differ


def _end_state(cluster: FaultyCluster) -> dict[str, str]:
    state: dict[str, str] = {}
    names = {model["metadata"]["uid"]: model["metadata"]["name"] for model in cluster.of_kind("ModelDeployment")}
    for (kind, _, name), stored in sorted(cluster.objects.items()):
        if kind in NOT_COMPARED:
            continue
        labels = {key: names.get(value, value) for key, value in (stored["metadata"].get("labels") or {}).items()}
        reduced = {"labels": labels, "spec": stored.get("spec")}
        if kind == "ModelDeployment":
            written = (stored.get("status") or {}).get("conditions", ())
            conditions = [
                (condition["type"], condition["status"], condition["reason"], condition["observedGeneration"])
                for condition in written
            ]
            stale = any(condition[3] != stored["metadata"]["generation"] for condition in conditions)
            reduced = {"conditions": [condition[:3] for condition in conditions], "stale": stale}
        masked = ADDRESS.sub("ADDRESS", SUFFIX.sub("SUFFIX", UID.sub("UID", json.dumps(reduced, sort_keys=True))))
        key = f"{kind}/{SUFFIX.sub('SUFFIX', name)}"
        while key in state:
            key += " again"
        state[key] = masked
    return state

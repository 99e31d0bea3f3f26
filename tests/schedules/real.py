"""Schedules of faults against a real API server: namespaces side by side, and one operator behind a fault proxy.

Every namespace has the schedule of its own seed. What happens to the operator, the API server and etcd affects
all namespaces of a batch, and follows from the batch's first seed. In the end each namespace is compared with one in
which the same specs were applied and nothing went wrong. The same seed draws the same acts; how they interleave is the
machine's.

Not drawn here, for a process cannot be given them: jumps of the clock and lists from the past. `run` draws both.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from testbed.api import Api
from testbed.errors import ApiError
from testbed.fault_proxy import Request
from tests.controlplane.end_state import end_state
from tests.schedules import garbage
from tests.schedules.faulty_cluster import lies_of
from tests.schedules.namespace_schedule import NamespaceSchedule
from tests.schedules.outages import OUTAGES
from tests.schedules.real_cluster import RealCluster, gone_namespace

MODELS = "/apis/hermetic.dev/v1alpha1/modeldeployments"
CALM_SECONDS, REST_SECONDS = 240.0, 10.0
RETRYING_SECONDS = 60.0
"""How long requests whose answers were lost may still be sent again when everything is as it should be."""
COLLECTED_LATE = "garbage collector of Kubernetes late"


def batch(cluster: RealCluster, first: int, count: int) -> dict[int, tuple[str, ...]]:
    """Live through the seeds side by side; what is wrong in the end, by seed. 0 stands for the batch as a whole."""
    schedules = [NamespaceSchedule(cluster, first + number) for number in range(count)]
    chance = random.Random(f"batch {first}")
    with _lies(cluster) as lies, ThreadPoolExecutor(count) as pool:
        running = [pool.submit(schedule.live) for schedule in schedules]
        while not all(task.done() for task in running):
            time.sleep(chance.uniform(0.5, 6.0))
            name = chance.choice(sorted(OUTAGES))
            cluster.faults_injected[name] += 1
            OUTAGES[name](cluster, chance)  # in the thread that programs are started from
            cluster.restart_ended()
        _raise_first(running)
        cluster.proxy.lift()
        deadline = time.monotonic() + CALM_SECONDS
        wrong = _wrong(schedules, deadline)
        at_rest = _at_rest(cluster)
        wrong |= _wrong(schedules, deadline)  # what was written meanwhile has changed nothing
        wrong |= {0: tuple(errors)} if (errors := [*at_rest, *dict.fromkeys(lies)]) else {}
        for schedule in schedules:
            schedule.remove(f"/api/v1/namespaces/{schedule.namespace}")
        for schedule in schedules:
            gone_namespace(cluster.api, schedule.namespace)
    return wrong


def _raise_first(running: list[Future[None]]) -> None:
    for task in running:
        task.result()


def _wrong(schedules: list[NamespaceSchedule], deadline: float) -> dict[int, tuple[str, ...]]:
    return {schedule.seed: errors for schedule in schedules if (errors := tuple(_ended(schedule, deadline)))}


def _ended(schedule: NamespaceSchedule, deadline: float) -> Iterator[str]:
    """What differs from the undisturbed namespace when it had time to become like it."""
    api, reference = schedule.cluster.api, schedule.cluster.reference(schedule.wanted)
    while (state := end_state(api, schedule.namespace)) != (expected := end_state(api, reference)):
        schedule.cluster.restart_ended()
        if time.monotonic() > deadline and not _is_being_collected(schedule, deadline):
            yield from (f"missing: {name}" for name in sorted(expected.keys() - state.keys()))
            yield from (f"orphan or duplicate: {name}" for name in sorted(state.keys() - expected.keys()))
            both = sorted(state.keys() & expected.keys())
            yield from (
                f"{object_name}: {state[object_name]} and not {expected[object_name]}"
                for object_name in both
                if state[object_name] != expected[object_name]
            )
            yield from garbage.history(
                garbage.log_of(schedule.cluster.plane), list(garbage.ownerless(api, schedule.namespace))
            )
            return
        time.sleep(0.5)


def _is_being_collected(schedule: NamespaceSchedule, deadline: float) -> bool:
    """Whether to wait longer, because the garbage collector of Kubernetes pauses before it tries again."""
    log, ownerless = (
        garbage.log_of(schedule.cluster.plane),
        list(garbage.ownerless(schedule.cluster.api, schedule.namespace)),
    )
    until = deadline + garbage.LONGEST_PAUSE_SECONDS
    if time.monotonic() > until or not garbage.is_backing_off(log, [log_entry for _, log_entry in ownerless]):
        return False
    if schedule.namespace not in schedule.cluster.collected_late:
        schedule.cluster.collected_late[schedule.namespace] = tuple(garbage.history(log, ownerless))
        schedule.cluster.faults_injected[COLLECTED_LATE] += 1
    time.sleep(5.0)
    return True


def _at_rest(cluster: RealCluster) -> list[str]:
    """Writes of the operator when there is nothing to do: none, as soon as nothing is sent again."""
    until = time.monotonic() + RETRYING_SECONDS
    while written := _written_within(cluster, REST_SECONDS):
        if time.monotonic() > until:
            return [f"{len(written)} writes at rest: {[(write.method, write.path) for write in written[:5]]}"]
    return []


def _written_within(cluster: RealCluster, seconds: float) -> list[Request]:
    before = len(cluster.proxy.writes())
    time.sleep(seconds)
    return cluster.proxy.writes()[before:]


@contextlib.contextmanager
def _lies(cluster: RealCluster) -> Iterator[list[str]]:
    """What statuses said against the contract of conditions, as a watch past the proxy sees them."""
    lies: list[str] = []
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(cluster.api, lies, ended), daemon=True)
    watcher.start()
    try:
        yield lies
    finally:
        ended.set()
        watcher.join()


def _watch(api: Api, lies: list[str], ended: threading.Event) -> None:
    while not ended.is_set():
        try:
            listed = api.get(MODELS)
            models_by_uid = {
                model["metadata"]["uid"]: {**model, "kind": "ModelDeployment"} for model in listed["items"]
            }
            for event in api.watch(MODELS, listed["metadata"]["resourceVersion"], seconds=3):
                manifest = event["object"]
                lies += lies_of(models_by_uid.get(manifest["metadata"]["uid"], {}), manifest)
                models_by_uid[manifest["metadata"]["uid"]] = manifest
        except (ApiError, OSError):
            time.sleep(0.2)

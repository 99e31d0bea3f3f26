"""Another writer of our fields: corrected three times, then left alone for a while, never at its own pace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hermetic.controller.drift_backoff import DriftBackoff
from hermetic.plan.writes import Change
from tests.controller.running import a_model, ready, reason, rest, running, where, written
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import virtually

KEY = ("team-a", "llama")
CHILD = ("Service", "llama")
OURS = Change(
    {"kind": "Service", "metadata": {"name": "llama", "annotations": {"hermetic.dev/intent": "a"}}}, "drifted"
)


def another_writer(
    cluster: ClusterInMemory, at: Coordinates, change: Callable[[Manifest], object], every: float = 0.02
) -> asyncio.Task[None]:
    """Another writer that changes the object back as soon as it looks different, 50 times a second."""

    async def insist() -> None:
        while True:
            cluster.edit(at, change)
            await asyncio.sleep(every)

    return asyncio.ensure_future(insist())


def three_replicas(workload: Manifest) -> None:
    workload["spec"]["replicas"] = 3


def the_same_as_kubectl_replace(workload: Manifest) -> None:
    """The whole object as the other writer once saved it, our own annotations included."""
    workload["metadata"]["annotations"]["hermetic.dev/intent"] = "of long ago"
    workload["spec"]["replicas"] = 3


def test_three_corrections_in_a_minute_make_a_truce_that_doubles_up_to_ten_minutes() -> None:
    contests, now, backed_off = DriftBackoff(), 0.0, []
    for _ in range(6):
        for _ in range(3):
            assert contests.backed_off(KEY, now) == {}
            contests.applied(KEY, OURS, now)
        assert contests.backed_off(KEY, now) == {CHILD: {"a"}}
        backed_off.append(contests.next_retry(KEY, now))
        now += backed_off[-1] or 0.0
    assert backed_off == [60, 120, 240, 480, 600, 600]


def test_corrections_far_apart_are_no_contest() -> None:
    contests = DriftBackoff()
    for now in range(0, 3600, 31):
        contests.applied(KEY, OURS, float(now))
        assert contests.backed_off(KEY, float(now)) == {}


def test_a_quarrel_that_is_over_is_forgotten() -> None:
    contests = DriftBackoff()
    for _ in range(3):
        contests.applied(KEY, OURS, 0.0)
    for _ in range(3):
        contests.applied(KEY, OURS, 10_000.0)
    assert contests.next_retry(KEY, 10_000.0) == 60.0, "the next one starts with the shortest back-off"


def test_another_writer_is_corrected_at_most_three_times_a_minute_and_named() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            writer = another_writer(cluster, where("Deployment"), three_replicas)
            before = written(cluster).count("Deployment")
            await rest(59)
            assert written(cluster).count("Deployment") - before == 3
            assert reason(cluster) == "DriftContested"
            assert "Deployment 'llama' is changed back" in ready(cluster)["message"]
            writer.cancel()
            writer = another_writer(cluster, where("Deployment"), three_replicas, every=1.0)
            await rest(3600 - 59)
            assert written(cluster).count("Deployment") - before <= 3 * 9, "back-offs grow to ten minutes"
            writer.cancel()
            await rest(601)
            assert cluster.objects[where("Deployment")]["spec"]["replicas"] == 1
            assert reason(cluster) == "Starting"

    virtually(scenario)


def test_another_writer_that_replaces_the_whole_object_is_no_faster() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            another_writer(cluster, where("Deployment"), the_same_as_kubectl_replace)
            before = written(cluster).count("Deployment")
            await rest(59)
            assert written(cluster).count("Deployment") - before == 3
            assert reason(cluster) == "DriftContested"

    virtually(scenario)


def test_another_writer_that_deletes_is_no_faster_either() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()

            async def delete() -> None:
                while True:
                    if where("Service") in cluster.objects:
                        cluster.remove(*where("Service"))
                    await asyncio.sleep(0.02)

            writer = asyncio.ensure_future(delete())
            before = written(cluster).count("Service")
            await rest(59)
            assert written(cluster).count("Service") - before == 3
            assert reason(cluster) == "DriftContested"
            writer.cancel()
            await rest(61)
            assert where("Service") in cluster.objects

    virtually(scenario)


def test_a_change_of_the_spec_is_applied_even_in_a_truce() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            writer = another_writer(cluster, where("Deployment"), three_replicas)
            await rest(10)
            assert reason(cluster) == "DriftContested"
            writer.cancel()
            cluster.edit(where("ModelDeployment"), lambda manifest: manifest["spec"].update(replicas=2))
            await rest()
            assert cluster.objects[where("Deployment")]["spec"]["replicas"] == 2
            assert reason(cluster) == "Starting"

    virtually(scenario)


def test_the_other_children_are_corrected_while_one_is_contested() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            another_writer(cluster, where("Deployment"), three_replicas)
            await rest(10)
            cluster.edit(where("NetworkPolicy"), lambda manifest: manifest["spec"].update(egress=[{}]))
            await rest()
            assert cluster.objects[where("NetworkPolicy")]["spec"]["egress"] == []

    virtually(scenario)

"""Rounds of the probe: when one is begun, how long its answers stay, and where a restarted operator goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from hermetic.collect.probe.running import PATIENCE_SECONDS, POLL_SECONDS
from hermetic.controller.audit.probe_scheduler import AT_LEAST_BETWEEN_SECONDS
from hermetic.errors import Unreachable
from tests.controller.auditing import (
    AUDIT,
    IMAGE,
    PUBLIC,
    TARGETS,
    a_cluster,
    an_attestation,
    an_audit,
    condition,
    open_way,
    passing,
    rounds,
    run_pod_of,
    status,
)
from tests.controller.running import rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import START, virtually

HOUR = 3600.0
MINUTE = timedelta(minutes=1)
INTERNAL = {**PUBLIC, "metadata": {"name": "inner", "namespace": "inference"}, "status": {}}


def a_node(name: str, pool: str = "") -> Manifest:
    labels = {"agentpool": pool} if pool else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def silent(cluster: ClusterInMemory) -> None:
    """No kubelet runs pods any more."""
    cluster.done = ClusterInMemory().done


@pytest.mark.parametrize(
    "change",
    [
        lambda cluster: cluster.put(a_node("aks-gpu-1")),
        lambda cluster: cluster.remove("Node", "", "aks-gpu-0"),
        lambda cluster: cluster.put(PUBLIC),
        lambda cluster: cluster.put(INTERNAL),
        lambda cluster: cluster.put(an_attestation(observed=START + timedelta(seconds=30))),
    ],
    ids=["machine added", "machine gone", "public load balancer", "load balancer", "attestation replaced"],
)
def test_what_could_open_a_way_starts_a_round_soon(change) -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        await rest(60)
        cluster.put(a_node("aks-gpu-9"))
        await rest(60)
        before = len(rounds(cluster))
        change(cluster)
        await rest(5)
        assert len(rounds(cluster)) == before + 1
        await rest(HOUR - 120)
        assert len(rounds(cluster)) == before + 1

    passing(scenario)


def test_what_no_way_can_come_of_starts_none() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        await rest(60)
        before = rounds(cluster)
        cluster.edit(("Node", "", "aks-gpu-0"), lambda node: node["status"].update(conditions=[{"type": "Ready"}]))
        cluster.put({**INTERNAL, "spec": {"type": "ClusterIP"}})
        cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "inference"}})
        await rest(120)
        assert rounds(cluster) == before

    passing(scenario)


def test_machines_that_come_one_by_one_do_not_start_a_round_each() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        before = len(rounds(cluster))
        for number in range(100):
            cluster.put(a_node(f"aks-new-{number}"))
            await rest(3)
        assert len(rounds(cluster)) - before <= 12
        await rest(60)
        last = rounds(cluster)
        await rest(600)
        assert rounds(cluster) == last

    passing(scenario)


def test_the_answers_stay_for_longer_than_they_count() -> None:
    async def scenario() -> None:
        for interval in (300, 3600):
            cluster = a_cluster()
            cluster.put(an_audit(probe={"image": IMAGE, "intervalSeconds": interval, "targets": TARGETS}))
            async with running(cluster):
                await rest(10)
                lifetimes = {job["spec"]["ttlSecondsAfterFinished"] for job in cluster.of_kind("Job")}
                assert min(lifetimes) >= 2 * interval + 600

    virtually(scenario)


def test_a_round_without_answers_is_incomplete_and_tried_again_before_the_hour() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        silent(cluster)
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(320)
            assert condition(cluster) == ("False", "ProbePending")
            await rest(30)
            assert condition(cluster) == ("False", "ProbeIncomplete")
            assert "aks-gpu-0" in status(cluster)["message"]
            assert len(rounds(cluster)) == 2, "the first retry starts at once"
            answering(cluster)
            await rest(400)
            assert len(rounds(cluster)) == 3
            assert status(cluster)["verdict"] == "Pass"

    virtually(scenario)


@pytest.mark.parametrize(
    ("change", "most_seconds"),
    [
        (lambda cluster: cluster.put(a_node("aks-gpu-1")), AT_LEAST_BETWEEN_SECONDS + 2 * POLL_SECONDS),
        (lambda _cluster: None, HOUR + 2 * POLL_SECONDS),
    ],
    ids=["with a new node", "with nothing that starts a round"],
)
def test_a_leak_closes_at_the_end_of_its_round_and_opens_after_a_good_one(
    change, most_seconds, record_property
) -> None:
    async def scenario() -> None:
        is_leaking = False
        cluster = a_cluster(lambda pod, document: open_way(pod, document) if is_leaking else document)
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(10)
            assert status(cluster)["verdict"] == "Pass"
            count, is_leaking = len(rounds(cluster)), True
            change(cluster)
            seconds = await seconds_until(lambda: len(rounds(cluster)) > count, most_seconds)
            closing = await seconds_until(lambda: status(cluster)["verdict"] == "Fail", 2 * POLL_SECONDS)
            assert seconds + closing <= most_seconds
            record_property(
                "seconds from the start of a leak's round to Fail, pods that answer at once", f"{closing:g}"
            )
            is_leaking = False
            await seconds_until(lambda: status(cluster)["verdict"] == "Pass", HOUR + 2 * POLL_SECONDS)

    virtually(scenario)


async def seconds_until(is_true: Callable[[], bool], most_seconds: float) -> float:
    """Virtual seconds that pass until a state is there. Fails where it does not come in time."""
    waited = 0.0
    while not is_true():
        assert waited < most_seconds, "the state did not come in time"
        await rest(1)
        waited += 1
    return waited


def test_one_round_at_a_time() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        await rest(60)
        silent(cluster)
        before = len(rounds(cluster))
        for number in range(5):
            cluster.put(a_node(f"aks-new-{number}"))
            await rest(50)
        assert len(rounds(cluster)) == before + 1
        for job in [job for job in cluster.of_kind("Job") if not job.get("status")]:
            run_pod_of(cluster, place(job), lambda _pod, answers: answers)
        answering(cluster)
        await rest(60)
        assert len(rounds(cluster)) == before + 2, "more machines had come meanwhile"

    passing(scenario)


def test_a_restart_in_the_middle_of_a_round_goes_on_with_it() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(60)
            silent(cluster)
            cluster.put(a_node("aks-gpu-1"))
            await rest(10)
        begun, current = rounds(cluster), status(cluster)
        async with running(cluster):
            await rest(30)
            assert status(cluster) == current, (
                "the status of an earlier process is kept until this one has seen as much"
            )
            for job in [job for job in cluster.of_kind("Job") if not job.get("status")]:
                run_pod_of(cluster, place(job), open_way)
            await rest(5)
            assert rounds(cluster) == begun
            assert status(cluster)["verdict"] == "Fail"

    virtually(scenario)


@pytest.mark.parametrize("first_verdict", ["Pass", "Fail"])
def test_after_a_restart_a_doubtful_round_leaves_the_good_one_before_it(first_verdict: str) -> None:
    async def scenario() -> None:
        cluster = a_cluster((lambda _pod, answers: answers) if first_verdict == "Pass" else open_way)
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(60)
            assert status(cluster)["verdict"] == first_verdict
            silent(cluster)
            cluster.put(a_node("aks-gpu-1"))
            await rest(PATIENCE_SECONDS + 60)
            assert len(rounds(cluster)) == 3, "the silent round has ended, and its repetition runs"
        async with running(cluster):
            await rest(PATIENCE_SECONDS + 10)
            assert status(cluster)["verdict"] == ("Pass" if first_verdict == "Pass" else "Unknown")

    virtually(scenario)


@pytest.mark.parametrize("ahead", [timedelta(days=30), timedelta(hours=2, minutes=30)])
def test_a_nodes_clock_does_not_make_a_round_newer_than_it_is(ahead: timedelta) -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        set_ahead(cluster, ahead)
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(60)
            assert len(rounds(cluster)) == 1
            assert datetime.fromisoformat(status(cluster)["evidence"]["probe"]["observedAt"]) <= START + MINUTE
            await rest(HOUR)
            assert len(rounds(cluster)) == 2
            silent(cluster)
        await rest(2 * HOUR)
        async with running(cluster):
            await rest(60)
            assert len(rounds(cluster)) == 3, "the round of the earlier process is two hours old, whatever it says"

    virtually(scenario)


def set_ahead(cluster: ClusterInMemory, ahead: timedelta) -> None:
    """The clocks of the nodes are ahead."""
    answered = cluster.done

    async def kubelet(verb: str, where: Coordinates) -> None:
        await answered(verb, where)
        for pod in cluster.of_kind("Pod"):
            for container_status in pod.get("status", {}).get("containerStatuses", ()):
                ended = container_status["state"]["terminated"]
                if "ahead" not in ended:
                    ended["finishedAt"] = f"{datetime.fromisoformat(ended['finishedAt']) + ahead:%Y-%m-%dT%H:%M:%SZ}"
                    ended["ahead"] = True
                    cluster.put(pod)

    cluster.done = kubelet


def test_a_round_that_was_begun_on_fewer_places_than_there_are_is_no_round() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(a_node("aks-system-0", pool="system"))
        cluster.put(an_audit())
        async with running(cluster):
            await rest(60)
            assert len(cluster.of_kind("Job")) == 4
        for job in cluster.of_kind("Job")[:2]:
            cluster.remove(*place(job))
        async with running(cluster):
            await rest(60)
            assert len(rounds(cluster)) == 2
            assert status(cluster)["evidence"]["probe"]["nodes"] == 2

    virtually(scenario)


def test_a_start_that_broke_off_is_the_same_round_when_it_goes_on() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        answered = cluster.done
        failures = iter(range(3))

        async def breaking(verb: str, where: Coordinates) -> None:
            await answered(verb, where)
            if where[0] == "Job" and next(failures, None) is not None:
                raise Unreachable("reset by peer")

        cluster.done = breaking
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(30)
            assert len(rounds(cluster)) == 1
            assert status(cluster)["verdict"] == "Pass"

    virtually(scenario)


def test_another_image_is_used_from_the_next_round_on() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        other = IMAGE.replace("a" * 64, "b" * 64)
        cluster.edit(AUDIT, lambda live: live["spec"]["probe"].update(image=other))
        await rest(HOUR + 60)
        images = [job["spec"]["template"]["spec"]["containers"][0]["image"] for job in cluster.of_kind("Job")]
        assert images == [IMAGE, IMAGE, other, other]
        assert status(cluster)["verdict"] == "Pass"

    passing(scenario)


def place(job: Manifest) -> Coordinates:
    return ("Job", job["metadata"]["namespace"], job["metadata"]["name"])


def answering(cluster: ClusterInMemory) -> None:
    """Kubelets run pods again."""

    async def kubelet(verb: str, where: Coordinates) -> None:
        if verb == "patch" and where[0] == "Job":
            run_pod_of(cluster, where, lambda _pod, answers: answers)

    cluster.done = kubelet

"""Places of the probe while the operator runs: a new one that no round has covered, and one whose packets are lost.

A place is a pool and subnet with a ready node. Hermetic's own rule; the labels are those of AKS
(learn.microsoft.com/azure/aks/use-labels).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermetic.collect.probe.running import PATIENCE_SECONDS
from tests.controller.auditing import a_cluster, an_attestation, an_audit, condition, rounds, status
from tests.controller.running import rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import virtually

NEW = "aks-real-0"
RETRIED_SECONDS = 60.0
"""A doubtful round is repeated at once, and once more after 30 seconds."""
Document = dict[str, Any]


def a_ready_node(name: str) -> Manifest:
    """Of the attested pool `real`, which had no node until now."""
    labels = {"agentpool": "real", "kubernetes.azure.com/network-subnet": "nodes"}
    ready = {"type": "Ready", "status": "True"}
    metadata = {"name": name, "labels": labels, "creationTimestamp": "2026-09-01T00:00:00Z"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": {"conditions": [ready]}}


def silence_node(cluster: ClusterInMemory, name: str) -> Callable[[], None]:
    """Let no kubelet run the probe's pods of this node, until the function that is returned is called."""
    kubelets = cluster.done

    async def all_kubelets_but_one(verb: str, where: Coordinates) -> None:
        if not (verb == "patch" and where[0] == "Job" and name in str(cluster.objects[where])):
            await kubelets(verb, where)

    cluster.done = all_kubelets_but_one
    return lambda: setattr(cluster, "done", kubelets)


def test_new_place_is_unknown_at_once_and_stays_so_while_its_probe_never_answers() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(60)
            assert status(cluster)["verdict"] == "Pass"
            let_it_answer = silence_node(cluster, NEW)
            cluster.put(a_ready_node(NEW))
            await rest(2)
            assert condition(cluster, "ProbeCurrent") == ("Unknown", "ProbePlaceNotCovered")
            assert "pool real, subnet nodes" in status(cluster)["message"]
            for _ in range(2):
                await rest(PATIENCE_SECONDS + 60)
                assert status(cluster)["verdict"] == "Unknown"

            let_it_answer()
            await until(lambda: status(cluster)["verdict"] == "Pass", 2 * PATIENCE_SECONDS + 300)

    virtually(scenario)


def remove_node(cluster: ClusterInMemory) -> None:
    """As an autoscaler does before the probe's pods of the node were scheduled."""
    cluster.remove("Node", "", NEW)


def remove_jobs_of_node(cluster: ClusterInMemory) -> None:
    for job in cluster.of_kind("Job"):
        if NEW in str(job["spec"]):
            cluster.remove("Job", job["metadata"]["namespace"], job["metadata"]["name"])


@pytest.mark.parametrize("remove", [remove_node, remove_jobs_of_node])
def test_round_whose_answers_cannot_come_any_more_ends_at_once(remove: Callable[[ClusterInMemory], None]) -> None:
    """Nobody waits 330 seconds for a pod that nothing can run: the next round follows."""

    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(60)
            let_it_answer = silence_node(cluster, NEW)
            cluster.put(a_ready_node(NEW))
            await rest(10)
            assert status(cluster)["verdict"] == "Unknown"
            let_it_answer()
            remove(cluster)
            await until(lambda: len(rounds(cluster)) == 3, 40)
            await until(lambda: status(cluster)["verdict"] == "Pass", 10)

    virtually(scenario)


def lose_first_controls(document: Document) -> Document:
    """Two tries of both controls before the calls were lost; those after them were answered."""
    before, after = document["controls"]
    return {**document, "controls": [["t"] * len(before), after]}


def throttle_metadata(document: Document) -> Document:
    """The metadata service answers 429 (learn.microsoft.com/azure/virtual-machines/instance-metadata-service)."""
    return {**document, "metadata": {name: [429, None] for name in document["metadata"]}}


@pytest.mark.parametrize("spoil", [lose_first_controls, throttle_metadata], ids=["silent control", "429"])
def test_one_doubtful_round_closes_nothing_and_is_repeated_at_once(spoil: Callable[[Document], Document]) -> None:
    async def scenario() -> None:
        spoilt_rounds: set[str] = set()
        is_spoilt = False

        def answer(pod: Manifest, document: Document) -> Document:
            if not is_spoilt:
                return document
            spoilt_rounds.add(pod["metadata"]["labels"]["hermetic.dev/probe-run"])
            return spoil(document)

        cluster = a_cluster(answer)
        cluster.put(an_attestation())
        cluster.put(an_audit())
        verdicts: list[str] = []

        async def record(verb: str, _about: Coordinates) -> None:
            if verb == "patch status":
                verdicts.append(str(status(cluster).get("verdict")))

        async with running(cluster):
            await rest(60)
            assert status(cluster)["verdict"] == "Pass"
            cluster.fault = record
            is_spoilt = True
            cluster.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "aks-gpu-1"}})  # a round starts
            await until(lambda: bool(spoilt_rounds), 60)
            is_spoilt, began = False, rounds(cluster)
            await until(lambda: rounds(cluster) != began, RETRIED_SECONDS)
            await rest(120)
            assert status(cluster)["verdict"] == "Pass"
            assert set(verdicts) <= {"Pass"}

    virtually(scenario)


async def until(is_true: Callable[[], bool], most_seconds: float) -> None:
    """Let time pass, a second at a time."""
    for _ in range(int(most_seconds) + 10):
        if is_true():
            return
        await rest(1)
    raise AssertionError("the state did not come in time")

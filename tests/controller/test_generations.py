"""What is said vouches for the generation that was decided about, never for one that came in the middle."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controller.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.controller.running import a_model, ready, rest, running, where
from tests.controller.virtual_time import virtually

DEPLOYMENT, MODEL = where("Deployment"), where("ModelDeployment")


def serves(deployment: Manifest) -> None:
    """What the Deployment's own controller writes once every pod serves."""
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), deployment["spec"]["replicas"])
    deployment["status"] = {"observedGeneration": deployment["metadata"]["generation"], **counts}


def drains(seconds: int) -> Any:
    def change(model: Manifest) -> None:
        model["spec"]["drainSeconds"] = seconds

    return change


@pytest.mark.parametrize("child", ["Service", "Deployment"])
def test_a_spec_that_arrives_while_another_is_written_is_not_called_ready_with_it(child: str) -> None:
    async def scenario() -> None:
        said: list[tuple[int, str, int]] = []

        async def someone_is_quicker(verb: str, at: Coordinates) -> None:
            if (verb, at) == ("patch", where(child)) and cluster.objects[MODEL]["spec"]["drainSeconds"] == 10:
                cluster.edit(MODEL, drains(20))

        async def note(verb: str, at: Coordinates) -> None:
            if (verb, at) == ("patch", DEPLOYMENT):
                cluster.edit(DEPLOYMENT, serves)
            if verb == "patch status":
                grace = cluster.objects[DEPLOYMENT]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
                said.append((ready(cluster)["observedGeneration"], ready(cluster)["status"], grace))

        cluster = ClusterInMemory(fault=someone_is_quicker, done=note)
        async with running(cluster):
            cluster.put(a_model(drainSeconds=5, endpoint={"port": 8000}))
            await rest()
            cluster.edit(MODEL, lambda model: model["spec"].update(drainSeconds=10, endpoint={"port": 8001}))
            await rest()

        assert said[0] == (1, "True", 55)
        assert said[-1] == (3, "True", 70)
        assert (3, "True", 60) not in said, "the third generation was vouched for with the second"

    virtually(scenario)


def test_another_object_of_the_same_name_is_not_told_what_was_found_about_the_one_before() -> None:
    async def scenario() -> None:
        async def replaced(verb: str, at: Coordinates) -> None:
            if verb == "patch" and at == DEPLOYMENT and cluster.objects[MODEL]["metadata"]["uid"] == first:
                cluster.remove(*MODEL)
                cluster.put(a_model(drainSeconds=99))

        async def told(verb: str, _at: Coordinates) -> None:
            if verb == "patch status":
                messages.append(ready(cluster)["message"])

        messages: list[str] = []
        cluster = ClusterInMemory(fault=replaced, done=told)
        async with running(cluster):
            first = cluster.put(a_model())["metadata"]["uid"]
            await rest()

        assert cluster.objects[MODEL]["metadata"]["uid"] != first
        assert messages
        assert all("earlier ModelDeployment" in message for message in messages), messages

    virtually(scenario)

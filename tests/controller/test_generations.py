"""What is said vouches for the generation that was decided about, never for one that came in the middle."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.errors import Unreachable
from tests.controller.running import a_model, ready, rest, running, where
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import virtually

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
        recorded: list[tuple[int, str, int]] = []

        async def someone_is_quicker(verb: str, at: Coordinates) -> None:
            if (verb, at) == ("patch", where(child)) and cluster.objects[MODEL]["spec"]["drainSeconds"] == 10:
                cluster.edit(MODEL, drains(20))

        async def note(verb: str, at: Coordinates) -> None:
            if (verb, at) == ("patch", DEPLOYMENT):
                cluster.edit(DEPLOYMENT, serves)
            if verb == "patch status":
                grace = cluster.objects[DEPLOYMENT]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
                recorded.append((ready(cluster)["observedGeneration"], ready(cluster)["status"], grace))

        cluster = ClusterInMemory(fault=someone_is_quicker, done=note)
        async with running(cluster):
            cluster.put(a_model(drainSeconds=5, endpoint={"port": 8000}))
            await rest()
            cluster.edit(MODEL, lambda model: model["spec"].update(drainSeconds=10, endpoint={"port": 8001}))
            await rest()

        assert (1, "True", 55) in recorded
        assert recorded[-1] == (3, "True", 70)
        assert (3, "True", 60) not in recorded, "the third generation was vouched for with the second"

    virtually(scenario)


def test_a_spec_is_validated_once_for_each_generation_of_each_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant pays for the longest spec once, not at every reconcile; another object of the name has another spec."""
    read: list[int] = []
    validate = ModelDeploymentSpec.model_validate

    def counted(spec: Manifest, **how: Any) -> ModelDeploymentSpec:
        read.append(spec["drainSeconds"])
        return validate(spec, **how)

    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model(drainSeconds=5))
            await rest()
            for _ in range(5):
                cluster.edit(DEPLOYMENT, lambda deployment: deployment["spec"].update(paused=True))
                await rest(30)
            assert read.count(5) == 1
            cluster.remove(*MODEL, seen=False)
            for child in [at for at in cluster.objects if at[2] == "llama"]:
                cluster.remove(*child)
            cluster.put(a_model(drainSeconds=7))
            cluster.edit(MODEL, lambda model: model["metadata"].update(labels={"a": "b"}))
            await rest()
            assert cluster.objects[MODEL]["metadata"]["generation"] == 1
            assert read.count(7) == 1
            cluster.edit(MODEL, drains(8))
            await rest()
            assert read.count(8) == 1
            assert cluster.objects[DEPLOYMENT]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 58

    monkeypatch.setattr("hermetic.controller.reconciler.ModelDeploymentSpec.model_validate", counted)
    virtually(scenario)


def test_another_object_of_the_same_name_is_not_told_what_was_found_about_the_one_before() -> None:
    async def scenario() -> None:
        async def replaced(verb: str, at: Coordinates) -> None:
            if verb == "patch" and at == DEPLOYMENT and cluster.objects[MODEL]["metadata"]["uid"] == first:
                cluster.remove(*MODEL)
                cluster.put(a_model(drainSeconds=99))

        async def note(verb: str, _at: Coordinates) -> None:
            if verb == "patch status":
                messages.append(ready(cluster)["message"])

        messages: list[str] = []
        cluster = ClusterInMemory(fault=replaced, done=note)
        async with running(cluster):
            first = cluster.put(a_model())["metadata"]["uid"]
            await rest()

        assert cluster.objects[MODEL]["metadata"]["uid"] != first
        assert messages
        assert all("earlier ModelDeployment" in message for message in messages), messages

    virtually(scenario)


def test_a_spec_edited_while_a_status_is_written_is_reconciled_at_once() -> None:
    async def scenario() -> None:
        edits = 0

        async def quicker(verb: str, at: Coordinates) -> None:
            nonlocal edits
            if (verb, at) == ("patch status", MODEL) and cluster.objects[DEPLOYMENT].get("status") and not edits:
                edits += 1
                cluster.edit(MODEL, drains(20))

        cluster = ClusterInMemory(fault=quicker)
        async with running(cluster):
            cluster.put(a_model(drainSeconds=5))
            await rest()
            cluster.edit(DEPLOYMENT, serves)
            await rest(2)
            assert edits == 1
            template = cluster.objects[DEPLOYMENT]["spec"]["template"]
            assert template["spec"]["terminationGracePeriodSeconds"] == 70
            assert cluster.objects[MODEL]["status"]["observedGeneration"] == 2

    virtually(scenario)


# a watch that is later than the operator waits before it tries again
@pytest.mark.parametrize("late", [30.0], indirect=True)
def test_a_status_whose_answer_was_lost_is_not_written_over_before_it_is_seen() -> None:
    async def scenario() -> None:
        sent: list[dict[str, str]] = []

        async def lost(verb: str, at: Coordinates) -> None:
            if (verb, at) == ("patch status", MODEL):
                conditions = cluster.objects[MODEL]["status"]["conditions"]
                sent.append(
                    {
                        condition["type"]: condition["lastTransitionTime"]
                        for condition in conditions
                        if condition["status"] == "True"
                    }
                )
                raise Unreachable("the answer was lost")

        cluster = ClusterInMemory(done=lost)
        async with running(cluster):
            cluster.put(a_model())
            await rest(45)
            tried = cluster.writes.count(("patch status", MODEL))
            assert tried > 1, "it is tried again"
            assert len(sent) == 1, "and refused: the version that it rests on is not there any more"
            await rest(60)
            assert sent[0]
            assert [{kind: transition_times[kind] for kind in sent[0]} for transition_times in sent] == [sent[0]] * len(
                sent
            )

    virtually(scenario)

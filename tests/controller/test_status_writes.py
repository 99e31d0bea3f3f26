"""A status rests on one version: what others write into the metadata keeps it from nothing, what they decide does."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.controller.manager import GATHER_SECONDS
from hermetic.controller.status_writes import REPEATS
from tests.controller.running import a_model, ready, rest, running, where
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import virtually

MODEL = where("ModelDeployment")


def annotated(number: int) -> Any:
    def change(model: Manifest) -> None:
        model["metadata"].setdefault("annotations", {})["rival"] = str(number)

    return change


@pytest.mark.parametrize("changes", [1, REPEATS])
def test_a_status_is_written_past_those_who_write_into_the_metadata(changes: int) -> None:
    async def scenario() -> None:
        edits = 0

        async def rival(verb: str, at: Coordinates) -> None:
            nonlocal edits
            if (verb, at) == ("patch status", MODEL) and edits < changes:
                edits += 1
                cluster.edit(MODEL, annotated(edits))

        cluster = ClusterInMemory(fault=rival)
        async with running(cluster):
            cluster.put(a_model())
            await rest(GATHER_SECONDS + 0.4)  # less than the operator waits after a conflict
            assert ready(cluster)["status"] == "False"
            assert cluster.writes.count(("patch status", MODEL)) == changes + 1
            assert cluster.lists["modeldeployments"] >= changes, "read again, once for each refusal"

    virtually(scenario)


def test_a_rival_without_end_is_given_way_to_and_tried_again_later() -> None:
    async def scenario() -> None:
        edits = 0

        async def rival(verb: str, at: Coordinates) -> None:
            nonlocal edits
            if (verb, at) == ("patch status", MODEL):
                edits += 1
                cluster.edit(MODEL, annotated(edits))

        cluster = ClusterInMemory(fault=rival)
        async with running(cluster):
            cluster.put(a_model())
            await rest(5)
            assert "status" not in cluster.objects[MODEL]
            assert edits > REPEATS + 1, "it is tried again"
            cluster.fault = nothing
            await rest(300)
            assert ready(cluster)["status"] == "False"

    virtually(scenario)


def test_a_status_that_another_operator_wrote_is_not_written_over_unseen() -> None:
    async def scenario() -> None:
        theirs = {"conditions": [], "observedGeneration": 1}
        sent: list[Any] = []

        async def another(verb: str, at: Coordinates) -> None:
            if (verb, at) == ("patch status", MODEL):
                sent.append(cluster.objects[MODEL].get("status"))
                if len(sent) == 1:
                    cluster.edit(MODEL, lambda model: model.update(status=theirs))

        cluster = ClusterInMemory(fault=another)
        async with running(cluster):
            cluster.put(a_model())
            await rest(0.2)
            lists = cluster.lists["modeldeployments"]
            await rest(30)
            assert sent[0] is None
            assert sent[1] == theirs, "refused, and decided again from what the other wrote"
            assert cluster.lists["modeldeployments"] - lists <= 1, "a conflict is not answered with reads without end"
            assert ready(cluster)["status"] == "False"

    virtually(scenario)


async def nothing(_verb: str, _at: Coordinates) -> None:
    """No fault."""

"""What a create costs the operator: requests, writes, reconciles and renderings, counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import MutableMapping
from typing import Any

import pytest

from hermetic.objects import children
from tests.controller.kubernetes_controllers import play_controllers
from tests.controller.running import NAMESPACE, rest, running, written
from tests.fakes.cluster_in_memory import ClusterInMemory, Manifest
from tests.fakes.virtual_loop import virtually
from tests.scenarios import a_share_model, reporting

MODELS = 10
CHILDREN = Counter(
    ["ServiceAccount", "NetworkPolicy", "PersistentVolume", "PersistentVolumeClaim", "Service", "Deployment"]
)
PASSES, STATUSES = 2, 4
"""A status when the children are written, when its pods exist, with the address, and when the model serves."""
RECONCILES_WITHOUT_A_WRITE = 1
RENDERINGS = 1

Log = list[MutableMapping[str, Any]]


def a_model(number: int) -> Manifest:
    model = reporting(a_share_model(f"m{number}", endpoint={"internalLoadBalancer": {}}))
    model["metadata"]["namespace"] = NAMESPACE
    return model


async def create_all(cluster: ClusterInMemory) -> None:
    """Create the models at once, and let everything happen to them."""
    async with running(cluster, reflectors=True):
        reads = Counter(cluster.lists)
        await asyncio.gather(*(_create(cluster, number) for number in range(MODELS)))
        await rest(10)
        assert cluster.lists == reads, "nothing is read"


async def _create(cluster: ClusterInMemory, number: int) -> None:
    cluster.put(a_model(number))
    await play_controllers(cluster, f"m{number}", f"10.64.0.{number}")


def reconciles(log: Log, name: str) -> list[MutableMapping[str, Any]]:
    return [line for line in log if line.get("event") == "reconcile" and line["name"] == name]


def test_a_create_costs_its_children_and_one_status_for_each_visible_change() -> None:
    cluster = ClusterInMemory()
    virtually(lambda: create_all(cluster))
    for number in range(MODELS):
        costs = Counter(verb for verb, (_, _, name) in cluster.writes if _belongs(name, f"m{number}"))
        assert costs["delete"] == 0
        assert costs["patch"] == CHILDREN.total()
        assert costs["patch status"] <= STATUSES
        assert is_serving(cluster, f"m{number}")


def test_a_create_costs_few_reconciles_that_write_nothing(log: Log) -> None:
    cluster = ClusterInMemory()
    virtually(lambda: create_all(cluster))
    for number in range(MODELS):
        results = Counter(line["result"] for line in reconciles(log, f"m{number}"))
        assert results["retried"] == results["refused"] == 0
        assert results["written"] <= PASSES + STATUSES
        assert results["unchanged"] <= RECONCILES_WITHOUT_A_WRITE


def test_the_children_are_not_rendered_again_for_each_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: Counter[str] = Counter()
    build = children._rendered

    def counted(table: Any, owner: Any, *inputs: Any) -> Any:
        rendered[owner.name] += 1
        return build(table, owner, *inputs)

    monkeypatch.setattr(children, "_rendered", counted)
    cluster = ClusterInMemory()
    virtually(lambda: create_all(cluster))
    assert max(rendered.values()) <= RENDERINGS


def test_a_change_that_no_decision_reads_causes_no_reconcile(log: Log) -> None:
    """Others annotate children and add finalizers: only the resourceVersion of what is kept changes."""
    cluster = ClusterInMemory()

    async def scenario() -> None:
        async with running(cluster, reflectors=True):
            cluster.put(a_model(0))
            await rest(10)
            before = len(reconciles(log, "m0"))
            for at in [at for at in cluster.objects if at[0] in CHILDREN and at[0] != "Service"]:
                cluster.edit(at, lambda live: live["metadata"].update(finalizers=["example.com/keep"]))
                cluster.edit(at, lambda live: live["metadata"].setdefault("annotations", {}).update(note="seen"))
            await rest(10)
            assert len(reconciles(log, "m0")) == before
            cluster.edit(("Deployment", NAMESPACE, "m0"), lambda live: live["spec"].update(replicas=5))
            await rest(10)
            assert written(cluster, "m0").count("Deployment") == 2, "a change of content is still corrected"

    virtually(scenario)


def is_serving(cluster: ClusterInMemory, name: str) -> bool:
    conditions = cluster.objects["ModelDeployment", NAMESPACE, name]["status"]["conditions"]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _belongs(name: str, model: str) -> bool:
    return name == model or name.startswith((f"{model}-weights-", f"hermetic-{NAMESPACE}-{model}-"))

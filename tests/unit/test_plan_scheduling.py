"""Why no node takes the pod, with the arithmetic."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.kube.projections import node
from hermetic.plan.gate_results import HOLDS, Blocks
from hermetic.plan.image_volumes import image_volumes_are_supported
from hermetic.plan.scheduling import eligible_nodes, unschedulable
from hermetic.plan.vm_sizes import sizes_for
from tests.scenarios import a_baked_model, an_image_volume_model
from tests.snapshots import a_snapshot, an_a100_node, spec_of

BIG = {"instance_type": "Standard_NC96ads_A100_v4", "pool": "big"}


def sentence(*nodes, event="", **accelerator):
    return unschedulable(spec_of(a_baked_model(accelerator=accelerator)), a_snapshot(nodes=nodes), event)


def test_no_node_with_the_resource_asks_for_the_device_plug_in():
    assert sentence(an_a100_node(gpus=0)) == (
        "needs 1 nvidia.com/gpu on one node, but no node offers any: is the device plug-in running on the GPU pool?"
    )


def test_shortfall_names_resource_pool_size_and_how_much_is_missing():
    assert sentence(an_a100_node(), an_a100_node("gpu-1", gpus=2, pool="pair"), count=4) == (
        "needs 4 nvidia.com/gpu on one node, but the largest node, of pool 'pair' (Standard_NC24ads_A100_v4), "
        "has 2: 2 short"
    )


def test_wrong_size_names_both_sizes():
    assert sentence(an_a100_node(), instanceTypes=["Standard_NC96ads_A100_v4"]) == (
        "needs 1 nvidia.com/gpu on one node of size Standard_NC96ads_A100_v4, but the nodes that offer it are of size "
        "Standard_NC24ads_A100_v4"
    )


ZONE, POOL = "topology.kubernetes.io/zone", "kubernetes.azure.com/agentpool"


def selecting(labels: dict[str, str], **overrides: Any) -> ModelDeploymentSpec:
    return spec_of(a_baked_model(scheduling={"nodeSelector": labels}, **overrides))


# Kubernetes: a node must have every label of `nodeSelector`
# (https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodeselector).
@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ({}, ["a", "b", "c"]),
        ({POOL: "gpu"}, ["a"]),
        ({POOL: "gpu2"}, ["b"]),
        ({ZONE: "1"}, ["a", "b"]),
        ({ZONE: "1", POOL: "gpu2"}, ["b"]),
        ({ZONE: "2", POOL: "gpu"}, []),
        ({ZONE: ""}, []),
        ({"team": "research"}, []),
    ],
    ids=str,
)
def test_nodes_that_the_selector_excludes_are_not_eligible(selector, names):
    nodes = (
        an_a100_node("a", labels={POOL: "gpu", ZONE: "1"}),
        an_a100_node("b", labels={POOL: "gpu2", ZONE: "1"}),
        an_a100_node("c", labels={}),
    )
    assert [node.name for node in eligible_nodes(selecting(selector), nodes)] == names


def test_labels_of_a_node_come_from_its_metadata():
    manifest = {
        "metadata": {"name": "a", "labels": {POOL: "gpu", ZONE: "1"}},
        "status": {"allocatable": {"nvidia.com/gpu": "1"}},
    }
    assert eligible_nodes(selecting({ZONE: "1"}), [node(manifest)])
    assert not eligible_nodes(selecting({ZONE: "2"}), [node(manifest)])
    assert not eligible_nodes(selecting({ZONE: "1"}), [node({"metadata": {"name": "b"}})])


def test_only_sizes_of_selected_nodes_are_said_to_fit():
    nodes = (an_a100_node("a", labels={POOL: "gpu"}), an_a100_node("b", labels={POOL: "big"}, **BIG))
    sizes, _ = sizes_for(selecting({POOL: "gpu"}), a_snapshot(nodes=nodes))
    assert [size.name for size in sizes] == ["Standard_NC24ads_A100_v4"]


def test_nodes_that_the_selector_excludes_decide_nothing_about_image_volumes():
    old = an_a100_node("old", labels={POOL: "old"}, kubelet_version="v1.34.2")
    nodes = (an_a100_node("new", labels={POOL: "new"}), old)
    verdicts = {
        pool: image_volumes_are_supported(
            spec_of(an_image_volume_model(scheduling={"nodeSelector": {POOL: pool}})), a_snapshot(nodes=nodes)
        )
        for pool in ("new", "old")
    }
    assert verdicts["new"] == HOLDS
    assert isinstance(verdicts["old"], Blocks)


def test_a_selector_without_nodes_names_the_pools_and_the_missing_labels():
    nodes = (
        an_a100_node("a", pool="gpu", labels={ZONE: "1"}),
        an_a100_node("b", pool="gpu", labels={ZONE: "1"}),
        an_a100_node("c", pool="big", labels={"team": "a"}),
    )
    expected = (
        "needs 1 nvidia.com/gpu on one node with the labels of `scheduling.nodeSelector`, but pool 'big' lacks "
        f"{ZONE}: 2; pool 'gpu' lacks team: a, {ZONE}: 2"
    )
    spec = selecting({ZONE: "2", "team": "a"})
    assert {unschedulable(spec, a_snapshot(nodes=order), "") for order in permutations(nodes)} == {expected}


def test_nodes_that_are_taken_are_told_with_what_there_is_in_all():
    assert sentence(an_a100_node("a", gpus=4, **BIG), an_a100_node("b", gpus=4, **BIG), count=4) == (
        "needs 4 nvidia.com/gpu on one node; pool 'big' (Standard_NC96ads_A100_v4) and pools like it have 8 in all: "
        "no node has 4 free, and room for the pod"
    )


def test_scheduler_is_quoted_last():
    assert sentence(an_a100_node(), event="0/1 nodes are available").endswith(
        "; the scheduler reports: 0/1 nodes are available"
    )


@pytest.mark.parametrize("accelerator", [{}, {"count": 4}, {"instanceTypes": ["Standard_NC24ads_A100_v4"]}], ids=str)
def test_sentence_does_not_depend_on_the_order_of_nodes(accelerator):
    nodes = (an_a100_node("a", pool="one"), an_a100_node("b", pool="two"), an_a100_node("c", gpus=0, pool="three"))
    assert len({sentence(*order, **accelerator) for order in permutations(nodes)}) == 1


def test_another_resource_does_not_count():
    assert "no node offers any" in sentence(an_a100_node(), resource="amd.com/gpu")

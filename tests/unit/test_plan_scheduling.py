"""Why no node takes the pod, with the arithmetic."""

from __future__ import annotations

from itertools import permutations

import pytest

from hermetic.plan.scheduling import unschedulable
from tests.scenarios import a_baked_model
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


def test_nodes_that_are_taken_are_told_with_what_there_is_in_all():
    assert sentence(an_a100_node("a", gpus=4, **BIG), an_a100_node("b", gpus=4, **BIG), count=4) == (
        "needs 4 nvidia.com/gpu on one node; pool 'big' (Standard_NC96ads_A100_v4) and its like have 8 in all, and "
        "none that is free and fits"
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

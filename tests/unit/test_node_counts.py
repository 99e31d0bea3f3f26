"""One large node against several smaller ones: the fewest nodes of each VM size, their order, and their load times."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from hermetic.api.resources import Accelerator
from hermetic.plan.model_fit import model_placement
from hermetic.plan.planned_status import planned_status
from hermetic.sizing.catalogue import MIB, Storage, Value, sizes
from hermetic.sizing.facts_file import as_json
from hermetic.sizing.node_counts import Loading, NodeChoice, compare_nodes
from hermetic.sizing.serving import Serving
from tests.commandline import hermetic
from tests.corpus.manifests import Manifest, changed
from tests.model_configs import LLAMA_8B, LLAMA_8B_BYTES, LLAMA_405B, LLAMA_405B_BYTES, facts
from tests.scenarios import a_nim_model, a_share_model, an_sglang_model
from tests.snapshots import a_snapshot, spec_of

LLAMA = facts(LLAMA_405B, LLAMA_405B_BYTES, 191)
SERVING = Serving(max_model_length=32768)
SHARE = Storage("a share", Value(1000 * MIB, "tests", True), None, True)
H100, H200, A100 = "Standard_ND96isr_H100_v5", "Standard_ND96isr_H200_v5", "Standard_ND96amsr_A100_v4"


def choices(most: int = 16, replicas: int = 1, prices: dict[str, float] | None = None) -> dict[str, NodeChoice]:
    compared = compare_nodes(
        LLAMA, SERVING, Loading(SHARE, replicas), most=most, prices=prices, vendor=sizes()[H100].gpu.vendor
    )
    return {choice.size.name: choice for choice in compared}


def test_a_large_node_stands_beside_several_smaller_ones():
    compared = choices()
    assert (compared[H200].nodes, compared[H100].nodes, compared[A100].nodes) == (1, 2, 2)
    assert compared["Standard_NC96ads_A100_v4"].nodes == 3
    assert (compared[H100].network, compared["Standard_NC96ads_A100_v4"].network) == ("InfiniBand", "Ethernet")
    assert compared[H200].network == ""


def test_each_node_has_a_stage_and_every_gpu_of_it_shares_the_layers():
    serving = choices()[H100].fit.serving
    assert (serving.tensor_parallel, serving.pipeline_parallel, serving.nodes, serving.gpus) == (8, 2, 2, 16)


def test_weights_and_cache_are_divided_by_the_gpus_of_all_nodes():
    fit = choices()[H100].fit
    assert fit.weights * 16 == pytest.approx(LLAMA_405B_BYTES * 1.02, rel=0.02)
    assert fit.cache is not None
    # 126 layers in 2 stages, 8 key-value heads over 8 GPUs: one head of 128 values each, key and value, 2 bytes.
    assert fit.cache.token_bytes == 63 * 128 * 2 * 2


def test_fewer_nodes_than_are_needed_leave_a_size_out():
    assert H100 not in choices(most=1)
    assert H200 in choices(most=1)


def test_prices_count_for_every_node():
    by_price = list(choices(prices={H200: 3.0, H100: 1.0, A100: 1.4}))
    assert by_price.index(H100) < by_price.index(A100) < by_price.index(H200)
    by_price = list(choices(prices={H200: 1.5, H100: 1.0}))
    assert by_price.index(H200) < by_price.index(H100)


def test_every_node_of_every_replica_reads_from_the_same_share():
    seconds = LLAMA_405B_BYTES / (1000 * MIB)
    assert choices()[H200].load.seconds == pytest.approx(seconds)
    assert choices()[H100].load.seconds == pytest.approx(2 * seconds)
    assert choices(replicas=3)[H100].load.seconds == pytest.approx(6 * seconds)


# ---------------------------------------------------------------------- as the command prints it


def manifest(base: Manifest | None = None, model: Any = LLAMA, **accelerator: Any) -> Manifest:
    changes = {"spec.weights.facts": as_json(model), "spec.accelerator": {"count": 8, **accelerator}}
    return changed(base or a_share_model(), changes)


def compared(*arguments: str, of: Manifest) -> list[dict[str, Any]] | None:
    ran = hermetic("plan", "-f", "-", "-o", "json", *arguments, stdin=yaml.safe_dump(of))
    return json.loads(ran.out)["deployments"][0].get("nodeCounts")


def test_a_deployment_of_several_nodes_is_compared_up_to_their_number():
    entries = compared(of=manifest(nodes=2))
    assert entries is not None
    assert {entry.get("nodes", 1) for entry in entries} == {1, 2}


def test_a_deployment_of_one_node_is_compared_only_where_it_is_asked_for():
    assert compared(of=manifest()) is None
    assert compared("--nodes", "4", of=manifest())


def test_a_model_that_fits_on_no_single_node_is_compared_by_itself():
    huge = facts(LLAMA_405B, 3 * LLAMA_405B_BYTES, 500)
    entries = compared(of=manifest(model=huge))
    assert entries is not None
    assert min(entry["nodes"] for entry in entries) > 1


@pytest.mark.parametrize("base", [a_nim_model(), an_sglang_model()], ids=["nim", "sglang"])
def test_engines_whose_memory_is_not_computed_are_not_compared(base):
    small = facts(LLAMA_8B, LLAMA_8B_BYTES, 4)
    assert compared("--nodes", "2", of=changed(manifest(base, small), {"spec.accelerator.count": 1})) is None


def test_the_text_shows_both_sides():
    ran = hermetic("plan", "-f", "-", stdin=yaml.safe_dump(manifest(nodes=2, instanceTypes=[H100])))
    assert f"{H100}: 2 nodes with 8 x NVIDIA H100 80 GB, tensor parallel 8, 2 pipeline stages: " in ran.out
    assert "One node or several, smallest first; load time from" in ran.out
    assert "one replica of 2 nodes" in ran.out


def test_the_status_counts_the_part_of_one_node_as_the_least_that_is_loaded():
    spec = spec_of(manifest(nodes=2, instanceTypes=[H100]))
    of_one_node = spec.model_copy(update={"accelerator": Accelerator(count=8, instance_types=[H100])})
    loads = [
        planned_status(planned_spec, model_placement(planned_spec, a_snapshot()))["load"]["leastSeconds"]
        for planned_spec in (spec, of_one_node)
    ]
    assert loads[0] == pytest.approx(loads[1] / 2, abs=1)

"""Commands that start one engine on several nodes, as a ModelDeployment whose replicas have several."""

from __future__ import annotations

import pytest

from tests.conversions import converted, of_vllm

SGLANG = ("python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3", {"image": "lmsysorg/sglang:v0.5.23"})


@pytest.mark.parametrize(
    ("arguments", "nodes", "count", "tensor", "pipeline"),
    [
        pytest.param(("-tp", "8", "-pp", "2", "--nnodes", "2"), 2, 8, 8, 2, id="a stage for each node"),
        pytest.param(("-tp", "16", "-n", "2"), 2, 8, 16, 1, id="layers over nodes, which is not our default"),
        pytest.param(("-tp", "32", "--nnodes", "4"), 4, 8, 32, 1, id="more GPUs than a pod has"),
        pytest.param(("-tp", "2", "-pp", "4", "--nnodes", "2", "--node-rank", "0"), 2, 4, 2, 4, id="of the first rank"),
    ],
)
def test_nodes_and_gpus_of_each_follow_from_the_command(arguments, nodes, count, tensor, pipeline):
    result = of_vllm(*arguments)
    assert result.spec["accelerator"] == {"count": count, "nodes": nodes}
    assert (result.engine["tensorParallelSize"], result.engine["pipelineParallelSize"]) == (tensor, pipeline)


def test_what_differs_from_pod_to_pod_is_left_out_and_the_network_is_named():
    result = of_vllm(
        "-tp", "16", "--nnodes", "2", "--node-rank", "0", "--master-addr", "10.0.0.4", "--master-port", "1"
    )
    left_out = {note.subject for note in result.notes("left out")}
    assert left_out == {"--node-rank", "--master-addr", "--master-port"}
    (note,) = result.notes("set", "accelerator.interconnect")
    assert "Ethernet, until you set {type: InfiniBand" in note.message


def test_one_node_is_not_written():
    result = of_vllm("-tp", "2", "--nnodes", "1", "--node-rank", "0")
    assert result.spec["accelerator"] == {"count": 2}


def test_a_command_of_sglang_for_several_nodes_is_converted_as_well():
    command, chosen = SGLANG
    result = converted(f"{command} --tp 16 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.4:5000", **chosen)
    assert result.spec["accelerator"] == {"count": 8, "nodes": 2}
    assert {note.subject for note in result.notes("left out")} >= {"--node-rank", "--dist-init-addr"}

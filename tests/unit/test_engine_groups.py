"""Replicas of several nodes: command lines, variables and devices of each engine, and what an engine would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.engine_reasons import EngineReason
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.failure_signatures import diagnose
from hermetic.engines.launch import Launch, as_group_member, keeping_first_errors
from hermetic.engines.registry import engine_of, launch
from hermetic.plan.gates import first_block
from hermetic.sizing.catalogue import interconnects, sizes
from tests.corpus.manifests import Manifest, changed
from tests.scenarios import a_share_model, an_sglang_model
from tests.snapshots import a_snapshot, spec_of

H100, A100, MI300X = "Standard_ND96isr_H100_v5", "Standard_ND96asr_v4", "Standard_ND96isr_MI300X_v5"
INFINIBAND = {"type": "InfiniBand", "resource": "rdma/ib", "count": 8}


def of_nodes(nodes: int = 2, count: int = 8, base: Manifest | None = None, **accelerator: Any) -> Manifest:
    return changed(base or a_share_model(), {"spec.accelerator": {"nodes": nodes, "count": count, **accelerator}})


def launched(manifest: Manifest) -> Launch:
    return launch(spec_of(manifest))


def value(of: Launch, flag: str) -> str:
    return of.args[of.args.index(flag) + 1]


def variables(of: Launch) -> dict[str, Any]:
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in of.env}


@pytest.mark.parametrize(
    ("nodes", "count", "fields", "tensor", "pipeline"),
    [
        pytest.param(2, 8, {}, "8", "2", id="a stage for each node"),
        pytest.param(4, 1, {}, "1", "4", id="single GPUs"),
        pytest.param(2, 8, {"pipelineParallelSize": 4}, "4", "4", id="two stages for each node"),
        pytest.param(2, 8, {"tensorParallelSize": 16, "pipelineParallelSize": 1}, "16", None, id="layers over nodes"),
        pytest.param(1, 8, {}, "8", None, id="one node"),
    ],
)
def test_vllm_gets_a_pipeline_stage_for_each_node_unless_told_otherwise(nodes, count, fields, tensor, pipeline):
    more = {f"spec.engine.vllm.{name}": size for name, size in fields.items()}
    result = launched(changed(of_nodes(nodes, count), more))
    assert value(result, "--tensor-parallel-size") == tensor
    assert (
        value(result, "--pipeline-parallel-size") if "--pipeline-parallel-size" in result.args else None
    ) == pipeline
    assert ("--nnodes" in result.args) == (nodes > 1)


def test_vllm_of_several_nodes_starts_as_a_member_and_each_pod_has_the_same_arguments():
    result = launched(of_nodes())
    assert result.command == keeping_first_errors(*as_group_member("vllm", "serve"))
    assert (value(result, "--nnodes"), value(result, "--master-port"), result.nodes) == ("2", "29501", 2)
    # The member program adds what differs: see test_group_member.py.
    assert not {"--node-rank", "--master-addr", "--headless"} & {*result.args}


@pytest.mark.parametrize(("nodes", "count", "tensor"), [(2, 8, "16"), (4, 8, "32"), (1, 8, "8")])
def test_sglang_shares_each_layer_over_the_gpus_of_all_nodes(nodes, count, tensor):
    result = launched(of_nodes(nodes, count, an_sglang_model()))
    assert value(result, "--tp-size") == tensor
    assert ("--nnodes" in result.args) == (nodes > 1)
    assert not {"--node-rank", "--dist-init-addr"} & {*result.args}


def test_a_replica_of_one_node_has_nothing_of_a_group():
    result = launched(a_share_model())
    assert result.command == keeping_first_errors("vllm", "serve")
    assert (result.nodes, result.devices) == (1, ())
    assert not [name for name in variables(result) if name.startswith(("HERMETIC_", "NCCL_", "GLOO_"))]


@pytest.mark.parametrize("base", [a_share_model(), an_sglang_model()], ids=["vllm", "sglang"])
def test_the_member_program_finds_all_variables_but_the_address_of_the_head(base):
    result = variables(launched(of_nodes(base=changed(base, {"spec.endpoint.port": 8443}))))
    assert result["HERMETIC_GROUP_RANK"] == {
        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}
    }
    assert result["HERMETIC_POD_ADDRESS"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}
    assert result["HERMETIC_ADDRESS_PORT"] == "29500"
    assert result["HERMETIC_ENDPOINT_PORT"] == "8443"
    assert result["HERMETIC_HEALTH_PATH"] == launched(base).live_path == launched(base).ready_path
    assert "HERMETIC_ENDPOINT_TLS" not in result
    assert "HERMETIC_HEAD_ADDRESS" not in result


def test_the_member_program_answers_over_tls_where_the_endpoint_does():
    with_tls = changed(of_nodes(), {"spec.endpoint.tls": {"secretName": "llama-tls"}})
    assert variables(launched(with_tls))["HERMETIC_ENDPOINT_TLS"] == "/tls"


# ---------------------------------------------------------------------- the network between the nodes


@pytest.mark.parametrize("network", [None, {"type": "Ethernet"}])
def test_on_ethernet_collectives_look_for_no_infiniband_and_the_pod_asks_for_no_device(network):
    result = launched(of_nodes(**({} if network is None else {"interconnect": network})))
    names = variables(result)
    assert (names["GLOO_SOCKET_IFNAME"], names["NCCL_SOCKET_IFNAME"], names["NCCL_IB_DISABLE"]) == ("eth0", "eth0", "1")
    assert result.devices == ()
    assert "NCCL_NET" not in names


def test_on_infiniband_nccl_may_use_nothing_else_and_the_pod_asks_for_its_devices():
    result = launched(of_nodes(interconnect=INFINIBAND))
    names = variables(result)
    assert (names["NCCL_NET"], names["HERMETIC_INTERCONNECT"], names["NCCL_SOCKET_IFNAME"]) == (
        "IB",
        "InfiniBand",
        "eth0",
    )
    assert result.devices == (("rdma/ib", 8),)
    assert "NCCL_IB_DISABLE" not in names


@pytest.mark.parametrize(
    ("instance_types", "has_them"),
    [([H100], True), ([H100, A100], True), ([H100, MI300X], False), ([H100, "Standard_Unlisted"], False), ([], False)],
)
def test_variables_of_a_vm_size_are_rendered_where_all_sizes_of_the_spec_agree(instance_types, has_them):
    names = variables(launched(of_nodes(interconnect=INFINIBAND, instanceTypes=instance_types)))
    assert (names.get("NCCL_IB_PCI_RELAXED_ORDERING") == "1") is has_them
    assert (names.get("NCCL_NET_GDR_LEVEL") == "SYS") is has_them


def test_a_variable_of_the_user_takes_the_place_of_ours_and_stands_there_once():
    chosen = [{"name": "NCCL_SOCKET_IFNAME", "value": "net1"}]
    names = [
        (variable["name"], variable.get("value"))
        for variable in launched(changed(of_nodes(), {"spec.engine.vllm.extraEnv": chosen})).env
    ]
    assert [pair for pair in names if pair[0] == "NCCL_SOCKET_IFNAME"] == [("NCCL_SOCKET_IFNAME", "net1")]


def test_every_size_with_infiniband_is_in_the_catalogue():
    assert interconnects().keys() <= sizes().keys()
    assert {network.devices.value for network in interconnects().values()} <= {4, 8}


@pytest.mark.parametrize(
    ("instance_types", "blocks"),
    [
        (["Standard_NC24ads_A100_v4"], True),
        (["Standard_NC24ads_A100_v4", H100], False),
        ([H100], False),
        (["Standard_Unlisted"], False),
    ],
)
def test_infiniband_on_sizes_that_have_none_is_refused(instance_types, blocks):
    manifest = of_nodes(count=1, interconnect={**INFINIBAND, "count": 1}, instanceTypes=instance_types)
    block = first_block(spec_of(manifest), a_snapshot())
    refused = block is not None and block.reason is SpecReason.VM_SIZE_UNSUITABLE
    assert refused is blocks
    if blocks:
        assert "it has no InfiniBand, and `accelerator.interconnect` asks for it" in block.message


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("arguments", [["--prefill-context=2"], ["--api-server-c=2"]])
def test_a_flag_that_no_rank_of_a_group_has_is_refused_in_any_spelling(arguments):
    spec = spec_of(changed(of_nodes(), {"spec.engine.vllm.extraArgs": arguments}))
    objection = engine_of(spec).objection(spec)
    assert objection is not None
    assert objection.reason is SpecReason.ENGINE_FLAG_RESERVED
    assert "must not be set with several `accelerator.nodes`" in objection.message


@pytest.mark.parametrize(
    ("arguments", "refused"), [(["--dp", "2"], True), (["--dp", "2", "--enable-dp-attention"], False)]
)
def test_data_parallel_ranks_of_sglang_are_refused_and_data_parallel_attention_is_not(arguments, refused):
    spec = spec_of(changed(of_nodes(base=an_sglang_model()), {"spec.engine.sglang.extraArgs": arguments}))
    assert (engine_of(spec).objection(spec) is not None) is refused


def test_staged_compile_caches_are_not_used_by_a_group():
    spec = spec_of(of_nodes(instanceTypes=[H100]))
    assert engine_of(spec).cache_key(spec) == "it is not known which compile caches the ranks of several nodes share"


@pytest.mark.parametrize(
    "message",
    [
        "hermetic: error: RLIMIT_MEMLOCK is 65536 bytes, and InfiniBand locks the memory that it sends from\n"
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "hermetic: error: RLIMIT_MEMLOCK is 8388608 bytes, and ...\nCall to ibv_reg_mr failed with error",
    ],
)
def test_a_failed_collective_under_a_limit_of_locked_memory_names_the_limit(message):
    assert diagnose(message) is EngineReason.INTERCONNECT_MEMLOCK
    assert diagnose(message.splitlines()[0]) is None


@pytest.mark.parametrize("message", ["Error: network IB not found.", "NCCL WARN Failed to initialize any NET plugin"])
def test_nccl_without_infiniband_is_told_as_such(message):
    assert (
        diagnose(f"RuntimeError: NCCL error: invalid usage\nLast error:\n{message}")
        is EngineReason.INTERCONNECT_DEGRADED
    )

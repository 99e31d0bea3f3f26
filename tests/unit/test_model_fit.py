"""A model that does not fit its GPUs gets no pod; without facts nothing changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from hermetic.api.conditions import ConditionType
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.modeldeployment_status import PlanStatus
from hermetic.api.spec_reasons import SpecReason
from hermetic.controller.condition_events import announcements
from hermetic.plan.gate_results import Blocks
from hermetic.plan.gates import first_block
from hermetic.plan.model_fit import model_placement
from hermetic.plan.planning import plan
from hermetic.plan.status import status
from hermetic.sizing.facts_file import as_json
from hermetic.sizing.placement import place
from tests.commandline import hermetic
from tests.corpus.manifests import changed
from tests.golden.scenarios import template_digests
from tests.model_configs import (
    LLAMA_8B,
    LLAMA_8B_BYTES,
    LLAMA_70B,
    LLAMA_70B_BYTES,
    QWEN3_235B_FP8,
    QWEN3_235B_FP8_BYTES,
    facts,
)
from tests.renderings import RENDERINGS
from tests.scenarios import Manifest, a_nim_model, a_share_model
from tests.snapshots import NOW, a_snapshot, an_a100_node, carried_out, conditions, rendered, spec_of

A100, ND_A100, HALF = "Standard_NC24ads_A100_v4", "Standard_ND96asr_v4", "Standard_NC72ds_xl_RTXPro6000_v6"
SINGLE = {"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb"}
GB200, MI300X = "Standard_ND128isr_NDR_GB200_v6", "Standard_ND96isr_MI300X_v5"
LONG = facts(LLAMA_8B | {"max_position_embeddings": 1_000_000}, LLAMA_8B_BYTES)
L8, L70 = facts(LLAMA_8B, LLAMA_8B_BYTES), facts(LLAMA_70B, LLAMA_70B_BYTES)
QWEN_YARN = LLAMA_8B | {
    "max_position_embeddings": 32_768,
    "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768},
}
QWEN = facts(QWEN3_235B_FP8, QWEN3_235B_FP8_BYTES)


def deployment(model=L8, base: Manifest | None = None, **changes: Any) -> Manifest:
    fields = {"spec.weights.facts": as_json(model), **{f"spec.{path}": value for path, value in changes.items()}}
    return changed(base or a_share_model(), fields)


def sized(*names: str, count: int = 1) -> dict[str, Any]:
    return {"accelerator": {"count": count, "instanceTypes": list(names)}}


def blocked(manifest: Manifest, **facts: Any) -> Blocks:
    block = first_block(spec_of(manifest), a_snapshot(**facts))
    assert block is not None, "nothing blocks"
    return block


def fits(manifest: Manifest, **facts: Any) -> tuple[str, str, str]:
    spec, snapshot = spec_of(manifest), a_snapshot(**facts)
    assert first_block(spec, snapshot) is None
    fit = model_placement(spec, snapshot).condition()
    return (fit.status, fit.reason.value, fit.message)


# ---------------------------------------------------------------- status.plan


def planned(manifest: Manifest, **facts: Any) -> dict[str, Any]:
    snapshot = a_snapshot(**facts)
    return status(spec_of(manifest), snapshot, plan(spec_of(manifest), snapshot, NOW), (), NOW)["plan"]


def test_the_model_is_placed_once_for_gate_condition_and_numbers(monkeypatch):
    placed: list[str] = []

    def counted(facts, serving, size, *arguments):
        placed.append(size.name)
        return place(facts, serving, size, *arguments)

    monkeypatch.setattr("hermetic.plan.model_fit.place", counted)
    assert planned(deployment(**sized(A100)))["memory"]["instanceType"] == A100
    assert placed == [A100]


def test_the_status_has_the_numbers_of_the_condition():
    plan_status = planned(deployment(**sized(A100)))
    memory = plan_status["memory"]
    assert (memory["instanceType"], memory["answer"]) == (A100, "Fits")
    assert f"needs {memory['neededBytesPerGpu'] / 2**30:.1f} GiB" in fits(deployment(**sized(A100)))[2]
    assert f"= {memory['availableBytesPerGpu'] / 2**30:.1f} GiB" in fits(deployment(**sized(A100)))[2]
    assert PlanStatus.model_validate(plan_status).memory is not None


def test_of_a_model_that_does_not_fit_the_status_says_by_how_much():
    memory = planned(deployment(L70, **sized(ND_A100, A100)))["memory"]
    assert (memory["instanceType"], memory["answer"]) == (A100, "DoesNotFit")
    assert memory["neededBytesPerGpu"] > 2 * memory["availableBytesPerGpu"]


def test_the_status_says_what_a_load_takes_at_least_and_by_what():
    shards = {"count": 8, "largestBytes": LLAMA_8B_BYTES // 8}
    many = {**as_json(L8), "shards": shards}
    by_network = planned(changed(deployment(**sized(A100)), {"spec.weights.facts": many}))["load"]
    assert by_network == {"leastSeconds": math.ceil(LLAMA_8B_BYTES / 2.5e9), "boundBy": "the network of the node"}
    single_file = {**as_json(L8), "shards": {"count": 1, "largestBytes": LLAMA_8B_BYTES}}
    by_file = planned(changed(deployment(**sized(A100)), {"spec.weights.facts": single_file}))["load"]
    assert by_file == {
        "leastSeconds": math.ceil(LLAMA_8B_BYTES / (300 * 2**20)),
        "boundBy": "what single files deliver",
    }


def test_without_facts_or_sizes_the_status_has_no_such_numbers():
    for manifest in (a_share_model(), deployment()):
        assert set(planned(manifest)) == {"engine", "tensorParallelSize", "startupBudgetSeconds"}


def test_weights_in_an_image_have_no_time_to_load():
    plan_status = planned(deployment(base=RENDERINGS["baked-image"], **sized(A100)))
    assert "memory" in plan_status
    assert "load" not in plan_status


# ---------------------------------------------------------------- refused


def test_a_model_that_does_not_fit_is_refused_with_the_arithmetic():
    block = blocked(deployment(L70, **sized(A100)))
    assert (block.reason, block.condition) == (SpecReason.INSUFFICIENT_GPU_MEMORY, ConditionType.MODEL_FITS)
    assert block.message == (
        "each of 1 GPUs needs 183.0 GiB (weights 134.0 GiB, overhead 9.0 GiB, key-value cache of 131072 tokens "
        "40.0 GiB), and the engine may take 92 % of 79.1 GiB = 72.8 GiB on Standard_NC24ads_A100_v4 (NVIDIA A100 80 "
        "GB). Use more GPUs or a larger VM size; 'hermetic plan' compares them"
    )


def test_a_context_that_is_too_long_is_refused_with_the_longest_that_fits():
    block = blocked(deployment(LONG, **sized(A100), **{"engine.vllm.maxModelLength": 700_000}))
    assert "Set the context to at most 446064 tokens" in block.message
    shorter = deployment(LONG, **sized(A100), **{"engine.vllm.maxModelLength": 446_064})
    assert fits(shorter)[:2] == ("True", "GpuMemoryTight")


def test_a_context_longer_than_that_of_the_model_is_refused_as_the_engine_would():
    block = blocked(deployment(**sized(A100), **{"engine.vllm.maxModelLength": 131_073}))
    assert (block.reason, block.field) == (EngineReason.CONTEXT_TOO_LONG, "spec.engine.vllm.maxModelLength")
    assert "131073 tokens is longer than the 131072 of the model" in block.message
    assert fits(deployment(**sized(A100), **{"engine.vllm.maxModelLength": 131_072}))[1] == "GpuMemorySufficient"


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(
            deployment(
                L8, **sized(A100),
                **{"engine.vllm.maxModelLength": 200_000, "engine.vllm.extraArgs": ["--hf-overrides", "{}"]},
            ),
            id="config.json is overridden",
        ),
        pytest.param(
            deployment(
                facts(QWEN_YARN, LLAMA_8B_BYTES), **sized(A100), **{"engine.vllm.maxModelLength": 100_000}
            ),
            id="releases derive different lengths",
        ),
        pytest.param(deployment(L8, a_nim_model(), **sized(A100), **{"engine.nim.maxModelLength": 200_000}), id="NIM"),
    ],
)  # fmt: skip
def test_a_longer_context_is_left_to_the_engine_where_its_own_bound_is_not_known(manifest):
    assert fits(manifest)[:2] == ("Unknown", "GpuMemoryUnknown")


@pytest.mark.parametrize(
    ("field", "value", "is_counted"),
    [
        ("extraArgs", ["--disable-sliding-window"], False),
        ("extraArgs", ["--disable_sliding_window"], False),
        ("extraArgs", ["--disable-sliding-w"], False),
        ("extraArgs", ["--no-disable-sliding-window"], True),
        ("extraArgs", ["--eplb-config.num_redundant_experts", "32"], False),
        ("extraArgs", ["--compilation-config.cudagraph_capture_sizes", "[4096]"], False),
        ("extraArgs", ["--max-cudagraph-capture-size=4096"], False),
        ("extraArgs", ["--max-num-seqs", "1024"], True),
        ("extraArgs", ["--max-num-seqs", "1025"], False),
        ("extraArgs", ["--max-num-batched-tokens", "16K"], True),
        ("extraArgs", ["--max-num-batched-tokens", "131.1k"], False),
        ("extraArgs", ["--max-num-batched-tokens", "131072"], False),
        ("extraEnv", [{"name": "VLLM_MLA_DISABLE", "value": "1"}], False),
        ("extraEnv", [{"name": "VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE", "value": "40000000000"}], False),
        ("extraEnv", [{"name": "VLLM_LOGGING_LEVEL", "value": "DEBUG"}], True),
    ],
)
def test_a_setting_whose_memory_the_formula_does_not_cover_is_never_called_a_fit(field, value, is_counted):
    reason = fits(deployment(**sized(A100), **{f"engine.vllm.{field}": value}))[1]
    assert reason == ("GpuMemorySufficient" if is_counted else "GpuMemoryUnknown")


@pytest.mark.parametrize("active", [["--max-loras", "64"], ["--max_loras=64"], ["--max-loras", "2", "--max-loras=64"]])
def test_room_for_adapters_counts_by_their_number_on_the_gpu_and_the_largest_rank(active):
    adapters = [{"name": "a", "folder": "a", "rank": 8}, {"name": "b", "folder": "b", "rank": 256}]
    assert blocked(deployment(**sized(A100), adapters=adapters, **{"engine.vllm.extraArgs": active}))
    assert fits(deployment(**sized(A100), adapters=adapters[:1]))


def test_of_several_sizes_the_one_with_most_room_is_told():
    block = blocked(deployment(L70, **sized(ND_A100, A100)))
    assert A100 in block.message
    assert ND_A100 not in block.message


def test_sizes_of_the_nodes_count_where_the_spec_names_none():
    assert blocked(deployment(L70), nodes=(an_a100_node(),)).reason is SpecReason.INSUFFICIENT_GPU_MEMORY
    assert fits(deployment(), nodes=(an_a100_node(),))[1] == "GpuMemorySufficient"


def test_a_cut_that_ends_the_engine_is_refused_whatever_the_size():
    block = blocked(deployment(QWEN, **{"accelerator.count": 8}))
    assert (block.reason, block.field) == (SpecReason.TENSOR_PARALLEL_IMPOSSIBLE, "spec.accelerator.count")
    assert "1536 values of an expert over 8 GPUs are not a multiple of the quantization block of 128" in block.message
    undivided_experts = {"accelerator.count": 8, "engine.vllm.extraArgs": ["--enable-expert-parallel"]}
    assert fits(deployment(QWEN, **undivided_experts))[1] == "GpuMemoryUnknown"


def test_weights_alone_that_are_too_large_are_refused_for_a_family_that_is_not_known():
    mamba = facts({"model_type": "mamba"}, LLAMA_70B_BYTES)
    assert blocked(deployment(mamba, **sized(A100))).reason is SpecReason.INSUFFICIENT_GPU_MEMORY


# ---------------------------------------------------------------- started


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        pytest.param(deployment(L8), "no VM size is known", id="no size at all"),
        pytest.param(deployment(L8, **sized("Standard_NV6")), "Standard_NV6 is not known", id="a size not listed"),
        pytest.param(deployment(L70, **sized(A100, "Standard_NV6")), "Standard_NV6", id="one of two not listed"),
        pytest.param(deployment(L8, **sized(HALF)), "is not confirmed", id="a size not confirmed"),
        pytest.param(
            deployment(facts({"model_type": "mamba"}, 10**9), **sized(A100)), "model type 'mamba'", id="a family"
        ),
        pytest.param(
            deployment(L8, **sized(A100), **{"engine.vllm.extraArgs": ["--speculative-config={}"]}),
            "--speculative-config",
            id="a flag",
        ),
        pytest.param(
            deployment(L70, **sized(A100), **{"engine.vllm.extraArgs": ["--quantization", "fp8"]}),
            "--quantization",
            id="weights that are quantized at the start",
        ),
        pytest.param(
            deployment(L8, accelerator={"resource": "nvidia.com/mig-1g.23gb", "instanceTypes": [GB200]}),
            "slice 1g.23gb of NVIDIA GB200 192 GB with 1/7 of its computing slices in this VM size is not confirmed",
            id="a MIG slice of which the memory is not confirmed",
        ),
        pytest.param(
            deployment(L8, accelerator={"resource": "nvidia.com/mig-1g.24gb", "instanceTypes": [A100]}),
            "the memory of a slice 'nvidia.com/mig-1g.24gb' of NVIDIA A100 80 GB is not known",
            id="a MIG slice that such a GPU does not have",
        ),
        pytest.param(
            deployment(L8, accelerator={"resource": "nvidia.com/gpu.shared", "instanceTypes": [A100]}),
            "GPUs shared by time guarantee no memory",
            id="a GPU that is shared by time",
        ),
        pytest.param(deployment(L70, a_nim_model(), **sized(A100)), "by its profile", id="a NIM"),
    ],
)
def test_what_cannot_be_computed_is_started_and_unknown(manifest, says):
    truth, reason, message = fits(manifest)
    assert (truth, reason) == ("Unknown", "GpuMemoryUnknown")
    assert says in message


def on_slices(node: Mapping[str, str], *, gpus: int = 7, **accelerator: Any) -> tuple[str, str, str]:
    """ModelFits of a model of 16 GB, of 4096 tokens, on a node with these labels of feature discovery."""
    nodes = (an_a100_node(gpus=gpus, labels=node),)
    short = {"engine.vllm.maxModelLength": 4096, "accelerator": {"count": 1, **accelerator}}
    return fits(deployment(L8, **short), nodes=nodes)


def test_a_slice_is_sized_by_its_own_memory():
    large = {"resource": "nvidia.com/mig-3g.40gb", "instanceTypes": [A100]}
    truth, reason, message = fits(deployment(L8, accelerator=large, **{"engine.vllm.maxModelLength": 4096}))
    assert (truth, reason) == ("True", "GpuMemorySufficient")
    assert "% of 39.2 GiB" in message
    assert "(slice 3g.40gb of NVIDIA A100 80 GB with 3/7 of its computing slices)" in message
    small = blocked(deployment(L8, accelerator={"resource": "nvidia.com/mig-1g.10gb", "instanceTypes": [A100]}))
    assert (small.reason, small.field) == (SpecReason.INSUFFICIENT_GPU_MEMORY, "spec.accelerator")
    assert "% of 9.5 GiB" in small.message


@pytest.mark.parametrize(
    ("resource", "size"),
    [
        ("nvidia.com/mig-3g.40gb", MI300X),
        ("nvidia.com/gpu.shared", MI300X),
        ("amd.com/cpx_nps4", A100),
        ("nvidia.com/mig-1g.10gb", "Standard_NC4as_T4_v3"),
    ],
)
def test_parts_of_gpus_that_the_size_cannot_have_are_refused(resource, size):
    refused = blocked(deployment(L8, accelerator={"resource": resource, "instanceTypes": [size]}))
    assert (refused.reason, refused.field) == (SpecReason.VM_SIZE_UNSUITABLE, "spec.accelerator.instanceTypes")
    assert f"the deployment asks for {resource}" in refused.message


def test_a_slice_that_is_offered_as_a_whole_gpu_is_sized_by_the_label_of_its_node():
    truth, reason, message = on_slices(SINGLE | {"nvidia.com/gpu.memory": "40192"})
    assert (truth, reason) == ("True", "GpuMemorySufficient")
    assert "% of 39.2 GiB" in message
    small = (an_a100_node(gpus=7, labels=SINGLE | {"nvidia.com/gpu.memory": "9728"}),)
    assert "% of 9.5 GiB" in blocked(deployment(L8), nodes=small).message
    uncut = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/mig.strategy": "single"}
    assert "% of 79.1 GiB" in on_slices(uncut, gpus=1)[2]


@pytest.mark.parametrize("memory", [{}, {"nvidia.com/gpu.memory": "0"}, {"nvidia.com/gpu.memory": "many"}])
def test_a_slice_whose_node_does_not_state_its_memory_is_unknown(memory):
    truth, reason, message = on_slices(SINGLE | memory)
    assert (truth, reason) == ("Unknown", "GpuMemoryUnknown")
    assert "the node offers slices 3g.40gb (MIG) as 'nvidia.com/gpu'" in message


@pytest.mark.parametrize(
    "shared",
    [
        {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED", "nvidia.com/gpu.replicas": "4"},
        {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "2"},
        {"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "2"},
    ],
)
def test_a_gpu_that_others_share_is_unknown(shared):
    truth, reason, message = on_slices(shared)
    assert (truth, reason) == ("Unknown", "GpuMemoryUnknown")
    assert "GPUs shared by time guarantee no memory" in message


def test_the_nodes_with_least_memory_decide_and_their_order_does_not():
    nodes = (an_a100_node("a", gpus=1), an_a100_node("b", gpus=7, labels=SINGLE | {"nvidia.com/gpu.memory": "40192"}))
    short = deployment(L8, **{"engine.vllm.maxModelLength": 4096})
    first, second = (fits(short, nodes=order) for order in (nodes, nodes[::-1]))
    assert first == second
    assert "% of 39.2 GiB" in first[2]


def test_the_reason_is_the_same_whatever_the_order_of_nodes():
    shared = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "2"}
    nodes = (an_a100_node("a", gpus=2, labels=shared), an_a100_node("b", gpus=2, labels=SINGLE))
    first, second = (fits(deployment(L8), nodes=order) for order in (nodes, nodes[::-1]))
    assert (first[0], first) == ("Unknown", second)


def test_a_model_over_several_slices_that_are_offered_as_whole_gpus_is_unknown():
    truth, _, message = on_slices(SINGLE | {"nvidia.com/gpu.memory": "40192"}, count=2)
    assert truth == "Unknown"
    assert "engines do not divide a model over slices" in message


def on_partitions(
    resource: str, listed: int, labels: Mapping[str, str], model=L8, **accelerator: Any
) -> dict[str, Any]:
    """Arguments of `fits` for a model of 4096 tokens on an MI300X node that lists so many of the resource."""
    spec = {"accelerator": {"resource": resource, **accelerator}, "engine.vllm.maxModelLength": 4096}
    node = an_a100_node(instance_type=MI300X, labels=labels)
    return {"manifest": deployment(model, **spec), "nodes": (replace(node, gpus={resource: listed}),)}


@pytest.mark.parametrize(
    ("resource", "labels"),
    [
        ("amd.com/cpx_nps4", {}),
        ("amd.com/gpu", {"amd.com/gpu.compute-memory-partition": "cpx_nps4"}),
        ("amd.com/gpu", {"amd.com/gpu.vram": "24G"}),
    ],
)
def test_a_partition_that_a_node_lists_is_sized_by_its_own_memory(resource, labels):
    truth, reason, message = fits(**on_partitions(resource, 64, labels))
    assert (truth, reason) == ("True", "GpuMemorySufficient")
    assert "% of 24.0 GiB" in message or "% of 23.5 GiB" in message
    large = on_partitions(resource, 64, labels, L70)
    assert blocked(large.pop("manifest"), **large).reason is SpecReason.INSUFFICIENT_GPU_MEMORY


@pytest.mark.parametrize(
    ("resource", "listed", "says"),
    [
        ("amd.com/gpu", 64, "a node lists more 'amd.com/gpu' than the VM has GPUs"),
        ("amd.com/qpx_nps4", 32, "in this VM size is not confirmed"),
        ("amd.com/cpx_nps8", 64, "the memory of a partition 'cpx_nps8' of AMD Instinct MI300X 192 GB is not known"),
    ],
)
def test_a_partition_of_unknown_memory_is_unknown(resource, listed, says):
    truth, reason, message = fits(**on_partitions(resource, listed, {}))
    assert (truth, reason) == ("Unknown", "GpuMemoryUnknown")
    assert says in message


def test_a_model_over_several_partitions_is_unknown():
    truth, _, message = fits(**on_partitions("amd.com/cpx_nps4", 64, {}, count=2))
    assert truth == "Unknown"
    assert "whether an engine that divides a model over partitions computes correctly is not confirmed" in message


def test_the_whole_gpus_of_a_node_that_lists_as_many_as_it_has_are_sized():
    truth, _, message = fits(**on_partitions("amd.com/gpu", 8, {"amd.com/gpu.vram": "192G"}))
    assert truth == "True"
    assert "% of 191.7 GiB" in message


def test_a_size_on_which_it_does_not_fit_beside_one_on_which_it_does_is_warned_of():
    truth, reason, message = fits(deployment(L70, **sized("Standard_ND96amsr_A100_v4", ND_A100, count=4)))
    assert (truth, reason) == ("True", "GpuMemoryTight")
    assert ND_A100 in message
    assert "leave that size out of `accelerator.instanceTypes`" in message


def test_the_settings_of_the_engine_are_counted():
    def context(**changes) -> str:
        long = {"engine.vllm.maxModelLength": 600_000, **changes}
        block = first_block(spec_of(deployment(LONG, **sized(A100), **long)), a_snapshot())
        return "" if block is None else block.message

    assert "92 %" in context()
    assert context(**{"engine.vllm.kvCacheDtype": "fp8"}) == ""
    assert "50 %" in context(**{"engine.vllm.gpuMemoryUtilizationPercent": 50})


def test_without_facts_there_is_no_condition_and_nothing_is_asked():
    for manifest in RENDERINGS.values():
        spec, snapshot = spec_of(manifest), a_snapshot(nodes=(an_a100_node(),))
        assert model_placement(spec, snapshot) is None
        decided = plan(spec, snapshot, NOW)
        assert "ModelFits" not in conditions(status(spec, carried_out(snapshot, decided), decided, (), NOW))


def test_facts_change_no_pod():
    with_facts, without = (
        rendered(manifest)["Deployment"]["spec"]["template"] for manifest in (deployment(), a_share_model())
    )
    assert with_facts == without
    assert template_digests()


# ---------------------------------------------------------------- said


def status_of(manifest: Manifest, before: dict[str, Any] | None = None, **facts: Any) -> dict[str, Any]:
    spec, snapshot = spec_of(manifest), a_snapshot(status=before or {}, **facts)
    decided = plan(spec, snapshot, NOW)
    assert not decided.apply or model_placement(spec, snapshot).condition().status != "False"
    return status(spec, carried_out(snapshot, decided), decided, (), NOW)


def test_a_refusal_is_ready_false_stalled_and_one_warning():
    model_status = status_of(deployment(L70, **sized(A100)))
    assert conditions(model_status)["Ready"]["reason"] == "InsufficientGpuMemory"
    assert conditions(model_status)["Stalled"]["status"] == "True"
    assert conditions(model_status)["ModelFits"]["status"] == "False"
    assert [(announcement.severity, announcement.reason) for announcement in announcements({}, model_status)] == [
        ("Warning", "InsufficientGpuMemory")
    ]


def test_a_tight_fit_is_one_warning_and_a_sufficient_one_none():
    tight = status_of(deployment(LONG, **sized(A100), **{"engine.vllm.maxModelLength": 446_064}))
    assert ("Warning", "GpuMemoryTight") in [
        (announcement.severity, announcement.reason) for announcement in announcements({}, tight)
    ]
    enough = status_of(deployment(**sized(A100)))
    assert conditions(enough)["ModelFits"]["reason"] == "GpuMemorySufficient"
    assert "GpuMemorySufficient" not in [announcement.reason for announcement in announcements({}, enough)]
    assert [announcement.reason for announcement in announcements(tight, tight)] == []


def test_another_reason_that_comes_first_does_not_hide_that_it_does_not_fit():
    stranger = deployment(L70, **sized(A100), **{"weights.azureFiles.account": "stranger"})
    model_status = status_of(stranger)
    assert conditions(model_status)["Ready"]["reason"] == "ShareNotAllowed"
    assert conditions(model_status)["ModelFits"]["reason"] == "InsufficientGpuMemory"


def test_validate_and_render_refuse_it_at_its_field_and_plan_shows_it():
    typed = yaml.safe_dump(deployment(L70, **sized(A100)))
    for command in ("validate", "render"):
        ran = hermetic(command, "-f", "-", stdin=typed)
        assert (ran.code, ran.out) == (2, "")
        assert "HRM-API-003" in ran.err
        assert "InsufficientGpuMemory" in ran.err
    shown = hermetic("plan", "-f", "-", stdin=typed)
    assert (shown.code, "does not fit" in shown.out) == (1, True)

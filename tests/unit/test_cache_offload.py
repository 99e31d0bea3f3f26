"""Weights and key-value cache in the memory of the node: what the engine is told, the pod asks for, and sizing says."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from hermetic.api.spec_reasons import SpecReason
from hermetic.plan.gates import engine_flags_are_known, vm_size_offers_the_pod
from hermetic.plan.model_fit import model_placement
from hermetic.sizing.facts_file import as_json
from tests.commandline import hermetic
from tests.corpus.manifests import changed
from tests.model_configs import LLAMA_8B, LLAMA_8B_BYTES, facts
from tests.scenarios import Manifest, a_share_model, an_sglang_model
from tests.snapshots import a_snapshot, rendered, spec_of

OFFLOAD = {"memory": "64Gi"}
A10, A100, GB200 = "Standard_NV36ads_A10_v5", "Standard_NC24ads_A100_v4", "Standard_ND128isr_NDR_GB200_v6"
L8 = as_json(facts(LLAMA_8B, LLAMA_8B_BYTES, 4))


def engine_of(manifest: Manifest) -> dict[str, Any]:
    (engine,) = rendered(manifest)["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(engine)


def value_of(arguments: list[str], flag: str) -> str:
    return arguments[arguments.index(flag) + 1]


def shared_memory(manifest: Manifest) -> str:
    volumes = rendered(manifest)["Deployment"]["spec"]["template"]["spec"]["volumes"]
    return next(str(volume["emptyDir"]["sizeLimit"]) for volume in volumes if volume["name"] == "shm")


def planned(manifest: Manifest, size: str) -> dict[str, Any]:
    ran = hermetic("plan", "-f", "-", "--instance-type", size, "-o", "json", stdin=yaml.safe_dump(manifest))
    return dict(json.loads(ran.out)["deployments"][0])


@pytest.mark.parametrize("version", ["0.29.0", "0.30.0", "0.31.1", "0.32.0", "0.33.0"])
def test_vllm_keeps_the_cache_in_its_own_process(version: str) -> None:
    """Source: docs.vllm.ai, `--kv-offloading-size` (GiB, of all ranks) and `--kv-offloading-backend`."""
    manifest = a_share_model(kvCacheOffload=OFFLOAD)
    manifest["spec"]["engine"]["vllm"]["version"] = version
    arguments = engine_of(manifest)["args"]
    assert value_of(arguments, "--kv-offloading-size") == "64"
    assert value_of(arguments, "--kv-offloading-backend") == "native"


@pytest.mark.parametrize(("count", "gigabytes"), [(1, "68"), (2, "34"), (4, "17"), (8, "8")])
def test_sglang_divides_the_cache_among_the_processes_of_its_gpus(count: int, gigabytes: str) -> None:
    """Source: docs.sglang.io, SGLang HiCache Best Practices: gigabytes of 10^9 bytes, for each rank."""
    arguments = engine_of(an_sglang_model(kvCacheOffload=OFFLOAD, accelerator={"count": count}))["args"]
    assert "--enable-hierarchical-cache" in arguments
    assert value_of(arguments, "--hicache-size") == gigabytes
    assert not any(argument.startswith("--hicache-storage") for argument in arguments)


def test_data_parallel_ranks_of_vllm_share_the_size() -> None:
    manifest = a_share_model(kvCacheOffload=OFFLOAD, accelerator={"count": 4})
    manifest["spec"]["engine"]["vllm"]["extraArgs"] = ["-dp", "4"]
    assert value_of(engine_of(manifest)["args"], "--kv-offloading-size") == "16"


@pytest.mark.parametrize(
    ("memory", "requested", "limit"),
    [
        (None, "80Gi", None),
        ("96Gi", "160Gi", "160Gi"),
        ("1536Mi", "67072Mi", "67072Mi"),
        ("100G", "160904Mi", "160904Mi"),
        ("1Ti", "1088Gi", "1088Gi"),
    ],
)
def test_cache_is_added_to_the_memory_of_the_pod(memory: str | None, requested: str, limit: str | None) -> None:
    resources = {"memory": memory, "sharedMemory": "1Gi"} if memory is not None else {}
    rendered_resources = engine_of(a_share_model(kvCacheOffload=OFFLOAD, resources=resources))["resources"]
    assert rendered_resources["requests"]["memory"] == requested
    assert rendered_resources["limits"].get("memory") == limit


def test_cache_of_vllm_is_part_of_shared_memory_and_that_of_sglang_is_not() -> None:
    """Source: `SharedOffloadRegion` of vLLM 0.33.0 maps files in /dev/shm; SGLang registers memory of its process."""
    assert shared_memory(a_share_model(kvCacheOffload=OFFLOAD)) == "66Gi"
    assert shared_memory(a_share_model(kvCacheOffload=OFFLOAD, resources={"sharedMemory": "512Mi"})) == "66048Mi"
    assert shared_memory(an_sglang_model(kvCacheOffload=OFFLOAD)) == "2Gi"


@pytest.mark.parametrize(
    ("base", "field", "setting", "name"),
    [
        (a_share_model, "extraArgs", ["--kv-offloading-size=128"], "--kv-offloading-size"),
        (a_share_model, "extraArgs", ["--kv_offloading_backend", "native"], "--kv-offloading-backend"),
        (a_share_model, "extraEnv", [{"name": "VLLM_USE_SIMPLE_KV_OFFLOAD", "value": "1"}], "VLLM_USE_SIMPLE"),
        (an_sglang_model, "extraArgs", ["--hicache-ratio", "4"], "--hicache-ratio"),
        (an_sglang_model, "extraArgs", ["--enable-hicache"], "--enable-hierarchical-cache"),
        (an_sglang_model, "extraArgs", ["--disable-radix-cache"], "--disable-radix-cache"),
    ],
)
def test_setting_that_would_change_the_size_is_refused_beside_the_field(
    base: Any, field: str, setting: list[Any], name: str
) -> None:
    manifest = base()
    (member,) = manifest["spec"]["engine"]
    manifest["spec"]["engine"][member][field] = setting
    snapshot = a_snapshot()
    assert not getattr(engine_flags_are_known(spec_of(manifest), snapshot), "message", "")
    manifest["spec"]["kvCacheOffload"] = OFFLOAD
    refused = engine_flags_are_known(spec_of(manifest), snapshot)
    assert refused.reason is SpecReason.ENGINE_FLAG_RESERVED
    assert refused.message.startswith(f"`engine.{member}.{field}` holds '{name}")
    assert refused.field == f"spec.engine.{member}.{field}"


def test_vm_without_the_memory_for_the_cache_is_refused() -> None:
    manifest = a_share_model(accelerator={"instanceTypes": [A100]}, resources={"memory": "200Gi"})
    assert not getattr(vm_size_offers_the_pod(spec_of(manifest), a_snapshot()), "message", "")
    refused = vm_size_offers_the_pod(spec_of(changed(manifest, {"spec.kvCacheOffload": OFFLOAD})), a_snapshot())
    assert refused.reason is SpecReason.VM_SIZE_UNSUITABLE
    assert "`resources.memory` with `kvCacheOffload.memory` asks for 264 GiB" in refused.message


def test_plan_tells_how_many_tokens_the_memory_holds_and_how_fast_they_return() -> None:
    """131,072 bytes a token of Llama-3.1-8B in 16 bits; 25 GB/s over PCIe 4."""
    manifest = changed(a_share_model(), {"spec.weights.facts": L8, "spec.kvCacheOffload": OFFLOAD})
    offload = planned(manifest, A100)["kvCacheOffload"]
    assert offload == {"bytes": 64 * 2**30, "tokens": 64 * 2**30 // 131072, "tokensPerSecond": int(25e9 / 131072)}
    assert planned(manifest, A100)["answer"] == "Fits"
    assert planned(changed(manifest, {"spec.kvCacheOffload": None}), A100)["kvCacheOffload"] is None


def offloaded(gibibytes: str, **engine: Any) -> Manifest:
    settings = {"maxModelLength": 32768, "extraArgs": ["--cpu-offload-gb", gibibytes], **engine}
    return changed(
        a_share_model(),
        {"spec.weights.facts": L8} | {f"spec.engine.vllm.{field}": value for field, value in settings.items()},
    )


@pytest.mark.parametrize(
    ("gibibytes", "length", "answer"),
    [
        ("0", 8192, "Tight"),
        ("0", 65536, "DoesNotFit"),
        ("8", 32768, "Tight"),
        ("8.5", 65536, "Tight"),
        ("2", 131072, "DoesNotFit"),
        ("100", 131072, "Tight"),
    ],
)
def test_weights_in_the_memory_of_the_node_are_tight_at_best(gibibytes: str, length: int, answer: str) -> None:
    assert planned(offloaded(gibibytes, maxModelLength=length), A10)["answer"] == answer


def test_offloaded_weights_are_not_on_the_gpu_and_cost_a_step_their_way_over_pcie() -> None:
    plan = planned(offloaded("8"), A10)
    without = planned(offloaded("0"), A10)
    assert without["asWritten"][0]["weightsBytes"] - plan["asWritten"][0]["weightsBytes"] == 8 * 2**30
    assert plan["offload"] == {"bytes": 8 * 2**30, "secondsPerStep": 0.344, "advised": False}
    text = hermetic("plan", "-f", "-", "--instance-type", A10, stdin=yaml.safe_dump(offloaded("8"))).out
    assert "at most 2.9 tokens/s a request" in " ".join(text.split())


def test_condition_names_the_rate_of_offloaded_weights() -> None:
    manifest = changed(offloaded("8"), {"spec.accelerator": {"instanceTypes": [A10]}})
    placement = model_placement(spec_of(manifest), a_snapshot())
    assert placement is not None
    condition = placement.condition()
    assert (condition.status, condition.reason) == ("True", SpecReason.GPU_MEMORY_TIGHT)
    assert "at most 2.9 tokens/s a request" in condition.message
    assert "without `--cpu-offload-gb` each GPU would need 22.3 GiB" in condition.message


@pytest.mark.parametrize(
    ("size", "arguments"),
    [(GB200, []), (A10, ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 4}'])],
    ids=["a GPU without PCIe", "several tokens a step"],
)
def test_no_rate_is_named_where_pcie_does_not_bound_it(size: str, arguments: list[str]) -> None:
    manifest = offloaded("8", extraArgs=["--cpu-offload-gb", "8", *arguments])
    text = hermetic("plan", "-f", "-", "--instance-type", size, stdin=yaml.safe_dump(manifest)).out
    assert "stay in the memory of the node" in " ".join(text.split())
    assert "tokens/s a request" not in text

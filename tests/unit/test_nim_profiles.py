"""A NIM profile that is for other GPUs than the pod has is refused; a name that says nothing is let through."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.nim.profiles import read_profile, shapes
from hermetic.plan.gates import first_block
from tests.commandline import hermetic
from tests.corpus.manifests import Manifest, changed, nim_with_profile
from tests.snapshots import a_snapshot, an_a100_node, rendered, spec_of

A100, NVL, H100, HALF = (
    "Standard_NC24ads_A100_v4",
    "Standard_NC80adis_H100_v5",
    "Standard_ND96isr_H100_v5",
    "Standard_NC72ds_xl_RTXPro6000_v6",
)
ID = "dcec66a50892315842bdc46d5b2d8648fed3fe3d3382437f0a811c56eff8c39c"
NVL_GPUS, SXM_GPUS, A100_GPUS = {"H100-NVL"}, {"H100-80GB"}, {"A100-40GB", "A100-80GB"}


def nim(profile: str, count: int = 1, *sizes: str) -> Manifest:
    accelerator: dict[str, Any] = {"count": count, "instanceTypes": list(sizes)}
    return changed(nim_with_profile(), {"spec.engine.nim.profile": profile, "spec.accelerator": accelerator})


# Names as NVIDIA's pages and `list-model-profiles` print them: tensor parallel, pipeline stages, GPUs.
@pytest.mark.parametrize(
    ("name", "tensor", "pipeline", "gpus"),
    [
        ("vllm-bf16-tp2", 2, 1, None),
        ("vllm-bf16-tp1-pp1-feat_lora", 1, 1, None),
        ("vllm-fp8-tp4-pp1-lora", 4, 1, None),
        ("sglang-h100-bf16-tp8-pp2", 8, 2, None),
        ("tensorrt_llm-A100-fp16-tp2-latency", 2, 1, A100_GPUS),
        ("tensorrt_llm-h100-fp8-tp1-pp1-throughput-2330:10de-ed15592b-1", 1, 1, SXM_GPUS),
        ("tensorrt_llm-h100_nvl-fp8-tp2-pp1-throughput-2321:10de-5e20634213cb4c32-4", 2, 1, NVL_GPUS),
        ("tensorrt_llm-l40s-bf16-tp2-throughput-lora", 2, 1, set()),
        ("tensorrt_llm-trtllm_buildable-bf16-tp4-pp1-lora", 4, 1, None),
        ("tensorrt_llm-of_tomorrow-fp8-tp1", 1, 1, None),
    ],
)
def test_a_name_says_how_many_gpus_and_which(name, tensor, pipeline, gpus):
    nim_profile = read_profile(name)
    assert (nim_profile.tensor_parallel, nim_profile.pipeline_parallel, nim_profile.gpus) == (tensor, pipeline, gpus)


@pytest.mark.parametrize(
    "name", [ID, "", "vllm", "vllm-bf16", "vllm-bf16-tp0", "vllm-bf16-tpx", "x-bf16-tp2", "-" * 200]
)
def test_a_name_of_another_form_says_nothing(name):
    assert read_profile(name) is None


def test_the_forms_for_a_number_of_gpus_are_listed():
    assert shapes(8) == "tp8-pp1, tp4-pp2, tp2-pp4, tp1-pp8"
    assert shapes(1) == "tp1-pp1"


@pytest.mark.parametrize(
    ("profile", "count"), [("vllm-bf16-tp2", 1), ("vllm-bf16-tp1", 2), ("sglang-h100-bf16-tp8-pp2", 8)]
)
def test_another_number_of_gpus_is_refused_with_the_forms_that_would_fit(profile, count):
    block = first_block(spec_of(nim(profile, count)), a_snapshot())
    assert (block.reason, block.field) == (SpecReason.NIM_PROFILE_MISMATCH, "spec.engine.nim.profile")
    assert f"set the count to {read_profile(profile).count}" in block.message
    assert f"stage a profile with {shapes(count)}" in block.message


@pytest.mark.parametrize(
    ("profile", "sizes"),
    [
        pytest.param("tensorrt_llm-h100-fp8-tp1-pp1-throughput", (NVL,), id="SXM on NVL"),
        pytest.param("tensorrt_llm-h100_nvl-fp8-tp1-pp1-throughput", (H100, A100), id="NVL on others"),
        pytest.param("tensorrt_llm-a100-bf16-tp1", (H100,), id="A100 on H100"),
        pytest.param("tensorrt_llm-l40s-fp8-tp1", (A100,), id="a GPU that Azure does not have"),
    ],
)
def test_a_compiled_engine_on_another_gpu_is_refused_by_name(profile, sizes):
    block = first_block(spec_of(nim(profile, 1, *sizes)), a_snapshot())
    assert block.reason is SpecReason.NIM_PROFILE_MISMATCH
    assert all(size in block.message for size in sizes)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(nim("tensorrt_llm-h100_nvl-fp8-tp2-pp1-throughput", 2, NVL), id="the same GPU"),
        pytest.param(nim("tensorrt_llm-a100-bf16-tp1", 1, NVL, A100), id="one size of two"),
        pytest.param(nim("vllm-bf16-tp1-pp1", 1, HALF), id="any GPU"),
        pytest.param(nim("tensorrt_llm-h100-fp8-tp1", 1, "Standard_NV6"), id="a size not listed"),
        pytest.param(nim("tensorrt_llm-h100-fp8-tp1"), id="no size known"),
        pytest.param(nim(ID, 4, "Standard_NC96ads_A100_v4"), id="an id"),
    ],
)
def test_what_fits_or_is_not_known_is_let_through(manifest):
    assert first_block(spec_of(manifest), a_snapshot()) is None


def test_the_nodes_count_where_the_spec_names_no_size():
    spec = spec_of(nim("tensorrt_llm-h100-fp8-tp1"))
    assert first_block(spec, a_snapshot(nodes=(an_a100_node(),))).reason is SpecReason.NIM_PROFILE_MISMATCH
    assert first_block(spec_of(nim("tensorrt_llm-a100-bf16-tp1")), a_snapshot(nodes=(an_a100_node(),))) is None


def test_validate_refuses_it_at_its_field():
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(nim("vllm-bf16-tp2")))
    assert (ran.code, "NimProfileMismatch" in ran.err) == (2, True)


# ---------------------------------------------------------------- the staged profiles are known

OTHER = "6f0c0c6dbb5a1b7e9b4f2c4e54d5f0ec7a6f8b61a2f04d5fd1c76a2e5bd3c511"
TP2, TP1_NVL, TP1_A100 = (
    "vllm-bf16-tp2-pp1",
    "tensorrt_llm-h100_nvl-fp8-tp1-pp1-throughput",
    "tensorrt_llm-a100-bf16-tp1",
)
STAGED = [{"id": ID, "name": TP2}, {"id": OTHER, "name": TP1_NVL}, {"name": TP1_A100}, {"name": "vllm-bf16-tp1-pp1"}]


def staged(profile: str | None, count: int = 1, *sizes: str, profiles: Any = STAGED) -> Manifest:
    facts = {"modelType": "nim", "parameterBytes": 1, "nimProfiles": profiles}
    manifest = changed(nim(profile or "x", count, *sizes), {"spec.weights.facts": facts})
    if profile is None:
        del manifest["spec"]["engine"]["nim"]["profile"]
    return manifest


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        pytest.param(staged(ID, 1), f"'{ID}' is for 2 GPUs", id="an id for another number of GPUs"),
        pytest.param(staged(ID, 4), "none of the 4 staged profiles fits", id="nothing staged for four GPUs"),
        pytest.param(staged("vllm-bf16-tp4", 4), "'vllm-bf16-tp4' is not among the staged profiles", id="not staged"),
        pytest.param(staged("f" * 64), "is not among the staged profiles", id="an id that is not staged"),
        pytest.param(staged(None), "names no profile of it", id="no profile for a NIM cache"),
        pytest.param(staged(OTHER, 1, A100), "is built for NVIDIA H100 NVL", id="an id for another GPU"),
    ],
)
def test_a_profile_that_is_not_staged_or_does_not_fit_is_refused_by_what_its_id_stands_for(manifest, says):
    block = first_block(spec_of(manifest), a_snapshot())
    assert (block.reason, block.field) == (SpecReason.NIM_PROFILE_MISMATCH, "spec.engine.nim.profile")
    assert says in block.message


@pytest.mark.parametrize(
    ("sizes", "listed"),
    [
        ((), f"these fit: '{TP1_NVL}' ({OTHER}), '{TP1_A100}', 'vllm-bf16-tp1-pp1'"),
        ((A100,), f"these fit: '{TP1_A100}', 'vllm-bf16-tp1-pp1'"),
        ((NVL,), f"these fit: '{TP1_NVL}' ({OTHER}), 'vllm-bf16-tp1-pp1'"),
        ((H100,), "these fit: 'vllm-bf16-tp1-pp1'"),
    ],
)
def test_the_message_lists_the_staged_profiles_that_would_fit_these_gpus(sizes, listed):
    assert first_block(spec_of(staged(ID, 1, *sizes)), a_snapshot()).message.endswith(listed)


def test_the_message_about_another_gpu_lists_those_for_the_gpus_of_the_nodes():
    block = first_block(spec_of(staged(OTHER, 1)), a_snapshot(nodes=(an_a100_node(),)))
    assert f"these fit: '{TP1_A100}', 'vllm-bf16-tp1-pp1'" in block.message


def test_a_long_list_is_cut_with_its_number():
    many = [{"name": f"vllm-bf16-tp1-pp1-{number}"} for number in range(64)]
    block = first_block(spec_of(staged("vllm-bf16-tp2", 1, profiles=many)), a_snapshot())
    assert block.message.endswith("'vllm-bf16-tp1-pp1-3' and 60 more")


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(staged(ID, 2, "Standard_NC48ads_A100_v4"), id="by id"),
        pytest.param(staged(TP2, 2), id="by name"),
        pytest.param(staged(OTHER, 1, NVL), id="the GPU that it is for"),
        pytest.param(staged("f" * 64, profiles=[]), id="profiles not known"),
        pytest.param(staged("anything", profiles=[{"name": "anything"}]), id="a name that says nothing"),
    ],
)
def test_a_staged_profile_that_fits_is_let_through(manifest):
    assert first_block(spec_of(manifest), a_snapshot()) is None


def test_a_model_folder_of_a_nim_needs_no_profile():
    served = changed(staged(None), {"spec.engine.nim.modelPath": "/opt/models/llama"})
    assert first_block(spec_of(served), a_snapshot()) is None


def test_profiles_in_the_facts_change_no_pod():
    without = changed(staged(ID, 2), {"spec.weights.facts.nimProfiles": []})
    assert rendered(staged(ID, 2)) == rendered(without)

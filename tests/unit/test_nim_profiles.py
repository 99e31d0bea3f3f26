"""A NIM profile that is for other GPUs than the pod has is refused; a name that says nothing is let through."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hermetic.api.reasons import Reason
from hermetic.engines.nim_profiles import read_profile, shapes
from hermetic.plan.gates import first_block
from tests.commandline import hermetic
from tests.corpus.manifests import Manifest, changed, nim_with_profile
from tests.worlds import a_world, an_a100_node, spec_of

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
    found = read_profile(name)
    assert (found.tensor_parallel, found.pipeline_parallel, found.gpus) == (tensor, pipeline, gpus)


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
    found = first_block(spec_of(nim(profile, count)), a_world())
    assert (found.reason, found.field) == (Reason.NIM_PROFILE_MISMATCH, "spec.engine.nim.profile")
    assert f"set the count to {read_profile(profile).count}" in found.message
    assert f"stage a profile with {shapes(count)}" in found.message


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
    found = first_block(spec_of(nim(profile, 1, *sizes)), a_world())
    assert found.reason is Reason.NIM_PROFILE_MISMATCH
    assert all(size in found.message for size in sizes)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(nim("tensorrt_llm-h100_nvl-fp8-tp2-pp1-throughput", 2, NVL), id="the same GPU"),
        pytest.param(nim("tensorrt_llm-a100-bf16-tp1", 1, NVL, A100), id="one size of two"),
        pytest.param(nim("vllm-bf16-tp1-pp1", 1, HALF), id="any GPU"),
        pytest.param(nim("tensorrt_llm-h100-fp8-tp1", 1, "Standard_NV6"), id="a size not listed"),
        pytest.param(nim("tensorrt_llm-h100-fp8-tp1"), id="no size known"),
        pytest.param(nim(ID, 4, A100), id="an id"),
    ],
)
def test_what_fits_or_is_not_known_is_let_through(manifest):
    assert first_block(spec_of(manifest), a_world()) is None


def test_the_nodes_count_where_the_spec_names_no_size():
    spec = spec_of(nim("tensorrt_llm-h100-fp8-tp1"))
    assert first_block(spec, a_world(nodes=(an_a100_node(),))).reason is Reason.NIM_PROFILE_MISMATCH
    assert first_block(spec_of(nim("tensorrt_llm-a100-bf16-tp1")), a_world(nodes=(an_a100_node(),))) is None


def test_validate_refuses_it_at_its_field():
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(nim("vllm-bf16-tp2")))
    assert (ran.code, "NimProfileMismatch" in ran.err) == (2, True)

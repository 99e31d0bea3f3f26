"""Checkpoints in float32, which vLLM and SGLang load in 16 bits unless `--dtype` says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import Gpu, Value, sizes
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.kv_cache import kv_cache
from hermetic.sizing.memory import FitAnswer, fit
from hermetic.sizing.serving import Serving
from hermetic.sizing.weights import WeightBytes, weights_of
from tests.model_configs import DEEPSEEK_V3, LLAMA_8B, LLAMA_8B_BYTES

GIB = 2**30
FLOAT = {"torch_dtype": "float32"}
SHORT = Serving(max_model_length=8192)


def gpu(gib: float) -> Gpu:
    return Gpu("", f"{gib} GiB", "nvidia", Value(int(gib * GIB), "test", True), 9.0)


def model(formats: dict[str, int], **stated: Any) -> ModelFacts:
    return facts_of(LLAMA_8B | stated, TensorSums(formats, 4, max(formats.values())))


BFLOAT = model({"BF16": LLAMA_8B_BYTES})
QUANTIZED = {"quantization_config": {"quant_method": "compressed-tensors"}}


@pytest.mark.parametrize("stated", [FLOAT, {"torch_dtype": "bfloat16"}, {"torch_dtype": None}])
def test_a_checkpoint_in_float32_takes_as_much_as_the_same_in_bfloat16(stated):
    """`initialize_model` makes every parameter in the number format of the model, and loading copies into it."""
    float32_model = model({"F32": 2 * LLAMA_8B_BYTES}, **stated)
    assert float32_model.parameter_bytes == 2 * LLAMA_8B_BYTES, "what is read from the share"
    fit_result, same = fit(float32_model, SHORT, gpu(79.1)), fit(BFLOAT, SHORT, gpu(79.1))
    assert (fit_result.weights, fit_result.requested, fit_result.answer) == (
        same.weights,
        same.requested,
        FitAnswer.FITS,
    )


def test_the_cache_of_a_model_in_float32_is_in_16_bits():
    float32_model = model({"F32": 2 * LLAMA_8B_BYTES}, **FLOAT)
    assert kv_cache(float32_model.attention, Serving()).token_bytes == 131_072
    assert kv_cache(float32_model.attention, Serving(kv_cache_dtype="float32")).token_bytes == 262_144


@pytest.mark.parametrize(
    ("formats", "stated", "expected"),
    [
        pytest.param({"BF16": 100}, {}, WeightBytes(100, 100), id="16 bits"),
        pytest.param({"F32": 100}, {}, WeightBytes(50, 50), id="float32 only"),
        pytest.param({"F32": 100, "I64": 8}, {}, WeightBytes(58, 58), id="float32 and whole numbers"),
        pytest.param({"F32": 60, "BF16": 40}, FLOAT, WeightBytes(70, 70), id="mixed, and float32 is declared"),
        # A model may keep some parameters in float32: in a mixed checkpoint they cannot be told from the others.
        pytest.param({"F32": 60, "BF16": 40}, {}, WeightBytes(70, 100), id="mixed, and 16 bits are declared"),
        pytest.param({"F32": 20, "I32": 80}, QUANTIZED, WeightBytes(90, 100), id="scales in float32"),
        pytest.param(
            {"F32": 20, "I32": 80}, QUANTIZED | FLOAT, WeightBytes(90, 100), id="scales, and float32 is declared"
        ),
    ],
)
def test_the_bytes_on_the_gpus_are_bounded_on_both_sides(formats, stated, expected):
    assert weights_of(model(formats, **stated)) == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ({"dtype": "float32"}, WeightBytes(50, 100)),
        ({"dtype": "bfloat16"}, WeightBytes(100, 100)),
        ({"tensorBytes": [{"format": "F32", "bytes": 10**9}]}, WeightBytes(50, 50)),
        ({"dtype": "float32", "quantization": {"method": "awq"}}, WeightBytes(100, 100)),
    ],
)
def test_facts_that_were_typed_need_not_say_or_agree_about_formats(typed, expected):
    facts = ModelFacts.model_validate({"modelType": "llama", "parameterBytes": 100} | typed)
    assert weights_of(facts) == expected


def test_what_fits_only_in_16_bits_is_unknown_where_the_format_is_not_known():
    facts = BFLOAT.model_copy(update={"dtype": "float32", "parameter_bytes": 2 * LLAMA_8B_BYTES, "tensor_bytes": []})
    answers = {gib: fit(facts, SHORT, gpu(gib)) for gib in (79.1, 24.0, 12.0)}
    assert [fit_answer.answer for fit_answer in answers.values()] == [
        FitAnswer.FITS,
        FitAnswer.UNKNOWN,
        FitAnswer.DOES_NOT_FIT,
    ]
    assert "which of the weights the engine keeps in float32 is not known" in answers[24.0].unknown
    assert not answers[79.1].unknown


def test_scales_in_float32_change_no_answer():
    formats = {"F8_E4M3": 688_000_000_000, "F32": 41_000_000}
    facts = facts_of(DEEPSEEK_V3, TensorSums(formats, 163, 2**32))
    for memory, answer in ((139.72, FitAnswer.FITS), (79.1, FitAnswer.DOES_NOT_FIT)):
        assert fit(facts, Serving(tensor_parallel=8), gpu(memory)).answer is answer


def test_weights_alone_that_are_too_large_only_in_float32_are_not_refused():
    """Of an engine whose memory is not computed, such as SGLang, only the weights are compared."""
    facts = model({"F32": 2 * LLAMA_8B_BYTES}, **FLOAT)
    other = Serving(not_computed=("what SGLang takes beside the weights is not computed",))
    assert fit(facts, other, gpu(22.5)).answer is FitAnswer.UNKNOWN
    assert fit(facts, other, gpu(12.0)).answer is FitAnswer.DOES_NOT_FIT


@pytest.mark.parametrize(("family", "answer"), [("gemma3_text", FitAnswer.UNKNOWN), ("llama", FitAnswer.FITS)])
def test_a_family_that_does_not_work_in_float16_is_unknown_on_a_gpu_without_bfloat16(family, answer):
    """vLLM holds such a family in float32 there: `_FLOAT16_NOT_SUPPORTED_MODELS` in vllm/config/model.py."""
    small = model({"BF16": 2 * GIB}, model_type=family, max_position_embeddings=2048)
    t4 = sizes()["Standard_NC4as_T4_v3"].gpu
    assert fit(small, Serving(), t4).answer is answer
    assert fit(small, Serving(), sizes()["Standard_NV36ads_A10_v5"].gpu).answer is FitAnswer.FITS

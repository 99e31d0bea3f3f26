"""The number format of the cache that a checkpoint names, in each place and spelling in which one may.

Published: `kv_cache_scheme` as an object or a word and `kv_cache_quant_algo`, in config.json or hf_quant_config.json,
in the checkpoints of https://huggingface.co/nvidia (facts in tests/corpus/aiconfigurator_models.jsonl).
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.sizing.catalogue import GIB, Gpu, Value
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.memory import FitAnswer, fit
from hermetic.sizing.serving import Serving
from tests.model_configs import LLAMA_8B, LLAMA_8B_BYTES
from tests.public_models import aiconfigurator_models

FLOAT8 = {"dynamic": False, "num_bits": 8, "type": "float"}
MODELOPT = {"quant_method": "modelopt", "quant_algo": "FP8"}
TENSORS = TensorSums({"BF16": LLAMA_8B_BYTES}, 4, LLAMA_8B_BYTES // 4)
FP8, EITHER, OTHER = "fp8", "fp8-maybe", "other"


def gpu(gib: float) -> Gpu:
    return Gpu("", f"{gib} GiB", "nvidia", Value(int(gib * GIB), "test", True), 9.0)


def stated(config: dict[str, Any] | None, file: Any = None) -> str | None:
    model = LLAMA_8B | ({} if config is None else {"quantization_config": config})
    quantization = facts_of(model, TENSORS, file).quantization
    assert quantization is not None
    return quantization.key_value_cache


@pytest.mark.parametrize(
    ("config", "file", "expected"),
    [
        (MODELOPT | {"kv_cache_scheme": FLOAT8}, None, FP8),
        (MODELOPT | {"kv_cache_quant_algo": "FP8"}, None, FP8),
        (MODELOPT | {"kv_cache_scheme": "fp8"}, None, FP8),
        ({"quant_method": "modelopt_fp4", "kv_cache_scheme": FLOAT8}, None, FP8),
        ({"quant_method": "modelopt_mixed", "kv_cache_scheme": FLOAT8}, None, FP8),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": FLOAT8}, None, FP8),
        ({"quant_method": "compressed_tensors", "kv_cache_scheme": FLOAT8}, None, FP8),
        # Only ModelOpt's own file has it, and config.json has no quantization: vLLM reads the file.
        (None, {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, FP8),
        # config.json has a quantization without it: vLLM does not read the file.
        (MODELOPT, {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, EITHER),
        # No method: which class of vLLM reads it is not certain.
        ({"quant_algo": "FP8", "kv_cache_scheme": "FP8"}, None, EITHER),
        ({"quant_method": "fp8", "kv_cache_scheme": FLOAT8}, None, EITHER),
        (MODELOPT | {"kv_cache_quant_algo": "NVFP4"}, None, OTHER),
        (MODELOPT | {"kv_cache_scheme": {"num_bits": 4, "type": "float"}}, None, OTHER),
        (MODELOPT | {"kv_cache_scheme": FLOAT8 | {"dynamic": True}}, None, OTHER),
        (MODELOPT | {"kv_cache_scheme": 8}, None, OTHER),
        (MODELOPT | {"kv_cache_scheme": [FLOAT8]}, None, OTHER),
        (MODELOPT | {"kv_cache_scheme": None, "kv_cache_quant_algo": None}, None, None),
        (MODELOPT | {"kv_cache_quant_algo": "None"}, None, None),
        (MODELOPT, None, None),
        ({"quant_method": "awq"}, None, None),
    ],
)
def test_the_format_is_read_where_the_engine_reads_it(config, file, expected):
    assert stated(config, file) == expected


@pytest.mark.parametrize(
    ("key_value_cache", "settings", "least", "most"),
    [
        (FP8, {}, 1, 1),
        (FP8, {"kv_cache_dtype": "bfloat16"}, 2, 2),
        (EITHER, {}, 1, 2),
        (EITHER, {"kv_cache_dtype": "fp8"}, 1, 1),
        (OTHER, {}, 0.5, 2),
        (None, {}, 2, 2),
    ],
)
def test_what_is_not_certain_decides_only_between_the_formats(key_value_cache, settings, least, most):
    """The context takes 16 GiB in 16 bits; GPUs are chosen on both sides of each bound."""
    facts = facts_of(LLAMA_8B | {"quantization_config": MODELOPT}, TENSORS)
    quantization = facts.quantization.model_copy(update={"key_value_cache": key_value_cache})
    facts = facts.model_copy(update={"quantization": quantization})

    def answer(size: float) -> FitAnswer:
        return fit(facts, Serving(**settings), gpu((18.33 + 8 * size) / 0.92)).answer

    assert answer(most * 1.4) is FitAnswer.FITS
    assert answer(least * 0.2) is FitAnswer.DOES_NOT_FIT
    if least < most:
        result = fit(facts, Serving(**settings), gpu((18.33 + 8 * least * 1.1) / 0.92))
        assert result.answer is FitAnswer.UNKNOWN
        assert "set `kvCacheDtype`" in " ".join(result.unknown)


def test_sparse_attention_without_a_format_is_judged_by_both():
    """GLM-5.2 on GPUs of compute capability 10 gets an fp8 cache, elsewhere 16 bits (models/config.py of vLLM)."""
    facts = aiconfigurator_models()["zai-org/GLM-5.2"].facts(756 * 10**9)
    between = fit(facts, Serving(tensor_parallel=8), gpu(170))
    assert between.answer is FitAnswer.UNKNOWN
    assert fit(facts, Serving(tensor_parallel=8, kv_cache_dtype="fp8"), gpu(180)).answer is FitAnswer.TIGHT
    assert fit(facts, Serving(tensor_parallel=8), gpu(260)).answer is FitAnswer.FITS
    assert fit(facts, Serving(tensor_parallel=8), gpu(120)).answer is FitAnswer.DOES_NOT_FIT


YARN = LLAMA_8B | {
    "max_position_embeddings": 32_768,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768},
}


@pytest.mark.parametrize(
    ("length", "size", "answer"),
    [
        pytest.param(32_768, 79, FitAnswer.FITS, id="a length that every release takes"),
        pytest.param(32_768, 20, FitAnswer.DOES_NOT_FIT, id="and that does not fit"),
        pytest.param(32_769, 79, FitAnswer.UNKNOWN, id="one that some releases refuse"),
        pytest.param(None, 79, FitAnswer.FITS, id="none, and the longer fits"),
        pytest.param(None, 20, FitAnswer.DOES_NOT_FIT, id="none, and the shorter does not fit"),
        pytest.param(None, 26, FitAnswer.UNKNOWN, id="none, and only the shorter fits"),
    ],
)
def test_yarn_decides_only_between_the_two_lengths(length, size, answer):
    result = fit(facts_of(YARN, TENSORS), Serving(max_model_length=length), gpu(size))
    assert result.answer is answer
    assert any("set `maxModelLength`" in clause for clause in result.unknown) is (answer is FitAnswer.UNKNOWN)

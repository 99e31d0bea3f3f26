"""Facts from a config.json that says something unusable: it is named, and the memory is not computed."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.sizing.facts import TensorSums, facts_of

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
}
TENSORS = TensorSums({"BF16": 16 * 2**30}, 4, 4 * 2**30)


@pytest.mark.parametrize(
    ("stated", "dtype"),
    [
        ({}, "bfloat16"),
        ({"dtype": "float16"}, "float16"),
        ({"torch_dtype": "torch.half"}, "float16"),
        ({"torch_dtype": "float"}, "float32"),
        ({"dtype": None, "torch_dtype": "float32"}, "float32"),
    ],
)
def test_a_known_number_format_is_computed(stated: dict[str, Any], dtype: str) -> None:
    facts = facts_of(CONFIG | stated, TENSORS)
    assert facts.dtype == dtype
    assert not facts.not_computed


@pytest.mark.parametrize("dtype", ["float64", "int8", 16, ["float16"], "", "x" * 1000])
def test_a_number_format_that_is_not_known_is_not_computed(dtype: object) -> None:
    (why,) = facts_of(CONFIG | {"torch_dtype": dtype}, TENSORS).not_computed
    assert "dtype" in why


@pytest.mark.parametrize("value", ["fp8", 4, ["fp8"], True])
def test_a_quantization_that_is_no_object_is_not_taken_for_none(value: object) -> None:
    facts = facts_of(CONFIG | {"quantization_config": value}, TENSORS)
    assert "config.json: quantization_config is not an object" in facts.not_computed


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        # Hunyuan-A13B says them for each layer.
        ({"num_experts": 64, "moe_topk": [8] * 32, "moe_intermediate_size": [3072] * 32}, (64, 8, 3072)),
        ({"num_experts": [4, 16, 8], "moe_topk": [2, 4], "moe_intermediate_size": [128, 512]}, (16, 4, 512)),
        ({"num_experts": 8, "num_experts_per_tok": 2}, (8, 2, 14336)),
    ],
)
def test_of_a_list_for_each_layer_the_largest_counts(stated: dict[str, Any], expected: tuple[int, int, int]) -> None:
    facts = facts_of(CONFIG | {"model_type": "hunyuan_v1_moe"} | stated, TENSORS)
    assert facts.experts is not None
    assert (facts.experts.count, facts.experts.per_token, facts.experts.intermediate_size) == expected
    assert not facts.not_computed


@pytest.mark.parametrize("value", [[], [8, "8"], [8, None], [8, 0], [8] * 10_001, [10**9], [[8]]])
def test_a_list_that_is_not_usable_is_a_problem(value: object) -> None:
    facts = facts_of(CONFIG | {"num_experts": 8, "moe_topk": value}, TENSORS)
    assert any("moe_topk" in clause for clause in facts.not_computed)

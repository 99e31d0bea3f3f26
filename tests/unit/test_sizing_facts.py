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
    assert "config.json: quantization_config is no object" in facts.not_computed

"""The longest context of a model, against what vLLM derives from the same config.json."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.sizing.facts import TensorSums, facts_of

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "hidden_size": 4096,
}
TENSORS = TensorSums({"BF16": 16 * 2**30}, 4, 4 * 2**30)
LINEAR = {"rope_type": "linear", "factor": 8.0}


def context_of(**stated: Any) -> int | None:
    return facts_of(CONFIG | stated, TENSORS).max_model_length


@pytest.mark.parametrize("family", ["cohere", "cohere2", "llama"])
def test_model_max_length_replaces_the_shortest_of_the_others(family):
    """`_get_and_verify_max_len` does so for every architecture: Command-R states 8192 and 131072."""
    stated = {"model_type": family, "max_position_embeddings": 8192, "model_max_length": 131_072}
    assert context_of(**stated) == 131_072
    assert context_of(**stated | {"max_position_embeddings": 200_000}) == 131_072


def test_the_shortest_of_the_others_counts():
    assert context_of(max_position_embeddings=8192, seq_length=4096) == 4096
    assert context_of(max_seq_length=2048) == 2048
    assert context_of(max_position_embeddings=8192, seq_len=1024) == 1024


def test_a_model_max_length_that_is_not_usable_is_a_problem():
    facts = facts_of(CONFIG | {"max_position_embeddings": 8192, "model_max_length": 10**30}, TENSORS)
    assert any("model_max_length" in clause for clause in facts.not_computed)


@pytest.mark.parametrize(
    ("scaling", "context"),
    [
        ({"rope_type": "linear", "factor": 4.0}, 32_768),
        ({"type": "dynamic", "factor": 2.0}, 16_384),
        ({"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}, 131_072),
        ({"rope_type": "yarn", "factor": 4.0}, 32_768),
        ({"rope_type": "default", "factor": 2.0}, 16_384),
        ({"type": "mrope", "mrope_section": [16, 24, 24]}, 8192),
        ({"rope_type": "dynamic", "alpha": 1000.0, "factor": None}, 8192),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 8192),
        ({"type": "longrope", "long_factor": [1.0], "short_factor": [1.0]}, 8192),
    ],
)
@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_the_factor_multiplies_where_vllm_multiplies(key, scaling, context):
    assert context_of(**{"max_position_embeddings": 8192, key: scaling}) == context


@pytest.mark.parametrize(
    ("longest", "context", "certain"),
    [(131_072, 131_072, None), (32_768, 131_072, 32_768), (262_144, 262_144, 131_072)],
)
def test_both_lengths_are_kept_where_releases_of_vllm_read_yarn_differently(longest, context, certain):
    """0.24 multiplies `original_max_position_embeddings`; 0.31 and later take `max_position_embeddings` as it is."""
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}
    facts = facts_of(CONFIG | {"max_position_embeddings": longest, "rope_scaling": yarn}, TENSORS)
    assert (facts.max_model_length, facts.certain_model_length) == (context, certain)
    assert not facts.not_computed


@pytest.mark.parametrize("family", ["gemma3", "gemma3_text", "gemma3n_text"])
def test_the_context_of_gemma3_already_includes_its_factor(family):
    assert context_of(model_type=family, max_position_embeddings=131_072, rope_scaling=LINEAR) == 131_072


def test_rope_parameters_for_each_kind_of_layer_multiply_too():
    """Transformers 5 writes one object for each kind of layer; vLLM takes one factor for all of them."""
    nested = {"sliding_attention": {"rope_type": "default"}, "full_attention": LINEAR}
    assert context_of(max_position_embeddings=8192, rope_parameters=nested) == 65_536
    turned = dict(reversed(nested.items()))
    assert context_of(max_position_embeddings=8192, rope_parameters=turned) == 65_536
    assert context_of(model_type="gemma3_text", max_position_embeddings=8192, rope_parameters=nested) == 8192


@pytest.mark.parametrize(
    ("family", "context"), [("falcon", 2048), ("gemma3_text", 131_072), ("llama", None), ("cohere", None)]
)
def test_a_config_without_a_length_gets_the_default_of_its_class_where_that_is_known(family, context):
    assert context_of(model_type=family) == context


def test_the_default_of_gemma3_27b_which_says_no_length():
    assert context_of(model_type="gemma3_text", rope_scaling=LINEAR) == 131_072


@pytest.mark.parametrize("factor", [0, -1, 10**400, float("nan"), float("inf"), "8", True])
def test_a_factor_that_is_not_usable_is_a_problem(factor):
    scaling = {"rope_type": "linear", "factor": factor}
    facts = facts_of(CONFIG | {"max_position_embeddings": 8192, "rope_scaling": scaling}, TENSORS)
    assert any("factor" in clause for clause in facts.not_computed)

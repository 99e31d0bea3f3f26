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

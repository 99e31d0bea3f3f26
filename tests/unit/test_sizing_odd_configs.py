"""A config.json with numbers and words at and beyond every bound of the facts: never an exception, always a clause."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.facts_file import file_content, parsed_facts
from tests.commandline import hermetic
from tests.model_configs import DEEPSEEK_V3, GPT_OSS_120B, LLAMA_8B, QWEN3_235B_FP8
from tests.weights import a_shard

WIDE = {"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 1, "hidden_size": 200_000}
TENSORS = TensorSums({"BF16": 2**30}, 1, 2**30)
# Each bound of api/model_facts.py, and one beyond it on both sides.
BOUNDS = (0, 1, 10_000, 100_000, 1_000_000, 2**31 - 1, 2**50, 10**30)
EDGES = tuple(sorted({bound + step for bound in BOUNDS for step in (-1, 0, 1)}))
ODD = st.sampled_from((*EDGES, *map(float, EDGES), 0.5, float("nan"), float("inf"), True, None, "", "\ud800", "ä" * 70))
VALUES = ODD | st.lists(ODD, max_size=3) | st.dictionaries(st.sampled_from(("rope_type", "factor")), ODD, max_size=2)
KEYS = sorted(
    {*LLAMA_8B, *DEEPSEEK_V3, *GPT_OSS_120B, *QWEN3_235B_FP8}
    | {
        "model_max_length",
        "sliding_window_pattern",
        "num_kv_heads",
        "multi_query",
        "moe_topk",
        "rope_parameters",
        "dtype",
    }
)


def survives(config: Any, tensors: TensorSums = TENSORS) -> ModelFacts:
    """The facts of a config, as they come back from the file that is stored with the weights."""
    model_facts = facts_of(config, tensors)
    assert parsed_facts(json.loads(file_content(model_facts))) == model_facts
    return model_facts


def test_a_head_that_is_too_wide_is_a_problem_and_no_exception():
    model_facts = survives(WIDE)
    assert model_facts.attention is None
    assert (
        "config.json: hidden_size / num_attention_heads is not a whole number from 1 to 100000"
        in model_facts.not_computed
    )


@given(
    st.sampled_from((LLAMA_8B, DEEPSEEK_V3, GPT_OSS_120B, QWEN3_235B_FP8, WIDE)),
    st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=4),
)
def test_numbers_beyond_the_bounds_give_facts_that_the_api_takes(config, changes):
    survives(config | changes)


@given(
    st.dictionaries(st.text(max_size=70), st.sampled_from(EDGES), max_size=40),
    st.sampled_from(EDGES),
    st.sampled_from(EDGES),
)
def test_sums_beyond_the_bounds_give_facts_that_the_api_takes(by_format, shards, largest):
    survives(LLAMA_8B, TensorSums(by_format, shards, largest))


@pytest.mark.parametrize("command", ["plan", "manifest", "stage"])
def test_the_commands_that_read_a_model_end_without_a_traceback(tmp_path, command):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(WIDE | {"torch_dtype": "\ud800", "layer_types": ["\ud800"]}))
    a_shard(folder / "model.safetensors")
    arguments = {
        "plan": ("--model", folder, "--show-facts"),
        "manifest": (folder,),
        "stage": (folder, tmp_path / "staged"),
    }
    ran = hermetic(command, *arguments[command])
    assert ran.code == 0, ran.err

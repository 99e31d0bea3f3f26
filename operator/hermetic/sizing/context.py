"""The longest context of a model, as vLLM derives it from `config.json`.

The rules are those of `_get_and_verify_max_len` in vllm/config/model.py, and of `derive_max_model_len_and_key` in
vllm/transformers_utils/model_arch_config_convertor.py (https://github.com/vllm-project/vllm):

- The smallest of KEYS counts. `model_max_length` then replaces it, whatever the architecture: Command-R says 8192 in
  `max_position_embeddings` and 131072 here.
- The factor of the rope scaling multiplies it, except for the kinds of NOT_MULTIPLIED and for every family with
  'gemma3' in its name, whose longest context already includes the factor. Where each kind of layer has a rope scaling
  of its own, vLLM takes one factor for all; here it is the one that gives the longest context.
- yarn multiplies `original_max_position_embeddings` instead, up to some release before 0.31; from then on it multiplies
  nothing. Where the two differ, both are kept.

For longrope without `--max-model-len` vLLM takes `original_max_position_embeddings`; here the longer one is kept.
"""

from __future__ import annotations

from hermetic.api.model_facts import MOST_TOKENS
from hermetic.sizing.config_reading import Config

KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
REPLACES = "model_max_length"
# The longest context in their config.json already includes the scaling.
NOT_MULTIPLIED = frozenset({"su", "longrope", "llama3"})
ALREADY_MULTIPLIED = "gemma3"
# `max_position_embeddings` of FalconConfig and Gemma3TextConfig where config.json has none, as those of Falcon-7B and
# gemma-3-27b: configuration_falcon.py and configuration_gemma3.py of https://github.com/huggingface/transformers.
CLASS_DEFAULTS = {"falcon": 2048, "gemma3_text": 131_072}


def context_lengths(text: Config, family: str) -> tuple[int | None, int | None]:
    """(longest context of every release of vLLM, longest context of any) in tokens.

    None where neither config.json nor the class of its family gives it.
    """
    stated = [length for key in KEYS if (length := text.whole(key, most=MOST_TOKENS)) is not None]
    length = text.whole(REPLACES, most=MOST_TOKENS) or min(stated, default=CLASS_DEFAULTS.get(family))
    if length is None or ALREADY_MULTIPLIED in family:
        return length, length
    scaled = [_scaled(length, scaling) for scaling in _scalings(text)] or [(length, length)]
    return max(least for least, _ in scaled), max(most for _, most in scaled)


def _scalings(text: Config) -> list[Config]:
    """The rope scaling; one for each kind of layer where Transformers 5 wrote it so, by the name of the kind."""
    stated = [
        scaling
        for key in ("rope_scaling", "rope_parameters")
        if (scaling := text.inner(key)) is not None and scaling.values
    ]
    if not stated:
        return []
    nested = [key for key, value in stated[0].values.items() if isinstance(value, dict)]
    if not nested or stated[0].values.keys() & {"rope_type", "type"}:
        return stated[:1]
    return [inner for key in nested if (inner := stated[0].inner(key)) is not None]


def _scaled(length: int, scaling: Config) -> tuple[int, int]:
    kind = scaling.word("rope_type", "type")
    if kind is None or kind in NOT_MULTIPLIED:
        return length, length
    if kind != "yarn":
        multiplied = min(int(length * _factor(scaling)), MOST_TOKENS)
        return multiplied, multiplied
    original = scaling.whole("original_max_position_embeddings", most=MOST_TOKENS) or length
    scaled = min(int(original * _factor(scaling)), MOST_TOKENS)
    return min(scaled, length), max(scaled, length)


def _factor(scaling: Config) -> float:
    """The factor; 1 where there is none, which vLLM also takes for null."""
    factor = scaling.values.get("factor")
    if factor is None:
        return 1.0
    usable = isinstance(factor, int | float) and not isinstance(factor, bool) and 1 <= factor <= 1024
    if not usable:
        scaling.problems.append("config.json: the factor of rope_scaling is not a number from 1 to 1024")
    return float(factor) if usable else 1.0

"""The longest context of a model, as vLLM derives it from `config.json`.

The rules are those of `_get_and_verify_max_len` in vllm/config/model.py, and of `derive_max_model_len_and_key` in
vllm/transformers_utils/model_arch_config_convertor.py (https://github.com/vllm-project/vllm):

- The smallest of KEYS counts. `model_max_length` then replaces it, whatever the architecture: Command-R says 8192 in
  `max_position_embeddings` and 131072 here.
- The factor of the rope scaling multiplies it, except for the kinds of NOT_MULTIPLIED.
- yarn multiplies `original_max_position_embeddings` instead.

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


def context_length(text: Config) -> int | None:
    """Tokens; None where config.json does not give it."""
    stated = [length for key in KEYS if (length := text.whole(key, most=MOST_TOKENS)) is not None]
    length = text.whole(REPLACES, most=MOST_TOKENS) or min(stated, default=None)
    scaling = text.inner("rope_scaling") or text.inner("rope_parameters")
    kind = scaling.word("rope_type", "type") if scaling is not None else None
    if length is None or scaling is None or kind is None or kind in NOT_MULTIPLIED:
        return length
    if kind == "yarn":
        length = scaling.whole("original_max_position_embeddings", most=MOST_TOKENS) or length
    return min(int(length * _factor(scaling)), MOST_TOKENS)


def _factor(scaling: Config) -> float:
    """The factor; 1 where there is none, which vLLM also takes for null."""
    factor = scaling.values.get("factor")
    if factor is None:
        return 1.0
    usable = isinstance(factor, int | float) and not isinstance(factor, bool) and 1 <= factor <= 1024
    if not usable:
        scaling.problems.append("config.json: the factor of rope_scaling is no number from 1 to 1024")
    return float(factor) if usable else 1.0

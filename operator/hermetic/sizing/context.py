"""The longest context of a model, as vLLM derives it from `config.json`."""

from __future__ import annotations

from hermetic.api.model_facts import MOST_TOKENS
from hermetic.sizing.config_reading import Config

KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
)
# The longest context in their config.json already includes the scaling.
NOT_MULTIPLIED = frozenset({"su", "longrope", "llama3", "mrope", "default"})


def context_length(text: Config) -> int | None:
    """Tokens; None where config.json does not give it."""
    stated = [length for key in KEYS if (length := text.whole(key, most=MOST_TOKENS)) is not None]
    if not stated:
        return None
    shortest = min(stated)
    scaling = text.inner("rope_scaling") or text.inner("rope_parameters")
    kind = scaling.word("rope_type", "type") if scaling is not None else None
    if scaling is None or kind is None or kind in NOT_MULTIPLIED:
        return shortest
    if kind == "yarn":
        shortest = scaling.whole("original_max_position_embeddings", most=MOST_TOKENS) or shortest
    return min(int(shortest * _factor(scaling)), MOST_TOKENS)


def _factor(scaling: Config) -> float:
    factor = scaling.values.get("factor", 1.0)
    usable = isinstance(factor, int | float) and not isinstance(factor, bool) and 1 <= factor <= 1024
    if not usable:
        scaling.problems.append("config.json: the factor of rope_scaling is no number from 1 to 1024")
    return float(factor) if usable else 1.0

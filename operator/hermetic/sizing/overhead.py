"""What an engine takes beside weights and cache: activations, CUDA graphs, collectives, adapters, and encoders.

The constants are those of KAITO's estimator, which cover activations of the language model. An encoder runs before it,
on as many patches as one step of the scheduler may hold, or on the largest item
(`compute_mm_encoder_budget` in vllm/v1/core/encoder_cache_manager.py, `profile_run` in
vllm/v1/worker/gpu_model_runner.py).
"""

from __future__ import annotations

from hermetic.api.model_facts import Encoder, ModelFacts
from hermetic.sizing.catalogue import GIB
from hermetic.sizing.serving import Lora, Serving

BASE_OVERHEAD = 2.3 * GIB
SHARE_OVERHEAD = 0.05
COLLECTIVES = 1 * GIB
LARGEST_ITEM = 16_384
"""Tokens of the largest image that a published processor makes: 16,777,216 pixels of 32 x 32 a token (Qwen3-VL)."""
HIDDEN_COPIES, INTERMEDIATE_COPIES = 10, 2
"""Vectors of one patch that are in memory at a time: residual, norms, query, key, value with and without rotation,
output; and the two of the feed-forward layer."""
INPUT_BYTES = 6
"""Bytes of one number of a patch: in float32, and once more in 16 bits."""


def overhead_per_gpu(facts: ModelFacts, serving: Serving, weights: int) -> int:
    """Bytes for activations, CUDA graphs, collectives and adapters."""
    several = COLLECTIVES if serving.gpus > 1 else 0
    gathered = _gathered(facts, serving)
    return round(BASE_OVERHEAD + SHARE_OVERHEAD * weights + several + gathered + adapter_bytes(facts, serving.lora))


def _gathered(facts: ModelFacts, serving: Serving) -> float:
    """Tokens of the other ranks, which experts that are divided over all ranks receive and return, in 16 bits."""
    if facts.experts is None or facts.attention is None:
        return 0.0
    return 2.0 * 2 * (serving.data_parallel - 1) * serving.step_tokens * facts.attention.hidden_size


def adapter_bytes(facts: ModelFacts, lora: Lora | None) -> int:
    """Bytes of the adapters that are active at a time: both matrices of every projection, in 16 bits.

    An upper bound: they count whole on each GPU of a tensor parallel group.
    """
    attention = facts.attention
    if lora is None or attention is None:
        return 0
    hidden, wide = attention.hidden_size, attention.intermediate_size or 4 * attention.hidden_size
    queries, values = attention.heads * attention.head_dimension, attention.key_value_heads * attention.head_dimension
    widths = 2 * (hidden + queries) + 2 * (hidden + values) + 3 * (hidden + wide)
    return 2 * lora.active * lora.rank * widths * attention.layers


def encoder_bytes(encoder: Encoder, serving: Serving) -> int | None:
    """Bytes of activations of an encoder at a time, whole on each GPU; None where its dimensions are not known."""
    hidden, wide, values = encoder.hidden_size, encoder.intermediate_size, encoder.patch_values
    if hidden is None or wide is None or values is None or encoder.patches_per_token is None:
        return None
    patches = max(serving.step_tokens, encoder.item_tokens or LARGEST_ITEM) * encoder.patches_per_token
    return patches * (2 * (HIDDEN_COPIES * hidden + INTERMEDIATE_COPIES * wide) + INPUT_BYTES * values)

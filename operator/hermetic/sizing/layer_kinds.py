"""What each kind of layer keeps: bytes of one token on one GPU, how many tokens, or a state of fixed size.

One function for each kind, from the facts of a model. Formulas are those of vLLM (https://github.com/vllm-project/vllm):

- keys and values of each head, divided by tensor parallelism until one head is left on each GPU: `FullAttentionSpec`;
- latent attention (MLA), one vector on every GPU: `MLAAttentionSpec`;
- the index of sparse attention, on every GPU: `DeepseekV32IndexerCache` in vllm/model_executor/models/deepseek_v2.py
  and `get_kv_cache_spec` in vllm/models/minimax_m3/common/indexer.py;
- compressed layers of DeepSeek-V4: vllm/models/deepseek_v4/attention.py, compressor.py, and `DeepseekV4SWACache` in
  vllm/v1/attention/backends/mla/sparse_swa.py;
- recurrent state: `MambaStateShapeCalculator` in vllm/model_executor/layers/mamba/mamba_utils.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.model_facts import Attention, LatentAttention, RecurrentState, SlidingWindow
from hermetic.sizing.serving import BLOCK, Serving, kv_bytes

LATENT_BLOCK = 128
"""Tokens to a multiple of which vLLM sets a block of latent attention beside recurrent layers."""
SCALED_TOGETHER = 128
"""Values of a latent vector in fp8 that have one scale of 4 bytes, where attention is sparse."""


@dataclass(frozen=True, slots=True)
class LayerKind:
    """`layers` on the largest pipeline stage, which keep `token_bytes` of each token; `window` as in `CacheGroup`.

    `block` is the number of tokens of a block. `is_index`: what these layers keep is beside the cache of other layers.
    `is_passing`: they keep what is not compressed yet, which grows with the tokens in flight and not with a request.
    """

    layers: int
    token_bytes: float
    window: int | None = None
    block: int = BLOCK
    is_index: bool = False
    is_passing: bool = False


def layer_kinds(attention: Attention, serving: Serving, value_bytes: float | None = None) -> tuple[LayerKind, ...]:
    """Every kind of layer that keeps tokens, without kinds that have no layer."""
    size = value_bytes if value_bytes is not None else kv_bytes(serving.kv_cache_dtype)[0]
    kinds = _compressed(attention, serving) if attention.compressed else _uncompressed(attention, serving, size)
    return tuple(kind for kind in kinds if kind.layers and kind.token_bytes)


def _uncompressed(attention: Attention, serving: Serving, size: float) -> Iterator[LayerKind]:
    window, stages = attention.sliding_window, serving.pipeline_parallel
    layers = attention.layers if attention.key_value_layers is None else attention.key_value_layers
    windowed = min(window.layers, layers) if window is not None else 0
    yield LayerKind(_ceil(layers - windowed, stages), _token_bytes(attention, serving, size))
    if window is not None:
        tokens = window.tokens - 1 + serving.tokens_in_flight
        yield LayerKind(_ceil(windowed, stages), _windowed_bytes(attention, window, serving, size), tokens)
    if attention.index is not None:
        yield LayerKind(_ceil(attention.index.layers, stages), attention.index.token_bytes, is_index=True)


def _token_bytes(attention: Attention, serving: Serving, size: float) -> float:
    if attention.latent is not None:
        return latent_bytes(attention.latent, size, is_sparse=attention.index is not None)
    values = attention.value_head_dimension or attention.head_dimension
    return _heads(attention.key_value_heads, serving) * (attention.head_dimension + values) * size


def _windowed_bytes(attention: Attention, window: SlidingWindow, serving: Serving, size: float) -> float:
    if attention.latent is not None:
        return _token_bytes(attention, serving, size)
    keys = window.head_dimension or attention.head_dimension
    values = window.value_head_dimension or (
        window.head_dimension or attention.value_head_dimension or attention.head_dimension
    )
    return _heads(window.key_value_heads or attention.key_value_heads, serving) * (keys + values) * size


def latent_bytes(latent: LatentAttention, size: float, *, is_sparse: bool) -> float:
    """Bytes of one token in one layer.

    With sparse attention and fp8, the part with positions stays in 16 bits and scales are added: 656 bytes for
    DeepSeek-V3.2 (vllm/v1/attention/backends/mla/flashmla_sparse.py).
    """
    plain = (latent.key_value_rank + latent.rope_head_dimension) * size
    if not is_sparse or size >= 2:
        return plain
    scales = 4 * _ceil(latent.key_value_rank, SCALED_TOGETHER)
    return max(plain, latent.key_value_rank * size + scales + 2 * latent.rope_head_dimension)


# DeepSeek-V4: bytes of a page, and the tokens that it holds. A vector of 512 values takes 584 bytes: 448 in fp8, 64 in
# 16 bits and 8 scales; the vector of the index 132. Pages are rounded up to 576 bytes. What is being compressed is kept
# in float32 in pages of the same size. Formats other than fp8 are not computed.
VECTOR_PAGE, INDEX_PAGE = 37_440, 8_640
WINDOW_BLOCK, PAGE_TOKENS = 64, 256
SPARSE_PAGE = 1_728
OVERLAPPING = 4
"""The compression whose layers have an index, and keep twice the tokens that they compress."""


def _compressed(attention: Attention, serving: Serving) -> Iterator[LayerKind]:
    stages, in_flight = serving.pipeline_parallel, serving.tokens_in_flight
    window = attention.sliding_window
    if window is not None:
        tokens = window.tokens - 1 + in_flight
        yield LayerKind(_ceil(window.layers, stages), VECTOR_PAGE / WINDOW_BLOCK, tokens, WINDOW_BLOCK)
    for part in attention.compressed:
        layers = _ceil(part.layers, stages)
        if part.tokens == OVERLAPPING:
            tokens = 2 * part.tokens - 1 + in_flight
            yield LayerKind(layers, VECTOR_PAGE / PAGE_TOKENS, block=PAGE_TOKENS)
            yield LayerKind(layers, INDEX_PAGE / PAGE_TOKENS, block=PAGE_TOKENS, is_index=True)
            yield LayerKind(layers, VECTOR_PAGE / 4, tokens, 4, is_passing=True)
            yield LayerKind(layers, INDEX_PAGE / 4, tokens, 4, is_passing=True)
        else:
            yield LayerKind(layers, SPARSE_PAGE / PAGE_TOKENS, block=PAGE_TOKENS)
            yield LayerKind(layers, VECTOR_PAGE / 8, part.tokens - 1 + in_flight, 8, is_passing=True)


def state_bytes(recurrent: RecurrentState, tensor_parallel: int) -> float:
    """Bytes of the state of one request in one layer on one GPU; the convolution is kept in 16 bits."""
    groups = recurrent.groups
    extra = tensor_parallel - groups if groups and groups % tensor_parallel else 0
    channels = recurrent.channels + 2 * max(0, extra) * recurrent.state_dimension
    convolution = _ceil(channels, tensor_parallel) * recurrent.channel_tokens * 2
    heads = _ceil(recurrent.heads, tensor_parallel)
    return convolution + heads * recurrent.head_dimension * recurrent.state_dimension * recurrent.value_bytes


def _heads(heads: int, serving: Serving) -> int:
    return max(1, heads // serving.tensor_parallel)


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)

"""The key-value cache: bytes of one token on one GPU, and of a request of a given length.

Formula and names of vLLM's `v1/core/kv_cache_utils.py` and `config/model.py`: key-value heads are divided by tensor
parallelism until one is left on each GPU, MLA keeps its vector on every GPU, and a layer with a window holds at most
`window - 1 + tokens of one step`. Layers of both kinds are put into groups of equal size, the last padded.
"""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.api.model_facts import MOST_TOKENS, Attention
from hermetic.sizing.serving import BLOCK, Serving, kv_bytes

# Up to this ratio vLLM pads the smaller kind of layers; above it, it splits the larger kind into several groups.
PAD_BELOW = 1.5


@dataclass(frozen=True, slots=True)
class KvCache:
    """The cache on one GPU: `layer_bytes` of one token in one layer, and how many layers hold how much of it."""

    layer_bytes: float
    whole_layers: int
    windowed_layers: int
    window_tokens: int

    @property
    def token_bytes(self) -> float:
        """Bytes of one token if every layer keeps it: an upper bound per token for requests of any length."""
        return self.layer_bytes * (self.whole_layers + self.windowed_layers)

    def request_bytes(self, tokens: int) -> int:
        """Bytes of one request that is `tokens` long."""
        whole = self.layer_bytes * self.whole_layers * _in_blocks(tokens)
        held = min(tokens, self.window_tokens)
        # A window may begin in the middle of a block: one more block is needed.
        windowed = self.layer_bytes * self.windowed_layers * min(_in_blocks(held) + BLOCK, _in_blocks(tokens))
        return round(whole + windowed)

    def longest(self, room: float, requests: int = 1) -> int:
        """The longest context in tokens of which this many requests take at most `room` bytes; 0 for none."""
        least, most = 0, MOST_TOKENS
        while least < most:
            middle = (least + most + 1) // 2
            if self.request_bytes(middle) * requests <= room:
                least = middle
            else:
                most = middle - 1
        return least


def kv_cache(attention: Attention, serving: Serving) -> KvCache:
    """The key-value cache on each GPU of the replica; with several pipeline stages, that of the largest stage."""
    size, _ = kv_bytes(serving.kv_cache_dtype)
    if attention.latent is not None:
        layer = (attention.latent.key_value_rank + attention.latent.rope_head_dimension) * size
    else:
        heads = max(1, attention.key_value_heads // serving.tensor_parallel)
        layer = 2 * heads * attention.head_dimension * size
    stages, window = serving.pipeline_parallel, attention.sliding_window
    layers = _ceil(attention.layers, stages)
    if window is None:
        return KvCache(layer, layers, 0, 0)
    windowed = min(_ceil(window.layers, stages), layers)
    whole = _ceil(attention.layers - window.layers, stages)
    whole, windowed = _padded(whole, windowed)
    return KvCache(layer, whole, windowed, window.tokens - 1 + serving.batched_tokens)


def _padded(whole: int, windowed: int) -> tuple[int, int]:
    if not whole or not windowed:
        return whole, windowed
    fewer, more = sorted((whole, windowed))
    group = more if more < fewer * PAD_BELOW else fewer
    return _ceil(whole, group) * group, _ceil(windowed, group) * group


def _in_blocks(tokens: int) -> int:
    return _ceil(tokens, BLOCK) * BLOCK


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)

"""The cache of an engine on one GPU: bytes of one token, and of a request of a given length.

Formula and names of vLLM (https://github.com/vllm-project/vllm): vllm/v1/kv_cache_interface.py for one layer, and
vllm/v1/core/kv_cache_planning.py for all of them.

- Layers of one kind share a block table. Blocks of all kinds are of one size in bytes, so kinds with less in a token
  get longer blocks, and kinds with more layers are split into groups of as many layers, the last padded.
- A layer with a window holds at most `window - 1 + tokens in flight`, and one block more, for a window may begin in the
  middle of a block (`SlidingWindowSpec.max_admission_blocks_per_request`).
- A recurrent layer holds its state twice for each request where prefixes are cached (`MambaSpec`, mode `align`), in
  blocks that the attention layers must match (`Platform._align_hybrid_block_size` in vllm/platforms/interface.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermetic.api.model_facts import MOST_TOKENS, Attention
from hermetic.sizing.layer_kinds import LATENT_BLOCK, LayerKind, layer_kinds, state_bytes
from hermetic.sizing.serving import BLOCK, Serving

# Up to this ratio vLLM pads the smaller kind of layers; above it, it splits the larger kind into several groups.
PAD_BELOW = 1.5
STATES_OF_A_REQUEST = 2


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers of one kind: `layers` with padding, bytes and tokens of one of their blocks, and what a request holds.

    `window` is the number of tokens that they keep at most, None for all; `blocks` the number of blocks of a request of
    any length, None where it follows from the length. `is_passing` as in `LayerKind`.
    """

    layers: int
    block_bytes: float
    block_tokens: int
    window: int | None = None
    blocks: int | None = None
    is_passing: bool = False

    def request_bytes(self, tokens: int) -> float:
        if self.blocks is not None:
            return self.blocks * self.block_bytes
        every = _ceil(tokens, self.block_tokens)
        if self.window is None:
            return every * self.block_bytes
        return min(_ceil(min(tokens, self.window), self.block_tokens) + 1, every) * self.block_bytes


@dataclass(frozen=True, slots=True)
class KvCache:
    """The cache on one GPU. `state_block` is the size in bytes of a block that holds a recurrent state; 0 for none."""

    groups: tuple[CacheGroup, ...]
    state_block: float = 0

    @property
    def token_bytes(self) -> float:
        """Bytes of one token if every layer keeps it: an upper bound per token for requests of any length."""
        return sum(group.block_bytes / group.block_tokens for group in self._of_tokens())

    @property
    def state_bytes(self) -> float:
        """Bytes that each request takes in addition, whatever its length."""
        return sum(group.blocks * group.block_bytes for group in self.groups if group.blocks is not None)

    @property
    def windowed_layers(self) -> int:
        return sum(group.layers for group in self._of_tokens() if group.window is not None)

    @property
    def whole_layers(self) -> int:
        return sum(group.layers for group in self._of_tokens() if group.window is None)

    @property
    def window_tokens(self) -> int:
        return max((group.window for group in self._of_tokens() if group.window is not None), default=0)

    def _of_tokens(self) -> Iterator[CacheGroup]:
        return (group for group in self.groups if group.blocks is None and not group.is_passing)

    def request_bytes(self, tokens: int) -> int:
        """Bytes of one request that is `tokens` long."""
        return round(sum(group.request_bytes(tokens) for group in self.groups))

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


def kv_cache(attention: Attention, serving: Serving, value_bytes: float | None = None) -> KvCache:
    """The cache on each GPU of the replica; with several pipeline stages, that of the largest stage.

    `value_bytes` are the bytes of one value of the key-value cache; by default those of the format of `serving`.
    """
    kinds = layer_kinds(attention, serving, value_bytes)
    recurrent = attention.recurrent
    if attention.compressed:
        # Blocks of different sizes lie next to each other (`_get_packed_kv_cache_groups`): nothing is padded but they.
        return KvCache(tuple(_of_kind(kind, kind.layers, kind.block * kind.token_bytes, kind.block) for kind in kinds))
    if recurrent is None and len({kind.window for kind in kinds}) <= 1:
        return KvCache(_of_one_kind(kinds))
    states = _ceil(recurrent.layers, serving.pipeline_parallel) if recurrent is not None else 0
    state = state_bytes(recurrent, serving.tensor_parallel) if recurrent is not None else 0
    return _in_equal_blocks(kinds, states, state, LATENT_BLOCK if attention.latent is not None else BLOCK)


def _of_one_kind(kinds: Sequence[LayerKind]) -> tuple[CacheGroup, ...]:
    """Layers that keep the same tokens are one group, whatever they keep of each (`UniformTypeKVCacheSpecs`)."""
    if not kinds:
        return ()
    size = sum(kind.layers * kind.token_bytes for kind in kinds)
    layers = sum(kind.layers for kind in kinds if not kind.is_index)
    return (CacheGroup(layers, BLOCK * size, BLOCK, kinds[0].window),)


def _in_equal_blocks(kinds: Sequence[LayerKind], states: int, state: float, block: int) -> KvCache:
    """Groups whose blocks are all of one size: that of the kind with the most in a token, or of a recurrent state."""
    widest = max((kind.token_bytes for kind in kinds), default=0)
    page = max(block * widest, _ceil(state, block * widest) * block * widest if widest else state)
    per_group = _layers_of_a_group([*(kind.layers for kind in kinds), *([states] if states else [])])
    groups = []
    for kind in kinds:
        padded = _ceil(kind.layers, per_group) * per_group
        fits_whole = widest % kind.token_bytes == 0
        tokens = round(page / (kind.token_bytes if fits_whole else widest))
        groups.append(_of_kind(kind, padded, page, tokens))
    if not states:
        return KvCache(tuple(groups))
    padded = _ceil(states, per_group) * per_group
    groups.append(CacheGroup(padded, padded * page, 1, blocks=STATES_OF_A_REQUEST))
    return KvCache(tuple(groups), state_block=per_group * page)


def _of_kind(kind: LayerKind, layers: int, page: float, tokens: int) -> CacheGroup:
    shown = 0 if kind.is_index else layers
    return CacheGroup(shown, layers * page, tokens, kind.window, is_passing=kind.is_passing)


def _layers_of_a_group(counts: Sequence[int]) -> int:
    """As many layers as the kind with the fewest, or the most where they are nearly as many."""
    fewest, most = min(counts), max(counts)
    return most if most < fewest * PAD_BELOW else fewest


def _ceil(number: float, divisor: float) -> int:
    return int(-(-number // divisor))

"""What the layers of a family keep, from its config.json: one function for each kind of `architectures.toml`.

A function gets the object of config.json that describes the language model and what is common to all families, and
returns the fields of `Attention` that differ. A value that it needs and that is not usable becomes a problem. Names of
keys are those that vLLM reads (vllm/model_executor/models, by the name of the family); the formulas are in
`layer_kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hermetic.api.model_facts import (
    MOST_COUNT,
    MOST_HEADS,
    MOST_LAYERS,
    MOST_TOKENS,
    Attention,
    CompressedLayers,
    LatentAttention,
    RecurrentState,
    SlidingWindow,
    SparseIndex,
)
from hermetic.sizing.config_reading import Config

Fields = dict[str, Any]
Reader = Callable[[Config, Attention], Fields]

INDEX_GROUP, INDEX_SCALE = 128, 4
"""Values of an index in fp8 that have one scale, and the bytes of a scale."""
SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 2}
LATENT_OF = "kv_lora_rank"


def family_fields(kind: str, text: Config, common: Attention) -> Fields:
    """The fields of `Attention` that a family of this kind sets."""
    return READERS[kind](text, common)


def _heads(text: Config, _: Attention) -> Fields:
    if text.values.get(LATENT_OF) is not None:
        text.problems.append(f"config.json contains {LATENT_OF}, and the cache of this model type is not known")
    return {}


def _latent(text: Config, _: Attention) -> Fields:
    rank = text.whole(LATENT_OF, most=MOST_COUNT)
    if rank is None:
        return {}
    rope = text.whole("qk_rope_head_dim", least=0, most=MOST_COUNT)
    return {"latent": LatentAttention(key_value_rank=rank, rope_head_dimension=rope or 0)}


def _sparse_latent(text: Config, common: Attention) -> Fields:
    """Layers without an index of their own use that of a layer before (`indexer_types` of GLM-5.2)."""
    dimension = text.required("index_head_dim", most=MOST_HEADS)
    types = text.words("indexer_types")
    layers = common.layers if types is None else common.layers - min(types.count("shared"), common.layers - 1)
    if dimension is None:
        return _latent(text, common)
    scales = -(-dimension // INDEX_GROUP) * INDEX_SCALE
    return _latent(text, common) | {"index": SparseIndex(layers=layers, token_bytes=dimension + scales)}


def _sparse_heads(text: Config, common: Attention) -> Fields:
    sparse = text.inner("sparse_attention_config") or Config({}, text.problems)
    dimension = sparse.required("sparse_index_dim", most=MOST_HEADS)
    indexed = sparse.numbers("sparse_attention_freq")
    layers = common.layers if indexed is None else min(sum(1 for number in indexed if number), common.layers)
    if dimension is None or not layers:
        return {}
    return {"index": SparseIndex(layers=layers, token_bytes=2 * dimension)}


def _compressed(text: Config, common: Attention) -> Fields:
    """`compress_ratios` may have more entries than layers: the others are of layers for speculation."""
    ratios, window = text.numbers("compress_ratios"), text.whole("sliding_window", most=MOST_TOKENS)
    if ratios is None or window is None or common.head_dimension != 512 or not set(ratios) <= {0, 1, 4, 128}:
        text.problems.append("config.json: the compression of the layers is not one that sizing computes")
        return {}
    cached = ratios[: common.layers]
    parts = [CompressedLayers(tokens=ratio, layers=cached.count(ratio)) for ratio in (4, 128) if ratio in cached]
    return {"compressed": parts, "sliding_window": SlidingWindow(tokens=window, layers=common.layers)}


def _gemma4(text: Config, common: Attention) -> Fields:
    """The last layers share the caches of layers before; layers without a window have heads of their own."""
    shared = text.whole("num_kv_shared_layers", least=0, most=MOST_LAYERS) or 0
    window, types = text.required("sliding_window", most=MOST_TOKENS), text.words("layer_types")
    if window is None or types is None or shared >= common.layers:
        text.problems.append("config.json does not name which layers have a window")
        return {}
    _check_types(text, "layer_types", {"sliding_attention", "full_attention"})
    cached = types[: common.layers - shared]
    dimension = text.whole("global_head_dim", most=MOST_HEADS) or common.head_dimension
    heads = text.whole("num_global_key_value_heads", most=MOST_HEADS) or common.key_value_heads
    windowed = cached.count("sliding_attention")
    fields: Fields = {"key_value_layers": len(cached), "key_value_heads": heads, "head_dimension": dimension}
    if windowed:
        fields["sliding_window"] = SlidingWindow(
            tokens=window,
            layers=windowed,
            key_value_heads=common.key_value_heads,
            head_dimension=common.head_dimension,
        )
    return fields


def _mimo_v2(text: Config, common: Attention) -> Fields:
    pattern, window = text.numbers("hybrid_layer_pattern"), text.required("sliding_window", most=MOST_TOKENS)
    values = text.whole("v_head_dim", most=MOST_HEADS)
    if pattern is None or window is None:
        text.problems.append("config.json does not name which layers have a window")
        return {}
    windowed = min(sum(1 for number in pattern if number == 1), common.layers)
    if not windowed:
        return {"value_head_dimension": values, "sliding_window": None}
    keys = text.whole("swa_head_dim", most=MOST_HEADS) or common.head_dimension
    return {
        "value_head_dimension": values,
        "sliding_window": SlidingWindow(
            tokens=window,
            layers=windowed,
            key_value_heads=text.whole("swa_num_key_value_heads", most=MOST_HEADS) or common.key_value_heads,
            head_dimension=keys,
            value_head_dimension=text.whole("swa_v_head_dim", most=MOST_HEADS) or keys,
        ),
    }


def _listed(text: Config, common: Attention) -> Fields:
    """Layers without attention keep nothing. Groups of different sizes are counted by the smallest: most heads."""
    blocks = text.objects("block_configs")
    parts = [part for block in blocks or () if (part := block.inner("attention")) is not None]
    if blocks is None or len(parts) != common.layers:
        text.problems.append("config.json does not describe the attention of each layer")
        return {}
    attending = [part for part in parts if part.values.get("no_op") is not True]
    groups = [part.required("n_heads_in_group", most=MOST_HEADS) for part in attending]
    sizes = [group for group in groups if group is not None]
    if len(sizes) < len(attending) or any(part.values.get("replace_with_linear") is True for part in attending):
        text.problems.append("config.json: a layer of block_configs keeps another kind of state")
        return {}
    heads = max(1, common.heads // min(sizes)) if sizes else common.key_value_heads
    return {"key_value_layers": len(attending), "key_value_heads": heads}


# Keys of Gated DeltaNet: length and number of heads of keys and values, and the length of the convolution.
DELTA = (
    ("linear_key_head_dim",),
    ("linear_num_key_heads",),
    ("linear_value_head_dim",),
    ("linear_num_value_heads",),
    ("linear_conv_kernel_dim",),
)


def _gated_delta(text: Config, common: Attention) -> Fields:
    _check_types(text, "layer_types", {"linear_attention", "full_attention"})
    linear = text.layers_of("linear_attention", common.layers)
    if linear is None and (interval := text.whole("full_attention_interval", most=MOST_LAYERS)) is not None:
        linear = common.layers - common.layers // interval
    stated = text.all_required(*DELTA, most=MOST_HEADS)
    if linear is None or stated is None:
        text.problems.append("config.json does not describe the layers with linear attention")
        return {}
    keys, key_heads, values, heads, kernel = stated
    channels = text.bounded("channels of the linear attention", 2 * keys * key_heads + values * heads, most=MOST_COUNT)
    return _recurrent(
        common,
        linear,
        heads=heads,
        head_dimension=values,
        state_dimension=keys,
        value_bytes=_state_size(text, "mamba_ssm_dtype", "auto"),
        channels=channels or 0,
        channel_tokens=kernel - 1,
    )


def _kimi_delta(text: Config, common: Attention) -> Fields:
    linear = text.inner("linear_attn_config") or Config({}, text.problems)
    delta, heads = linear.numbers("kda_layers"), linear.required("num_heads", most=MOST_HEADS)
    dimension = linear.required("head_dim", most=MOST_HEADS)
    kernel = linear.required("short_conv_kernel_size", most=MOST_HEADS)
    if delta is None or heads is None or dimension is None or kernel is None:
        text.problems.append("config.json does not describe the layers with linear attention")
        return {}
    channels = text.bounded("channels of the linear attention", 3 * heads * dimension, most=MOST_COUNT)
    return _latent(text, common) | _recurrent(
        common,
        min(len(delta), common.layers),
        heads=heads,
        head_dimension=dimension,
        state_dimension=dimension,
        value_bytes=4,
        channels=channels or 0,
        channel_tokens=kernel - 1,
    )


# Keys of Mamba-2, by family: number and length of heads, length of the state, groups, length of the convolution.
MAMBA2 = (
    ("mamba_num_heads", "mamba_n_heads"),
    ("mamba_head_dim", "mamba_d_head"),
    ("ssm_state_size", "mamba_d_state"),
    ("n_groups", "mamba_n_groups"),
    ("conv_kernel", "mamba_d_conv"),
)


def _mamba2(text: Config, common: Attention) -> Fields:
    counts, stated = _mamba_layers(text, common.layers), text.all_required(*MAMBA2, most=MOST_HEADS)
    if counts is None or stated is None:
        text.problems.append("config.json does not describe the state-space layers")
        return {}
    heads, dimension, state, groups, kernel = stated
    inner = text.whole("mamba_d_ssm", most=MOST_COUNT) or heads * dimension
    channels = text.bounded("channels of the state-space layers", inner + 2 * groups * state, most=MOST_COUNT)
    default = "float32" if text.word("model_type") == "nemotron_h" else "auto"
    attention, mamba = counts
    return _recurrent(
        common,
        mamba,
        key_value_layers=attention,
        heads=heads,
        head_dimension=dimension,
        state_dimension=state,
        value_bytes=_state_size(text, "mamba_ssm_cache_dtype", default),
        channels=channels or 0,
        channel_tokens=kernel - 1,
        groups=groups,
    )


MAMBA_TYPES = {"attention", "full_attention", "mamba", "mlp", "moe"}
"""Kinds of layers of these families; feed-forward layers keep nothing."""


def _mamba_layers(text: Config, layers: int) -> tuple[int, int] | None:
    """(layers with attention, state-space layers); None where config.json does not name them."""
    pattern = text.values.get("hybrid_override_pattern")
    if isinstance(pattern, str) and 0 < len(pattern) <= MOST_LAYERS and set(pattern) <= set("M*-E|"):
        return pattern.count("*"), pattern.count("M")
    for key in ("layers_block_type", "layer_types"):
        types = text.words(key)
        if types is not None:
            _check_types(text, key, MAMBA_TYPES)
            return types.count("attention") + types.count("full_attention"), types.count("mamba")
    attention = text.numbers("attn_layer_indices")
    if attention is not None:
        return len(attention), layers - min(len(attention), layers)
    return (layers, layers) if text.word("model_type") == "falcon_h1" else None


def _mamba1(text: Config, common: Attention) -> Fields:
    period = text.required("attn_layer_period", most=MOST_LAYERS)
    offset = text.whole("attn_layer_offset", least=0, most=MOST_LAYERS)
    state, kernel = text.required("mamba_d_state", most=MOST_HEADS), text.required("mamba_d_conv", most=MOST_HEADS)
    expand = text.required("mamba_expand", most=MOST_HEADS)
    if period is None or offset is None or state is None or kernel is None or expand is None:
        return {}
    channels = text.bounded("channels of the state-space layers", expand * common.hidden_size, most=MOST_COUNT)
    attention = len(range(offset, common.layers, period))
    return _recurrent(
        common,
        common.layers - attention,
        heads=min(channels or 1, MOST_HEADS),
        head_dimension=-(-(channels or 1) // MOST_HEADS),
        state_dimension=state,
        value_bytes=2,
        channels=channels or 0,
        channel_tokens=kernel - 1,
    )


def _short_convolution(text: Config, common: Attention) -> Fields:
    kernel = text.required("conv_L_cache", most=MOST_HEADS)
    _check_types(text, "layer_types", {"conv", "full_attention"})
    convolutions = text.layers_of("conv", common.layers)
    attention = text.numbers("full_attn_idxs")
    if convolutions is None and attention is not None:
        convolutions = common.layers - min(len(attention), common.layers)
    if kernel is None or convolutions is None:
        text.problems.append("config.json does not name which layers have a convolution")
        return {}
    channels = text.whole("conv_dim", most=MOST_COUNT) or common.hidden_size
    return _recurrent(common, convolutions, channels=channels, channel_tokens=kernel - 1)


def _check_types(text: Config, key: str, covered: set[str]) -> None:
    """Another kind of layer is a problem."""
    if other := sorted(set(text.words(key) or ()) - covered):
        text.problems.append(f"config.json: layers of type {', '.join(other)[:120]} keep another kind of state")


def _recurrent(common: Attention, layers: int, *, key_value_layers: int | None = None, **state: int) -> Fields:
    """Fields for so many recurrent layers; the others keep keys and values where their number is not given."""
    cached = common.layers - layers if key_value_layers is None else key_value_layers
    fields: Fields = {"key_value_layers": max(0, min(cached, common.layers)), "sliding_window": None}
    if layers:
        fields["recurrent"] = RecurrentState(layers=layers, **state)
    return fields


def _state_size(text: Config, key: str, default: str) -> int:
    name = text.word(key) or default
    if name not in SIZES:
        text.problems.append(f"config.json: {key} {name} is not one of {', '.join(SIZES)}")
    return SIZES.get(name, 4)


READERS: Mapping[str, Reader] = {
    "heads": _heads,
    "latent": _latent,
    "sparse_latent": _sparse_latent,
    "sparse_heads": _sparse_heads,
    "compressed": _compressed,
    "gemma4": _gemma4,
    "mimo_v2": _mimo_v2,
    "listed": _listed,
    "gated_delta": _gated_delta,
    "kimi_delta": _kimi_delta,
    "mamba2": _mamba2,
    "mamba1": _mamba1,
    "short_convolution": _short_convolution,
}

"""A model's facts from its `config.json` and the sums of its safetensors headers. Pure; invalid values do not raise.

A value of config.json that cannot be used becomes a clause of `not_computed`, and a size that rests on it is Unknown.
Keys and their order are those that vLLM reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hermetic.api.model_facts import (
    MOST_BYTES,
    MOST_COUNT,
    MOST_HEADS,
    MOST_LAYERS,
    MOST_TOKENS,
    Attention,
    Experts,
    ModelFacts,
    Quantization,
    Shards,
    SlidingWindow,
    TensorBytes,
)
from hermetic.api.text import one_line
from hermetic.sizing.architectures import architectures, why_not_computed
from hermetic.sizing.cache_formats import stated_format
from hermetic.sizing.config_reading import Config, text_part
from hermetic.sizing.context import context_lengths
from hermetic.sizing.encoders import encoders_of
from hermetic.sizing.families import family_fields

NO_WORD = "unknown"
DTYPES = ("bfloat16", "float16", "float32")
WINDOWED = "sliding_attention"
WINDOWED_KINDS = frozenset({"heads", "latent", "sparse_latent"})
"""Kinds of layers whose windows config.json describes in the common way."""
# Chunked attention keeps at most its chunk: counting the whole context is an upper bound.
WHOLE = frozenset({"full_attention", "chunked_attention", "attention", "global_attention", "global"})
SPARSE = "deepseek_sparse_attention"
"""What layers with an index are called, which is counted beside them."""


@dataclass(frozen=True, slots=True)
class TensorSums:
    """Sums over the headers of all safetensors files.

    `by_format` maps a number format of safetensors (BF16, F8_E4M3, ...) to the bytes of its tensors; `largest_shard` is
    the size in bytes of the largest file; `by_part` maps a part of `tensor_parts` to the bytes of its tensors.
    """

    by_format: Mapping[str, int] = field(default_factory=dict)
    shards: int = 0
    largest_shard: int = 0
    by_part: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return sum(self.by_format.values())


def facts_of(config: object, tensors: TensorSums, quantization_file: object = None) -> ModelFacts:
    """The facts of a model.

    `config` is the parsed config.json, `quantization_file` the parsed hf_quant_config.json of ModelOpt where there is
    one. Both may be any JSON value.
    """
    top = Config(config if isinstance(config, dict) else {})
    text = text_part(top)
    if not isinstance(config, dict):
        top.problems.append("config.json is not an object")
    family = _word(text.word("model_type") or top.word("model_type"))
    problems = [*filter(None, [why_not_computed(family)])]
    attention = _attention(text, family, problems)
    certain, longest = context_lengths(text, family)
    parts = {part: min(max(size, 0), MOST_BYTES) for part, size in tensors.by_part.items()}
    experts, stored = _experts(text, parts.get("experts", 0)), quantization(top, text, quantization_file)
    architecture, parameter_bytes = _architecture(top), _bounded(tensors.total, top)
    dtype, encoders = _dtype(top, text), encoders_of(top, _word(top.word("model_type")), parts)
    problems += top.problems + (text.problems if text.problems is not top.problems else [])
    return ModelFacts(
        model_type=family,
        architecture=architecture,
        parameter_bytes=parameter_bytes,
        tensor_bytes=_by_format(tensors),
        shards=_shards(tensors),
        dtype=dtype,
        max_model_length=longest,
        certain_model_length=certain if certain != longest else None,
        attention=attention,
        experts=experts,
        quantization=stored,
        encoders=encoders,
        not_computed=list(dict.fromkeys(one_line(clause)[:256] for clause in problems))[:16],
    )


def _word(text: str | None) -> str:
    return text if text is not None and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text) else NO_WORD


def _architecture(top: Config) -> str | None:
    names = top.words("architectures")
    word = _word(names[0][:64]) if names else NO_WORD
    return None if word == NO_WORD else word


def _bounded(total: int, top: Config) -> int:
    if 1 <= total <= MOST_BYTES:
        return total
    top.problems.append(f"the safetensors headers add up to {total} bytes")
    return min(max(total, 1), MOST_BYTES)


def _by_format(tensors: TensorSums) -> list[TensorBytes]:
    named = [(_word(name), size) for name, size in sorted(tensors.by_format.items()) if 0 <= size <= MOST_BYTES]
    return [TensorBytes(format=name, bytes=size) for name, size in dict(named[:32]).items()]


def _shards(tensors: TensorSums) -> Shards | None:
    if not 1 <= tensors.shards <= MOST_COUNT:
        return None
    return Shards(count=tensors.shards, largest_bytes=min(max(tensors.largest_shard, 0), MOST_BYTES))


def _dtype(top: Config, text: Config) -> str:
    """The number format of the cache; one that is not known is a problem, for its size decides the memory."""
    keys = ("dtype", "torch_dtype")
    stated = next(
        (value for config in (top, text) for key in keys if (value := config.values.get(key)) is not None), "bfloat16"
    )
    name = str(stated).removeprefix("torch.")
    name = {"half": "float16", "float": "float32"}.get(name, name)
    if name in DTYPES:
        return name
    top.problems.append(f"config.json: dtype {one_line(name)[:64]} is not one of {', '.join(DTYPES)}")
    return "bfloat16"


def _attention(text: Config, family: str, problems: list[str]) -> Attention | None:
    layers, heads = _layers(text), text.whole("num_attention_heads", "n_head", most=MOST_HEADS)
    hidden = text.whole("hidden_size", "n_embd", "d_model", most=MOST_COUNT)
    if layers is None or heads is None or hidden is None:
        problems.append("config.json does not contain layers, attention heads and hidden size")
        return None
    dimension = text.whole("head_dim", least=0, most=MOST_HEADS) or text.bounded(
        "hidden_size / num_attention_heads", hidden // heads, most=MOST_HEADS
    )
    if dimension is None:
        return None
    kind = architectures().kinds.get(family, "heads")
    common = Attention(
        layers=layers,
        heads=heads,
        key_value_heads=_key_value_heads(text, family, heads),
        head_dimension=dimension,
        hidden_size=hidden,
        intermediate_size=text.whole("intermediate_size", "ffn_dim", "n_inner", most=MOST_COUNT),
        sliding_window=_sliding_window(text, family, kind, layers) if kind in WINDOWED_KINDS else None,
    )
    return common.model_copy(update=family_fields(kind, text, common))


def _layers(text: Config) -> int | None:
    """The number of layers, or of the entries that describe them (Nemotron-3)."""
    stated = text.whole("num_hidden_layers", "n_layer", "num_layers", most=MOST_LAYERS)
    if stated is not None:
        return stated
    types = text.words("layers_block_type")
    return len(types) if types else None


def _key_value_heads(text: Config, family: str, heads: int) -> int:
    if family in {"gpt_bigcode", "falcon"} and text.values.get("multi_query") is True:
        # Falcon's new decoder architecture has groups, under another key of config.json.
        grouped = text.whole("num_kv_heads", "n_head_kv", most=MOST_HEADS)
        return grouped if grouped and text.values.get("new_decoder_architecture") is True else 1
    stated = text.whole(
        "n_head_kv",
        "num_kv_heads",
        "num_key_value_heads",
        "multi_query_group_num",
        "num_attention_groups",
        most=MOST_HEADS,
    )
    return stated or heads


def _sliding_window(text: Config, family: str, kind: str, layers: int) -> SlidingWindow | None:
    """Layers with a window. Where config.json is not explicit, all count as full attention, which is an upper bound."""
    kinds = text.words("layer_types")
    covered = WHOLE | {WINDOWED} | ({SPARSE} if kind == "sparse_latent" else set())
    if kinds is not None and (other := sorted(set(kinds) - covered)):
        text.problems.append(f"config.json: layers of type {', '.join(other)[:120]} keep another kind of state")
    window = text.whole("sliding_window", least=1, most=MOST_TOKENS) if text.values.get("sliding_window") else None
    if window is None or text.values.get("use_sliding_window") is False:
        return None
    if kinds is not None:
        count = min(kinds.count(WINDOWED), layers)
    elif (pattern := text.whole("sliding_window_pattern", most=MOST_LAYERS)) is not None:
        count = layers - layers // pattern
    else:
        count = {"gemma2": layers - layers // 2, "gemma3_text": layers - layers // 6, "mistral": layers}.get(family, 0)
    return SlidingWindow(tokens=window, layers=count) if count else None


def _experts(text: Config, size: int) -> Experts | None:
    count = text.largest("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts", least=0)
    if not count:
        return None
    width = text.largest("moe_intermediate_size") or text.largest("intermediate_size")
    used = text.largest("num_experts_per_tok", "moe_k", "experts_per_token", "moe_topk")
    return Experts(count=count, per_token=used, intermediate_size=width, bytes=size)


# The tile of vLLM's Marlin kernels for 4-bit and 8-bit weights.
MARLIN_TILE = 64
MARLIN = frozenset({"awq", "auto_awq", "awq_marlin", "gptq", "auto_gptq", "gptq_marlin"})


def quantization(top: Config, text: Config, file: object) -> Quantization | None:
    """The quantization in config.json (or ModelOpt's own file); None where the weights are not quantized."""
    stated = next(
        (
            section
            for config in (top, text)
            for key in ("quantization_config", "compression_config")
            if (section := config.inner(key)) is not None
        ),
        None,
    )
    other = Config(file, top.problems).inner("quantization") if isinstance(file, dict) else None
    config, stated = stated, stated or other
    if stated is None:
        return None
    method = stated.word("quant_method") or ("modelopt" if stated.word("quant_algo") else None)
    if method is None or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", method):
        top.problems.append("config.json: quantization_config does not name its method")
        return None
    return Quantization(method=method, block=_block(stated, method), key_value_cache=stated_format(config, other))


def _block(stated: Config, method: str) -> int | None:
    sizes = stated.values.get("weight_block_size")
    if isinstance(sizes, list) and sizes and all(type(size) is int and 1 <= size <= 1_000_000 for size in sizes[:2]):
        return int(max(sizes[:2]))
    if method in MARLIN:
        group = stated.whole("group_size", least=-1, most=1_000_000) or -1
        return max(MARLIN_TILE, group)
    return None

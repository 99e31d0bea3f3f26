"""How many bytes the weights take on the GPUs together, which is less than on disk where they are in float32.

vLLM resolves `--dtype auto` to 16 bits: float32 of config.json is downcast, to bfloat16 on GPUs that have it
(`_resolve_auto_dtype` in vllm/config/model.py) and to float16 on others. It creates the parameters in that
format (`set_default_torch_dtype(model_config.dtype)` in vllm/model_executor/model_loader/base_loader.py) and copies the
tensors into them. SGLang does the same, with float16 (`_get_and_verify_dtype` in
python/sglang/srt/configs/model_config.py). `--dtype` is one of the flags that make a size Unknown.

Some parameters stay in float32: scales of quantized weights, and those that a model creates so, such as the gate of
experts. Headers are summed by format and not by name, so that two bounds are kept where that decides.

With data parallelism each rank holds all weights but the experts, which are divided over all GPUs, with expert
parallelism or without (`FusedMoEParallelConfig.make` in vllm/model_executor/layers/fused_moe/config.py). An encoder
whose inputs are all switched off is not loaded (`_mark_tower_model` in vllm/model_executor/models/interfaces.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.api.model_facts import Attention, ModelFacts
from hermetic.sizing.serving import Serving

EXPANSION = 1.02
"""Factor on the weights for norms, small embeddings and the like, which every GPU holds whole."""
SHORTER = ("BF", "F16", "F8", "F6", "F4")
"""How safetensors begins the names of number formats with fewer bits than float32."""


@dataclass(frozen=True, slots=True)
class WeightBytes:
    """Bytes of weights as the engine holds them: `most` for what fits, `least` for what does not."""

    least: int
    most: int


def weights_of(facts: ModelFacts, serving: Serving | None = None) -> WeightBytes:
    """The bounds of all weights that are loaded; equal where it is known which tensors become shorter."""
    off = 0 if serving is None else sum(part.bytes for part in facts.encoders if not serving.reads(part.inputs))
    total, halved = facts.parameter_bytes, facts.parameter_bytes - _float32(facts) // 2
    most = halved if _all_become_shorter(facts) else total
    return WeightBytes(max(0, halved - off), max(0, most - off))


def weights_per_gpu(facts: ModelFacts, serving: Serving) -> WeightBytes:
    """The bounds of the weights on the GPU with the most."""
    total = weights_of(facts, serving)
    ranks, experts = serving.data_parallel, facts.experts
    if ranks == 1 or experts is None:
        return WeightBytes(_share(facts, serving, total.least), _share(facts, serving, total.most))
    divided = min(experts.bytes, total.least)
    least = total.least - (divided or total.least) * (1 - 1 / ranks)
    most = total.most - divided * (1 - 1 / ranks)
    return WeightBytes(_share(facts, serving, least), _share(facts, serving, most))


def _share(facts: ModelFacts, serving: Serving, total: float) -> int:
    stages, attention = serving.pipeline_parallel, facts.attention
    share = 1 / stages if attention is None else -(-attention.layers // stages) / attention.layers
    divided = EXPANSION * total * min(1.0, share) / serving.tensor_parallel
    return round(divided + (_replicated(facts, attention, serving) if attention is not None else 0))


def _replicated(facts: ModelFacts, attention: Attention, serving: Serving) -> float:
    """Bytes of key-value projections that are replicated because there are fewer heads than GPUs."""
    parts, heads = serving.tensor_parallel, attention.key_value_heads
    if attention.latent is not None or heads >= parts:
        return 0.0
    layers = -(-attention.layers // serving.pipeline_parallel)
    of_all_heads = layers * 2 * heads * attention.head_dimension * attention.hidden_size * 2
    return min(of_all_heads, facts.parameter_bytes) * (1 / heads - 1 / parts)


def _float32(facts: ModelFacts) -> int:
    """Bytes in float32 that the engine may hold in 16 bits, at most."""
    if facts.tensor_bytes:
        stated = sum(tensor_byte.bytes for tensor_byte in facts.tensor_bytes if tensor_byte.format == "F32")
        return min(stated, facts.parameter_bytes)
    return facts.parameter_bytes if facts.dtype == "float32" and facts.quantization is None else 0


def _all_become_shorter(facts: ModelFacts) -> bool:
    if facts.quantization is not None or not facts.tensor_bytes:
        return False
    mixed = any(tensor_byte.bytes and tensor_byte.format.startswith(SHORTER) for tensor_byte in facts.tensor_bytes)
    return facts.dtype == "float32" or not mixed

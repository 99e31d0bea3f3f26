"""How many bytes the weights take on the GPUs together, which is less than on disk where they are in float32.

vLLM resolves `--dtype auto` to 16 bits: float32 of config.json is downcast, to bfloat16 on GPUs that have it
(`_resolve_auto_dtype` in vllm/config/model.py; every GPU of the catalogue has it). It creates the parameters in that
format (`set_default_torch_dtype(model_config.dtype)` in vllm/model_executor/model_loader/base_loader.py) and copies the
tensors into them. SGLang does the same, with float16 (`_get_and_verify_dtype` in
python/sglang/srt/configs/model_config.py). `--dtype` is one of the flags that make a size Unknown.

Some parameters stay in float32: scales of quantized weights, and those that a model creates so, such as the gate of
experts. Headers are summed by format and not by name, so that two bounds are kept where that decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.api.model_facts import ModelFacts

SHORTER = ("BF", "F16", "F8", "F6", "F4")
"""How safetensors begins the names of number formats with fewer bits than float32."""


@dataclass(frozen=True, slots=True)
class WeightBytes:
    """Bytes of all weights as the engine holds them: `most` for what fits, `least` for what does not."""

    least: int
    most: int


def weights_of(facts: ModelFacts) -> WeightBytes:
    """The bounds; equal where it is known which tensors become shorter."""
    total, halved = facts.parameter_bytes, facts.parameter_bytes - _float32(facts) // 2
    return WeightBytes(halved, halved if _all_become_shorter(facts) else total)


def _float32(facts: ModelFacts) -> int:
    """Bytes in float32 that the engine may hold in 16 bits, at most."""
    if facts.tensor_bytes:
        stated = sum(one.bytes for one in facts.tensor_bytes if one.format == "F32")
        return min(stated, facts.parameter_bytes)
    return facts.parameter_bytes if facts.dtype == "float32" and facts.quantization is None else 0


def _all_become_shorter(facts: ModelFacts) -> bool:
    if facts.quantization is not None or not facts.tensor_bytes:
        return False
    mixed = any(one.bytes and one.format.startswith(SHORTER) for one in facts.tensor_bytes)
    return facts.dtype == "float32" or not mixed

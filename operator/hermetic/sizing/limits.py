"""Why a size is Unknown: what the formula does not cover, and what is not confirmed. One clause each."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.architectures import missing_part, why_not_computed
from hermetic.sizing.catalogue import Gpu
from hermetic.sizing.overhead import encoder_bytes
from hermetic.sizing.serving import Serving, kv_bytes

BFLOAT16_CAPABILITY = 8.0
"""CUDA compute capability from which a GPU has bfloat16. Kernels for most methods of quantization need it too."""
NO_FLOAT16 = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})
"""Families that vLLM holds in float32 on other GPUs: `_FLOAT16_NOT_SUPPORTED_MODELS` in vllm/config/model.py."""


def not_computed(facts: ModelFacts, serving: Serving, gpu: Gpu) -> Iterator[str]:
    """What of the model or of the deployment the formula does not cover on such a GPU."""
    yield from facts.not_computed
    family = why_not_computed(facts.model_type) or missing_part(facts)
    if family is not None and family not in facts.not_computed:
        yield family
    if facts.attention is None and not facts.not_computed:
        yield "layers and heads of the model are not known"
    yield from _of_context(facts, serving)
    yield from _of_cache_format(facts, serving)
    yield from _of_capability(facts, gpu)
    for part in facts.encoders:
        if serving.reads(part.inputs) and encoder_bytes(part, serving) is None:
            yield f"memory for {' or '.join(part.inputs)} in requests is not computed"
    if serving.lora is not None and facts.experts is not None:
        yield "adapters of the experts are not computed"
    yield from serving.not_computed


def _of_context(facts: ModelFacts, serving: Serving) -> Iterator[str]:
    if serving.context(facts) is None:
        yield "the longest context is not known: neither the deployment nor config.json contains it"
    requested, certain, longest = serving.max_model_length, facts.certain_model_length, facts.max_model_length
    if requested is not None and certain is not None and longest is not None and certain < requested <= longest:
        yield (
            f"with yarn, some releases of vLLM take {certain} tokens, others {longest}; set `maxModelLength` to at "
            f"most {certain}"
        )


def _of_cache_format(facts: ModelFacts, serving: Serving) -> Iterator[str]:
    if kv_bytes(serving.kv_cache_dtype)[1] != "exact":
        yield f"the size of the key-value format '{serving.kv_cache_dtype}' is not known"
    is_compressed = facts.attention is not None and bool(facts.attention.compressed)
    if is_compressed and serving.kv_cache_dtype != "auto" and not serving.kv_cache_dtype.startswith("fp8"):
        yield f"the key-value format '{serving.kv_cache_dtype}' of compressed layers is not computed"


def _of_capability(facts: ModelFacts, gpu: Gpu) -> Iterator[str]:
    if gpu.capability is None or gpu.capability >= BFLOAT16_CAPABILITY:
        return
    if facts.model_type in NO_FLOAT16:
        yield f"'{facts.model_type}' does not work in float16, and {gpu.name} has no bfloat16"
    if facts.quantization is not None:
        method = facts.quantization.method
        yield f"whether {gpu.name}, of compute capability {gpu.capability}, runs '{method}' is not known"


def unconfirmed(gpu: Gpu, *, confirmed: bool) -> Iterator[str]:
    """A clause where the memory of the GPU, or another value of the VM size, is not confirmed."""
    if not confirmed or not gpu.memory.confirmed:
        yield f"the memory of {gpu.name} in this VM size is not confirmed"

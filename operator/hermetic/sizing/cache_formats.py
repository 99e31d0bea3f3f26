"""The number format of the key-value cache where the deployment leaves it to the checkpoint.

vLLM takes `kv_cache_scheme` or `kv_cache_quant_algo` of a ModelOpt checkpoint (`resolve_kv_cache_dtype_string` in
vllm/utils/torch_utils.py, 0.24 to 0.33), and `kv_cache_scheme` of compressed-tensors as fp8 (`Attention.__init__` in
vllm/model_executor/layers/attention/attention.py). It reads hf_quant_config.json only where config.json has no
quantization (`get_config` in vllm/transformers_utils/config.py). With sparse attention the default differs between
releases and GPUs (`GlmMoeDsaForCausalLM` in vllm/model_executor/models/config.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.config_reading import Config
from hermetic.sizing.serving import Serving, kv_bytes

FP8, MAYBE_FP8, OTHER = "fp8", "fp8-maybe", "other"
NARROWEST = 0.5
"""Bytes of one value of the narrowest format."""
BY_CHECKPOINT = {None: (2.0, 2.0), FP8: (1.0, 1.0), MAYBE_FP8: (1.0, 2.0)}


@dataclass(frozen=True, slots=True)
class ValueBytes:
    """Bytes of one value: `most` for what fits, `least` for what does not."""

    least: float
    most: float


def value_bytes(facts: ModelFacts, serving: Serving) -> ValueBytes:
    """The bounds; equal where the format follows from the deployment or from the checkpoint."""
    if serving.kv_cache_dtype != "auto":
        size = kv_bytes(serving.kv_cache_dtype)[0]
        return ValueBytes(size, size)
    stated = facts.quantization.key_value_cache if facts.quantization is not None else None
    least, most = BY_CHECKPOINT.get(stated, (NARROWEST, 2.0))
    is_sparse = facts.attention is not None and facts.attention.index is not None
    return ValueBytes(min(least, 1.0) if is_sparse else least, most)


def stated_format(config: Config | None, file: Config | None) -> str | None:
    """What a checkpoint says of its cache; None for nothing.

    `config` is the quantization of config.json, `file` that of ModelOpt's hf_quant_config.json, None where there is
    none. A format that is named where vLLM does not read it may be read by another engine or release.
    """
    if config is None:
        return _format_of(file) if file is not None else None
    stated, elsewhere = _format_of(config), _format_of(file) if file is not None else None
    if stated is None:
        return MAYBE_FP8 if elsewhere == FP8 else elsewhere
    method = config.word("quant_method") or ""
    is_read = method.startswith("modelopt") or method.replace("_", "-") == "compressed-tensors"
    return stated if is_read or stated != FP8 else MAYBE_FP8


def _format_of(quantization: Config) -> str | None:
    value: Any = quantization.values.get("kv_cache_scheme") or quantization.values.get("kv_cache_quant_algo")
    if value is None or value is False:
        return None
    if isinstance(value, str):
        return None if value.lower() == "none" else FP8 if value.lower() == "fp8" else OTHER
    is_fp8 = isinstance(value, dict) and value.get("type") == "float" and value.get("num_bits") == 8
    return FP8 if is_fp8 and not value.get("dynamic") else OTHER

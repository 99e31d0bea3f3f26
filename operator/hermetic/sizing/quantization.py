"""How the weights are quantized, and the block that tensor parallelism must not divide."""

from __future__ import annotations

import re

from hermetic.api.model_facts import Quantization
from hermetic.sizing.config_reading import Config

# The tile of vLLM's Marlin kernels for 4-bit and 8-bit weights.
MARLIN_TILE = 64
MARLIN = frozenset({"awq", "auto_awq", "awq_marlin", "gptq", "auto_gptq", "gptq_marlin"})


def quantization(top: Config, text: Config, file: object) -> Quantization | None:
    """The quantization in config.json (or ModelOpt's own file); None where the weights are not quantized."""
    stated = next(
        (
            found
            for config in (top, text)
            for key in ("quantization_config", "compression_config")
            if (found := config.inner(key)) is not None
        ),
        None,
    )
    if stated is None and isinstance(file, dict):
        stated = Config(file, top.problems).inner("quantization")
    if stated is None:
        return None
    method = stated.word("quant_method") or ("modelopt" if stated.word("quant_algo") else None)
    if method is None or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", method):
        top.problems.append("config.json: quantization_config does not name its method")
        return None
    return Quantization(method=method, block=_block(stated, method))


def _block(stated: Config, method: str) -> int | None:
    sizes = stated.values.get("weight_block_size")
    if isinstance(sizes, list) and sizes and all(type(one) is int and 1 <= one <= 1_000_000 for one in sizes[:2]):
        return int(max(sizes[:2]))
    if method in MARLIN:
        group = stated.whole("group_size", least=-1, most=1_000_000) or -1
        return max(MARLIN_TILE, group)
    return None

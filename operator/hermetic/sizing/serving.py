"""The settings of an engine that decide how much memory it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hermetic.api.model_facts import ModelFacts

BLOCK = 16
"""Tokens per block of vLLM's key-value cache."""
DEFAULT_UTILIZATION = 92
"""Percent of each GPU's memory that vLLM takes by default, from 0.21 on."""
DEFAULT_BATCHED_TOKENS = 8192
"""Tokens of one step of vLLM on large GPUs, unless `--max-num-batched-tokens` is set."""


@dataclass(frozen=True, slots=True)
class Lora:
    """Adapters that may be active at a time, and the largest rank."""

    active: int
    rank: int


@dataclass(frozen=True, slots=True)
class Serving:
    """One replica: its GPUs, and the settings of vLLM that decide memory.

    `max_model_length` None means the model's own. `not_computed`: settings whose memory the formula does not cover, one
    clause each: with any, the answer is never Fits.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    max_model_length: int | None = None
    utilization_percent: int = DEFAULT_UTILIZATION
    kv_cache_dtype: str = "auto"
    requests: int = 1
    batched_tokens: int = DEFAULT_BATCHED_TOKENS
    expert_parallel: bool = False
    lora: Lora | None = None
    not_computed: tuple[str, ...] = ()
    may_shrink_weights: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of the replica."""
        return self.tensor_parallel * self.pipeline_parallel

    def context(self, facts: ModelFacts) -> int | None:
        """Longest context that the engine must hold, in tokens."""
        return self.max_model_length or facts.max_model_length


KvBytes = tuple[float, Literal["exact", "at most"]]


def kv_bytes(kv_cache_dtype: str) -> KvBytes:
    """Bytes of one value in the key-value cache; an upper bound where the format is not known.

    `auto` is the number format of the model, which vLLM resolves to 16 bits for a checkpoint in float32 too: see
    `weights`.
    """
    known: dict[str, float] = {"auto": 2, "bfloat16": 2, "float16": 2, "float32": 4}
    known |= {"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
    if kv_cache_dtype in known:
        return known[kv_cache_dtype], "exact"
    return 2, "at most"

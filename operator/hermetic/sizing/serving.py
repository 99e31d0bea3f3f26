"""The settings of an engine that decide how much memory it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import GIB, Gpu

BLOCK = 16
"""Tokens per block of vLLM's key-value cache."""
DEFAULT_UTILIZATION = 92
"""Percent of each GPU's memory that vLLM takes by default, from 0.21 on."""
DEFAULT_BATCHED_TOKENS = 8192
"""Tokens of one step of vLLM on large GPUs, unless `--max-num-batched-tokens` is set."""
CONCURRENT_STEPS = 2
"""Steps that vLLM schedules at a time; with more pipeline stages, as many as there are (`max_concurrent_batches`)."""
STEP_DEFAULTS = ((160 * GIB, 16_384, 1024), (70 * GIB, DEFAULT_BATCHED_TOKENS, 1024), (0, 2048, 256))
"""(least memory of a GPU, tokens of one step, requests at a time): `get_batch_defaults` in vllm/engine/arg_utils.py. An
A100 counts as a small GPU."""
SMALL_STEPS = "A100"


@dataclass(frozen=True, slots=True)
class Lora:
    """Adapters that may be active at a time, and the largest rank."""

    active: int
    rank: int


@dataclass(frozen=True, slots=True)
class Serving:
    """One replica: its GPUs, and the settings of vLLM that decide memory.

    `max_model_length` None means the model's own. `batched_tokens` and `sequences` None: the default for the GPU.
    `inputs_off`: kinds of input that are switched off, of which `*` means all. `not_computed`: settings whose memory
    the formula does not cover, one clause each: with any, the answer is never Fits. `cpu_offload`: bytes of the weights
    of each GPU that stay in the memory of the node. `host_cache`: bytes of the key-value cache there, of all GPUs.
    `nodes`: over which the GPUs are spread evenly.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    max_model_length: int | None = None
    utilization_percent: int = DEFAULT_UTILIZATION
    kv_cache_dtype: str = "auto"
    requests: int = 1
    batched_tokens: int | None = None
    sequences: int | None = None
    expert_parallel: bool = False
    lora: Lora | None = None
    cpu_offload: int = 0
    host_cache: int = 0
    inputs_off: frozenset[str] = frozenset()
    not_computed: tuple[str, ...] = ()
    may_shrink_weights: bool = False
    nodes: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of the replica."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel

    @property
    def step_tokens(self) -> int:
        """Tokens of one step."""
        return self.batched_tokens or DEFAULT_BATCHED_TOKENS

    @property
    def tokens_in_flight(self) -> int:
        """Tokens that are scheduled and not yet settled, at most: `max_in_flight_tokens` in vllm/config/vllm.py."""
        return max(CONCURRENT_STEPS, self.pipeline_parallel) * self.step_tokens

    def on(self, gpu: Gpu) -> Serving:
        """The same with the defaults for this GPU."""
        memory = 0 if gpu.key.startswith(SMALL_STEPS) else gpu.memory.value
        _, tokens, sequences = next(entry for entry in STEP_DEFAULTS if memory >= entry[0])
        return replace(self, batched_tokens=self.batched_tokens or tokens, sequences=self.sequences or sequences)

    def reads(self, inputs: list[str]) -> bool:
        """Whether requests may have any of these kinds of input."""
        return "*" not in self.inputs_off and not self.inputs_off.issuperset(inputs)

    def context(self, facts: ModelFacts) -> int | None:
        """Longest context that the engine must hold, in tokens."""
        return self.max_model_length or facts.max_model_length


KvBytes = tuple[float, Literal["exact", "at most"]]


def kv_bytes(kv_cache_dtype: str) -> KvBytes:
    """Bytes of one value in the key-value cache; an upper bound where the format is not known.

    `auto` is the number format of the model, which vLLM resolves to 16 bits for a checkpoint in float32 too: see
    `weights`. What a checkpoint says of its cache is in `cache_formats`.
    """
    sizes: dict[str, float] = {"auto": 2, "bfloat16": 2, "float16": 2, "float32": 4}
    sizes |= {"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_ds_mla": 1}
    if kv_cache_dtype in sizes:
        return sizes[kv_cache_dtype], "exact"
    return 2, "at most"

"""Whether a model fits into the memory of its GPUs: the arithmetic, and one of four answers.

For each GPU::

    weights     1.02 x bytes of the weights / (tensor parallel x pipeline stages), plus what is replicated
    overhead    2.3 GiB + 5 % of the weights (+ 1 GiB with several GPUs, + LoRA adapters)
    KV cache    of `requests` requests of the longest context
    allowed     utilization x memory of the GPU

The overhead covers activations, CUDA graphs and the collectives library; its constants are those of KAITO's
estimator. The formula is accurate to about 10 %: between 0.9 and 1.1 of what is allowed the answer is Tight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from hermetic.api.model_facts import Attention, ModelFacts
from hermetic.sizing.architectures import why_not_computed
from hermetic.sizing.catalogue import GIB, Gpu, Value
from hermetic.sizing.kv_cache import KvCache, kv_cache
from hermetic.sizing.serving import Lora, Serving, kv_bytes
from hermetic.sizing.weights import WeightBytes, weights_of

EXPANSION = 1.02
"""Factor on the weights for norms, small embeddings and the like, which every GPU holds whole."""
BASE_OVERHEAD = 2.3 * GIB
SHARE_OVERHEAD = 0.05
COLLECTIVES = 1 * GIB
TOLERANCE = 0.1
"""Possible error of the formula, as a share of what is allowed."""


class FitAnswer(StrEnum):
    """Whether a model fits. Unknown must never be treated as Fits."""

    FITS = "Fits"
    TIGHT = "Tight"
    DOES_NOT_FIT = "DoesNotFit"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Fit:
    """The arithmetic of one GPU of a replica; every size in bytes.

    `context` is the longest context asked for, `longest_context` the longest that fits, both in tokens and None where
    they cannot be computed; `needed` is None in the same case. `unknown`: clauses that prevent the answer Fits;
    `cache` is None where the key-value cache cannot be computed.
    """

    answer: FitAnswer
    gpu: Gpu
    serving: Serving
    memory: int
    allowed: int
    weights: int
    overhead: int
    cache: KvCache | None
    context: int | None
    requested: int | None
    longest_context: int | None
    unknown: tuple[str, ...]

    @property
    def needed(self) -> int | None:
        """Weights, overhead and the requested key-value cache."""
        return None if self.requested is None else self.weights + self.overhead + self.requested

    @property
    def spare(self) -> int:
        """Memory left for the key-value cache; negative where the weights alone do not fit."""
        return self.allowed - self.weights - self.overhead

    @property
    def full_requests(self) -> int | None:
        """How many requests of the requested longest context fit at a time."""
        if not self.cache or not self.context:
            return None
        return max(0, self.spare) // max(1, self.cache.request_bytes(self.context))


def fit(facts: ModelFacts, serving: Serving, gpu: Gpu, *, confirmed: bool = True) -> Fit:
    """The answer for GPUs of this kind; `confirmed` False: another value of the VM size is not confirmed."""
    memory: Value[int] = gpu.memory
    allowed = memory.value * serving.utilization_percent // 100
    held = weights_of(facts)
    weights, fewest = weights_per_gpu(facts, serving, held.most), weights_per_gpu(facts, serving, held.least)
    overhead = overhead_per_gpu(facts, serving, weights)
    cache = kv_cache(facts.attention, serving) if facts.attention is not None else None
    context = serving.context(facts)
    requested = cache.request_bytes(context) * serving.requests if cache is not None and context is not None else None
    room = allowed - weights - overhead
    least = fewest + overhead_per_gpu(facts, serving, fewest) + (requested or 0)
    unknown = (*_unknown(facts, serving, gpu, confirmed), *_undecided(least, requested, allowed, room))
    return Fit(
        answer=_answer(held, serving, (weights + overhead, requested, allowed), unknown, confirmed),
        gpu=gpu,
        serving=serving,
        memory=memory.value,
        allowed=allowed,
        weights=weights,
        overhead=overhead,
        cache=cache,
        context=context,
        requested=requested,
        longest_context=cache.longest(room, serving.requests) if cache is not None else None,
        unknown=unknown,
    )


def weights_per_gpu(facts: ModelFacts, serving: Serving, total: int) -> int:
    """Bytes of the weights on the GPU with the most, where all of them together take `total` bytes."""
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


def overhead_per_gpu(facts: ModelFacts, serving: Serving, weights: int) -> int:
    """Bytes for activations, CUDA graphs, collectives and adapters."""
    several = COLLECTIVES if serving.gpus > 1 else 0
    return round(BASE_OVERHEAD + SHARE_OVERHEAD * weights + several + _adapters(facts, serving.lora))


def _adapters(facts: ModelFacts, lora: Lora | None) -> float:
    """An upper bound: both matrices of every projection, whole on each GPU, in 16 bits."""
    attention = facts.attention
    if lora is None or attention is None:
        return 0.0
    hidden, wide = attention.hidden_size, attention.intermediate_size or 4 * attention.hidden_size
    queries, values = attention.heads * attention.head_dimension, attention.key_value_heads * attention.head_dimension
    widths = 2 * (hidden + queries) + 2 * (hidden + values) + 3 * (hidden + wide)
    return 2.0 * lora.active * lora.rank * widths * attention.layers


def _answer(
    weights: WeightBytes,
    serving: Serving,
    sizes: tuple[int, int | None, int],
    unknown: tuple[str, ...],
    confirmed: bool,
) -> FitAnswer:
    held, requested, allowed = sizes
    too_much = allowed * (1 + TOLERANCE)
    if confirmed and not serving.may_shrink_weights and weights.least / serving.gpus > too_much:
        return FitAnswer.DOES_NOT_FIT  # the weights alone are too large
    if unknown or requested is None:
        return FitAnswer.UNKNOWN
    needed = held + requested
    if needed > too_much:
        return FitAnswer.DOES_NOT_FIT
    return FitAnswer.TIGHT if needed > allowed * (1 - TOLERANCE) else FitAnswer.FITS


def _unknown(facts: ModelFacts, serving: Serving, gpu: Gpu, confirmed: bool) -> Iterator[str]:
    yield from facts.not_computed
    family = why_not_computed(facts.model_type)
    if family is not None and family not in facts.not_computed:
        yield family
    if facts.attention is None and not facts.not_computed:
        yield "layers and heads of the model are not known"
    if serving.context(facts) is None:
        yield "the longest context is not known: neither the deployment nor config.json contains it"
    if kv_bytes(serving.kv_cache_dtype)[1] != "exact":
        yield f"the size of the key-value format '{serving.kv_cache_dtype}' is not known"
    if serving.lora is not None and facts.experts is not None:
        yield "adapters of the experts are not computed"
    yield from serving.not_computed
    if not confirmed or not gpu.memory.confirmed:
        yield f"the memory of {gpu.name} in this VM size is not confirmed"


def _undecided(least: int, requested: int | None, allowed: int, room: int) -> Iterator[str]:
    """A clause where the answer depends on which weights stay in float32.

    `least` is what is needed if as few as possible do, `room` what is left beside the weights if all of them do.
    """
    too_much = allowed * (1 + TOLERANCE)
    if requested is not None and least <= too_much < allowed - room + requested:
        yield "which of the weights the engine keeps in float32 is not known"

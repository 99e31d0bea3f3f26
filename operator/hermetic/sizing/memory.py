"""Whether a model fits into the memory of its GPUs: the arithmetic, and one of four answers.

For each GPU::

    weights     1.02 x bytes of the weights / (tensor parallel x pipeline stages), plus what is replicated
    overhead    2.3 GiB + 5 % of the weights (+ 1 GiB with several GPUs, + LoRA adapters, + encoders)
    KV cache    of `requests` requests of the longest context
    allowed     utilization x memory of the GPU

The overhead covers activations, CUDA graphs and the collectives library; its constants are those of KAITO's
estimator. The formula is accurate to about 10 %: between 0.9 and 1.1 of what is allowed the answer is Tight. Where a
value is known within bounds only, what fits is judged by the larger and what does not by the smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.cache_formats import value_bytes
from hermetic.sizing.catalogue import Gpu
from hermetic.sizing.kv_cache import KvCache, kv_cache
from hermetic.sizing.limits import not_computed, unconfirmed
from hermetic.sizing.overhead import adapter_bytes, encoder_bytes, overhead_per_gpu
from hermetic.sizing.serving import Serving
from hermetic.sizing.weights import weights_of, weights_per_gpu

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
    they cannot be computed; `needed` is None in the same case. `adapters`: part of `overhead`. `encoder`: memory of
    encoders at work. `reserved`: what the recurrent states of all requests at a time take beyond `requested`.
    `offloaded`: bytes of the weights that stay in the memory of the node; `weights` are those on the GPU. `unknown`:
    clauses that prevent the answer Fits; `cache` is None where the key-value cache cannot be computed.
    """

    answer: FitAnswer
    gpu: Gpu
    serving: Serving
    memory: int
    allowed: int
    weights: int
    overhead: int
    adapters: int
    encoder: int
    cache: KvCache | None
    context: int | None
    requested: int | None
    reserved: int
    offloaded: int
    longest_context: int | None
    unknown: tuple[str, ...]

    @property
    def needed(self) -> int | None:
        """Weights, overhead, encoders and the requested key-value cache."""
        return None if self.requested is None else self.taken + self.requested + self.reserved

    @property
    def taken(self) -> int:
        """What is taken without any request."""
        return self.weights + self.overhead + self.encoder

    @property
    def spare(self) -> int:
        """Memory left for the key-value cache; negative where the weights alone do not fit."""
        return self.allowed - self.taken

    @property
    def full_requests(self) -> int | None:
        """How many requests of the requested longest context fit at a time."""
        if not self.cache or not self.context:
            return None
        return max(0, self.spare) // max(1, self.cache.request_bytes(self.context))


@dataclass(frozen=True, slots=True)
class Demand:
    """Bytes of one GPU by one side of the bounds; `offloaded` are not on the GPU."""

    weights: int
    overhead: int
    encoder: int
    cache: KvCache | None
    requested: int | None
    reserved: int
    offloaded: int

    @property
    def needed(self) -> int:
        return self.weights + self.overhead + self.encoder + (self.requested or 0) + self.reserved


def fit(facts: ModelFacts, serving: Serving, gpu: Gpu, *, confirmed: bool = True) -> Fit:
    """The answer for GPUs of this kind; `confirmed` False: another value of the VM size is not confirmed."""
    serving = serving.on(gpu)
    allowed = gpu.memory.value * serving.utilization_percent // 100
    clauses = tuple(not_computed(facts, serving, gpu))
    most, least = _most(facts, serving, is_computed=not clauses), _least(facts, serving, is_computed=not clauses)
    doubts = tuple(_undecided(facts, serving, (least, most), allowed))
    unknown = (*clauses, *doubts, *unconfirmed(gpu, confirmed=confirmed))
    room = allowed - most.weights - most.overhead - most.encoder
    return Fit(
        answer=_answer(
            facts, serving, (least, most), allowed, unknown, is_confirmed=confirmed and gpu.memory.confirmed
        ),
        gpu=gpu,
        serving=serving,
        memory=gpu.memory.value,
        allowed=allowed,
        weights=most.weights,
        overhead=most.overhead,
        adapters=adapter_bytes(facts, serving.lora),
        encoder=most.encoder,
        cache=most.cache,
        context=serving.context(facts),
        requested=most.requested,
        reserved=most.reserved,
        offloaded=most.offloaded,
        longest_context=most.cache.longest(room, serving.requests) if most.cache is not None else None,
        unknown=unknown,
    )


def _most(facts: ModelFacts, serving: Serving, *, is_computed: bool) -> Demand:
    weights, overhead, offloaded = _weights(facts, serving, weights_per_gpu(facts, serving).most)
    if not is_computed or facts.attention is None:
        return Demand(weights, overhead, 0, None, None, 0, offloaded)
    cache = kv_cache(facts.attention, serving, value_bytes(facts, serving).most)
    requested = cache.request_bytes(serving.context(facts) or 0) * serving.requests
    reserved = max(0, round((serving.sequences or 0) * cache.state_block) - requested)
    encoders = sum(encoder_bytes(part, serving) or 0 for part in facts.encoders if serving.reads(part.inputs))
    return Demand(weights, overhead, encoders, cache, requested, reserved, offloaded)


def _least(facts: ModelFacts, serving: Serving, *, is_computed: bool) -> Demand:
    """Encoders are counted by an upper bound, and states of requests that no release may reserve: neither counts."""
    weights, overhead, offloaded = _weights(facts, serving, weights_per_gpu(facts, serving).least)
    if not is_computed or facts.attention is None:
        return Demand(weights, overhead, 0, None, None, 0, offloaded)
    cache = kv_cache(facts.attention, serving, value_bytes(facts, serving).least)
    context = serving.max_model_length or facts.certain_model_length or facts.max_model_length or 0
    return Demand(weights, overhead, 0, cache, cache.request_bytes(context) * serving.requests, 0, offloaded)


def _weights(facts: ModelFacts, serving: Serving, weights: int) -> tuple[int, int, int]:
    """(weights on the GPU, overhead, weights in the memory of the node) in bytes.

    vLLM moves parameters until their sum reaches `cpu_offload` (vllm/model_executor/offloader/uva.py of 0.33.0).
    """
    offloaded = min(serving.cpu_offload, weights)
    return weights - offloaded, overhead_per_gpu(facts, serving, weights), offloaded


def _answer(
    facts: ModelFacts,
    serving: Serving,
    bounds: tuple[Demand, Demand],
    allowed: int,
    unknown: tuple[str, ...],
    *,
    is_confirmed: bool,
) -> FitAnswer:
    least, most = bounds
    fewest = weights_of(facts, serving).least / serving.gpus - serving.cpu_offload
    if is_confirmed and not serving.may_shrink_weights and fewest > allowed * (1 + TOLERANCE):
        return FitAnswer.DOES_NOT_FIT  # the weights alone are too large
    if unknown or most.requested is None:
        return FitAnswer.UNKNOWN
    if least.needed > allowed * (1 + TOLERANCE):
        return FitAnswer.DOES_NOT_FIT
    if most.needed > allowed * (1 + TOLERANCE):
        return FitAnswer.UNKNOWN
    # Every step waits for offloaded weights, and which parameters stay on the GPU is known to about one of them.
    is_tight = most.offloaded > 0 or most.needed > allowed * (1 - TOLERANCE)
    return FitAnswer.TIGHT if is_tight else FitAnswer.FITS


def _undecided(facts: ModelFacts, serving: Serving, bounds: tuple[Demand, Demand], allowed: int) -> Iterator[str]:
    """A clause for each value within bounds, where the answer depends on it."""
    least, most = bounds
    too_much = allowed * (1 + TOLERANCE)
    if most.requested is None or not least.needed <= too_much < most.needed:
        return
    total, formats = weights_of(facts, serving), value_bytes(facts, serving)
    if total.least < total.most:
        yield "which of the weights the engine keeps in float32 is not known"
    if least.weights / max(1, total.least) < most.weights / max(1, total.most) * 0.999:
        yield "how many bytes of the weights are experts is not known, which data parallel ranks divide"
    if formats.least < formats.most:
        yield "releases of vLLM differ in the key-value format that they take by default; set `kvCacheDtype`"
    if facts.certain_model_length is not None and serving.max_model_length is None:
        yield "releases of vLLM differ in the longest context of this model; set `maxModelLength`"
    if most.encoder:
        yield "images or sound may need more than is left; switch them off with `--language-model-only`"
    if most.reserved:
        yield (
            f"vLLM keeps a state for each of {serving.sequences} requests at a time, and fewer fit; set "
            f"`--max-num-seqs` to at most {_fewer(most, allowed)}"
        )


def _fewer(most: Demand, allowed: int) -> int:
    """How many requests at a time have room for their states."""
    room = allowed - most.weights - most.overhead - most.encoder
    return max(1, int(room // most.cache.state_block)) if most.cache is not None and most.cache.state_block else 1

"""Whether the model fits the GPUs that its pods may get, from the facts in the spec; without facts nothing is checked.

A model that fits on none of the sizes is refused before a pod exists, with the arithmetic. If it is tight, or fits on
some of the sizes only, pods start and the condition says so; if it cannot be computed, it is Unknown and pods start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.conditions import ConditionType
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.model_facts import ModelFacts
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.registry import engine_of
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.scheduling import eligible_nodes
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.vm_sizes import demand_of, sizes_for
from hermetic.sizing.catalogue import GIB, Size, nearest_size
from hermetic.sizing.load_time import offload_clause
from hermetic.sizing.memory import Fit, FitAnswer
from hermetic.sizing.placement import Listing, Placement, impossible, offer_of, place, too_long
from hermetic.sizing.serving import Serving

_KIND = ConditionType.MODEL_FITS


@dataclass(frozen=True, slots=True)
class ModelPlacement:
    """The model on each VM size that its pods may get, and why it can serve on none of them.

    `unlisted`: names of sizes that the catalogue lacks.
    """

    block: Blocks | None
    placed: tuple[Placement, ...] = ()
    unlisted: tuple[str, ...] = ()

    @property
    def deciding(self) -> Placement | None:
        """The VM size that ModelFits is about; None where no size is known."""
        return _deciding(self.placed) if self.placed else None

    def condition(self) -> ConditionUpdate:
        if self.block is not None:
            return ConditionUpdate(_KIND, self.block.truth, self.block.reason, self.block.message)
        if doubt := next(_doubts(self.placed, self.unlisted), ""):
            return ConditionUpdate(_KIND, "Unknown", SpecReason.GPU_MEMORY_UNKNOWN, doubt)
        return _of_size(_deciding(self.placed))


def model_fits_the_gpus(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The model can be divided over its GPUs, and at least one of the VM sizes has the memory."""
    placement = model_placement(spec, snapshot)
    return HOLDS if placement is None else placement.block or HOLDS


def model_placement(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> ModelPlacement | None:
    """The model on the sizes that the spec names, or else on those of the nodes; None for a spec without facts."""
    facts = spec.weights.facts
    if facts is None:
        return None
    serving = engine_of(spec).serving(spec)
    listed, unlisted = sizes_for(spec, snapshot)
    placed = tuple(
        place(facts, serving, size, demand_of(spec), listing)
        for size in listed
        for listing in _listings_of(size, spec, snapshot)
    )
    block = _indivisible(facts, serving) or _too_long(facts, serving) or _too_large(placed, unlisted)
    return ModelPlacement(block, placed, tuple(unlisted))


def _indivisible(facts: ModelFacts, serving: Serving) -> Blocks | None:
    clause = next(impossible(facts, serving), "")
    if not clause:
        return None
    return Blocks(
        SpecReason.TENSOR_PARALLEL_IMPOSSIBLE,
        f"the model cannot be cut over {serving.tensor_parallel} GPUs: {clause}; "
        "'hermetic plan' lists the numbers of GPUs that work",
        _KIND,
        field="spec.accelerator.count",
    )


def _too_long(facts: ModelFacts, serving: Serving) -> Blocks | None:
    clause = next(too_long(facts, serving), "")
    if not clause:
        return None
    message = (
        f"{clause}: the engine would end; set `maxModelLength` to at most {facts.max_model_length}, or leave it out"
    )
    return Blocks(EngineReason.CONTEXT_TOO_LONG, message, _KIND, field="spec.engine.vllm.maxModelLength")


def _too_large(placed: tuple[Placement, ...], unlisted: list[str]) -> Blocks | None:
    if unlisted or not placed or not _fits_on_none(placed):
        return None
    best = _deciding(placed)
    message = f"{_arithmetic(best)}. {_remedy(best.fit)}"
    return Blocks(SpecReason.INSUFFICIENT_GPU_MEMORY, message, _KIND, field="spec.accelerator")


def _of_size(worst: Placement) -> ConditionUpdate:
    if worst.fit.answer is FitAnswer.DOES_NOT_FIT:
        arithmetic = f"{_arithmetic(worst)}; leave that size out of `accelerator.instanceTypes`"
        return ConditionUpdate(
            _KIND, "True", SpecReason.GPU_MEMORY_TIGHT, f"fits on some of the VM sizes only: {arithmetic}"
        )
    if worst.fit.answer is FitAnswer.TIGHT:
        clause = offload_clause(worst.fit) or "the estimate is good to a tenth, and the engine may refuse to start"
        return ConditionUpdate(_KIND, "True", SpecReason.GPU_MEMORY_TIGHT, f"{_arithmetic(worst)}; {clause}")
    return ConditionUpdate(_KIND, "True", SpecReason.GPU_MEMORY_SUFFICIENT, _arithmetic(worst))


def _deciding(placed: tuple[Placement, ...]) -> Placement:
    """The size with least room, or with most where the model fits on none."""
    return (max if _fits_on_none(placed) else min)(placed, key=lambda placement: _room(placement.fit))


def _fits_on_none(placed: tuple[Placement, ...]) -> bool:
    return all(placement.fit.answer is FitAnswer.DOES_NOT_FIT for placement in placed)


def _listings_of(size: Size, spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> list[Listing] | list[None]:
    """What its nodes that offer the GPUs show, one for each thing that they offer by that name."""
    resource = spec.accelerator.resource
    listings = (
        Listing(node.labels, node.gpus[resource])
        for node in eligible_nodes(spec, snapshot.nodes)
        if node.instance_type == size.name
    )
    offers = {offer_of(size, resource, listing): listing for listing in listings}
    # The order of nodes in memory differs between runs; the sentence, which is written to the status, must not.
    ordered = sorted(offers, key=lambda offer: (offer.gpu.memory.value, offer.gpu.name, offer.unknown))
    return [offers[offer] for offer in ordered] or [None]


def _doubts(placed: tuple[Placement, ...], unlisted: tuple[str, ...]) -> Iterator[str]:
    if not placed and not unlisted:
        yield "no VM size is known: `accelerator.instanceTypes` names none, and no node offers the GPUs"
    if unlisted:
        yield f"the memory of VM size {', '.join(map(_with_nearest, unlisted))} is not known"
    for placement in placed:
        if placement.fit.answer is FitAnswer.UNKNOWN:
            yield f"{placement.size.name}: {'; '.join(placement.fit.unknown)}"


def _with_nearest(name: str) -> str:
    nearest = nearest_size(name)
    return name if nearest is None else f"{name} (did you mean {nearest}?)"


def _remedy(fit: Fit) -> str:
    shorter = f"Set the context to at most {fit.longest_context} tokens, use" if fit.longest_context else "Use"
    return f"{shorter} more GPUs or a larger VM size; 'hermetic plan' compares them"


def _room(fit: Fit) -> float:
    """Memory left, as a share of what is allowed; for weights alone where the rest is not known."""
    needed = fit.needed if fit.needed is not None else fit.weights
    return 1 - needed / max(1, fit.allowed)


def _arithmetic(placement: Placement) -> str:
    fit, serving = placement.fit, placement.fit.serving
    parts = [f"weights {_gib(fit.weights)}", f"overhead {_gib(fit.overhead + fit.encoder)}"]
    if fit.requested is not None:
        parts.append(f"key-value cache of {fit.context} tokens {_gib(fit.requested)}")
    if fit.reserved:
        parts.append(f"states of {serving.sequences} requests at a time {_gib(fit.reserved)}")
    total = fit.needed if fit.needed is not None else fit.weights + fit.overhead
    return (
        f"each of {serving.gpus} GPUs needs {_gib(total)} ({', '.join(parts)}), and the engine may take "
        f"{serving.utilization_percent} % of {_gib(fit.memory)} = {_gib(fit.allowed)} on {placement.size.name} "
        f"({fit.gpu.name})"
    )


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"

"""A deployment as written, on one VM size: whether GPUs, parallelism and memory suffice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import GIB, Size, interconnects
from hermetic.sizing.memory import Fit, FitAnswer, fit
from hermetic.sizing.parallelism import broken_rules
from hermetic.sizing.serving import Serving
from hermetic.sizing.slices import WHOLE_GPUS, Offer, offered, why_not_offered


@dataclass(frozen=True, slots=True)
class Demand:
    """What one pod asks of its VM: GPUs by their extended resource, CPUs, and memory in bytes.

    `memory_fields`: the fields of the spec that make up the memory. `infiniband`: its VM must have InfiniBand.
    """

    resource: str
    gpus: int
    cpus: Decimal
    memory: Decimal
    memory_fields: str = "`resources.memory`"
    infiniband: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """What a node shows of its GPUs: its labels, and how many of the extended resource it lists."""

    labels: Mapping[str, str]
    units: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer for one VM size; `objections` are reasons against it other than memory, one clause each."""

    size: Size
    fit: Fit
    objections: tuple[str, ...]

    @property
    def answer(self) -> FitAnswer:
        """The answer for memory; DoesNotFit where there are objections."""
        return FitAnswer.DOES_NOT_FIT if self.objections else self.fit.answer


def place(facts: ModelFacts, serving: Serving, size: Size, demand: Demand, listing: Listing | None = None) -> Placement:
    """The deployment on this VM size; `listing` is what a node of it shows, where there is one."""
    offer = offer_of(size, demand.resource, listing)
    fit_result = fit(facts, on_offer(serving, offer), offer.gpu, confirmed=size.confirmed)
    return Placement(
        size, fit_result, (*shortcomings(size, demand), *impossible(facts, serving), *too_long(facts, serving))
    )


def offer_of(size: Size, resource: str, listing: Listing | None) -> Offer:
    """What one `resource` on a VM of this size is."""
    if listing is None:
        return offered(size.gpu, resource)
    # A number of GPUs that is not confirmed contradicts nothing.
    gpus = size.gpus.value if size.gpus.confirmed else max(listing.units, 1)
    return offered(size.gpu, resource, listing.labels, units_per_gpu=listing.units / gpus)


def on_offer(serving: Serving, offer: Offer) -> Serving:
    """The same, with what is not known of the GPUs or slices that are offered."""
    divided = (offer.undivided,) if offer.undivided and serving.gpus > 1 else ()
    return replace(serving, not_computed=(*serving.not_computed, *offer.unknown, *divided))


def shortcomings(size: Size, demand: Demand) -> Iterator[str]:
    """A clause for each thing that the size lacks for such a pod. Values that are not confirmed object to nothing."""
    if clause := why_not_offered(demand.resource, size.gpu):
        yield clause
    if demand.resource in WHOLE_GPUS and size.gpus.confirmed and demand.gpus > size.gpus.value:
        yield f"it has {size.gpus.value} GPUs, and the deployment asks for {demand.gpus}"
    if size.vcpus.confirmed and demand.cpus > size.vcpus.value:
        yield f"it has {size.vcpus.value} vCPUs, and `resources.cpu` asks for {demand.cpus.normalize():f}"
    if size.ram.confirmed and demand.memory > size.ram.value:
        requested = f"{demand.memory_fields} asks for {demand.memory / GIB:.0f} GiB"
        yield f"it has {size.ram.value / GIB:.0f} GiB, and {requested}"
    if demand.infiniband and size.name not in interconnects():
        yield "it has no InfiniBand, and `accelerator.interconnect` asks for it"


def impossible(facts: ModelFacts, serving: Serving) -> Iterator[str]:
    """Rules of tensor parallelism and pipeline stages that the deployment breaks on every size."""
    return broken_rules(
        facts,
        serving.tensor_parallel,
        serving.pipeline_parallel,
        data_parallel=serving.data_parallel,
        expert_parallel=serving.expert_parallel,
    )


def too_long(facts: ModelFacts, serving: Serving) -> Iterator[str]:
    """A clause where vLLM refuses the longest context: `_get_and_verify_max_len` in vllm/config/model.py.

    Only where everything else is computed: flags may change config.json, and other engines derive other lengths.
    """
    requested, longest = serving.max_model_length or 0, facts.max_model_length or 0
    if 0 < longest < requested and not facts.not_computed and not serving.not_computed:
        yield f"a context of {requested} tokens is longer than the {longest} of the model"

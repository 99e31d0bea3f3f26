"""One model on every VM size: the fewest GPUs on which it fits, with sizes ordered by cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import Size
from hermetic.sizing.memory import Fit, FitAnswer, fit
from hermetic.sizing.parallelism import possible
from hermetic.sizing.placement import on_offer
from hermetic.sizing.serving import Serving
from hermetic.sizing.slices import offered, why_not_offered

BEST_FIRST = (FitAnswer.FITS, FitAnswer.TIGHT, FitAnswer.UNKNOWN, FitAnswer.DOES_NOT_FIT)


@dataclass(frozen=True, slots=True)
class Choice:
    """One VM size, and the tensor parallelism that serves best on it; `fit` None where no parallelism is possible."""

    size: Size
    fit: Fit | None

    @property
    def answer(self) -> FitAnswer:
        return self.fit.answer if self.fit is not None else FitAnswer.DOES_NOT_FIT


def choose(facts: ModelFacts, serving: Serving, size: Size, resource: str | None = None) -> Choice:
    """The smallest tensor parallelism with the best answer on one node of this size.

    `resource`: the extended resource, where it is of slices or shared GPUs, of which a pod takes one.
    """
    if resource is not None and why_not_offered(resource, size.gpu):
        return Choice(size, None)
    offer = offered(size.gpu, resource or "nvidia.com/gpu")
    fits = [
        fit(
            facts,
            replace(on_offer(serving, offer), tensor_parallel=parts, pipeline_parallel=1, data_parallel=1),
            offer.gpu,
            confirmed=size.confirmed,
        )
        for parts in possible(facts, size.gpus.value if resource is None else 1)
    ]
    # A model that does not fit is shown with all GPUs: the smallest amount that is missing.
    best = min(fits, key=lambda fit_result: (BEST_FIRST.index(fit_result.answer), _gpus(fit_result)), default=None)
    return Choice(size, best)


def _gpus(fit_result: Fit) -> int:
    return -fit_result.serving.gpus if fit_result.answer is FitAnswer.DOES_NOT_FIT else fit_result.serving.gpus


def compare(
    facts: ModelFacts,
    serving: Serving,
    sizes: Iterable[Size],
    prices: Mapping[str, float] | None = None,
    *,
    resource: str | None = None,
) -> tuple[Choice, ...]:
    """Every size: those that fit first, then the cheapest by the given prices, or by resources of the VM.

    Hermetic has no price list. Without prices a VM with less GPU memory, then with fewer CPUs and less memory, counts
    as cheaper; with them, sizes without a price come after those with one. `resource` as in `choose`.
    """
    price_table = prices or {}

    def order(choice: Choice) -> tuple[int, bool, float, int, int, int, str]:
        size = choice.size
        memory = size.gpus.value * size.gpu.memory.value
        price = price_table.get(size.name, float("inf"))
        # Among equal answers, a size whose GPUs cannot hold the weights comes last.
        is_too_small = choice.fit is not None and choice.fit.spare < 0
        cost = (price, memory, size.vcpus.value, size.ram.value)
        return (BEST_FIRST.index(choice.answer), is_too_small, *cost, size.name)

    return tuple(sorted((choose(facts, serving, size, resource) for size in sizes), key=order))

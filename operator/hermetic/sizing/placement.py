"""A deployment as written, on one VM size: whether GPUs, parallelism and memory suffice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import Size
from hermetic.sizing.memory import Fit, FitAnswer, fit
from hermetic.sizing.parallelism import broken_rules
from hermetic.sizing.serving import Serving

VENDOR_OF = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd"}


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


def place(facts: ModelFacts, serving: Serving, size: Size, resource: str) -> Placement:
    """The deployment on this VM size; `resource` is the extended resource that it asks for."""
    found = fit(facts, serving, size.gpu, confirmed=size.confirmed)
    return Placement(size, found, tuple(_objections(facts, serving, size, resource)))


def _objections(facts: ModelFacts, serving: Serving, size: Size, resource: str) -> Iterator[str]:
    vendor = VENDOR_OF.get(resource)
    if vendor is not None and vendor != size.gpu.vendor:
        yield f"it has GPUs of {size.gpu.name}, and the deployment asks for {resource}"
    if serving.gpus > size.gpus.value:
        yield f"it has {size.gpus.value} GPUs, and the deployment asks for {serving.gpus}"
    yield from impossible(facts, serving)
    yield from too_long(facts, serving)


def impossible(facts: ModelFacts, serving: Serving) -> Iterator[str]:
    """Rules of tensor parallelism and pipeline stages that the deployment breaks on every size."""
    return broken_rules(
        facts, serving.tensor_parallel, serving.pipeline_parallel, expert_parallel=serving.expert_parallel
    )


def too_long(facts: ModelFacts, serving: Serving) -> Iterator[str]:
    """A clause where vLLM refuses the longest context: `_get_and_verify_max_len` in vllm/config/model.py.

    Only where everything else is computed: flags may change config.json, and other engines derive other lengths.
    """
    asked, longest = serving.max_model_length or 0, facts.max_model_length or 0
    if 0 < longest < asked and not facts.not_computed and not serving.not_computed:
        yield f"a context of {asked} tokens is longer than the {longest} of the model"

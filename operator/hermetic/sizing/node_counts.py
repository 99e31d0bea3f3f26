"""One large node compared with several smaller ones: on each VM size the fewest nodes on which a model fits.

With several nodes, each has a pipeline stage, and its GPUs share each layer: between nodes only activations pass then.
Tensor parallelism over nodes would send every layer's partial sums, which Ethernet is too slow for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import Size, Storage, interconnects, sizes
from hermetic.sizing.comparison import BEST_FIRST
from hermetic.sizing.load_time import LoadTime, files_of, load_time, pcie_rate
from hermetic.sizing.memory import Fit, FitAnswer, fit
from hermetic.sizing.parallelism import broken_rules, possible
from hermetic.sizing.serving import Serving

MOST_NODES = 16
"""The largest `accelerator.nodes`."""
ENOUGH = (FitAnswer.FITS, FitAnswer.TIGHT)


@dataclass(frozen=True, slots=True)
class Loading:
    """What the weights are read from, by so many replicas that start together."""

    storage: Storage
    replicas: int


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """A replica of so many nodes of one size, and the time that its weights take to load from the given storage."""

    nodes: int
    size: Size
    fit: Fit
    load: LoadTime

    @property
    def gpus_per_node(self) -> int:
        return self.fit.serving.gpus // self.nodes

    @property
    def network(self) -> str:
        """The fastest network between the nodes; "" for one node."""
        if self.nodes == 1:
            return ""
        return "InfiniBand" if self.size.name in interconnects() else "Ethernet"


def compare_nodes(
    facts: ModelFacts,
    serving: Serving,
    loading: Loading,
    *,
    most: int,
    prices: Mapping[str, float] | None,
    vendor: str,
) -> tuple[NodeChoice, ...]:
    """Every size on which the model fits on at most `most` nodes: the cheapest first, by the prices of all its nodes.

    Without prices less GPU memory counts as cheaper. `vendor`: of the GPUs.
    """
    price_table = prices or {}

    def order(choice: NodeChoice) -> tuple[int, float, int, int, str]:
        price = price_table.get(choice.size.name, float("inf")) * choice.nodes
        memory = choice.size.gpus.value * choice.size.gpu.memory.value * choice.nodes
        return (BEST_FIRST.index(choice.fit.answer), price, memory, choice.nodes, choice.size.name)

    suitable = (size for size in sizes().values() if size.gpu.vendor == vendor)
    choices = (_fewest(facts, serving, size, loading, most) for size in suitable)
    return tuple(sorted((choice for choice in choices if choice is not None), key=order))


def _fewest(facts: ModelFacts, serving: Serving, size: Size, loading: Loading, most: int) -> NodeChoice | None:
    for nodes in range(1, most + 1):
        fits = [result for result in _fits(facts, serving, size, nodes) if result.answer in ENOUGH]
        if fits:
            best = min(fits, key=lambda result: (BEST_FIRST.index(result.answer), result.serving.gpus))
            return NodeChoice(nodes, size, best, _load(facts, best, size, loading))
    return None


def _fits(facts: ModelFacts, serving: Serving, size: Size, nodes: int) -> Iterator[Fit]:
    """Every number of GPUs of each node that divides the model."""
    for parts in possible(facts, size.gpus.value):
        if not any(broken_rules(facts, parts, nodes)):
            divided = replace(serving, tensor_parallel=parts, pipeline_parallel=nodes, data_parallel=1, nodes=nodes)
            yield fit(facts, divided, size.gpu, confirmed=size.confirmed)


def _load(facts: ModelFacts, result: Fit, size: Size, loading: Loading) -> LoadTime:
    """Each node is counted as reading every file: one that maps them reads less."""
    pcie, readers = pcie_rate(size.gpu, result.serving.gpus), loading.replicas * result.serving.nodes
    return load_time(files_of(facts), loading.storage, nic=size.nic, pcie=pcie, replicas=readers)

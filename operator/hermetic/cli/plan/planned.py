"""One deployment with its facts and all results of `hermetic plan`. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hermetic.api.model_facts import ModelFacts
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.registry import FLAG_ENGINES, engine_of
from hermetic.plan.vm_sizes import demand_of
from hermetic.sizing.catalogue import MIB, Size, Storage, Value, sizes, storages
from hermetic.sizing.comparison import BEST_FIRST, Choice, compare
from hermetic.sizing.load_time import (
    Files,
    HostCache,
    LoadTime,
    Offload,
    files_of,
    files_wanted,
    host_cache,
    load_time,
    offload,
    pcie_rate,
    startup_budget,
)
from hermetic.sizing.memory import FitAnswer
from hermetic.sizing.node_counts import ENOUGH, MOST_NODES, Loading, NodeChoice, compare_nodes
from hermetic.sizing.placement import Placement, impossible, place, too_long
from hermetic.sizing.slices import WHOLE_GPUS, vendor_of


@dataclass(frozen=True, slots=True)
class Question:
    """What the command line asks for; None where it is left to the manifest, or not known.

    `share`: the rate of the share in MiB/s, which then comes first of the kinds of storage. `nodes`: of a replica, at
    most, in the comparison; None for those of the deployment, or for any number where the model fits on no single node.
    """

    instance_type: str | None = None
    share: float | None = None
    prices: Mapping[str, float] | None = None
    nodes: int | None = None


NO_QUESTION = Question()


@dataclass(frozen=True, slots=True)
class Load:
    """The weights from one kind of storage: load time, start-up budget, and the files that its cap requires."""

    storage: Storage
    time: LoadTime
    budget: int
    files_wanted: int


@dataclass(frozen=True, slots=True)
class StagedAdapter:
    """One adapter of the manifest.

    `needed`: the `rank` that holds every module of its files, None where they were not read or are wrong. `problems`:
    why the engine does not load it. `unread`: why its files were not read, "" where they were.
    """

    name: str
    declared: int
    needed: int | None = None
    problems: tuple[str, ...] = ()
    unread: str = ""

    @property
    def line(self) -> str:
        """One line for people, without its problems."""
        if self.unread:
            return f"adapter {self.name}: not read: {self.unread}"
        needed = f"; its files need {self.needed}" if self.needed is not None else ""
        return f"adapter {self.name}: `rank` {self.declared}{needed}"


@dataclass(frozen=True, slots=True)
class Planned:
    """All results for one deployment.

    `named` are the VM sizes that the deployment or the command line names, with the deployment's parallelism;
    `unlisted` those that the catalogue does not have. `choices` are all sizes with the best parallelism of each, on one
    node. `node_choices` are the sizes on which the model fits on one node or several, loaded from `loads[0]`; () where
    nothing asks for several nodes. `adapters` are those of the manifest, where a staged folder was named.
    """

    namespace: str
    name: str
    spec: ModelDeploymentSpec
    facts: ModelFacts
    named: tuple[Placement, ...]
    unlisted: tuple[str, ...]
    impossible: tuple[str, ...]
    choices: tuple[Choice, ...]
    loads: tuple[Load, ...]
    files: Files
    node_choices: tuple[NodeChoice, ...] = ()
    adapters: tuple[StagedAdapter, ...] = ()

    @property
    def answer(self) -> FitAnswer:
        """The worst answer of the named sizes; without any, the best of all sizes."""
        if self.impossible:
            return FitAnswer.DOES_NOT_FIT
        if self.named or self.unlisted:
            answers = [*(placement.answer for placement in self.named), *(FitAnswer.UNKNOWN for _ in self.unlisted)]
            return max(answers, key=_severity)
        return min((choice.answer for choice in self.choices), key=BEST_FIRST.index)

    @property
    def shown(self) -> Placement | None:
        """The size whose arithmetic is shown: the first that is named."""
        return self.named[0] if self.named else None

    @property
    def host_cache(self) -> HostCache | None:
        """The key-value cache in the memory of the node, on the size that is shown."""
        return host_cache(self.shown.fit) if self.shown is not None else None

    @property
    def offload(self) -> Offload | None:
        """The cost of what is kept in the memory of the node, and of what would have to be."""
        return offload(self.shown.fit) if self.shown is not None else None


def _severity(answer: FitAnswer) -> int:
    # An unknown size prevents the answer Fits; a size that does not fit decides it.
    return BEST_FIRST.index(answer)


def planned(
    identity: tuple[str, str],
    spec: ModelDeploymentSpec,
    facts: ModelFacts,
    question: Question = NO_QUESTION,
    adapters: tuple[StagedAdapter, ...] = (),
) -> Planned:
    """The results for a deployment. `adapters` are those of the manifest with what their files say."""
    catalogue, serving = sizes(), engine_of(spec).serving(spec)
    named_size = question.instance_type
    size_names = [named_size] if named_size is not None else spec.accelerator.instance_types
    named = tuple(place(facts, serving, catalogue[name], demand_of(spec)) for name in size_names if name in catalogue)
    part = spec.accelerator.resource if spec.accelerator.resource not in WHOLE_GPUS else None
    choices = compare(facts, serving, catalogue.values(), question.prices, resource=part)
    on = named[0].size if named else (choices[0].size if choices else None)
    kinds, replicas = _kinds(question.share), max(1, spec.wanted_replicas)
    most = question.nodes or _nodes_to_compare(spec, choices)
    return Planned(
        namespace=identity[0],
        name=identity[1],
        spec=spec,
        facts=facts,
        named=named,
        unlisted=tuple(name for name in size_names if name not in catalogue),
        impossible=(*impossible(facts, serving), *too_long(facts, serving), *_problems_of(adapters)),
        choices=choices,
        loads=tuple(_loads(facts, on, serving.gpus, replicas * spec.accelerator.nodes, kinds)),
        files=files_of(facts),
        node_choices=_node_choices(facts, spec, kinds[0], most, question.prices),
        adapters=adapters,
    )


def _node_choices(
    facts: ModelFacts, spec: ModelDeploymentSpec, storage: Storage, most: int, prices: Mapping[str, float] | None
) -> tuple[NodeChoice, ...]:
    if most == 1 or spec.engine.member not in FLAG_ENGINES or spec.accelerator.resource not in WHOLE_GPUS:
        return ()
    return compare_nodes(
        facts,
        engine_of(spec).serving(spec),
        Loading(storage, max(1, spec.wanted_replicas)),
        most=most,
        prices=prices,
        vendor=vendor_of(spec.accelerator.resource),
    )


def _nodes_to_compare(spec: ModelDeploymentSpec, choices: Iterable[Choice]) -> int:
    if spec.accelerator.nodes > 1:
        return spec.accelerator.nodes
    return 1 if any(choice.answer in ENOUGH for choice in choices) else MOST_NODES


def _problems_of(adapters: tuple[StagedAdapter, ...]) -> Iterator[str]:
    """Why engines do not load some of them, each with the `rank` to write where that is the cause."""
    for adapter in adapters:
        is_too_low = adapter.needed is not None and adapter.needed > adapter.declared
        for problem in adapter.problems:
            yield f"{problem}; write `rank: {adapter.needed}`" if is_too_low else problem


def _kinds(share: float | None) -> Sequence[Storage]:
    if share is None:
        return storages()
    capped = next(storage for storage in storages() if storage.file is not None)
    stated = Storage(f"this share, {share:g} MiB/s", Value(share * MIB, "the command line", True), capped.file, True)
    return (stated, *storages())


def _loads(facts: ModelFacts, size: Size | None, gpus: int, replicas: int, kinds: Iterable[Storage]) -> Iterable[Load]:
    nic, gpu = (size.nic, size.gpu) if size is not None else (None, None)
    for kind in kinds:
        if not kind.shared and (size is None or size.nvme_disks is None or not size.nvme_disks.confirmed):
            continue
        time = load_time(files_of(facts), kind, nic=nic, pcie=pcie_rate(gpu, gpus), replicas=replicas)
        yield Load(kind, time, startup_budget(time), files_wanted(kind, nic))

"""The output of `hermetic plan` as text: the arithmetic, the sizes side by side, the load times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermetic.api.model_facts import ModelFacts
from hermetic.api.text import aligned
from hermetic.cli.plan.planned import Load, Planned
from hermetic.plan.cache_use import cache_use
from hermetic.sizing.catalogue import GIB, nearest_size
from hermetic.sizing.comparison import Choice
from hermetic.sizing.load_time import offload_clause
from hermetic.sizing.memory import Fit, FitAnswer
from hermetic.sizing.node_counts import NodeChoice
from hermetic.sizing.placement import Placement

COMMON_CPU = "x86_64"
"""Of all sizes but those of Grace; engine images are for it, as far as their publishers say."""
WORDS = {
    FitAnswer.FITS: "fits",
    FitAnswer.TIGHT: "tight",
    FitAnswer.UNKNOWN: "unknown",
    FitAnswer.DOES_NOT_FIT: "does not fit",
}


def lines(plan: Planned, *, priced: bool) -> Iterator[str]:
    """Everything about one deployment."""
    yield f"{plan.namespace}/{plan.name}: {_model(plan.facts)}"
    for clause in plan.impossible:
        yield f"  not possible: {clause}"
    for adapter in plan.adapters:
        yield f"  {adapter.line}"
    for placement in plan.named:
        yield ""
        yield from arithmetic(placement)
    for name in plan.unlisted:
        yield ""
        nearest = nearest_size(name)
        meant = f"; did you mean {nearest}?" if nearest is not None else ""
        yield f"{name}: unknown; the catalogue does not have this size{meant}"
    yield from _offloading(plan)
    yield ""
    yield f"Sizes, {'cheapest' if priced else 'smallest'} that fits first" + ("" if priced else " (no prices given)")
    yield from _table(
        ("size", "GPUs", "", "longest context", "needed", "of"), [_row(choice) for choice in plan.choices]
    )
    yield from _several_nodes(plan, priced=priced)
    yield ""
    yield f"Load time of {_gb(plan.files.total)} in {plan.files.count} files, {_replicas(plan)}"
    yield from _table(
        ("storage", "seconds", "bound by", "start-up budget"), [_load_row(load, plan) for load in plan.loads]
    )
    budget = plan.spec.startup_budget_seconds
    yield f"The deployment gives {budget} s to start; '<' marks storage from which that is not enough."
    if (caches := cache_use(plan.spec, required=True)) is not None:
        verify = plan.spec.weights.is_mounted and caches.status == "True"
        yield ""
        yield f"Compile caches: {caches.message}" + ("; where the weights are verified" if verify else "")


def arithmetic(placement: Placement) -> Iterator[str]:
    """The memory of one GPU, line by line."""
    fit, serving = placement.fit, placement.fit.serving
    cut = f"tensor parallel {serving.tensor_parallel}"
    cut += f", {serving.pipeline_parallel} pipeline stages" if serving.pipeline_parallel > 1 else ""
    cut += f", {serving.data_parallel} data parallel ranks" if serving.data_parallel > 1 else ""
    several = f"{serving.nodes} nodes with " if serving.nodes > 1 else ""
    gpus = f"{several}{serving.gpus // serving.nodes} x {fit.gpu.name}"
    yield f"{placement.size.name}: {gpus}, {cut}: {WORDS[placement.answer]}"
    if placement.size.cpu != COMMON_CPU:
        yield f"  its nodes are {placement.size.cpu}: the engine image must be for linux/{placement.size.cpu}"
    yield _line("memory of one GPU", fit.memory, fit.gpu.memory.source)
    yield _line(f"of it for the engine, {serving.utilization_percent} %", fit.allowed)
    if not serving.may_shrink_weights:
        yield _line("weights on one GPU", fit.weights)
    if fit.cache is not None and fit.context is not None and fit.requested is not None:
        yield _line("overhead: 2.3 GiB, 5 % of the weights, ...", fit.overhead)
        if serving.lora is not None:
            room = f"of it {serving.lora.active} adapters of rank {serving.lora.rank}, at most"
            yield _line(room, fit.adapters)
        if fit.encoder:
            yield _line("encoder of images or sound at work, at most", fit.encoder)
        yield _line(f"key-value cache of {fit.context} tokens", fit.requested, _per_token(fit))
        if fit.reserved:
            yield _line(f"states of {serving.sequences} requests at a time", fit.reserved)
        yield _line("needed", fit.needed or 0)
        yield f"  {_longest(fit)}"
    for clause in placement.objections:
        yield f"  not possible: {clause}"
    for clause in fit.unknown:
        yield f"  not computed: {clause}"


def _longest(fit: Fit) -> str:
    if not fit.longest_context:
        return "by the formula the weights leave no room for a context"
    requests = f"{fit.full_requests} requests of {fit.context} tokens at a time"
    return f"longest context that fits: {fit.longest_context} tokens; {requests}"


def _line(subject: str, size: int, note: str = "") -> str:
    return f"  {subject:<44}{_gib(size):>12}" + (f"  {note}" if note else "")


def _per_token(fit: Fit) -> str:
    assert fit.cache is not None  # noqa: S101 - called only where there is one
    per_token = f"{round(fit.cache.token_bytes)} bytes a token"
    if fit.cache.state_bytes:
        per_token += f", and {_gib(round(fit.cache.state_bytes))} of recurrent state"
    if fit.cache.windowed_layers:
        per_token += f", {fit.cache.windowed_layers} layers hold {fit.cache.window_tokens} tokens at most"
    return per_token


def _model(facts: ModelFacts) -> str:
    stored = f", {facts.quantization.method}" if facts.quantization is not None else f", {facts.dtype}"
    made_for = f", made for {facts.max_model_length} tokens" if facts.max_model_length is not None else ""
    return f"{facts.architecture or facts.model_type}, {_gb(facts.parameter_bytes)} of weights{stored}{made_for}"


def _offloading(plan: Planned) -> Iterator[str]:
    cost, fit = plan.offload, plan.shown.fit if plan.shown is not None else None
    if fit is not None and (clause := offload_clause(fit)):
        yield f"  {clause}"
    if (cache := plan.host_cache) is not None:
        yield (
            f"  key-value cache in the memory of the node: {_gib(cache.size)} hold about {cache.tokens} tokens, and a "
            f"prompt returns from there at no more than {cache.tokens_per_second} tokens/s over PCIe"
        )
    if cost is None or fit is None or cost.missing <= fit.offloaded:
        return
    advice = "possible where that is fast enough" if cost.advised else "do not"
    yield (
        f"  to keep {'all' if fit.offloaded else 'the missing'} {_gib(cost.missing)} of each GPU in the memory of the "
        f"node would take {cost.seconds_per_step:.2f} s for every step over PCIe: {advice}"
    )


def _several_nodes(plan: Planned, *, priced: bool) -> Iterator[str]:
    """The fewest nodes of each size on which the model fits, side by side."""
    if not plan.node_choices:
        return
    head = ("size", "nodes", "GPUs of each", "between them", "", "longest context", "load", "bound by")
    yield ""
    order, storage = "cheapest" if priced else "smallest", plan.loads[0].storage.name
    yield f"One node or several, {order} first; load time from {storage}"
    yield from _table(head, [_node_row(choice) for choice in plan.node_choices])
    yield "Each node is counted as reading every file of the weights; an engine that maps them reads less."


def _node_row(choice: NodeChoice) -> tuple[str, ...]:
    fit, load = choice.fit, choice.load
    gpus = f"{choice.gpus_per_node} of {choice.size.gpus.value} x {fit.gpu.name}"
    seconds = f"{'about ' if load.estimate else ''}{load.seconds:.0f} s"
    longest = str(fit.longest_context) if fit.longest_context else ""
    network = choice.network or "-"
    return (choice.size.name, str(choice.nodes), gpus, network, WORDS[fit.answer], longest, seconds, load.bound)


def _row(choice: Choice) -> tuple[str, ...]:
    size, fit = choice.size, choice.fit
    mark = "" if size.confirmed else ", not confirmed"
    if fit is None:
        return (size.name, f"- of {size.gpus.value} x {size.gpu.name}{mark}", "no cut possible", "", "", "")
    number = f"{fit.serving.gpus} of {size.gpus.value}" if fit.gpu.name == size.gpu.name else str(fit.serving.gpus)
    gpus = f"{number} x {fit.gpu.name}{mark}"
    longest = str(fit.longest_context) if fit.longest_context else ""
    needed = "" if fit.needed is None else _gib(fit.needed)
    return (size.name, gpus, WORDS[choice.answer], longest, needed, _gib(fit.allowed))


def _load_row(load: Load, plan: Planned) -> tuple[str, ...]:
    about = "about " if load.time.estimate else ""
    seconds = f"{about}{load.time.seconds:.0f}" if load.time.seconds >= 10 else f"{about}{load.time.seconds:.1f}"
    bound = load.time.bound
    if load.time.bound == "what single files deliver" and load.files_wanted > plan.files.count:
        bound += f": cut the model into {load.files_wanted}"
    short = " <" if load.budget > plan.spec.startup_budget_seconds else ""
    return (load.storage.name, seconds, bound, f"{load.budget} s{short}")


def _replicas(plan: Planned) -> str:
    count, nodes = max(1, plan.spec.wanted_replicas), plan.spec.accelerator.nodes
    of_nodes = f" of {nodes} nodes" if nodes > 1 else ""
    return f"{count} replicas{of_nodes} starting together" if count > 1 else f"one replica{of_nodes}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    return (f"  {line}" for line in aligned((head, *rows)))


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB"


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"

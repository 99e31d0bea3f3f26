"""The output of `hermetic plan` as text: the arithmetic, the sizes side by side, the load times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermetic.api.model_facts import ModelFacts
from hermetic.cli.plan.planned import Load, Planned
from hermetic.plan.cache_use import cache_use
from hermetic.sizing.catalogue import GIB
from hermetic.sizing.comparison import Choice
from hermetic.sizing.memory import Fit, FitAnswer
from hermetic.sizing.placement import Placement

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
    for one in plan.named:
        yield ""
        yield from arithmetic(one)
    for name in plan.unlisted:
        yield ""
        yield f"{name}: unknown; the catalogue does not have this size"
    yield from _offloading(plan)
    yield ""
    yield f"Sizes, {'cheapest' if priced else 'smallest'} that fits first" + ("" if priced else " (no prices given)")
    yield from _table(("size", "GPUs", "", "longest context", "needed", "of"), [_row(one) for one in plan.choices])
    yield ""
    yield f"Load time of {_gb(plan.files.total)} in {plan.files.count} files, {_replicas(plan)}"
    yield from _table(
        ("storage", "seconds", "bound by", "start-up budget"), [_load_row(one, plan) for one in plan.loads]
    )
    given = plan.spec.startup_budget_seconds
    yield f"The deployment gives {given} s to start; '<' marks storage from which that is not enough."
    if (caches := cache_use(plan.spec, required=True)) is not None:
        verify = plan.spec.weights.is_mounted and caches.status == "True"
        yield ""
        yield f"Compile caches: {caches.message}" + ("; where the weights are verified" if verify else "")


def arithmetic(one: Placement) -> Iterator[str]:
    """The memory of one GPU, line by line."""
    fit, serving = one.fit, one.fit.serving
    cut = f"tensor parallel {serving.tensor_parallel}"
    cut += f", {serving.pipeline_parallel} pipeline stages" if serving.pipeline_parallel > 1 else ""
    yield f"{one.size.name}: {serving.gpus} x {one.size.gpu.name}, {cut}: {WORDS[one.answer]}"
    yield _line("memory of one GPU", fit.memory, one.size.gpu.memory.source)
    yield _line(f"of it for the engine, {serving.utilization_percent} %", fit.allowed)
    yield _line("weights on one GPU", fit.weights)
    yield _line("overhead: 2.3 GiB, 5 % of the weights, ...", fit.overhead)
    if fit.cache is not None and fit.context is not None and fit.requested is not None:
        yield _line(f"key-value cache of {fit.context} tokens", fit.requested, _per_token(fit))
        yield _line("needed", fit.needed or 0)
        requests = f"{fit.full_requests} requests of {fit.context} tokens at a time"
        yield f"  longest context that fits: {fit.longest_context} tokens; {requests}"
    for clause in one.objections:
        yield f"  not possible: {clause}"
    for clause in fit.unknown:
        yield f"  not computed: {clause}"


def _line(what: str, size: int, note: str = "") -> str:
    return f"  {what:<44}{_gib(size):>12}" + (f"  {note}" if note else "")


def _per_token(fit: Fit) -> str:
    assert fit.cache is not None  # noqa: S101 - called only where there is one
    per_token = f"{round(fit.cache.token_bytes)} bytes a token"
    if fit.cache.windowed_layers:
        per_token += f", {fit.cache.windowed_layers} layers hold {fit.cache.window_tokens} tokens at most"
    return per_token


def _model(facts: ModelFacts) -> str:
    stored = f", {facts.quantization.method}" if facts.quantization is not None else f", {facts.dtype}"
    made_for = f", made for {facts.max_model_length} tokens" if facts.max_model_length is not None else ""
    return f"{facts.architecture or facts.model_type}, {_gb(facts.parameter_bytes)} of weights{stored}{made_for}"


def _offloading(plan: Planned) -> Iterator[str]:
    cost = plan.offload
    if cost is None:
        return
    advice = "possible where that is fast enough" if cost.advised else "do not"
    yield (
        f"  to keep the missing {_gib(cost.missing)} of each GPU in the memory of the node would take "
        f"{cost.seconds_per_step:.2f} s for every step over PCIe: {advice}"
    )


def _row(one: Choice) -> tuple[str, ...]:
    size, fit = one.size, one.fit
    mark = "" if size.confirmed else ", not confirmed"
    if fit is None:
        return (size.name, f"- of {size.gpus.value} x {size.gpu.name}{mark}", "no cut possible", "", "", "")
    gpus = f"{fit.serving.gpus} of {size.gpus.value} x {size.gpu.name}{mark}"
    longest = "" if fit.longest_context is None else str(fit.longest_context)
    needed = "" if fit.needed is None else _gib(fit.needed)
    return (size.name, gpus, WORDS[one.answer], longest, needed, _gib(fit.allowed))


def _load_row(one: Load, plan: Planned) -> tuple[str, ...]:
    about = "about " if one.time.estimate else ""
    seconds = f"{about}{one.time.seconds:.0f}" if one.time.seconds >= 10 else f"{about}{one.time.seconds:.1f}"
    bound = one.time.bound
    if one.time.bound == "what single files deliver" and one.files_wanted > plan.files.count:
        bound += f": cut the model into {one.files_wanted}"
    short = " <" if one.budget > plan.spec.startup_budget_seconds else ""
    return (one.storage.name, seconds, bound, f"{one.budget} s{short}")


def _replicas(plan: Planned) -> str:
    count = max(1, plan.spec.replicas)
    return f"{count} replicas starting together" if count > 1 else "one replica"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        yield ("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB"


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"

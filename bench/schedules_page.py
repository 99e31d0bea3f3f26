"""The sections of docs/figures.md about schedules of faults: of deployments, of a gate that closes, of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench import results
from bench.tables import origin, table

FAULTS = {"in process": "`make test-faults`", "real API server": "`make test-faults-real`"}
GROUPS = {"groups in process": "`make test-faults-groups`"}
CLOSED_GATES = {
    "closed gates in process": "`make test-closed-gates`",
    "closed gates on a real API server": "`make test-closed-gates-real`",
}
"""Kinds of schedules with the commands that run them."""


def faults_section() -> Iterator[str]:
    """Lives of several deployments."""
    result = results.load("faults")
    if result is None:
        return
    figures = result["figures"]
    runs = _runs_of_schedules(figures, FAULTS)
    if not runs:
        return
    yield "## Schedules of faults\n"
    yield (
        "Each is a life of several deployments under faults that its seed draws. It fails where what is there at the "
        "end, or what its status says, differs from a life without faults, where something is left over or twice, or "
        "where anything is still written. To delete an object whose owner is gone is the work of Kubernetes' garbage "
        "collector: where its last attempt failed, the object is waited for, as long as the row says, and the "
        "schedule is counted as one with a late garbage collector.\n"
    )
    rows = _counts_of_schedules(figures, runs)
    waited = (figures[kind].get("collectorSeconds") for kind in runs)
    cells = (f"{seconds:,.0f}" if seconds else "-" for seconds in waited)
    rows.insert(4, ("seconds for the garbage collector, at most", *cells))
    yield table(("", *runs), rows)
    yield origin(result)


def closed_gate_section() -> Iterator[str]:
    """Closings of the isolation gate."""
    result = results.load("faults")
    runs = _runs_of_schedules(result["figures"], CLOSED_GATES) if result else {}
    if result is None or not runs:
        return
    figures = result["figures"]
    yield "## Schedules of a gate that closes\n"
    yield (
        "Each is a model whose pods wait (for a node, an image, the verification of weights, in a rolling update) when "
        "the isolation gate closes, with faults that its seed draws. It fails where a pod starts after ten seconds of "
        "a closed gate with an undisturbed operator, or is made or given a node after the moment in the Lease; on the "
        "API server also where a serving pod is lost, or where something is missing after the gate has opened again. "
        "There several models share a closing; a second in which the machine gives a process half of a core counts as "
        "half a second.\n"
    )
    rows = _counts_of_schedules(figures, runs)
    longest = (figures[kind].get("longestRemovalSeconds") for kind in runs)
    removed = tuple("-" if seconds is None else f"{seconds:.1f}" for seconds in longest)
    rows.insert(4, ("seconds until the last waiting pod was removed, at most (promised: 10)", *removed))
    again = tuple(figures[kind].get("runAgain", "-") for kind in runs)
    if set(again) != {"-"}:
        rows.insert(3, ("seeds that ran again after the test was mended", *again))
    yield table(("", *runs), rows)
    yield origin(result)


def groups_section() -> Iterator[str]:
    """Lives of models of two nodes."""
    result = results.load("faults")
    runs = _runs_of_schedules(result["figures"], GROUPS) if result else {}
    if result is None or not runs:
        return
    figures: Mapping[str, Any] = result["figures"]["groups in process"]
    counts = _counts_of_schedules(result["figures"], runs)
    yield "## Schedules of faults with models of two nodes\n"
    yield (
        "Each is a life of models of two nodes in which members die, nodes go and come, and the operator is killed, "
        "as its seed draws. It fails where a group has pods of two templates; where, with an undisturbed operator, "
        "clients are sent to a head for more than ten seconds after a member of its group died, a group waits for "
        "nodes or stays stopped for longer than its bound, or two groups of a model wait at once; and where something "
        "is missing, left over or still written in the end.\n"
    )
    half, waited, stopped = (figures[f"longest{state}Seconds"] for state in ("Half", "Wait", "Pause"))
    rows = [
        *counts[:4],
        ("seconds that clients were sent to half a group, at most", f"{half:.0f}"),
        ("seconds that a group waited for nodes, at most (bound: 600)", f"{waited:.0f}"),
        ("seconds until a stopped group started again, at most (bound: 300)", f"{stopped:.0f}"),
        *counts[4:],
    ]
    yield table(("", "`make test-faults-groups`"), rows)
    # The other kinds of schedules in the same file ran at other times.
    yield origin({**result, "loadBefore": figures.get("loadBefore", result["loadBefore"])})


def _runs_of_schedules(figures: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, str]:
    return {kind: command for kind, command in kinds.items() if kind in figures}


def _counts_of_schedules(figures: Mapping[str, Any], runs: Mapping[str, str]) -> list[tuple[str, ...]]:
    """How many there were and failed, and how often what befell them."""
    faults = sorted({fault for kind in runs for fault in figures[kind]["faults_injected"]})
    return [
        ("run by", *(f"{command}, {figures[kind]['date']}" for kind, command in runs.items())),
        ("schedules", *(f"{figures[kind]['schedules']:,}" for kind in runs)),
        ("failed", *(f"{figures[kind]['failed']:,}" for kind in runs)),
        ("seconds", *(f"{figures[kind]['seconds']:,.0f}" for kind in runs)),
        *((fault, *(f"{figures[kind]['faults_injected'].get(fault, 0):,}" for kind in runs)) for fault in faults),
    ]

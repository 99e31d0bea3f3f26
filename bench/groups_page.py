"""The sections of docs/figures.md about replicas of several nodes: their cost, and schedules of faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench import results
from bench.tables import origin, table

MOST_WRITES = 11


def writes_section() -> Iterator[str]:
    """What a create costs."""
    result = results.load("groups")
    if result is None:
        return
    figures = result["figures"]
    yield "## Create a model of two nodes\n"
    yield (
        f"One replica, a pod on each node. The median of {figures['samples']} models on simulated nodes.\n"
        f"{_load_beside(result)}"
    )
    yield table(("", "goal", "measured"), [("writes of a create", f"<= {MOST_WRITES}", f"{figures['writes']:g}")])
    yield origin(result)


def _load_beside(result: results.Result) -> str:
    """A sentence for figures of a machine that did other work; "" for those of an idle one."""
    if result["loadBefore"] <= result["machine"]["cores"]:
        return ""
    return "The machine was busy with other work meanwhile: its load average is below.\n"


def schedules_section(result: results.Result, counts: list[tuple[str, ...]]) -> Iterator[str]:
    """Schedules of faults with groups; `counts` are the rows that every kind of schedules has."""
    figures: Mapping[str, Any] = result["figures"]["groups in process"]
    yield "## Schedules of faults with models of two nodes\n"
    yield (
        "Each is a life of models of two nodes in which members die, nodes go and come, and the operator is killed, "
        "as its seed draws. It fails where a group has pods of two templates; where, with an undisturbed operator, "
        "clients are sent to a head for more than ten seconds after a member of its group died, a group waits for "
        "nodes for longer than its bound, or two groups of a model wait at once; and where something is missing, left "
        "over or still written in the end.\n"
    )
    half, waited = figures["longestHalfSeconds"], figures["longestWaitSeconds"]
    rows = [
        *counts[:4],
        ("seconds that clients were sent to half a group, at most", f"{half:.0f}"),
        ("seconds that a group waited for nodes, at most (bound: 600)", f"{waited:.0f}"),
        *counts[4:],
    ]
    yield table(("", "`make test-faults-groups`"), rows)
    yield origin(result)

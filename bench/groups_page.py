"""The section of docs/figures.md about replicas of several nodes."""

from __future__ import annotations

from collections.abc import Iterator

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

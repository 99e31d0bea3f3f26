"""The section of docs/figures.md about seeded mistakes, from bench/results/mutants.json."""

from __future__ import annotations

from collections.abc import Iterator

from bench import results
from bench.tables import origin, table


def section() -> Iterator[str]:
    """Scores by layer and by group of decisions; nothing without a result."""
    result = results.load("mutants")
    if result is None:
        return
    figures = result["figures"]
    yield "## Seeded mistakes that tests find\n"
    yield (
        f"`make mutants` drew {figures['count']} small changes of decisions on {figures['date']} (seed "
        f"{figures['seed']}) and ran each against at most {figures['testsOfALayer']} tests of each layer that reach "
        "its line. A mistake that no test finds either lacks a test or makes no difference; "
        "`bench/results/mutants.json` lists them.\n"
    )
    if left_out := figures["layersLeftOut"]:
        yield f"This run left out these layers: {', '.join(left_out)}.\n"
    rows = [
        (
            layer,
            str(score["reached"]),
            str(score["found"]),
            _percent(score["found"], score["reached"]),
            str(score["onlyHere"]),
        )
        for layer, score in figures["layers"].items()
    ]
    yield table(("layer of tests", "mistakes reached", "found", "score", "found by this layer alone"), rows)
    groups = [
        (group, str(score["mutants"]), str(score["found"]), _percent(score["found"], score["mutants"]))
        for group, score in figures["groups"].items()
    ]
    yield table(("decisions", "mistakes", "found by any layer", "score"), groups)
    yield origin(result)


def _percent(part: int, total: int) -> str:
    return f"{100 * part / total:.0f} %" if total else "-"

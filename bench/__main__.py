"""`python -m bench [NAME...]`: measure what is named, or everything, and write the results and their page."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from bench import (
    adapters,
    audit,
    autoscaling,
    burst,
    closed_gate,
    evaluation,
    groups,
    promotion,
    restart,
    results,
    rolling_update,
    steady,
    weights,
    writes,
)
from bench.machine import load_average
from bench.report import write_page
from testbed.errors import CannotRunError

FIGURES: dict[str, Callable[[], dict[str, Any]]] = {
    "audit": audit.measure,
    "several-clusters": audit.measure_several,
    "evaluation": evaluation.measure,
    "writes": writes.measure,
    "burst": burst.measure,
    "steady": steady.measure,
    "restart": restart.measure,
    "restart-large": restart.measure_large,
    "rolling-update": rolling_update.measure,
    "adapters": adapters.measure,
    "autoscaling": autoscaling.measure,
    "autoscaling-real-time": autoscaling.measure_in_real_time,
    "promotion": promotion.measure,
    "groups": groups.measure,
    "closed-gate": closed_gate.measure,
    "weights": weights.measure,
}
BY_NAME_ONLY = frozenset({"autoscaling-real-time"})
"""What waits for most of its time."""


def main(arguments: list[str]) -> int:
    """Exit code 1 when this machine cannot measure something that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    every = f"all but {', '.join(sorted(BY_NAME_ONLY))}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(FIGURES)} (default: {every})")
    parser.add_argument("--page", action="store_true", help="only write the page, from the results there are")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - FIGURES.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    usual = [name for name in FIGURES if name not in BY_NAME_ONLY]
    measured = [_measure(name) for name in (() if options.page else options.names or usual)]
    print(write_page())
    return 0 if all(measured) else 1


def _measure(name: str) -> bool:
    _print_step(f"{name} ...")
    load, began = load_average(), time.monotonic()
    try:
        figures = FIGURES[name]()
    except CannotRunError as reason:
        _print_step(f"{name} cannot be measured here: {reason}")
        return False
    path = results.save(name, figures, load)
    _print_step(f"{path.name} after {time.monotonic() - began:.0f} s")
    return True


def _print_step(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

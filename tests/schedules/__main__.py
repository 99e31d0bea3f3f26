"""`python -m tests.schedules [--first SEED] [--count N] [--real]`: run schedules of faults.

`replay SEED` shows one. With `--real` they run on a real API server, side by side in batches, `--beds` of
them at a time; a seed is replayed with its batch. Where something is wrong, the logs of the batch are kept.
`--closed-gates` runs those around an isolation gate that closes, `--groups` those with replicas of several nodes.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import structlog

from bench import results
from bench.machine import load_average
from bench.report import write_page
from tests.schedules import batches, garbage, gate_batches, real
from tests.schedules.closed_gate import closed_gate
from tests.schedules.group_schedule import group_schedule
from tests.schedules.schedule import Ended, schedule


def main(arguments: list[str]) -> int:
    """Exit code 1 where a schedule ended otherwise than without faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.schedules", description=__doc__)
    parser.add_argument("replay", nargs="*", metavar="replay SEED", help="live through this one, with the log")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--real", action="store_true", help="on a real API server")
    parser.add_argument("--closed-gates", action="store_true", help="schedules around an isolation gate that closes")
    parser.add_argument("--groups", action="store_true", help="schedules with replicas of several nodes")
    parser.add_argument("--beds", type=int, default=1, help="control planes at a time, with --real")
    parser.add_argument("--figures", action="store_true", help="write bench/results/faults.json and docs/figures.md")
    options = parser.parse_args(arguments)
    if options.replay:
        options.first, options.count = int(options.replay[-1]), 1
    elif not options.real:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if options.groups and (options.closed_gates or options.real):
        parser.error("--groups runs in process, and alone")
    kind, run = ("groups in process", _in_process) if options.groups else RUNS[options.closed_gates, options.real]
    total = Results()
    for _ in run(total, options):
        if options.figures:  # after each batch: an hour's run that is ended shows what it has lived through
            _keep(kind, total)
    return _summary(total)


@dataclass
class Results:
    """What came of schedules: `seconds` of one core in process, and by the clock on a real API server.

    more: further figures of one kind of schedules.
    """

    schedules: int = 0
    failed: int = 0
    seconds: float = 0.0
    faults_injected: Counter[str] = field(default_factory=Counter)
    more: dict[str, float] = field(default_factory=dict)


IN_PROCESS_BATCH = 20
"""How many schedules in process are lived through before the figures are kept again."""


def _in_process(total: Results, options: argparse.Namespace) -> Iterator[None]:
    run: Callable[[int], Ended] = schedule
    if options.closed_gates:
        run = closed_gate
    elif options.groups:
        run = group_schedule
    seeds, began = range(options.first, options.first + options.count), time.process_time()
    for seed in seeds:
        ended = run(seed)
        total.schedules += 1
        total.seconds = time.process_time() - began
        total.faults_injected.update(ended.faults_injected)
        for name, seconds in ended.longest.items():
            total.more[name] = max(total.more.get(name, 0.0), seconds)
        if ended.wrong:
            total.failed += 1
            _say(f"seed {seed}:", *ended.wrong)
        if total.schedules % IN_PROCESS_BATCH == 0:
            yield
    summary = f"seeds {seeds[0]} to {seeds[-1]}: {total.failed} of {len(seeds)} failed"
    _say(f"{summary}, {total.seconds:.0f} s of one core")
    yield


def _on_a_real_one(total: Results, options: argparse.Namespace) -> Iterator[None]:
    """Run the batches and yield after each, when it is counted in `total`."""
    began, first = time.monotonic(), batches.first_of_batch(options.first)
    total.more = {"collectorSeconds": real.CALM_SECONDS + garbage.LONGEST_PAUSE_SECONDS}
    starts = range(first, first + options.count, batches.SIDE_BY_SIDE)
    for ended in batches.run_batches(starts, options.beds, batches.one_batch):
        total.schedules += batches.SIDE_BY_SIDE
        for note in ended.notes:
            _say(f"batch {ended.first}, logs in {ended.kept}: {note}")
        _add_batch(total, ended, began)
        yield


def _gates_on_a_real_one(total: Results, options: argparse.Namespace) -> Iterator[None]:
    """Run the closings in batches and yield after each batch, when it is counted in `total`."""
    began, first = time.monotonic(), gate_batches.first_of_closing(options.first)
    per_batch = gate_batches.PER_CLOSING if options.replay else gate_batches.PER_BATCH
    starts, end = range(first, first + options.count, per_batch), first + options.count
    runs = {start: per_batch if options.replay else min(per_batch, end - start) for start in starts}
    for ended in batches.run_batches(starts, options.beds, partial(gate_batches.run_batch, counts=runs)):
        total.schedules += ended.count
        longest = max(total.more.get("longestRemovalSeconds", 0.0), ended.longest_removal)
        total.more = {"longestRemovalSeconds": round(longest, 2)}
        _add_batch(total, ended, began)
        yield


def _add_batch(total: Results, ended: batches.Batch | gate_batches.GateBatch, began: float) -> None:
    total.faults_injected.update(ended.faults_injected)
    total.failed += len(ended.wrong)
    for seed, errors in ended.wrong.items():
        _say(f"seed {seed} of the batch {ended.first}, logs in {ended.kept}:", *errors)
    total.seconds = time.monotonic() - began
    _say(f"batch {ended.first}: {total.failed} of {total.schedules} failed so far, {total.seconds:.0f} s")


Run = Callable[[Results, argparse.Namespace], Iterator[None]]
RUNS: dict[tuple[bool, bool], tuple[str, Run]] = {
    (False, False): ("in process", _in_process),
    (False, True): ("real API server", _on_a_real_one),
    (True, False): ("closed gates in process", _in_process),
    (True, True): ("closed gates on a real API server", _gates_on_a_real_one),
}
"""By whether the gate closes, and whether the API server is real: the name in the figures, and what runs."""


def _keep(kind: str, total: Results) -> None:
    figures = (results.load("faults") or {"figures": {}})["figures"]
    counts = {name: value for name, value in vars(total).items() if name != "more"}
    figures[kind] = {"date": datetime.now(UTC).date().isoformat(), **counts, **total.more}
    results.save("faults", figures, load_average())
    write_page()


def _summary(total: Results) -> int:
    _say("faults:", *(f"{times} x {fault}" for fault, times in total.faults_injected.most_common()))
    return 1 if total.failed else 0


def _say(first: str, *more: str) -> None:
    sys.stdout.write("\n  ".join((first, *more)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a schedule
        again = [sys.executable, "-m", "tests.schedules", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main(sys.argv[1:]))

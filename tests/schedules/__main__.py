"""`python -m tests.schedules [--first SEED] [--count N] [--real]`: run schedules of faults.

`replay SEED` shows one. With `--real` they are total through on a real API server, side by side in batches, `--beds` of
them at a time; a seed is replayed with its batch. Where something is wrong, the logs of the batch are kept.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from bench import results
from bench.machine import load_average
from bench.report import write_page
from tests.schedules import batches, garbage, real
from tests.schedules.schedule import schedule


def main(arguments: list[str]) -> int:
    """Exit code 1 where a schedule ended otherwise than without faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.schedules", description=__doc__)
    parser.add_argument("replay", nargs="*", metavar="replay SEED", help="live through this one, with the log")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--real", action="store_true", help="on a real API server")
    parser.add_argument("--beds", type=int, default=1, help="control planes at a time, with --real")
    parser.add_argument("--figures", action="store_true", help="write bench/results/faults.json and docs/figures.md")
    options = parser.parse_args(arguments)
    if options.real:
        first = int(options.replay[-1]) if options.replay else options.first
        total = Results()
        for _ in _on_a_real_one(total, first, batches.SIDE_BY_SIDE if options.replay else options.count, options.beds):
            if options.figures:  # after each batch: an hour's run that is ended shows what it has total through
                _keep("real API server", total, collectorSeconds=real.CALM_SECONDS + garbage.LONGEST_PAUSE_SECONDS)
        return _summary(total)
    if options.replay:
        seeds = [int(options.replay[-1])]
    else:
        seeds = list(range(options.first, options.first + options.count))
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    total = _in_process(seeds)
    if options.figures:
        _keep("in process", total)
    return _summary(total)


@dataclass
class Results:
    """What came of schedules: `seconds` of one core in process, and by the clock on a real API server."""

    schedules: int = 0
    failed: int = 0
    seconds: float = 0.0
    faults_injected: Counter[str] = field(default_factory=Counter)


def _in_process(seeds: Sequence[int]) -> Results:
    total, began = Results(len(seeds)), time.process_time()
    for seed in seeds:
        ended = schedule(seed)
        total.faults_injected.update(ended.faults_injected)
        if ended.wrong:
            total.failed += 1
            _say(f"seed {seed}:", *ended.wrong)
    total.seconds = time.process_time() - began
    summary = f"seeds {seeds[0]} to {seeds[-1]}: {total.failed} of {len(seeds)} failed"
    _say(f"{summary}, {total.seconds:.0f} s of one core")
    return total


def _on_a_real_one(total: Results, first: int, count: int, beds: int) -> Iterator[None]:
    """Run the batches and yield after each, when it is counted in `total`."""
    began, first = time.monotonic(), batches.first_of_batch(first)
    for ended in batches.run_batches(range(first, first + count, batches.SIDE_BY_SIDE), beds):
        total.faults_injected.update(ended.faults_injected)
        total.schedules += batches.SIDE_BY_SIDE
        total.failed += len(ended.wrong)
        for seed, found in ended.wrong.items():
            _say(f"seed {seed} of the batch {ended.first}, logs in {ended.kept}:", *found)
        for note in ended.notes:
            _say(f"batch {ended.first}, logs in {ended.kept}: {note}")
        total.seconds = time.monotonic() - began
        _say(f"batch {ended.first}: {total.failed} of {total.schedules} failed so far, {total.seconds:.0f} s")
        yield


def _keep(kind: str, total: Results, **more: float) -> None:
    known = (results.load("faults") or {"figures": {}})["figures"]
    known[kind] = {"date": datetime.now(UTC).date().isoformat(), **vars(total), **more}
    results.save("faults", known, load_average())
    write_page()


def _summary(total: Results) -> int:
    _say("faults:", *(f"{times} x {what}" for what, times in total.faults_injected.most_common()))
    return 1 if total.failed else 0


def _say(first: str, *more: str) -> None:
    sys.stdout.write("\n  ".join((first, *more)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a schedule
        again = [sys.executable, "-m", "tests.schedules", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main(sys.argv[1:]))

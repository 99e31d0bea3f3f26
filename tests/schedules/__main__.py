"""`python -m tests.schedules [--first SEED] [--count N] [--real]`: live through schedules of faults.

`replay SEED` shows one. With `--real` they are lived through on a real API server, side by side in batches; a seed is
replayed with its batch.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import structlog

from testbed.controlplane import ControlPlane
from tests.schedules import real
from tests.schedules.life import schedule

SIDE_BY_SIDE = 25


def main(arguments: list[str]) -> int:
    """Exit code 1 where a schedule ended otherwise than without faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.schedules", description=__doc__)
    parser.add_argument("replay", nargs="*", metavar="replay SEED", help="live through this one, with the log")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--real", action="store_true", help="on a real API server")
    options = parser.parse_args(arguments)
    if options.real:
        first = int(options.replay[-1]) if options.replay else options.first
        return _on_a_real_one(first, SIDE_BY_SIDE if options.replay else options.count)
    if options.replay:
        seeds = [int(options.replay[-1])]
    else:
        seeds = list(range(options.first, options.first + options.count))
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    began, failed, befallen = time.process_time(), 0, Counter[str]()
    for seed in seeds:
        ended = schedule(seed)
        befallen.update(ended.befallen)
        if ended.wrong:
            failed += 1
            _say(f"seed {seed}:", *ended.wrong)
    seconds = time.process_time() - began
    told = f"seeds {seeds[0]} to {seeds[-1]}: {failed} of {len(seeds)} failed, {seconds:.0f} s of one core"
    _say(told, *(f"{count} x {what}" for what, count in befallen.most_common()))
    return 1 if failed else 0


def _on_a_real_one(first: int, count: int) -> int:
    began, failed, befallen = time.monotonic(), 0, Counter[str]()
    first -= (first - 1) % SIDE_BY_SIDE
    for start in range(first, first + count, SIDE_BY_SIDE):
        # A control plane for each: what one batch left behind must not help or hurt the next.
        with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane, real.opened(plane, Path(folder)) as bed:
            wrong = real.batch(bed, start, SIDE_BY_SIDE)
        befallen.update(bed.befallen)
        failed += len(wrong)
        for seed, found in wrong.items():
            _say(f"seed {seed} of the batch {start}:", *found)
        _say(f"seeds {first} to {start + SIDE_BY_SIDE - 1}: {failed} failed, {time.monotonic() - began:.0f} s")
    _say("befallen:", *(f"{times} x {what}" for what, times in befallen.most_common()))
    return 1 if failed else 0


def _say(first: str, *more: str) -> None:
    sys.stdout.write("\n  ".join((first, *more)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a schedule
        again = [sys.executable, "-m", "tests.schedules", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main(sys.argv[1:]))

"""Batches of schedules on real API servers, several at a time: each in a process and on a control plane of its own."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from testbed.controlplane import ControlPlane, Settings
from testbed.errors import BedError
from tests.schedules import garbage, real, real_cluster

SIDE_BY_SIDE = 25
B = TypeVar("B")


@dataclass(frozen=True)
class Batch:
    """What came of the batch that begins with the seed `first`.

    notes: what is worth reading although it ended well. kept: the logs, where something is wrong or noted.
    """

    first: int
    wrong: dict[int, tuple[str, ...]] = field(default_factory=dict)
    faults_injected: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()
    kept: Path | None = None


def first_of_batch(seed: int) -> int:
    """The seed that the batch of this one begins with."""
    return seed - (seed - 1) % SIDE_BY_SIDE


def run_batches(starts: Sequence[int], beds: int, run: Callable[[int], B]) -> Iterator[B]:
    """Live through the batches that begin with these seeds, on `beds` control planes at a time; each as it ends."""
    # A process for each: the kernel ends the programs of a bed with the thread that started them.
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(beds, mp_context=spawning, max_tasks_per_child=1) as pool:
        for ended in as_completed([pool.submit(run, first) for first in starts]):
            yield ended.result()


def one_batch(first: int) -> Batch:
    """One batch on a control plane of its own: what one batch left behind must not help or hurt the next."""
    folder = Path(tempfile.mkdtemp(prefix=f"hermetic-schedules-{first}-"))
    settings = Settings(start_seconds=real_cluster.PATIENCE_SECONDS, extra_controller_manager_args=garbage.LOG_FLAGS)
    try:
        with ControlPlane(settings, folder) as plane, real_cluster.opened(plane, folder) as bed:
            wrong = real.batch(bed, first, SIDE_BY_SIDE)
    except (BedError, OSError) as error:
        # Nothing was shown of any of them.
        broken = (f"the batch came to no end: {error}",)
        return Batch(first, dict.fromkeys(range(first, first + SIDE_BY_SIDE), broken), kept=folder)
    notes = tuple(f"{name} was collected late\n" + "\n".join(lines) for name, lines in bed.collected_late.items())
    if wrong or notes:
        return Batch(first, wrong, bed.faults_injected, notes, folder)
    shutil.rmtree(folder, ignore_errors=True)
    return Batch(first, faults_injected=bed.faults_injected)

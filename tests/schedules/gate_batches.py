"""Schedules of a gate that closes on real API servers: batches of closings, each batch on a control plane of its own.

PER_CLOSING seeds share a closing, each with a model in a namespace of its own, and CLOSINGS closings follow each other
in a batch. A seed is replayed with its closing.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import BedError
from tests.schedules.gate_closing import GateClosing, GateCluster, opened
from tests.schedules.gate_models import GateModel

PER_CLOSING = 5
CLOSINGS = 5
PER_BATCH = PER_CLOSING * CLOSINGS


@dataclass(frozen=True)
class GateBatch:
    """What came of the batch that begins with the seed `first`; `kept`: the logs, where something is wrong."""

    first: int
    count: int
    wrong: dict[int, tuple[str, ...]] = field(default_factory=dict)
    faults_injected: Counter[str] = field(default_factory=Counter)
    longest_removal: float = 0.0
    kept: Path | None = None


def first_of_closing(seed: int) -> int:
    """The seed that the closing of this one begins with."""
    return seed - (seed - 1) % PER_CLOSING


def close_once(cluster: GateCluster, first: int, count: int = PER_CLOSING) -> dict[int, tuple[str, ...]]:
    """One closing, with the models of `count` seeds; what is wrong, by seed."""
    return GateClosing(cluster, [GateModel(cluster.sealed, first + number) for number in range(count)]).live()


def run_batch(first: int, counts: Mapping[int, int]) -> GateBatch:
    """The closings of a batch one after the other, on a control plane of their own; `counts`: seeds by the first."""
    count = counts[first]
    folder = Path(tempfile.mkdtemp(prefix=f"hermetic-closed-gates-{first}-"))
    wrong: dict[int, tuple[str, ...]] = {}
    seeds = range(first, first + count)
    try:
        with opened(folder) as cluster:
            for start in seeds[::PER_CLOSING]:
                wrong |= close_once(cluster, start, min(PER_CLOSING, first + count - start))
    except (BedError, OSError, AssertionError) as error:
        # Nothing was shown of any of them.
        broken = (f"the batch came to no end: {error}",)
        return GateBatch(first, count, dict.fromkeys(seeds, broken), kept=folder)
    if wrong:
        return GateBatch(first, count, wrong, cluster.faults_injected, cluster.longest_removal, folder)
    shutil.rmtree(folder, ignore_errors=True)
    return GateBatch(first, count, faults_injected=cluster.faults_injected, longest_removal=cluster.longest_removal)

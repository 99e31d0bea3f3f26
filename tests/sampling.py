"""Which cases of a large enumeration a run tries: all with --full, nearly all where CI=true, elsewhere a sample.

Three ways to say how large the sample is. The first two are for data that a seed or an enumeration makes, the third for
tests that take seconds each; groups of several files are in tests/sampled_groups.py.

    @pytest.mark.sampled(4)                             # 4 of the tests that parametrize makes of this one
    @pytest.mark.parametrize("first", range(0, 2000, 50))
    def test_topologies(first: int) -> None: ...

    def test_tamperings(sample: Sample) -> None:
        for number in sample.of("tamperings", range(100_000), 5_000): ...

    pytestmark = pytest.mark.sampled(6, of="the isolation gate")   # 6 of the tests that have this name

`sampled(0)` leaves a test to CI and --full: one that takes long and repeats what others show, or tests the test bed. It
runs where a run consists of nothing else. Where all tests of a run are of one file, those with a name are all run.

Where CI=true, everything runs but for a few enumerations, each of which takes minutes of processor time. They state how
many cases CI tries, and the commit draws which:

    @pytest.mark.sampled(4, in_ci=12)
    sample.of("tamperings", range(100_000), 5_000, in_ci=25_000)

`make test-every-case` runs the files with such an enumeration, and leaves nothing out.

One seed decides every sample of a run. The figures at the end of the run show it with the size of each sample, and
`--replay SEED` draws the same again. A test that is named by itself (`test_topologies[50]`) is always run.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

MARK = "sampled"
PROPERTY = "sample"
IN_CI = "in_ci"
NO_COMMIT = "no-commit"
"""The seed of CI outside a repository: one fixed part of each enumeration."""
T = TypeVar("T")
Record = Callable[[str, object], None]
Drawn = tuple[str, int, int]
"""A name, the number of cases that were drawn, and the number that there are."""

_seed = pytest.StashKey[str | None]()


@dataclass(frozen=True)
class Sample:
    """Draws by a seed; without one, everything is drawn.

    `test` is the id of the test: parts of one enumeration draw apart. `record` takes what was drawn, for the figures.
    `is_in_ci`: only enumerations with `in_ci` are drawn from.
    """

    seed: str | None
    test: str
    record: Record
    is_in_ci: bool = False

    def of(self, name: str, cases: Sequence[T], count: int, in_ci: int | None = None) -> Sequence[T]:
        """`count` of these cases in their order, in CI `in_ci` of them; without `in_ci`, CI tries all.

        They are the same for the same seed, test, name and cases.
        """
        most = in_ci if self.is_in_ci else count
        if self.seed is None or most is None or len(cases) <= most:
            return cases
        self.record(PROPERTY, (name, most, len(cases)))
        return drawn(self.seed, f"{self.test} {name}", cases, most)


def drawn(seed: str, name: str, cases: Sequence[T], count: int) -> list[T]:
    """`count` of these cases in their order."""
    return [cases[position] for position in sorted(Random(f"{seed} {name}").sample(range(len(cases)), count))]


def is_ci() -> bool:
    """Whether this is CI, which leaves out nothing but parts of the enumerations with `in_ci`."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


def is_full(config: pytest.Config) -> bool:
    """Whether nothing may be left out."""
    return bool(config.getoption("--full"))


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="try every case of large enumerations")


def configure(config: pytest.Config) -> None:
    """Chooses the seed; a worker of pytest-xdist has that of the run that started it."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(count, of=NAME, in_ci=COUNT): run so many of the tests of these parameters, or of this name; "
        "in CI `in_ci` of them, or all",
    )
    worker_input = getattr(config, "workerinput", {})
    config.stash[_seed] = worker_input[PROPERTY] if PROPERTY in worker_input else _chosen_seed(config)


def _chosen_seed(config: pytest.Config) -> str | None:
    if is_full(config):
        return None
    return str(config.getoption("--replay") or "") or (commit() if is_ci() else secrets.token_hex(4))


def commit() -> str:
    """The start of the commit's name: every run of CI on a commit draws the same, and the next commit another part."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).resolve().parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return NO_COMMIT
    return done.stdout.strip()[:8]


def seed_of(config: pytest.Config) -> str | None:
    """The seed of every sample of this run; None where everything is tried."""
    return config.stash[_seed]


def left_out(items: Sequence[pytest.Item], seed: str | None) -> set[pytest.Item]:
    """The tests that this run does not try; the first that it tries records the samples."""
    if seed is None:
        return set()
    is_of_one_file = len({item.path for item in items}) == 1
    counts: dict[str, int] = {}
    marked: dict[str, list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker(MARK)
        if mark is None or (is_of_one_file and "of" in mark.kwargs) or (is_ci() and IN_CI not in mark.kwargs):
            continue
        name = mark.kwargs.get("of") or item.nodeid.partition("[")[0]
        counts[name] = mark.kwargs[IN_CI] if is_ci() else mark.args[0]
        marked.setdefault(name, []).append(item)
    selected: set[pytest.Item] = set()
    samples: list[Drawn] = []
    for name, of_one in marked.items():
        if len(of_one) > counts[name]:
            tried = drawn(seed, name, of_one, counts[name])
            samples.append((name, len(tried), len(of_one)))
            selected.update(of_one)
            selected.difference_update(tried)
    first = next((item for item in items if item not in selected), None)
    if first is None:
        return set()
    first.user_properties.extend((PROPERTY, sample) for sample in samples)
    return selected


def lines(samples: Iterable[Drawn], seed: str | None) -> list[str]:
    """What the figures say: parts of one enumeration that several tests share are added up."""
    tried, there = Counter[str](), Counter[str]()
    for name, count, size in samples:
        tried[name] += count
        there[name] += size
    if not tried:
        return []
    again, more = (f"CI=true and --replay {seed}", "--full") if is_ci() else (f"--replay {seed}", "--full or CI=true")
    repeated = f"seed {seed}: {again} tries the same, {more} everything"
    return [*(_line(name, tried[name], there[name]) for name in there), repeated]


def _line(name: str, tried: int, there: int) -> str:
    return f"{name}: sample of {tried} of {there}" if tried else f"{name}: not tried"

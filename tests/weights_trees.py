"""Folders of weights in which something happens while they are read, and stagings that end in the middle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from hermetic.weights.staging import Options, stage
from hermetic.weights.tree import Tree
from hermetic.weights.workers import Limits, Progress


class HookedTree(Tree):
    """A folder in which `before(path, offset, size)` is called ahead of every read of content."""

    def __init__(self, root: Path, before: Callable[[str, int, int], None]) -> None:
        super().__init__(root)
        self._before = before
        self._paths: dict[int, str] = {}

    def open(self, path: str) -> int:
        descriptor = super().open(path)
        self._paths[descriptor] = path
        return descriptor

    def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
        self._before(self._paths[descriptor], offset, len(view))
        return super().read_into(descriptor, view, offset)


class KilledError(BaseException):
    """Ends a run as SIGKILL would: nothing is cleaned up but what the system itself does."""


def copied_until(source: Path, destination: Path, options: Options, reads: int) -> int:
    """Stages until so many reads were done, then ends; returns how many reads there were."""
    done = [0]

    class Dying(Tree):
        def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
            done[0] += 1
            if done[0] > reads:
                raise KilledError
            return super().read_into(descriptor, view[: 2**13], offset)

    with Dying(source) as tree, contextlib.suppress(KilledError):
        stage(tree, destination, options, (Progress(), Limits(threads=1), lambda _progress: None))
    return done[0]

"""Bytes that Python allocates within a block."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def traced_memory() -> Iterator[Callable[[], tuple[int, int]]]:
    """Gives what to call within the block: the bytes that are kept of those allocated in it, and the most at once."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield lambda: _since(before)
    finally:
        tracemalloc.stop()


def _since(before: int) -> tuple[int, int]:
    bytes_now, highest = tracemalloc.get_traced_memory()
    return bytes_now - before, highest - before

"""Work on many files at once: one thread lists tasks, several do them, and one enforces time limits.

SHA-256 and reading release the interpreter lock, so threads use all cores. A share that hangs blocks its thread for
ever; the enforcing thread never reads, so limits are kept. All threads are daemons.
"""

from __future__ import annotations

import mmap
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.tree import WeightsStopped

Task = TypeVar("Task")
Result = TypeVar("Result")

CHUNK = 2**20
"""Bytes that a thread reads at a time."""
MOST_IN_TURNS = 4096
"""Ranges of a file beyond which it is worked on by itself: the ranges of others would wait for it in memory."""
_WAITING = 64
_POLL_SECONDS = 0.1


def default_threads() -> int:
    """Twice the cores, and at least 8: a share that caps each stream needs more streams than there are cores."""
    return min(32, max(8, 2 * len(os.sched_getaffinity(0))))


@dataclass(slots=True)
class Progress:
    """Work done so far and in total. Counters of several threads, not exact: for display and to detect a standstill."""

    bytes_total: int = 0
    files_total: int = 0
    bytes_done: int = 0
    files_done: int = 0
    steps: int = 0
    at: str = ""
    started: float = field(default_factory=time.monotonic)
    unanswered: dict[int, str] = field(default_factory=dict)
    """Paths that the source of a staging has not answered about yet, by thread."""
    abandoned: bool = False
    """A time limit has passed: what still runs must not publish its result."""

    def read(self, count: int) -> None:
        """Counts bytes that were read."""
        self.bytes_done += count
        self.steps += 1

    def finished(self, path: str) -> None:
        """Counts a file, or a range of one, that is done."""
        self.files_done += 1
        self.steps += 1
        self.at = path

    @contextmanager
    def asking(self, path: str) -> Iterator[None]:
        """While the source is asked about a path. The answer is a step."""
        thread = threading.get_ident()
        self.unanswered[thread] = path
        try:
            yield
        finally:
            del self.unanswered[thread]
        self.steps += 1


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds in total, and without any progress; 0 means no limit. `threads` 0: `default_threads`."""

    timeout: float = 0
    stall: float = 0
    threads: int = 0

    @property
    def width(self) -> int:
        """The number of threads."""
        return self.threads or default_threads()


@dataclass(frozen=True, slots=True)
class FileTasks(Generic[Task]):
    """The tasks of one file, and how many there are."""

    count: int
    tasks: Iterator[Task]


def in_turns(files: Iterable[FileTasks[Task]], width: int) -> Iterator[Task]:
    """The tasks of up to `width` files in turns: a share caps each file, and a file is written by one at a time."""
    waiting = iter(files)
    active: deque[Iterator[Task]] = deque()
    alone: FileTasks[Task] | None = None
    while True:
        while alone is None and len(active) < width and (file_tasks := next(waiting, None)) is not None:
            if file_tasks.count > MOST_IN_TURNS:
                alone = file_tasks
            else:
                active.append(file_tasks.tasks)
        if active:
            tasks = active.popleft()
            for task in tasks:
                yield task
                active.append(tasks)
                break
        elif alone is not None:
            yield from alone.tasks
            alone = None
        else:
            return


def within(
    limits: Limits,
    progress: Progress,
    run: Callable[[], Result],
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Result:
    """What `run` returns, on a thread of its own. Raises what it raises, and WeightsStopped at a time limit."""
    results: list[Result] = []
    only = Limits(limits.timeout, limits.stall, 1)
    work_through(iter([None]), lambda _task, _buffer: results.append(run()), progress, only, on_progress)
    return results[0]


def work_through(
    tasks: Iterable[Task],
    work: Callable[[Task, memoryview], None],
    progress: Progress,
    limits: Limits,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> None:
    """Runs all tasks; `work` gets a task and its thread's buffer. Raises the first exception of any thread.

    `on_progress` is called a few times a second from the calling thread. Raises WeightsStopped with TooSlow or
    ShareHangs.
    """
    crew = _Crew(tasks, work, limits.width)
    steps, moved = progress.steps, time.monotonic()
    began = moved
    while not crew.wait(_POLL_SECONDS):
        now = time.monotonic()
        on_progress(progress)
        if progress.steps != steps:
            steps, moved = progress.steps, now
        reason = WeightsReason.SHARE_HANGS if limits.stall and now - moved > limits.stall else None
        reason = WeightsReason.TOO_SLOW if limits.timeout and now - began > limits.timeout else reason
        if reason is not None:
            crew.stop()
            raise WeightsStopped(_standstill(reason, progress, limits, now - began))
    if crew.failures:
        raise crew.failures[0]


def _standstill(reason: WeightsReason, progress: Progress, limits: Limits, took: float) -> WeightsFinding:
    done = (
        f"{progress.bytes_done} of {progress.bytes_total} bytes"
        if progress.bytes_total
        else f"{progress.bytes_done} bytes"
    )
    if reason is WeightsReason.SHARE_HANGS:
        return WeightsFinding(reason, progress.at, "an answer", f"none for {limits.stall:g} s, after {done}")
    rate = progress.bytes_done / took / 2**20 if took else 0.0
    return WeightsFinding(reason, progress.at, f"done within {limits.timeout:g} s", f"{done} at {rate:.0f} MiB/s")


class _Crew(Generic[Task]):
    """The threads of one piece of work."""

    def __init__(self, tasks: Iterable[Task], work: Callable[[Task, memoryview], None], threads: int) -> None:
        self.failures: list[BaseException] = []
        self._stopping = threading.Event()
        self._queue: queue.Queue[tuple[Task] | None] = queue.Queue(threads * _WAITING)
        self._left = threads + 1
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads = threads
        threading.Thread(target=self._guarded, args=(lambda: self._find(tasks),), daemon=True).start()
        for _ in range(threads):
            threading.Thread(target=self._guarded, args=(lambda: self._do(work),), daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether all threads have ended within this time."""
        return self._over.wait(seconds)

    def stop(self) -> None:
        """Makes every thread end after its current task."""
        self._stopping.set()

    def _guarded(self, body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self.failures.append(error)
            self.stop()
        finally:
            with self._lock:
                self._left -= 1
                if self._left == 0:
                    self._over.set()

    def _find(self, tasks: Iterable[Task]) -> None:
        try:
            for task in tasks:
                if self._stopping.is_set():
                    break
                self._queue.put((task,))
        finally:
            for _ in range(self._threads):
                self._queue.put(None)

    def _do(self, work: Callable[[Task, memoryview], None]) -> None:
        buffer = memoryview(mmap.mmap(-1, CHUNK))  # begins with a page, as writing past the page cache demands
        try:
            while (task := self._queue.get()) is not None:
                if not self._stopping.is_set():
                    work(task[0], buffer)
        except BaseException:
            self.stop()
            while self._queue.get() is not None:  # unblocks the listing thread, which waits for space
                pass
            raise

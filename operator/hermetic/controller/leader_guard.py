"""Lets only the leader write, so that two operators never write at the same time."""

from __future__ import annotations

from collections.abc import Callable

from hermetic.errors import NotLeading


def fence(may_write: Callable[[], bool]) -> Callable[[], None]:
    """Return a check for `KubernetesApi.ask_before_writing`; it raises NotLeading when `may_write` is false."""

    def check() -> None:
        if not may_write():
            raise NotLeading(
                "this process does not hold the Lease, nothing was written",
                fix="look at the Lease 'hermetic' for the holder; this process will end and start again",
            )

    return check

"""Writes are for the leader alone, so that two operators never write at once."""

from __future__ import annotations

from collections.abc import Callable

from hermetic.errors import NotLeading


def fence(may_write: Callable[[], bool]) -> Callable[[], None]:
    """What `KubernetesApi.ask_before_writing` takes: it raises NotLeading once `may_write` says no."""

    def check() -> None:
        if not may_write():
            raise NotLeading(
                "this process does not hold the Lease, nothing was written",
                fix="look at the Lease 'hermetic' for the holder; this process will end and start again",
            )

    return check

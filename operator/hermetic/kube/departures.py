"""Deletions of the recent past, so that a late answer to an own write does not restore an object."""

from __future__ import annotations

from collections import OrderedDict

REMEMBERED_DEPARTURES = 20_000


class Departures:
    """The resourceVersion at which each object was deleted, by uid; a bounded number of them."""

    def __init__(self) -> None:
        self._gone: OrderedDict[str, int] = OrderedDict()

    def remember(self, uid: str, version: int) -> None:
        """Record a deletion.

        Only versions below that of the deletion are ignored: an object that lost its labels leaves the watch as well,
        and may come back.
        """
        self._gone[uid] = version
        self._gone.move_to_end(uid)
        while len(self._gone) > REMEMBERED_DEPARTURES:
            self._gone.popitem(last=False)

    def follow(self, uid: str, version: int) -> bool:
        """Whether the object was deleted after this version."""
        return self._gone.get(uid, -1) > version

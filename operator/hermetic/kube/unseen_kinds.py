"""Kinds of which an object may be unknown: a role does not grant to list them, or an object was not understood."""

from __future__ import annotations

from hermetic.kinds import Kind


class UnseenKinds:
    """Each method that records something returns whether it changed what is unseen. No I/O.

    Versions are resourceVersions: a malformed object counts until a list of its kind at its version or a later one has
    none, so a list that began before it does not hide it.
    """

    def __init__(self) -> None:
        self._refused: set[Kind] = set()
        self._absent: set[Kind] = set()
        self._malformed: dict[Kind, int] = {}

    @property
    def refused(self) -> tuple[str, ...]:
        """The plural names of the kinds that may not be listed; sorted."""
        return tuple(sorted({kind.plural for kind in self._refused}))

    @property
    def malformed(self) -> tuple[str, ...]:
        """The plural names of the kinds of which an object was not understood; sorted."""
        return tuple(sorted({kind.plural for kind in self._malformed}))

    @property
    def absent(self) -> tuple[str, ...]:
        """The plural names of the kinds that the cluster does not serve; sorted."""
        return tuple(sorted({kind.plural for kind in self._absent}))

    def note_granted(self, kind: Kind, *, is_granted: bool, is_served: bool = True) -> bool:
        """Record whether a kind may be listed, and whether the cluster serves it."""
        before = (kind in self._refused, kind in self._absent)
        (self._refused.discard if is_granted else self._refused.add)(kind)
        (self._absent.discard if is_served else self._absent.add)(kind)
        return before != (kind in self._refused, kind in self._absent)

    def note_malformed(self, kind: Kind, version: int) -> bool:
        """Record an object of the kind that was not understood."""
        is_news = kind not in self._malformed
        self._malformed[kind] = max(version, self._malformed.get(kind, 0))
        return is_news

    def note_understood(self, kind: Kind, version: int) -> bool:
        """Record a list of the kind, at this version, without a malformed object."""
        if self._malformed.get(kind, version + 1) > version:
            return False
        del self._malformed[kind]
        return True

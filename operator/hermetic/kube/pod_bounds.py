"""Bounds the memory for pods: a tenant can create thousands of pods with the label or ServiceAccount of a model.

Pods that match what is rendered for a model have a budget of bytes per model and one for all models. Every other pod is
charged a fixed number of bytes, to smaller budgets per model and for all. A pod that exceeds a budget is not kept; its
model is crowded until no pod of it was refused between the ends of two full lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.kinds import Kind
from hermetic.kube.owners import Key
from hermetic.kube.projections import lean_pod
from hermetic.kube.unowned_objects import compact
from hermetic.objects.names import Owner
from hermetic.plan.runtime_drift import looks_rendered

Place = tuple[Kind, tuple[str, str]]

OVERHEAD = 2**10
"""Bytes that the indexes need for a pod, in addition to its body and labels."""
LARGEST_WHOLE = 4 * 2**10
"""Bytes of a pod beyond which the messages of its status are cut."""
SHORT_MESSAGE = 256
OWN_OF_ONE = 2 * 2**20
"""512 pods of four KiB: twice as many as a model may have replicas, for a rollout."""
OWN = 128 * 2**20
STRANGER = 32 * 2**10
STRANGERS_OF_ONE = 8 * STRANGER
STRANGERS = 256 * STRANGER
MOST_CROWDED = 10_000
"""Crowded models that are recorded one by one; beyond that, whole namespaces are recorded."""


@dataclass(frozen=True, slots=True)
class _Kept:
    owners: tuple[Key, ...]
    size: int
    own: bool


class _Budget:
    """Bytes taken per model and by all; limits `of_one` and `of_all`."""

    def __init__(self, of_one: int, of_all: int) -> None:
        self._of_one, self._of_all = of_one, of_all
        self._taken: dict[Key, int] = defaultdict(int)
        self._all = 0

    def has_room(self, owners: tuple[Key, ...], size: int) -> bool:
        of_each = all(self._taken.get(owner, 0) + size <= self._of_one for owner in owners)
        return of_each and self._all + size <= self._of_all

    def take(self, owners: tuple[Key, ...], size: int) -> None:
        self._all += size
        for owner in owners:
            self._taken[owner] += size
            if not self._taken[owner]:
                del self._taken[owner]


class PodBounds:
    """Budgets, and the size of every pod that is kept. Not thread-safe; no I/O."""

    def __init__(self) -> None:
        self._kept: dict[Place, _Kept] = {}
        self._own = _Budget(OWN_OF_ONE, OWN)
        self._strangers = _Budget(STRANGERS_OF_ONE, STRANGERS)
        self._refused: dict[Kind, set[Key]] = defaultdict(set)
        self._crowded: dict[Kind, set[Key]] = defaultdict(set)

    def admit(self, place: Place, pod: Mapping[str, Any], owners: tuple[Key, ...]) -> bytes | None:
        """The pod as compact JSON; None where it exceeds a budget."""
        self.forget(place)
        looks_own = len(owners) == 1 and looks_rendered(pod, Owner(*owners[0], uid=""))
        own = looks_own and self._own.has_room(owners, STRANGER)
        if not own and not self._strangers.has_room(owners, STRANGER):
            return None  # before it is projected and serialized
        body = compact(lean_pod(pod))
        if len(body) > LARGEST_WHOLE:
            body = compact(lean_pod(pod, longest=SHORT_MESSAGE))
        labels = (pod["metadata"].get("labels") or {}).items()
        size = len(body) + sum(len(name) + len(value) for name, value in labels) + OVERHEAD
        if size > STRANGER:
            return None
        self._kept[place] = kept = _Kept(owners, size if own else STRANGER, own)
        self._budget(kept).take(owners, kept.size)
        return body

    def refuse(self, place: Place, owners: tuple[Key, ...]) -> bool:
        """Record that a pod of these models was not kept; returns whether one of them was not crowded before."""
        crowded, refused = self._crowded[place[0]], self._refused[place[0]]
        keys = owners if len(crowded) < MOST_CROWDED else tuple((namespace, "") for namespace, _ in owners)
        is_news = not crowded.issuperset(keys)
        refused.update(keys)
        crowded.update(keys)
        return is_news

    def is_crowded(self, owner: Key) -> bool:
        """Whether pods of this model were not kept."""
        return any(owner in crowded or (owner[0], "") in crowded for crowded in self._crowded.values())

    def listed(self, kind: Kind, namespace: str | None) -> frozenset[Key]:
        """Note the end of a full list (of a namespace, or of all); returns the models that are no longer crowded."""
        here = {key for key in self._crowded[kind] if namespace in (None, key[0])}
        ended = here - self._refused[kind]
        self._crowded[kind] -= ended
        self._refused[kind] -= here
        return frozenset(ended)

    def forget(self, place: Place) -> None:
        """Release the bytes of a pod that is deleted or replaced."""
        if (known := self._kept.pop(place, None)) is not None:
            self._budget(known).take(known.owners, -known.size)

    def _budget(self, pod: _Kept) -> _Budget:
        return self._own if pod.own else self._strangers

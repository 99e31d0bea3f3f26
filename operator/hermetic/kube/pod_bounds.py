"""Bounds the memory for pods: a tenant can create thousands of pods with the label or ServiceAccount of a model.

Pods that match what is rendered for a model have a budget of bytes per model and one for all models. Every other pod is
charged a fixed number of bytes, to smaller budgets per model and for all. A pod that exceeds a budget is not kept; its
model is truncated until no pod of it was refused between the ends of two full lists.

What all models share is divided fairly between namespaces: when it is used up, a pod of a namespace that uses less than
another takes the place of the newest pods of the namespace that uses most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.kinds import Kind
from hermetic.kube.json_text import compact
from hermetic.kube.owners import Key
from hermetic.kube.projections import lean_pod
from hermetic.objects.names import Owner
from hermetic.plan.tampering.runtime_drift import appears_rendered, has_ended

Place = tuple[Kind, tuple[str, str]]

OVERHEAD = 2**10
"""Bytes that the indexes need for a pod, in addition to its body and labels."""
LARGEST_WHOLE = 5 * 2**10
"""Bytes of a pod beyond which the messages of its status are cut: one of the checks of its GPUs is a KiB at most."""
SHORT_MESSAGE = 256
OWN_OF_ONE = 5 * 2**19
"""512 pods of five KiB: twice as many as a model may have replicas, for a rollout."""
OWN = 128 * 2**20
FOREIGN_POD_BYTES = 32 * 2**10
FOREIGN_BYTES_OF_ONE = 8 * FOREIGN_POD_BYTES
FOREIGN_BYTES = 256 * FOREIGN_POD_BYTES
MOST_TRUNCATED = 1_000
"""Truncated models of a namespace that are recorded one by one; beyond that, all models of the namespace are."""
EVERY = ""


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of a pod: its compact JSON, None where it is not kept; the pods that are dropped for it."""

    body: bytes | None
    dropped: tuple[Place, ...] = ()
    truncated: frozenset[Key] = frozenset()
    """The models that were not truncated before."""


@dataclass(frozen=True, slots=True)
class _Kept:
    owners: tuple[Key, ...]
    size: int
    own: bool
    runs: bool


class _Budget:
    """Bytes taken per model, per namespace and by all; limits `of_one` model and `of_all`."""

    def __init__(self, of_one: int, of_all: int) -> None:
        self._of_one, self._of_all = of_one, of_all
        self._taken: dict[Key, int] = defaultdict(int)
        self._sizes: dict[str, dict[Place, int]] = defaultdict(dict)
        self._in: dict[str, int] = defaultdict(int)
        self._all = 0

    def has_room(self, owners: tuple[Key, ...]) -> bool:
        """Whether a pod of these models fits, where needed in the place of pods of the namespace that uses most."""
        if any(self._taken.get(owner, 0) + FOREIGN_POD_BYTES > self._of_one for owner in owners):
            return False
        if self._all + FOREIGN_POD_BYTES <= self._of_all:
            return True
        # Twice: that namespace must still use more when the last of its pods is dropped.
        return self._in.get(owners[0][0], 0) + 2 * FOREIGN_POD_BYTES < max(self._in.values(), default=0)

    def excess(self) -> Iterator[Place]:
        """The pods to drop, each before the next is asked for, until the limit of all holds."""
        while self._all > self._of_all:
            most = max(self._in, key=lambda namespace: self._in[namespace])
            yield next(reversed(self._sizes[most]))

    def take(self, pod_key: Place, owners: tuple[Key, ...], size: int) -> None:
        """Charge a pod."""
        namespace = owners[0][0]
        self._sizes[namespace][pod_key] = size
        self._in[namespace] += size
        self._all += size
        for owner in owners:
            self._taken[owner] += size

    def give_back(self, pod_key: Place, owners: tuple[Key, ...]) -> None:
        """Release the bytes of a pod."""
        namespace = owners[0][0]
        size = self._sizes[namespace].pop(pod_key)
        self._in[namespace] -= size
        self._all -= size
        if not self._sizes[namespace]:
            del self._sizes[namespace], self._in[namespace]
        for owner in owners:
            self._taken[owner] -= size
            if not self._taken[owner]:
                del self._taken[owner]


class PodBounds:
    """Budgets, and the size of every pod that is kept. Not thread-safe; no I/O."""

    def __init__(self) -> None:
        self._kept: dict[Place, _Kept] = {}
        self._own = _Budget(OWN_OF_ONE, OWN)
        self._strangers = _Budget(FOREIGN_BYTES_OF_ONE, FOREIGN_BYTES)
        self._refused: dict[Kind, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._truncated: dict[Kind, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    def admit(self, pod_key: Place, pod: Mapping[str, Any], owners: tuple[Key, ...]) -> Admission:
        """Keep a pod of these models, or refuse it where it exceeds a budget."""
        self.forget(pod_key)
        # Ended or terminating pods do not make a model truncated: evicted pods stay by the thousand.
        runs = not has_ended(pod) and "deletionTimestamp" not in pod["metadata"]
        appears_own = len(owners) == 1 and appears_rendered(pod, Owner(*owners[0], uid=""))
        own = appears_own and self._own.has_room(owners)
        if not own and not self._strangers.has_room(owners):  # before it is projected and serialized
            return Admission(None, truncated=self._refuse(pod_key, owners) if runs else frozenset())
        body = compact(lean_pod(pod))
        if len(body) > LARGEST_WHOLE:
            body = compact(lean_pod(pod, longest=SHORT_MESSAGE))
        labels = (pod["metadata"].get("labels") or {}).items()
        size = len(body) + sum(len(name) + len(value) for name, value in labels) + OVERHEAD
        if size > FOREIGN_POD_BYTES:
            return Admission(None, truncated=self._refuse(pod_key, owners) if runs else frozenset())
        self._kept[pod_key] = _Kept(owners, size if own else FOREIGN_POD_BYTES, own, runs)
        self._budget(own=own).take(pod_key, owners, self._kept[pod_key].size)
        dropped = dict(self._drop_excess(own=own))
        gone = (self._refuse(dropped_key, entry.owners) for dropped_key, entry in dropped.items() if entry.runs)
        return Admission(body, tuple(dropped), frozenset().union(*gone))

    def _drop_excess(self, *, own: bool) -> Iterator[tuple[Place, _Kept]]:
        for pod_key in self._budget(own=own).excess():
            yield pod_key, self._kept[pod_key]
            self.forget(pod_key)

    def _refuse(self, pod_key: Place, owners: tuple[Key, ...]) -> frozenset[Key]:
        """Record that a pod of these models is not kept; returns those that were not truncated before."""
        kind, news = pod_key[0], set[Key]()
        for namespace, name in owners:
            truncated = self._truncated[kind][namespace]
            if name not in truncated and EVERY not in truncated:
                news.add((namespace, name))
            recorded = name if name in truncated or len(truncated) < MOST_TRUNCATED else EVERY
            truncated.add(recorded)
            self._refused[kind][namespace].add(recorded)
        return frozenset(news)

    def is_truncated(self, owner: Key) -> bool:
        """Whether pods of this model were not kept."""
        truncated_names = (of_kind.get(owner[0], set()) for of_kind in self._truncated.values())
        return any(owner[1] in names or EVERY in names for names in truncated_names)

    def listed(self, kind: Kind, namespace: str | None) -> frozenset[Key]:
        """Note the end of a full list (of a namespace, or of all); returns the models that are no longer truncated."""
        ended = set[Key]()
        for truncated_namespace in [
            truncated_namespace
            for truncated_namespace in self._truncated[kind]
            if namespace in (None, truncated_namespace)
        ]:
            refused = self._refused[kind].pop(truncated_namespace, set())
            ended |= {(truncated_namespace, name) for name in self._truncated[kind].pop(truncated_namespace) - refused}
            if refused:
                self._truncated[kind][truncated_namespace] = refused
        return frozenset(ended)

    def forget(self, pod_key: Place) -> None:
        """Release the bytes of a pod that is deleted or replaced."""
        if (entry := self._kept.pop(pod_key, None)) is not None:
            self._budget(own=entry.own).give_back(pod_key, entry.owners)

    def _budget(self, *, own: bool) -> _Budget:
        return self._own if own else self._strangers

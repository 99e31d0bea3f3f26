"""The audit's cache of the cluster: the fields of each object that checks read, and whether they have changed.

Separate from the operator's store, which keeps other fields of fewer objects. A heartbeat, a new condition or a changed
annotation that no check reads does not change the cache, so only relevant changes cause an evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from hermetic.audit.estate.kubernetes.all_kinds import ASKED
from hermetic.audit.estate.kubernetes.served import SERVED
from hermetic.audit.estate.questions import Answer, PackedBody, Problem, Question, UnreadReason
from hermetic.audit.model.findings import Evidence
from hermetic.collect.kube.list_requests import ListRequest, identity
from hermetic.collect.kube.listing import Listed, Name, Packed, kept, number, packed
from hermetic.ports import Manifest


@dataclass(frozen=True, slots=True)
class ObservedList:
    """One list. `bodies` are JSON in one fixed form, `version` is the resourceVersion of the last change."""

    bodies: Mapping[Name, bytes]
    version: int
    was_settled: bool
    problem: Problem | None
    shown_absent: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class CacheSnapshot:
    """Every list, and which kinds are served; immutable."""

    served: Answer | None
    lists: Mapping[ListRequest, ObservedList]

    def answers(self) -> Mapping[Question, Answer]:
        """The snapshot as answers of an estate with the source "kube". Time grows with the cluster."""
        served = self.served or Answer(problem=Problem(UnreadReason.NOT_ASKED, "GET /apis: not read yet"))
        return {
            SERVED: served,
            **{request.question: _answer(request, observed_list) for request, observed_list in self.lists.items()},
        }


def _answer(request: ListRequest, observed_list: ObservedList) -> Answer:
    if not observed_list.was_settled:
        return Answer(problem=Problem(UnreadReason.NOT_ASKED, f"{request.path}: not listed yet"))
    if observed_list.shown_absent and observed_list.problem is None:
        return Answer(evidence=observed_list.shown_absent)
    digest = sha256()
    bodies = [body for _, body in sorted(observed_list.bodies.items())]
    for body in bodies:
        digest.update(body + b"\n")
    watch = f"WATCH {request.path}{'&' if '?' in request.path else '?'}resourceVersion={observed_list.version}"
    evidence = (Evidence(watch, 200, digest.hexdigest()),)
    # As text: parsed one by one, when a check reads the list, ten thousand pods take a third of the memory.
    return Answer(tuple(PackedBody.of_text(body, evidence) for body in bodies), evidence, observed_list.problem)


LIST_REQUESTS: tuple[ListRequest, ...] = tuple(ListRequest(model, scope) for model, scope in ASKED)
"""Everything that is listed and watched; the rights to list and watch these suffice."""


@dataclass(slots=True)
class _Seen:
    """The state of one list. `version` is the resourceVersion of the last change of a kept field."""

    entries: dict[Name, Packed] = field(default_factory=dict)
    version: int = 0
    was_settled: bool = False
    problem: Problem | None = None
    shown_absent: tuple[Evidence, ...] = ()


class ClusterObservations:
    """The cache; `CacheWatches` fills it. Not thread-safe; no I/O."""

    def __init__(self) -> None:
        self._seen: dict[ListRequest, _Seen] = {request: _Seen() for request in LIST_REQUESTS}
        self._served: Answer | None = None
        self._revision = 0

    @property
    def revision(self) -> int:
        """Grows with every change of a field that a check reads."""
        return self._revision

    @property
    def is_complete(self) -> bool:
        """Whether every list was tried once, successfully or not."""
        return self._served is not None and all(list_state.was_settled for list_state in self._seen.values())

    def changed_since(self, revision: int) -> bool:
        """Whether another evaluation could give another result."""
        return self._revision != revision

    def take(self, request: ListRequest, listed: Listed[Packed]) -> None:
        """Replace the known objects by a complete list; a list that broke off only records its `problem`."""
        list_state = self._seen[request]
        entries = dict(listed.items)
        same = entries.keys() == list_state.entries.keys() and all(
            entry.body == list_state.entries[name].body for name, entry in entries.items()
        )
        changed = not (same and list_state.was_settled and list_state.problem is None and not list_state.shown_absent)
        list_state.entries, list_state.was_settled, list_state.problem, list_state.shown_absent = (
            entries,
            True,
            None,
            (),
        )
        if changed:
            self._change(list_state, number(listed.version))

    def see(self, manifest: Manifest, *, gone: bool = False) -> bool:
        """Store one object, or remove a deleted one; returns whether that changed anything.

        A malformed object, or one of a kind that is not listed, raises what reading it raises.
        """
        changed = [self._see(request, manifest, gone=gone) for request in _requests_for(manifest)]
        return any(changed)

    def _see(self, request: ListRequest, manifest: Manifest, *, gone: bool) -> bool:
        list_state, name, version = (
            self._seen[request],
            identity(manifest),
            number(manifest["metadata"]["resourceVersion"]),
        )
        previous = list_state.entries.get(name)
        if previous is not None and previous.version > version:
            return False
        fresh = kept(request, manifest)
        if gone or not request.model.is_relevant(fresh.body):
            return previous is not None and self._forget(list_state, name, manifest, version)
        list_state.entries[name] = packed(fresh)
        if previous is not None and previous.body == list_state.entries[name].body:
            return False
        self._change(list_state, version)
        return True

    def failed(self, request: ListRequest, problem: Problem) -> None:
        """Record that this list cannot be read or watched: its checks are Unknown until it can."""
        list_state = self._seen[request]
        if list_state.problem == problem:
            return
        list_state.problem, list_state.was_settled = problem, True
        self._revision += 1

    def recovered(self, request: ListRequest) -> None:
        """Clear the problem of a list whose watch goes on without a gap."""
        list_state = self._seen[request]
        if list_state.problem is not None:
            list_state.problem = None
            self._revision += 1

    def absent(self, request: ListRequest, shown: tuple[Evidence, ...]) -> None:
        """Record that the kind is not served at all, with the evidence."""
        list_state = self._seen[request]
        changed = not list_state.shown_absent or list_state.problem is not None
        list_state.entries, list_state.was_settled, list_state.problem, list_state.shown_absent = {}, True, None, shown
        if changed:
            self._revision += 1

    def serves(self, served: Answer) -> None:
        """Record which kinds the API server serves, or why that is not known."""
        previous = self._served
        self._served = served
        if previous is None or _content(previous) != _content(served):
            self._revision += 1

    def observed(self) -> CacheSnapshot:
        """A snapshot for another process. Takes milliseconds for tens of thousands of objects."""
        return CacheSnapshot(
            self._served, {request: self._list(list_state) for request, list_state in self._seen.items()}
        )

    def answers(self) -> Mapping[Question, Answer]:
        return self.observed().answers()

    @staticmethod
    def _list(list_state: _Seen) -> ObservedList:
        bodies = {name: entry.body for name, entry in list_state.entries.items()}
        return ObservedList(
            bodies, list_state.version, list_state.was_settled, list_state.problem, list_state.shown_absent
        )

    def _forget(self, list_state: _Seen, name: Name, manifest: Manifest, version: int) -> bool:
        if list_state.entries[name].uid != str(manifest["metadata"].get("uid", "")):
            return False  # a late event of a predecessor
        del list_state.entries[name]
        self._change(list_state, version)
        return True

    def _change(self, list_state: _Seen, version: int) -> None:
        list_state.version = max(list_state.version, version)
        self._revision += 1


def _content(answer: Answer) -> tuple[list[Mapping[str, Any]], Problem | None]:
    return [body.value for body in answer.bodies], answer.problem


def _requests_for(manifest: Manifest) -> Iterator[ListRequest]:
    namespace, name = identity(manifest)
    for request in _BY_KIND[manifest["apiVersion"], manifest["kind"]]:
        if not request.scope or request.scope == f"{namespace}/{name}":
            yield request


_BY_KIND: dict[tuple[str, str], list[ListRequest]] = {}
for _request in LIST_REQUESTS:
    for _version in (_request.kind.version, *_request.model.ALSO_SERVED_AS):
        _group = f"{_request.kind.group}/" if _request.kind.group else ""
        _BY_KIND.setdefault((f"{_group}{_version}", _request.kind.kind), []).append(_request)

"""The cluster as the operator keeps seeing it: what the checks read of each object, and whether that has changed.

Kept beside the operator's own store, which holds its children and not the cluster. A heartbeat, a new condition or a
changed annotation that no check reads changes nothing here, so that judging again follows from what matters alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from hermetic.audit.estate.kubernetes.all_kinds import ASKED
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, Trouble, fixed_json
from hermetic.audit.findings import Evidence
from hermetic.collect.kube.coordinates import Look, identity
from hermetic.collect.kube.listing import Listed, Name, kept
from hermetic.ports import Manifest

LOOKS: tuple[Look, ...] = tuple(Look(model, scope) for model, scope in ASKED)
"""Everything that is listed and watched: the rights to list and watch these are all that it takes."""


@dataclass(slots=True)
class _Entry:
    uid: str
    version: int
    body: bytes


@dataclass(slots=True)
class _Seen:
    """What is known of one list. `version` is the resourceVersion of the last change that mattered."""

    entries: dict[Name, _Entry] = field(default_factory=dict)
    version: int = 0
    was_settled: bool = False
    problem: Problem | None = None
    shown_absent: tuple[Evidence, ...] = ()


class ClusterObservations:
    """Not safe for threads; every method returns at once. `Observing` feeds it."""

    def __init__(self) -> None:
        self._seen: dict[Look, _Seen] = {look: _Seen() for look in LOOKS}
        self._revision = 0

    @property
    def revision(self) -> int:
        """Grows whenever something changed that a check reads."""
        return self._revision

    @property
    def is_complete(self) -> bool:
        """Whether everything was looked at once, whatever came of it."""
        return all(seen.was_settled for seen in self._seen.values())

    def changed_since(self, revision: int) -> bool:
        """Whether judging again could give another result."""
        return self._revision != revision

    def take(self, look: Look, listed: Listed) -> None:
        """A whole list replaces what was known; one that broke off changes nothing but for `trouble`."""
        seen = self._seen[look]
        entries = {name: _Entry(one.uid, _number(one.version), _bytes(one.body)) for name, one in listed.items.items()}
        same = entries.keys() == seen.entries.keys() and all(
            entry.body == seen.entries[name].body for name, entry in entries.items()
        )
        changed = not (same and seen.was_settled and seen.problem is None and not seen.shown_absent)
        seen.entries, seen.was_settled, seen.problem, seen.shown_absent = entries, True, None, ()
        if changed:
            self._change(seen, _number(listed.version))

    def see(self, manifest: Manifest, *, gone: bool = False) -> bool:
        """One object as it is now, or as it was when it went; returns whether that changed anything."""
        look = _look_at(manifest)
        if look is None:
            return False
        seen, name, version = self._seen[look], identity(manifest), _number(manifest["metadata"]["resourceVersion"])
        known = seen.entries.get(name)
        if known is not None and known.version > version:
            return False
        if gone:
            return known is not None and self._forget(seen, name, manifest, version)
        fresh = kept(look, manifest)
        body = _bytes(fresh.body)
        seen.entries[name] = _Entry(fresh.uid, version, body)
        if known is not None and known.body == body:
            return False
        self._change(seen, version)
        return True

    def trouble(self, look: Look, problem: Problem) -> None:
        """This list cannot be seen (any more): its checks are Unknown until it is."""
        seen = self._seen[look]
        if seen.problem == problem:
            return
        seen.problem, seen.was_settled = problem, True
        self._revision += 1

    def well(self, look: Look) -> None:
        """The list is followed again without having been interrupted."""
        seen = self._seen[look]
        if seen.problem is not None:
            seen.problem = None
            self._revision += 1

    def absent(self, look: Look, shown: tuple[Evidence, ...]) -> None:
        """The kind is not served at all, and this shows it."""
        seen = self._seen[look]
        changed = not seen.shown_absent or seen.problem is not None
        seen.entries, seen.was_settled, seen.problem, seen.shown_absent = {}, True, None, shown
        if changed:
            self._revision += 1

    def answers(self) -> Mapping[Question, Answer]:
        """What is known now, as the answers of an estate with the source "kube"."""
        return {look.question: _answer(look, seen) for look, seen in self._seen.items()}

    def _forget(self, seen: _Seen, name: Name, manifest: Manifest, version: int) -> bool:
        if seen.entries[name].uid != str(manifest["metadata"].get("uid", "")):
            return False  # late news of a predecessor
        del seen.entries[name]
        self._change(seen, version)
        return True

    def _change(self, seen: _Seen, version: int) -> None:
        seen.version = max(seen.version, version)
        self._revision += 1


def _answer(look: Look, seen: _Seen) -> Answer:
    if not seen.was_settled:
        return Answer(problem=Problem(Trouble.NOT_ASKED, f"{look.path}: not listed yet"))
    if seen.shown_absent and seen.problem is None:
        return Answer(evidence=seen.shown_absent)
    digest = sha256()
    bodies: list[dict[str, Any]] = []
    for _, entry in sorted(seen.entries.items()):
        digest.update(entry.body + b"\n")
        bodies.append(json.loads(entry.body))
    request = f"WATCH {look.path}{'&' if '?' in look.path else '?'}resourceVersion={seen.version}"
    evidence = (Evidence(request, 200, digest.hexdigest()),)
    return Answer(tuple(Body(body, evidence) for body in bodies), evidence, seen.problem)


def _look_at(manifest: Manifest) -> Look | None:
    namespace, name = identity(manifest)
    for look in _BY_KIND.get((manifest.get("apiVersion", ""), manifest.get("kind", "")), ()):
        if not look.scope or look.scope == f"{namespace}/{name}":
            return look
    return None


def _bytes(body: dict[str, Any]) -> bytes:
    return fixed_json(body).encode()


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0


_BY_KIND: dict[tuple[str, str], list[Look]] = {}
for _look in LOOKS:
    _BY_KIND.setdefault((_look.kind.api_version, _look.kind.kind), []).append(_look)

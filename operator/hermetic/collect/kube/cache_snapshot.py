"""A snapshot of the audit's cache: bytes that are cheap to take and are parsed in another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hermetic.audit.estate.kubernetes.served import SERVED
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, Trouble
from hermetic.audit.findings import Evidence
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.collect.kube.listing import Name


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
        served = self.served or Answer(problem=Problem(Trouble.NOT_ASKED, "GET /apis: not read yet"))
        return {SERVED: served, **{look.question: _answer(look, seen) for look, seen in self.lists.items()}}


def _answer(look: ListRequest, seen: ObservedList) -> Answer:
    if not seen.was_settled:
        return Answer(problem=Problem(Trouble.NOT_ASKED, f"{look.path}: not listed yet"))
    if seen.shown_absent and seen.problem is None:
        return Answer(evidence=seen.shown_absent)
    digest = sha256()
    bodies: list[dict[str, Any]] = []
    for _, body in sorted(seen.bodies.items()):
        digest.update(body + b"\n")
        bodies.append(json.loads(body))
    request = f"WATCH {look.path}{'&' if '?' in look.path else '?'}resourceVersion={seen.version}"
    evidence = (Evidence(request, 200, digest.hexdigest()),)
    return Answer(tuple(Body(body, evidence) for body in bodies), evidence, seen.problem)

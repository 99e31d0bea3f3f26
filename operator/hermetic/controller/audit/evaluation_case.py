"""The input of one evaluation of the cluster, and how it and its findings travel to and from the evaluation process.

They travel as length-prefixed pickles of bounded size, on a socket pair that no other process has. A frame takes some
milliseconds at most to write or to read, however large the cluster is.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Source
from hermetic.audit.model.findings import Finding
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.run import evaluate
from hermetic.collect.kube.cache import CacheSnapshot
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.collect.kube.listing import Name
from hermetic.collect.probe.readings import question as probe_question

LENGTH_BYTES = 8
OBJECTS_AT_ONCE = 500
FINDINGS_AT_ONCE = 50

Bodies = tuple[ListRequest, dict[Name, bytes]]


@dataclass(frozen=True, slots=True)
class Case:
    """`cluster` is the ARM id, `probe` the answer of the newest round (None before the first)."""

    cluster: str
    policy: Policy
    observed: CacheSnapshot
    probe: Answer | None

    def findings(self) -> tuple[Finding, ...]:
        """Run the checks. Takes seconds for ten thousand pods."""
        answers, sources = dict(self.observed.answers()), set[Source]({"kube"})
        if self.probe is not None:
            answers[probe_question(self.cluster)] = self.probe
            sources.add("probe")
        return evaluate(Estate(self.cluster, sources, answers), self.policy)


def packed_case(case: Case) -> Iterator[bytes]:
    """The case without its objects, then objects by the hundred, then None."""
    lists = case.observed.lists
    bare = {listed: replace(one, bodies={}) for listed, one in lists.items()}
    yield _frame(replace(case, observed=CacheSnapshot(case.observed.served, bare)))
    for listed, one in lists.items():
        rest = iter(one.bodies.items())
        while some := dict(islice(rest, OBJECTS_AT_ONCE)):
            yield _frame((listed, some))
    yield _frame(None)


def unpacked_case(bare: Case, parts: Iterable[Bodies]) -> Case:
    bodies: dict[ListRequest, dict[Name, bytes]] = {listed: {} for listed in bare.observed.lists}
    for listed, some in parts:
        bodies[listed].update(some)
    lists = {listed: replace(one, bodies=bodies[listed]) for listed, one in bare.observed.lists.items()}
    return replace(bare, observed=CacheSnapshot(bare.observed.served, lists))


def packed_findings(findings: Iterable[Finding]) -> Iterator[bytes]:
    """Findings by the dozen, then None."""
    rest = iter(findings)
    while some := tuple(islice(rest, FINDINGS_AT_ONCE)):
        yield _frame(some)
    yield _frame(None)


def packed_fault(words: str, trace: str) -> bytes:
    """In place of findings: the error in one line, and its traceback."""
    return _frame((words, trace))


def length_of(head: bytes) -> int:
    """How many bytes follow the head of a frame."""
    return int.from_bytes(head, "big")


def unpacked(body: bytes) -> Any:
    """The content of one frame."""
    return pickle.loads(body)  # noqa: S301 - from our own process on our own pipe


def _frame(content: Any) -> bytes:
    body = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body

"""Everything that one audit collected, as one file: evaluating it again anywhere gives the same findings.

    {"schema": "hermetic.dev/snapshot/v1", "sha256": DIGEST, "content": {...}}

DIGEST is SHA-256 over `content` as compact JSON in ASCII, its keys in the order of the file. It detects damage and
editing; it is no signature and does not authenticate the author. Bodies and exchanges are stored once, in tables, and
answers refer to them. User input (profile, policy, exceptions) is not in it, and neither is any credential.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError
from pydantic.alias_generators import to_camel

from hermetic.api.times import must_be_utc
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import (
    DEEPEST,
    Answer,
    Body,
    Problem,
    Question,
    Source,
    UnreadReason,
    Verb,
    is_too_deep,
)
from hermetic.audit.model.findings import Evidence
from hermetic.errors import SnapshotUnusable

SCHEMA: Literal["hermetic.dev/snapshot/v1"] = "hermetic.dev/snapshot/v1"

TOO_DEEP = "the snapshot is nested more deeply than any answer is"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The questions and answers about one cluster, by which release and when. Times are aware, in UTC."""

    cluster: str
    sources: tuple[Source, ...]
    started_at: datetime
    finished_at: datetime
    tool_version: str
    answers: Mapping[Question, Answer]

    def __post_init__(self) -> None:
        must_be_utc(self.started_at, self.finished_at)

    def estate(self) -> Estate:
        return Estate(self.cluster, self.sources, self.answers)


def to_json(snapshot: Snapshot) -> str:
    """The file's text: equal snapshots give equal text, independent of the order of their answers."""
    content = _compact(_content(snapshot))
    return f'{{"schema":{json.dumps(SCHEMA)},"sha256":"{_digest(content)}","content":{content}}}\n'


def from_json(text: str | bytes) -> Snapshot:
    """Parse a file. Raises SnapshotUnusable for anything that `to_json` did not write."""
    document = _parsed(text)
    if not isinstance(document, Mapping) or document.keys() != {"schema", "sha256", "content"}:
        raise SnapshotUnusable(f"not a snapshot: no object with schema, sha256 and content ({SCHEMA})")
    if document["schema"] != SCHEMA:
        raise SnapshotUnusable(f"the snapshot is of schema {document['schema']!r}, and this release reads {SCHEMA}")
    if _digest(_compact(document["content"])) != document["sha256"]:
        raise SnapshotUnusable("the snapshot was changed after it was written: its sha256 is that of another content")
    try:
        content = _Content.model_validate(document["content"])
        return content.snapshot()
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise SnapshotUnusable(f"content.{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}") from None
    except ValueError as error:
        raise SnapshotUnusable(f"the snapshot contradicts itself: {error}") from None


# ------------------------------------------------------------------ writing


class _Table:
    """Values that are stored once; equal ones share an index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, key: Any, value: Any) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


def _content(snapshot: Snapshot) -> dict[str, Any]:
    exchanges, bodies = _Table(), _Table()
    in_order = sorted(snapshot.answers.items(), key=lambda pair: pair[0].key)
    answers = [_answer(question, answer, exchanges, bodies) for question, answer in in_order]
    return {
        "cluster": snapshot.cluster,
        "sources": sorted(snapshot.sources),
        "startedAt": snapshot.started_at.isoformat(),
        "finishedAt": snapshot.finished_at.isoformat(),
        "toolVersion": snapshot.tool_version,
        "exchanges": exchanges.values,
        "bodies": bodies.values,
        "answers": answers,
    }


def _answer(question: Question, answer: Answer, exchanges: _Table, bodies: _Table) -> dict[str, Any]:
    def numbers(evidence: Iterable[Evidence]) -> list[int]:
        return [
            exchanges.number(exchange, [exchange.request, exchange.status, exchange.sha256]) for exchange in evidence
        ]

    problem = answer.problem
    return {
        "source": question.source,
        "verb": question.verb,
        "kind": question.kind,
        "target": question.target,
        "apiVersion": question.api_version,
        "action": question.action,
        "body": question.body,
        "bodies": [[bodies.number(_compact(body.value), body.value), numbers(body.evidence)] for body in answer.bodies],
        "evidence": numbers(answer.evidence),
        "problem": None
        if problem is None
        else {"trouble": problem.reason.value, "detail": problem.detail, "permission": problem.permission},
        **({"kept": answer.projection} if answer.projection else {}),
    }


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode("ascii")).hexdigest()


# ------------------------------------------------------------------ reading


class _Read(BaseModel):
    # not strict as a whole: JSON has lists for Python's tuples, and texts for times
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class _Problem(_Read):
    trouble: str
    """The reason; the name is that of the file format."""
    detail: str
    permission: str

    def problem(self) -> Problem:
        return Problem(UnreadReason(self.trouble), self.detail, self.permission)


class _Answer(_Read):
    source: Source
    verb: Verb
    kind: str
    target: str
    api_version: str
    action: str
    body: str
    bodies: list[tuple[StrictInt, list[StrictInt]]]
    evidence: list[StrictInt]
    problem: _Problem | None
    projection: str = Field("", alias="kept")
    """Absent where bodies are complete, and in files of older releases."""

    def question(self) -> Question:
        return Question(self.source, self.verb, self.kind, self.target, self.api_version, self.action, self.body)

    def answer(self, exchanges: Sequence[Evidence], bodies: Sequence[Mapping[str, Any]]) -> Answer:
        def evidence(numbers: Iterable[int]) -> tuple[Evidence, ...]:
            return tuple(_at(exchanges, number, "exchanges") for number in numbers)

        return Answer(
            tuple(Body(_at(bodies, number, "bodies"), evidence(by)) for number, by in self.bodies),
            evidence(self.evidence),
            self.problem.problem() if self.problem else None,
            self.projection,
        )


class _Content(_Read):
    cluster: str
    sources: list[Source]
    started_at: datetime
    finished_at: datetime
    tool_version: str
    exchanges: list[tuple[str, StrictInt | None, str | None]]
    bodies: list[dict[str, Any]]
    answers: list[_Answer]

    def snapshot(self) -> Snapshot:
        exchanges = [Evidence(*row) for row in self.exchanges]
        answers = {entry.question(): entry.answer(exchanges, self.bodies) for entry in self.answers}
        if len({question.key for question in answers}) != len(self.answers):
            raise ValueError("one question is answered twice")
        snapshot = Snapshot(
            self.cluster, tuple(self.sources), self.started_at, self.finished_at, self.tool_version, answers
        )
        if snapshot.finished_at < snapshot.started_at:
            raise ValueError(
                f"it was finished at {snapshot.finished_at}, before it was started at {snapshot.started_at}"
            )
        return snapshot


def _at(table: Sequence[T], number: int, name: str) -> T:
    if not 0 <= number < len(table):
        raise ValueError(f"number {number} is not among its {len(table)} {name}")
    return table[number]


def _parsed(text: str | bytes) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles)
    except UnicodeDecodeError as error:
        raise SnapshotUnusable(f"the snapshot is not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        why = "it ends too early" if error.pos >= len(error.doc.rstrip()) else error.msg
        raise SnapshotUnusable(f"the snapshot is not JSON: {why} (line {error.lineno}, column {error.colno})") from None
    except ValueError as error:  # a number of thousands of digits
        raise SnapshotUnusable(f"the snapshot is not JSON: {error}") from None
    except RecursionError:
        raise SnapshotUnusable(TOO_DEEP) from None
    if is_too_deep(value, DEEPEST + 8):  # the envelope around the answers
        raise SnapshotUnusable(TOO_DEEP)
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for number, (name, _) in enumerate(pairs) if name in dict(pairs[:number]))
        raise SnapshotUnusable(f"the snapshot contains {twice[:64]!r} twice in one object")
    return fields

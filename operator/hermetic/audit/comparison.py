"""What changed since an earlier audit of the same cluster: the baseline's JSON report compared with this audit.

Only checks that both audits ran are compared. A finding that is absent because a source was left out has not been
fixed, so it is never listed as removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from hermetic.audit.findings import Finding, Report, Severity, Verdict, urgency

SCHEMA = "hermetic.dev/audit/v1"
_NOT_FINE = frozenset({Verdict.FAIL, Verdict.UNKNOWN, Verdict.EXCEPTED})
_Word = Annotated[str, Field(min_length=1)]
Key = tuple[str, str]


class NotABaseline(ValueError):
    """The file is no JSON report that this audit can be compared with."""


@dataclass(frozen=True, slots=True)
class State:
    """Verdict and severity of one finding at one time."""

    verdict: Verdict
    severity: Severity


@dataclass(frozen=True, slots=True)
class FindingChange:
    """One finding that changed: `before` is None for a new one, `now` for one that is no longer there."""

    check: str
    resource: str
    before: State | None
    now: State | None

    @property
    def matters(self) -> bool:
        """Whether it is, or was, Fail, Unknown or Excepted."""
        return any(state is not None and state.verdict in _NOT_FINE for state in (self.before, self.now))

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        """The list of the JSON report that the change is in."""
        if self.before is None:
            return "added"
        return "removed" if self.now is None else "changed"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The compared part of an earlier audit."""

    cluster: str
    sha256: str
    finished_at: str
    verdict: Verdict
    profile: str
    not_asked: frozenset[str]
    states: Mapping[Key, tuple[str, State]]
    """By check and resource in lower case: the resource as it was written, and its state."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes since a baseline, by check and resource; `not_compared` are checks that only one of both ran."""

    sha256: str
    finished_at: str
    verdict: Verdict
    profile: str
    changes: tuple[FindingChange, ...]
    not_compared: tuple[str, ...]

    def of(self, kind: str) -> list[FindingChange]:
        """The changes of one kind: added, removed or changed."""
        return [change for change in self.changes if change.kind == kind]

    @property
    def that_matter(self) -> list[FindingChange]:
        """Those that are, or were, Fail, Unknown or Excepted."""
        return [change for change in self.changes if change.matters]


class _BaselineModel(BaseModel):
    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )


class _BaselineFinding(_BaselineModel):
    check: _Word
    resource: str
    verdict: Verdict
    severity: Severity


class _BaselineReport(_BaselineModel):
    cluster: _Word
    profile: str
    finished_at: _Word
    verdict: Literal["Pass", "Fail", "Unknown"]
    not_asked: dict[str, list[str]]
    findings: list[_BaselineFinding]


def read_baseline(content: bytes) -> Baseline:
    """Parse a report that `-o json` wrote. Raises NotABaseline with the reason."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotABaseline(f"is not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        written = str(data.get("schema"))[:64] if isinstance(data, dict) else type(data).__name__
        raise NotABaseline(f"its `schema` must be {SCHEMA!r}, and it is {written!r}")
    try:
        report = _BaselineReport.model_validate(data)
        datetime.fromisoformat(report.finished_at)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:64] for part in first["loc"])
        raise NotABaseline(f"`{where}`: {first['msg']}") from error
    except ValueError as error:
        raise NotABaseline(f"`finishedAt` is no time: {report.finished_at[:64]!r}") from error
    return Baseline(
        cluster=report.cluster,
        sha256=hashlib.sha256(content).hexdigest(),
        finished_at=report.finished_at,
        verdict=Verdict(report.verdict),
        profile=report.profile,
        not_asked=frozenset(check for checks in report.not_asked.values() for check in checks),
        states=_worst((one.check, one.resource, State(one.verdict, one.severity)) for one in report.findings),
    )


def compare(baseline: Baseline, report: Report) -> Comparison:
    """Every finding that was added, removed, or changed verdict or severity. Both must be about one cluster."""
    unasked = baseline.not_asked ^ {check for checks in report.not_asked.values() for check in checks}
    now = _worst((one.check, one.resource, State(one.verdict, one.severity)) for one in report.findings)
    changes = [change for change in _changes(baseline.states, now) if change.check not in unasked]
    seen = {check for check, _ in (*baseline.states, *now)}
    return Comparison(
        sha256=baseline.sha256,
        finished_at=baseline.finished_at,
        verdict=baseline.verdict,
        profile=baseline.profile,
        changes=tuple(sorted(changes, key=lambda change: (change.check, change.resource.lower()))),
        not_compared=tuple(sorted(unasked & seen)),
    )


def same_cluster(baseline: Baseline, cluster: str) -> bool:
    """Whether the baseline is about this cluster. ARM ids differ in case and mean the same."""
    return baseline.cluster.strip().strip("/").lower() == cluster.strip().strip("/").lower()


def shown(comparison: Comparison) -> dict[str, Any]:
    """The `baseline` object of the JSON report."""
    return {
        "sha256": comparison.sha256,
        "finishedAt": comparison.finished_at,
        "verdict": comparison.verdict.value,
        "profile": comparison.profile,
        "added": [_entry(change, change.now) for change in comparison.of("added")],
        "removed": [_entry(change, change.before) for change in comparison.of("removed")],
        "changed": [
            _entry(change, change.now) | {"before": _state(change.before)} for change in comparison.of("changed")
        ],
        "notCompared": list(comparison.not_compared),
    }


def _entry(change: FindingChange, state: State | None) -> dict[str, Any]:
    return {"check": change.check, "resource": change.resource, **_state(state)}


def _state(state: State | None) -> dict[str, str]:
    return {} if state is None else {"verdict": state.verdict.value, "severity": state.severity.value}


def _changes(before: Mapping[Key, tuple[str, State]], now: Mapping[Key, tuple[str, State]]) -> Iterator[FindingChange]:
    for key in before.keys() | now.keys():
        old, new = before.get(key), now.get(key)
        if (old and old[1]) != (new and new[1]):
            resource = (new or old or ("",))[0]
            yield FindingChange(key[0], resource, old[1] if old else None, new[1] if new else None)


def _worst(states: Iterable[tuple[str, str, State]]) -> dict[Key, tuple[str, State]]:
    """One state for each check and resource: the worse where a report has two."""
    found: dict[Key, tuple[str, State]] = {}
    for check, resource, state in states:
        key = (check, resource.lower())
        if key not in found or _rank(state) < _rank(found[key][1]):
            found[key] = (resource, state)
    return found


def _rank(state: State) -> tuple[Any, ...]:
    return (*urgency(Finding("", "", state.verdict, state.severity)), state.severity.rank)

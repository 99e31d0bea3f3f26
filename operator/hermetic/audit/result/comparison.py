"""What changed since an earlier audit of the same cluster: the baseline's JSON report compared with this audit.

Only checks that both audits ran are compared. A finding that is absent because a source was left out has not been
fixed, so it is never listed as removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from hermetic.audit.model.findings import Finding, Severity, Verdict, urgency
from hermetic.audit.result.open_since import Opening
from hermetic.audit.result.report import Comparison, FindingChange, Report, State

SCHEMA = "hermetic.dev/audit/v1"
_Word = Annotated[str, Field(min_length=1)]
_Moment = Annotated[str, Field(pattern=r"^2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z$")]
Key = tuple[str, str]


class NotABaseline(ValueError):
    """The file is no JSON report that this audit can be compared with."""


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
    openings: Mapping[Key, Opening] = field(default_factory=dict)
    """By check and resource in lower case: since when findings fail that are open in it."""

    def verdict_of(self, key: Key) -> Verdict | None:
        """The verdict of a check about a resource (in lower case); None where it has no such finding."""
        entry = self.states.get(key)
        return entry[1].verdict if entry is not None else None

    def verdicts_by_check(self) -> Mapping[str, set[Verdict]]:
        """The verdicts that the findings of each check have."""
        verdicts: dict[str, set[Verdict]] = {}
        for (check, _), (_, state) in self.states.items():
            verdicts.setdefault(check, set()).add(state.verdict)
        return verdicts


class _BaselineModel(BaseModel):
    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )


class _BaselineFinding(_BaselineModel):
    check: _Word
    resource: str
    verdict: Verdict
    severity: Severity


class _StateModel(_BaselineModel):
    verdict: Verdict
    severity: Severity

    @property
    def state(self) -> State:
        return State(self.verdict, self.severity)


class _EntryModel(_StateModel):
    check: _Word
    resource: str


class _ChangeModel(_EntryModel):
    before: _StateModel


class _ComparisonModel(_BaselineModel):
    sha256: str
    finished_at: _Word
    verdict: Literal["Pass", "Fail", "Unknown"]
    profile: str
    added: list[_EntryModel]
    removed: list[_EntryModel]
    changed: list[_ChangeModel]
    not_compared: list[str]


class _OpeningModel(_BaselineModel):
    check: _Word
    resource: str
    since: _Moment
    not_at: _Moment | Literal[""] = ""


class _BaselineReport(_BaselineModel):
    cluster: _Word
    profile: str
    finished_at: _Word
    verdict: Literal["Pass", "Fail", "Unknown"]
    not_asked: dict[str, list[str]]
    findings: list[_BaselineFinding]
    open_since: list[_OpeningModel] = []


def read_baseline(content: bytes) -> Baseline:
    """Parse a report that `-o json` wrote. Raises NotABaseline with the reason."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotABaseline(f"is not JSON: {str(error)[:200]}") from error
    return baseline_of(data, hashlib.sha256(content).hexdigest())


def baseline_of(data: Any, sha256: str) -> Baseline:
    """The same for a parsed report, such as that of an attestation. Raises NotABaseline with the reason."""
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        written = str(data.get("schema"))[:64] if isinstance(data, Mapping) else type(data).__name__
        raise NotABaseline(f"its `schema` must be {SCHEMA!r}, and it is {written!r}")
    try:
        report = _BaselineReport.model_validate(data)
        datetime.fromisoformat(report.finished_at)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:64] for part in first["loc"])
        raise NotABaseline(f"`{where}`: {first['msg']}") from error
    except ValueError as error:
        raise NotABaseline(f"`finishedAt` is not a time: {report.finished_at[:64]!r}") from error
    return Baseline(
        cluster=report.cluster,
        sha256=sha256,
        finished_at=report.finished_at,
        verdict=Verdict(report.verdict),
        profile=report.profile,
        not_asked=frozenset(check for checks in report.not_asked.values() for check in checks),
        states=_worst(
            (finding.check, finding.resource, State(finding.verdict, finding.severity)) for finding in report.findings
        ),
        openings={
            (opening.check, opening.resource.lower()): Opening(opening.since, opening.not_at)
            for opening in report.open_since
        },
    )


def compare(baseline: Baseline, report: Report) -> Comparison:
    """Every finding that was added, removed, or changed verdict or severity. Both must be about one cluster."""
    not_asked = {check for checks in report.not_asked.values() for check in checks}
    now = _worst(
        (finding.check, finding.resource, State(finding.verdict, finding.severity)) for finding in report.findings
    )
    return _compared(baseline, now, not_asked)


def compare_reports(baseline: Baseline, later: Baseline) -> Comparison:
    """The same for two stored reports."""
    return _compared(baseline, later.states, later.not_asked)


def _compared(baseline: Baseline, now: Mapping[Key, tuple[str, State]], not_asked: AbstractSet[str]) -> Comparison:
    unasked = baseline.not_asked ^ not_asked
    changes = [change for change in _changes(baseline.states, now) if change.check not in unasked]
    check_ids = {check for check, _ in (*baseline.states, *now)}
    return Comparison(
        sha256=baseline.sha256,
        finished_at=baseline.finished_at,
        verdict=baseline.verdict,
        profile=baseline.profile,
        changes=tuple(sorted(changes, key=lambda change: (change.check, change.resource.lower()))),
        not_compared=tuple(sorted(unasked & check_ids)),
    )


def read_comparison(baseline: Mapping[str, Any]) -> Comparison:
    """The `baseline` object of a JSON report, the reverse of `shown`. Raises NotABaseline."""
    try:
        read = _ComparisonModel.model_validate(baseline)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:64] for part in first["loc"])
        raise NotABaseline(f"`baseline.{where}`: {first['msg']}") from error
    changes = [
        *(FindingChange(entry.check, entry.resource, None, entry.state) for entry in read.added),
        *(FindingChange(entry.check, entry.resource, entry.state, None) for entry in read.removed),
        *(FindingChange(entry.check, entry.resource, entry.before.state, entry.state) for entry in read.changed),
    ]
    return Comparison(
        sha256=read.sha256,
        finished_at=read.finished_at,
        verdict=Verdict(read.verdict),
        profile=read.profile,
        changes=tuple(changes),
        not_compared=tuple(read.not_compared),
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
    worst_states: dict[Key, tuple[str, State]] = {}
    for check, resource, state in states:
        key = (check, resource.lower())
        if key not in worst_states or _rank(state) < _rank(worst_states[key][1]):
            worst_states[key] = (resource, state)
    return worst_states


def _rank(state: State) -> tuple[Any, ...]:
    return (*urgency(Finding("", "", state.verdict, state.severity)), state.severity.rank)

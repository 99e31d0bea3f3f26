"""Findings, verdicts and severities, shared by checks, reports, attestations and the isolation gate.

One `Finding` per (check, resource). This module does not know how a verdict is reached: checks make findings,
exceptions turn some of them into `Excepted`, formats read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any

from hermetic.api.text import single_line
from hermetic.audit.model.controls import NONE, Controls
from hermetic.audit.model.hops import Path, written

LONGEST_TEXT = 16_384
"""Characters of a message; those of several results of one resource are joined."""


class Verdict(StrEnum):
    """The result of one check about one resource. What could not be read is Unknown, never Pass."""

    PASS = "Pass"  # noqa: S105 - a verdict
    FAIL = "Fail"
    UNKNOWN = "Unknown"
    EXCEPTED = "Excepted"
    NOT_APPLICABLE = "NotApplicable"

    @property
    def rank(self) -> int:
        """0 for the worst: the order of urgency."""
        return _WORST_FIRST.index(self)


_WORST_FIRST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.EXCEPTED, Verdict.PASS, Verdict.NOT_APPLICABLE)


class Severity(StrEnum):
    """How serious a Fail is: critical and high close the isolation gate, medium and low warn, info is inventory."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for critical, 4 for info."""
        return _MOST_SERIOUS_FIRST.index(self)

    @property
    def decides(self) -> bool:
        """Whether a finding of this severity affects the overall verdict."""
        return self in {Severity.CRITICAL, Severity.HIGH}

    @property
    def is_minor(self) -> bool:
        """Whether a report folds a finding of this severity: low or info."""
        return self in {Severity.LOW, Severity.INFO}


_MOST_SERIOUS_FIRST = tuple(Severity)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One answer that a finding rests on.

    `request` is method and real path with its api-version ("GET /subscriptions/...?api-version=2025-05-01"), or what
    was read in the cluster; `status` the HTTP status, None where no answer came; `sha256` the digest of the body in
    hexadecimal, None where there was no body. `value` is a short excerpt of what was read in it, "" where there is
    none; it is left out when evidence is compared.
    """

    request: str
    status: int | None = None
    sha256: str | None = None
    value: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("request", "value"):
            object.__setattr__(self, name, single_line(getattr(self, name), LONGEST_TEXT))


@dataclass(frozen=True, slots=True)
class AcceptedException:
    """Acceptance of one Fail or Unknown until a day: `expiry` is YYYY-MM-DD.

    `accepted` is the verdict before: an accepted Fail is a known egress path, an accepted Unknown is not.
    """

    reason: str
    owner: str
    expiry: str
    accepted: Verdict = Verdict.FAIL


@dataclass(frozen=True, slots=True)
class Parts:
    """What a derived finding follows from: findings of these checks about these resources, about any if none is named.

    `worst` is the verdict when a part fails: Fail, or Unknown where only the part itself reports the Fail.
    """

    checks: tuple[str, ...]
    resources: tuple[str, ...] = ()
    fail_reason: str = "PartFails"
    unknown_reason: str = "PartUnknown"
    worst: Verdict = Verdict.FAIL


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict of one check about one resource.

    `check` is a check id, `resource` the ARM id (or Kubernetes reference) of the object to change, `reason` a CamelCase
    word, `message` a sentence, `remedy` what to do. `paths` are typed, hop by hop; `path_texts` are the same as text:
    "node subnet -> nat gateway -> internet". `exception` is set exactly when the verdict is Excepted. `derived_from` is
    set where the verdict follows from other findings (`hermetic.audit.result.derived_findings`). `masked` means that a
    Fail has its packets stopped by something else today: one change would open it.
    """

    check: str
    resource: str
    verdict: Verdict
    severity: Severity
    reason: str = ""
    message: str = ""
    remedy: str = ""
    paths: tuple[Path, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    exception: AcceptedException | None = None
    derived_from: Parts | None = None
    masked: bool = False

    def __post_init__(self) -> None:
        """Make each text that may hold a value of an object one line: no format and no log shows a forged one."""
        for name in ("resource", "reason", "message"):
            object.__setattr__(self, name, single_line(getattr(self, name), LONGEST_TEXT))

    @property
    def path_texts(self) -> tuple[str, ...]:
        """The paths as text, the form of reports and attestations."""
        return tuple(map(written, self.paths))


@dataclass(frozen=True, slots=True)
class CheckPage:
    """The documentation of a check: the same page that `hermetic explain CHECK` prints.

    `remedy_in_node_group` replaces `remedy` where the resource is in the node resource group, which AKS manages (""
    where the same commands apply, with a note about that).

    Of a check of the cluster's objects: `tenant_policies` are policies of manifests/tenants that keep the ClusterRole
    `edit` from causing a Fail, and `administrator` says why its other causes need more than `edit`.

    `action` is the change that settles a finding, as an imperative: the title of its cause in the order of fixing. It
    is "" for a check that shares a cause with others, which has a title of its own.
    """

    id: str
    title: str
    severity: Severity
    why: str
    reads: tuple[str, ...]
    remedy: str
    source: str
    family: str
    controls: Controls = NONE
    remedy_in_node_group: str = ""
    tenant_policies: tuple[str, ...] = ()
    administrator: str = ""
    action: str = ""


def overall(findings: Iterable[Finding]) -> Verdict:
    """Fail on any critical or high Fail; else Unknown on any critical or high Unknown; else Pass.

    No finding at all is Unknown: nothing was checked.
    """
    deciding = {finding.verdict if finding.severity.decides else None for finding in findings}
    if Verdict.FAIL in deciding:
        return Verdict.FAIL
    return Verdict.UNKNOWN if Verdict.UNKNOWN in deciding or not deciding else Verdict.PASS


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that decide the verdict first, then warnings, then the rest; independent of the input order.

    A derived finding comes after the others of the same urgency: they are its cause.
    """
    return _in_order(findings, _by_weight)


def _by_weight(finding: Finding) -> tuple[Any, ...]:
    return (*urgency(finding), finding.derived_from is not None, finding.severity.rank, identity(finding))


def by_check(findings: Iterable[Finding]) -> list[Finding]:
    """By check, then resource: two reports of one estate can be compared line by line."""
    return _in_order(findings, identity)


def urgency(finding: Finding) -> tuple[bool, bool, int]:
    """Sort key: a critical Unknown before a Fail of low severity, since it may hide an egress path."""
    is_fine = finding.verdict not in {Verdict.FAIL, Verdict.UNKNOWN}
    return is_fine, not is_fine and not finding.severity.decides, finding.verdict.rank


def identity(finding: Finding) -> tuple[str, ...]:
    """A sort key that distinguishes almost all findings. ARM ids compare without regard to case."""
    shown = (finding.severity, finding.reason, finding.message, finding.remedy)
    return (finding.check, finding.resource.lower(), finding.resource, finding.verdict, *shown)


def _in_order(findings: Iterable[Finding], key: Callable[[Finding], tuple[Any, ...]]) -> list[Finding]:
    """Sort by key. Ties are ordered by `repr`, which is slow, so it is computed for ties only."""
    keyed = sorted(((key(finding), finding) for finding in findings), key=itemgetter(0))
    return [
        finding
        for _, tied in groupby(keyed, key=itemgetter(0))
        for finding in _distinguished([finding for _, finding in tied])
    ]


def _distinguished(tied: list[Finding]) -> list[Finding]:
    return tied if len(tied) == 1 else sorted(tied, key=_written_out)


def _written_out(finding: Finding) -> str:
    return repr((finding.path_texts, finding.evidence, finding.exception, finding.derived_from, finding.masked))

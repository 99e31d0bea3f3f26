"""The result of an audit: one `Report`, with who ran it and what changed since an earlier one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from hermetic.api.times import must_be_utc
from hermetic.audit.model.findings import Finding, Severity, Verdict, overall

if TYPE_CHECKING:  # an attestation is read without the models of Azure and Kubernetes
    from hermetic.audit.policy.exceptions import Term
    from hermetic.audit.result.coverage import Coverage
    from hermetic.audit.result.open_since import Opening
    from hermetic.audit.result.ownership import Ownership
    from hermetic.audit.result.private_subnets import PrivateSubnet

_NOT_FINE = frozenset({Verdict.FAIL, Verdict.UNKNOWN, Verdict.EXCEPTED})


@dataclass(frozen=True, slots=True)
class Run:
    """Who ran an audit and with what: `policy` and `exceptions` are 'sha256:' and the digest of the file, if any."""

    by: str
    policy: str | None = None
    exceptions: str | None = None


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


@dataclass(frozen=True, slots=True)
class Report:
    """One complete audit: equal reports give equal bytes in every format.

    `cluster` is the ARM id (or what the kubeconfig names), `sources` those that were queried (azure, kube, probe),
    `not_asked` the check ids that a source left out would have answered, by source. `notes` are sentences about the
    audit itself, such as an exception that has expired. Times are aware, in UTC. `comparison` says what changed since
    an earlier audit, where one was named, `private_subnets` since when subnets are known to be private, `run` who ran
    this audit with which files, `ended_exceptions` the given exceptions that have expired, `coverage` the pools and
    subnets that were evaluated in Azure, `openings` since when findings fail, by check and resource in lower case,
    `ownership` names the subscription and the tenant of the cluster.
    Raises ValueError for a time that is naive or not in UTC: reports of two machines must be comparable.
    """

    cluster: str
    sources: tuple[str, ...]
    profile: str
    started_at: datetime
    finished_at: datetime
    findings: tuple[Finding, ...]
    not_asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    tool_version: str = ""
    comparison: Comparison | None = None
    private_subnets: tuple[PrivateSubnet, ...] = ()
    run: Run | None = None
    ended_exceptions: tuple[Term, ...] = ()
    coverage: Coverage | None = None
    openings: Mapping[tuple[str, str], Opening] = field(default_factory=dict)
    ownership: Ownership | None = None

    def __post_init__(self) -> None:
        must_be_utc(self.started_at, self.finished_at)

    @property
    def summary(self) -> dict[Verdict, int]:
        """How many findings have each verdict; every verdict is there, in the order of the contract."""
        counted = Counter(finding.verdict for finding in self.findings)
        return {verdict: counted[verdict] for verdict in Verdict}

    @property
    def verdict(self) -> Verdict:
        """The overall verdict: Fail, Unknown or Pass."""
        return overall(self.findings)

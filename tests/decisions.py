"""The decision about the estate of a case: what its findings of critical and high severity come to."""

from __future__ import annotations

from functools import cache

from hermetic.audit.model.findings import Finding, Verdict
from testbed.azure.baseline import estate_of
from testbed.azure.references import refer_back
from tests.decision_cases import Case
from tests.replanted import Base


@cache
def base(layout: str) -> Base:
    return Base(estate_of(layout))


def decided(tried: Case) -> tuple[str, set[tuple[str, str]]]:
    """The decision about an estate, and what decides: verdict and check."""
    estate = estate_of(tried.layout)
    tried.change(estate)
    deciding_findings = [
        candidate for candidate in base(tried.layout).findings(refer_back(estate)) if decides(candidate)
    ]
    deciding = {(finding.verdict.value, finding.check) for finding in deciding_findings}
    return next(
        (verdict for verdict in ("Fail", "Unknown") if verdict in {verdict for verdict, _ in deciding}), "Pass"
    ), deciding


def must_be_decided_as_documented(tried: Case) -> None:
    """The decision is the one of the estate, by its check where it names one."""
    decision, deciding = decided(tried)
    assert decision == tried.decision, (tried.source, sorted(deciding))
    assert not tried.check or (tried.decision, tried.check) in deciding, (tried.check, sorted(deciding))


def must_be_distinct_and_sourced(estates: tuple[Case, ...]) -> None:
    """No case is listed twice, and each names the document that its decision rests on."""
    assert len({estate.name for estate in estates}) == len(estates)
    assert all(estate.source for estate in estates)


def decides(finding: Finding) -> bool:
    return finding.severity.decides and finding.verdict in {Verdict.FAIL, Verdict.UNKNOWN}

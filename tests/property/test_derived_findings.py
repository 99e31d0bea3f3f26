"""Derived findings: whatever their parts come to, and whatever is accepted of those, they add no verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.attestation.report_form import read_report
from hermetic.audit.checks.registry import PAGES
from hermetic.audit.model.findings import Evidence, Finding, Parts, Severity, Verdict, overall, worst_first
from hermetic.audit.policy.exceptions import AcceptedRisk, Exceptions
from hermetic.audit.report.json_form import document
from hermetic.audit.result.derived_findings import derived
from hermetic.audit.result.run import settled
from tests.attestations import CLUSTER, a_report
from tests.audit_reports import a_failing_report
from tests.drawn_paths import hops

TODAY, DAYS = date(2026, 7, 1), ("2026-06-30", "2026-07-01", "2027-01-01")
CHECKS, PLACES = ("subnet-nat-gateway", "nic-default-outbound", "lb-outbound-rule"), ("/s/a", "/s/B", "/s/c")
EVIDENCE = (Evidence("GET /x", 200, "ab" * 32),)
PARTS = Parts(CHECKS, fail_reason="NoneWithWayOut", unknown_reason="NoneUnproved")
BASE = Finding(
    "aks-outbound-type", CLUSTER, Verdict.PASS, Severity.CRITICAL, "None", "none", "", (), EVIDENCE, derived_from=PARTS
)
PART = st.builds(
    lambda check, resource, verdict, severity: Finding(
        check,
        resource,
        verdict,
        severity,
        "R",
        f"{check} at {resource}",
        f"mend {resource}",
        (hops(f"{resource} -> internet"),),
        EVIDENCE,
    ),
    st.sampled_from((*CHECKS, "dns-recursion")),
    st.sampled_from(PLACES),
    st.sampled_from([verdict for verdict in Verdict if verdict is not Verdict.EXCEPTED]),
    st.sampled_from(Severity),
)
FINDINGS = st.lists(PART, max_size=7).map(tuple)
EXCEPTIONS = st.lists(
    st.builds(
        AcceptedRisk,
        check=st.sampled_from((*CHECKS, "dns-recursion", "aks-outbound-type")),
        resource=st.sampled_from(("*", "/S/A", "/s/b", "/s/c")),
        reason=st.just("why"),
        owner=st.sampled_from(("one", "other")),
        expiry=st.sampled_from(DAYS),
    ),
    max_size=4,
).map(lambda risks: Exceptions(exceptions=tuple(risks)))


def of_type(findings: tuple[Finding, ...]) -> Finding:
    return next(finding for finding in findings if finding.check == "aks-outbound-type")


def open_parts(findings: tuple[Finding, ...], verdict: Verdict) -> list[Finding]:
    return [
        finding
        for finding in findings
        if finding.check in CHECKS and finding.severity.decides and finding.verdict is verdict
    ]


@given(FINDINGS, EXCEPTIONS)
def test_it_comes_to_the_worst_of_its_parts_after_exceptions(parts: tuple[Finding, ...], accepted: Exceptions) -> None:
    results, _ = settled((*parts, BASE), accepted, TODAY)
    about = of_type(results)
    failing, unknown = open_parts(results, Verdict.FAIL), open_parts(results, Verdict.UNKNOWN)
    excepted = open_parts(results, Verdict.EXCEPTED)
    if about.verdict is Verdict.EXCEPTED and not excepted:
        assert any(risk.check == "aks-outbound-type" and not risk.term.has_ended(TODAY) for risk in accepted.exceptions)
    elif failing:
        assert about.verdict in {Verdict.FAIL, Verdict.EXCEPTED}
    elif unknown:
        assert about.verdict in {Verdict.UNKNOWN, Verdict.EXCEPTED}
    else:
        assert about.verdict is (Verdict.EXCEPTED if excepted else Verdict.PASS)
    if about.verdict in {Verdict.FAIL, Verdict.UNKNOWN}:
        cause = worst_first(finding for finding in results if finding.check in CHECKS)[0]
        assert about.message.startswith(f"{cause.check} is {cause.verdict.value} for {cause.resource}")
        assert about.remedy == cause.remedy
        assert about.severity is min((failing or unknown), key=lambda finding: finding.severity.rank).severity


@given(FINDINGS, EXCEPTIONS)
def test_it_adds_no_verdict_of_its_own(parts: tuple[Finding, ...], accepted: Exceptions) -> None:
    other = replace(BASE, check="subnet-default-outbound", derived_from=None)
    results, _ = settled((*parts, other, BASE), accepted, TODAY)
    alone, _ = settled((*parts, other), accepted, TODAY)
    assert overall(results) is overall(alone)


@given(FINDINGS, EXCEPTIONS)
def test_settling_again_changes_nothing_and_order_does_not_matter(
    parts: tuple[Finding, ...], accepted: Exceptions
) -> None:
    results, _ = settled((*parts, BASE), accepted, TODAY)
    assert settled(results, accepted, TODAY)[0] == results
    assert derived(results) == results
    assert of_type(settled((BASE, *reversed(parts)), accepted, TODAY)[0]) == of_type(results)


@given(FINDINGS, EXCEPTIONS)
def test_settled_before_exceptions_and_again_after_is_as_settled_once(
    parts: tuple[Finding, ...], accepted: Exceptions
) -> None:
    no_own = Exceptions(exceptions=tuple(risk for risk in accepted.exceptions if risk.check != "aks-outbound-type"))
    assert settled(derived((*parts, BASE)), no_own, TODAY)[0] == settled((*parts, BASE), no_own, TODAY)[0]


NAMED = replace(BASE, derived_from=replace(PARTS, resources=("/s/A/",)))


@given(FINDINGS, EXCEPTIONS)
def test_where_parts_are_named_what_a_check_could_not_name_is_one_too(
    parts: tuple[Finding, ...], accepted: Exceptions
) -> None:
    results, _ = settled((*parts, NAMED), Exceptions(), TODAY)
    named = {finding.check for finding in parts if finding.resource == "/s/a"}
    failing = [finding for finding in open_parts(results, Verdict.FAIL) if finding.resource == "/s/a"]
    unknown = [
        finding
        for finding in open_parts(results, Verdict.UNKNOWN)
        if finding.resource == "/s/a" or finding.check not in named
    ]
    assert of_type(results).verdict is (Verdict.FAIL if failing else Verdict.UNKNOWN if unknown else Verdict.PASS)
    excepted = settled(results, accepted, TODAY)[0]
    if of_type(excepted).verdict is Verdict.PASS:
        assert of_type(results).verdict is Verdict.PASS
    assert of_type(settled((*parts, NAMED), accepted, TODAY)[0]) == of_type(excepted)


@given(FINDINGS, EXCEPTIONS)
def test_it_stands_after_what_it_follows_from(parts: tuple[Finding, ...], accepted: Exceptions) -> None:
    results, _ = settled((*parts, BASE), accepted, TODAY)
    about, listed = of_type(results), worst_first(results)
    if about.verdict in {Verdict.FAIL, Verdict.UNKNOWN}:
        assert listed[0].check != "aks-outbound-type"
        causes = [
            finding
            for finding in listed
            if finding.check in CHECKS and finding.verdict is about.verdict and finding.severity.decides
        ]
        assert all(listed.index(finding) < listed.index(about) for finding in causes)


@given(FINDINGS)
def test_a_signed_report_carries_what_it_follows_from(parts: tuple[Finding, ...]) -> None:
    shown = document(replace(a_failing_report(), findings=derived((*parts, BASE))), PAGES)["findings"]
    read = read_report({**a_report(), "findings": shown}).findings
    about = next(finding for finding in read if finding.check == "aks-outbound-type")
    assert about.derived_from is not None
    assert about.derived_from.parts == PARTS
    assert all(finding.derived_from is None for finding in read if finding.check != "aks-outbound-type")

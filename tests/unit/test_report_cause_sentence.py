"""The first cause in one sentence: its path, or its message, and how many further findings block."""

from __future__ import annotations

from dataclasses import replace

from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.report.cause_sentence import cause_sentence
from hermetic.audit.report.causes import causes_of
from hermetic.audit.report.page import as_html
from hermetic.audit.report.table import closing_lines
from tests.audit_reports import a_failing_report, a_sealed_report, pages
from tests.drawn_paths import hops

NAT = "subnet snet-{} -> nat gateway nat-egress -> internet"


def a_finding(resource: str, path: str = "", **fields: object) -> Finding:
    plain = Finding(
        "subnet-nat-gateway", resource, Verdict.FAIL, Severity.CRITICAL, "NatGatewayAttached", "It is. Now."
    )
    return replace(plain, paths=(hops(path),) if path else (), **fields)  # type: ignore[arg-type]


def sentence(*findings: Finding) -> str:
    return cause_sentence(causes_of(findings, pages()))


def test_parallel_paths_are_one_sentence_and_other_findings_are_counted():
    further = replace(a_finding("/c"), check="peering-any", severity=Severity.HIGH)
    assert sentence(a_finding("/a", NAT.format("gpu")), a_finding("/b", NAT.format("pods")), further) == (
        "An open path leads from subnet snet-gpu, subnet snet-pods to the internet through nat gateway nat-egress; "
        "1 further finding blocks Pass."
    )


def test_many_sources_are_counted():
    text = sentence(*(a_finding(f"/{number}", NAT.format(number)) for number in range(5)))
    assert "from subnet snet-0, subnet snet-1, subnet snet-2 and 2 more to the internet" in text


def test_a_masked_path_is_not_called_open():
    assert sentence(a_finding("/a", NAT.format("gpu"), masked=True)).startswith("One change opens a path from")
    both = sentence(a_finding("/a", NAT.format("gpu"), masked=True), a_finding("/b", NAT.format("pods")))
    assert both == "An open path leads from subnet snet-pods to the internet through nat gateway nat-egress."


def test_without_a_path_the_message_speaks():
    assert sentence(a_finding("/a")) == "It is."
    unknown = a_finding("/a", NAT.format("gpu"), verdict=Verdict.UNKNOWN, message="Azure answered 403: it is missing.")
    assert sentence(unknown) == "Azure answered 403: it is missing."


def test_warnings_block_nothing():
    low = a_finding("/a", NAT.format("gpu"), severity=Severity.LOW)
    assert sentence(low) == ""
    blocking = replace(a_finding("/b"), check="peering-any")
    assert "further" not in sentence(low, blocking)


def test_first_screen_and_last_lines_have_it():
    report = a_failing_report()
    expected = cause_sentence(causes_of(report.findings, pages()))
    page = as_html(report, pages())
    assert page.index(expected) < page.index('class="order"')
    last = " ".join(line.text for line in closing_lines(report, pages(), ["report.html"], width=0))
    assert expected in last
    assert "cause-sentence" not in as_html(a_sealed_report(), pages()).partition("</style>")[2]

"""Causes: what is changed once, which findings that settles, and in which order."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from hermetic.audit.attestation.report_form import without_what_is_fine
from hermetic.audit.checks.registry import PAGES
from hermetic.audit.model.findings import AcceptedException, Finding, Parts, Severity, Verdict
from hermetic.audit.report.cause_table import CHANGES
from hermetic.audit.report.causes import by_cause, causes_of
from hermetic.audit.report.json_form import document
from hermetic.audit.report.sentences import cause_summary, fixing_range, last_deciding
from tests.audit_reports import CLUSTER, NODES, PODS, a_failing_report, a_sealed_report
from tests.drawn_paths import hops

NIC = f"{CLUSTER.partition('/providers/')[0]}/providers/Microsoft.Network/networkInterfaces/nic-dns"
OUT, NIC_OUT = "subnet snet-nodes -> default outbound -> internet", "nic nic-dns -> public ip -> internet"


def fail(check: str, resource: str, severity: Severity = Severity.HIGH, **fields: object) -> Finding:
    return replace(Finding(check, resource, Verdict.FAIL, severity), **fields)  # type: ignore[arg-type]


DEFAULT_OUTBOUND = (
    fail("subnet-default-outbound", NODES, Severity.CRITICAL, paths=(hops(OUT),)),
    fail("subnet-default-outbound", PODS, Severity.CRITICAL),
    fail("nic-default-outbound", f"{NIC}-0", Severity.CRITICAL),
)
MACHINE = (fail("nic-public-ip", NIC, paths=(hops(NIC_OUT),)), fail("vm-pivot", NIC.upper()))
PARTS = Parts(("subnet-default-outbound", "nic-default-outbound", "nic-public-ip"))
SUM = fail("aks-outbound-type", CLUSTER, Severity.CRITICAL, paths=(hops(OUT), hops(NIC_OUT)), derived_from=PARTS)


def causes_and_counts(*findings: Finding) -> list[tuple[str, int]]:
    return [(cause.id, len(cause.findings)) for cause in causes_of(findings, PAGES)]


def test_the_table_names_only_checks_that_there_are_and_each_once():
    named = [check for change in CHANGES for check in change.checks]
    assert len(named) == len(set(named))
    assert set(named) <= set(PAGES)
    assert len({change.id for change in CHANGES}) == len(CHANGES)
    assert {change.id for change in CHANGES}.isdisjoint(set(PAGES) - set(named))


def test_checks_that_one_change_settles_share_a_cause_whatever_their_resources():
    assert causes_and_counts(*DEFAULT_OUTBOUND) == [("default-outbound", 3)]


def test_checks_of_a_cause_are_in_the_order_in_which_they_are_dealt_with():
    (cause,) = causes_of(DEFAULT_OUTBOUND[::-1], PAGES)
    assert [check for check, _ in cause.by_check()] == ["subnet-default-outbound", "nic-default-outbound"]


def test_a_resource_in_another_case_is_the_same_cause():
    assert causes_and_counts(*MACHINE) == [("machine/nic-dns", 2)]


def test_machines_are_causes_of_their_own_and_keep_ids_apart_where_their_names_are_equal():
    other = NIC.replace("rg-gpu", "rg-other")
    assert causes_and_counts(fail("nic-public-ip", NIC), fail("nic-public-ip", other)) == [
        ("machine/nic-dns", 1),
        ("machine/nic-dns-2", 1),
    ]


def test_a_check_in_no_row_shares_a_cause_with_nothing_but_its_own_resource():
    failing = [fail("storage-public", "/a"), fail("storage-public", "/b"), fail("storage-copy-scope", "/a")]
    assert [count for _, count in causes_and_counts(*failing)] == [1, 1, 1]
    assert causes_and_counts(fail("a-check-of-tomorrow", "/a")) == [("a-check-of-tomorrow//a", 1)]


def test_what_only_sums_up_is_listed_under_its_first_cause_and_completed_by_the_last():
    first, second = causes_of((SUM, *DEFAULT_OUTBOUND, *MACHINE), PAGES)
    assert (first.id, first.derived, first.awaits, first.completes) == ("default-outbound", (SUM,), (2,), ())
    assert (second.id, second.derived, second.completes) == ("machine/nic-dns", (), (SUM,))
    assert [check for check, _ in first.by_check()][-1] == "aks-outbound-type"


def test_a_sum_whose_parts_are_accepted_or_unknown_to_it_is_a_cause_of_its_own():
    accepted = replace(
        DEFAULT_OUTBOUND[0], verdict=Verdict.EXCEPTED, exception=AcceptedException("r", "o", "2027-01-01")
    )
    assert causes_and_counts(SUM, accepted) == [(f"aks-outbound-type/{CLUSTER.rpartition('/')[2]}", 1)]


def test_a_sum_of_named_resources_belongs_to_no_finding_of_others():
    of_pods = replace(SUM, derived_from=Parts(("subnet-default-outbound",), (PODS.upper(),)))
    nodes, pods, _ = DEFAULT_OUTBOUND
    assert causes_of((of_pods, pods), PAGES)[0].derived == (of_pods,)
    assert [cause.derived for cause in causes_of((of_pods, nodes), PAGES)] == [(), ()]


def test_what_decides_the_verdict_comes_first_then_what_settles_most():
    warnings = [fail("route-table-missing", subnet, Severity.LOW) for subnet in (NODES, PODS)]
    high = fail("fileshare-public", "/share")
    assert [name for name, _ in causes_and_counts(*warnings, high, *MACHINE, *DEFAULT_OUTBOUND)] == [
        "default-outbound",
        "machine/nic-dns",
        "fileshare-public//share",
        "route-table",
    ]


def test_findings_that_lack_the_same_right_share_a_cause_and_other_rights_do_not():
    def unread(check: str, right: str) -> Finding:
        return replace(fail(check, NODES), verdict=Verdict.UNKNOWN, reason="Forbidden", remedy=f"Grant {right}.")

    causes = causes_of([unread("subnet-nat-gateway", "a"), unread("peering-any", "a"), unread("vnra", "b")], PAGES)
    assert sorted((cause.title, len(cause.findings)) for cause in causes) == [("Grant a", 2), ("Grant b", 1)]


def test_the_order_in_which_findings_came_changes_nothing():
    report = a_failing_report()
    mixed = [*report.findings, SUM, *DEFAULT_OUTBOUND, *MACHINE]
    expected = causes_of(mixed, PAGES)
    chance = random.Random(1)
    for _ in range(20):
        chance.shuffle(mixed)
        assert causes_of(mixed, PAGES) == expected


def test_every_finding_is_told_once_and_what_is_fine_has_no_cause():
    report = a_failing_report()
    told_once = by_cause(report.findings, PAGES)
    assert sorted(id(finding) for finding, _ in told_once) == sorted(id(finding) for finding in report.findings)
    assert {
        cause is not None for finding, cause in told_once if finding.verdict in {Verdict.FAIL, Verdict.UNKNOWN}
    } == {True}
    assert causes_of(a_sealed_report().findings, PAGES) == ()


def test_json_has_the_causes_and_a_large_attestation_leaves_them_out():
    shown = document(replace(a_failing_report(), findings=(SUM, *DEFAULT_OUTBOUND, *MACHINE)), PAGES)
    assert [(cause["id"], len(cause["settles"]), cause["awaits"]) for cause in shown["causes"]] == [
        ("default-outbound", 3, ["machine/nic-dns"]),
        ("machine/nic-dns", 2, []),
    ]
    assert shown["causes"][0]["derived"] == [{"check": "aks-outbound-type", "resource": CLUSTER}]
    assert "causes" not in document(a_sealed_report(), PAGES)
    complete = document(a_failing_report(), PAGES)
    reduced, _ = without_what_is_fine(complete)
    assert reduced.keys() == complete.keys() - {"causes"}


# ---------------------------------------------------------------------- what the titles say


def test_every_check_has_a_change_or_an_action_and_none_has_both():
    with_change = {check for change in CHANGES for check in change.checks}
    assert set(PAGES) - with_change == {page.id for page in PAGES.values() if page.action}


ACTIONS = [page.action for page in PAGES.values() if page.action]
VERBS = frozenset(
    re.findall(
        r"\w+",
        """
Accept Allow Apply Audit Block Capture Change Close Configure Delete Deliver Deny Detach Disable Disconnect Enable
Export Give Import Keep Leave Let Lock Make Mount Narrow Remove Replace Require Restrict Review Run Send Serve Set Stop
Store Take Turn Update Use
""",
    )
)


@pytest.mark.parametrize("title", [*ACTIONS, *(change.title for change in CHANGES)])
def test_every_title_is_an_imperative(title):
    assert title.split()[0] in VERBS
    assert not title.endswith(".")
    assert len(title) <= 80


def test_a_finding_that_fails_is_titled_by_its_action_and_one_that_is_unknown_by_what_is_unclear():
    fails = fail("vault-public", "kv")
    unclear = replace(fails, verdict=Verdict.UNKNOWN, reason="Unclear")
    assert [cause.title for cause in causes_of([fails], PAGES)] == ["Close the key vault to the internet (kv)"]
    assert [cause.title for cause in causes_of([unclear], PAGES)] == ["Settle what is unknown about vault-public (kv)"]


@pytest.mark.parametrize("pages", [{}, {"vault-public": replace(PAGES["vault-public"], action="")}])
def test_a_check_without_an_action_on_its_page_is_titled_by_its_id(pages):
    assert [cause.title for cause in causes_of([fail("vault-public", "kv")], pages)] == ["Fulfil vault-public (kv)"]


WARNINGS = (fail("nsg-flowlogs", "n", Severity.LOW), fail("route-table-missing", NODES, Severity.LOW))


@pytest.mark.parametrize(
    ("findings", "last", "sentence"),
    [
        ((), 0, ""),
        (WARNINGS[:1], 0, "Pass already: 1 is a warning."),
        (WARNINGS, 0, "Pass already: 1 to 2 are warnings."),
        (DEFAULT_OUTBOUND, 1, "Fix 1 to reach Pass."),
        ((*DEFAULT_OUTBOUND, *MACHINE), 2, "Fix 1 to 2 to reach Pass."),
        ((*DEFAULT_OUTBOUND, *WARNINGS[:1]), 1, "Fix 1 to reach Pass; 2 is a warning."),
        ((*DEFAULT_OUTBOUND, *MACHINE, *WARNINGS), 2, "Fix 1 to 2 to reach Pass; 3 to 4 are warnings."),
    ],
    ids=["nothing", "a warning", "warnings", "one cause", "causes", "a cause and a warning", "both"],
)
def test_the_line_where_the_verdict_flips_is_after_the_last_cause_that_decides(findings, last, sentence):
    causes = causes_of(findings, PAGES)
    assert (last_deciding(causes), fixing_range(causes)) == (last, sentence)


def test_a_high_finding_that_is_unknown_has_to_be_settled_to_reach_pass():
    unclear = replace(fail("vault-public", "kv"), verdict=Verdict.UNKNOWN, reason="Unclear")
    assert fixing_range(causes_of([unclear, *WARNINGS[:1]], PAGES)) == "Fix 1 to reach Pass; 2 is a warning."


def test_the_summary_names_three_causes_and_counts_the_others():
    several = [fail(check, "r") for check in ("vault-public", "fileshare-public", "vnra", "nic-tap")]
    summary = cause_summary(causes_of([*several, *WARNINGS], PAGES))
    assert summary.startswith("To reach Pass: ")
    assert summary.endswith("; and 1 more.")
    assert "flow log" not in summary
    assert cause_summary(causes_of(WARNINGS, PAGES)) == ""

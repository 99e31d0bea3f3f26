"""The report as a person reads it in a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.report.table import Tone, as_table, closing_lines, lines
from tests.audit_reports import (
    CLUSTER,
    NODES,
    a_failing_report,
    a_hostile_report,
    a_sealed_report,
    an_empty_report,
    pages,
)


def test_the_first_words_are_the_verdict_and_why():
    first, second, *_ = as_table(a_failing_report(), pages()).splitlines()
    assert first == "Fail  aks-gpu"
    assert second == "2 critical and 1 high finding fail; 1 critical and 1 high finding could not be decided."


def test_what_decides_comes_first_and_what_is_fine_last():
    strong_lines = [line.text for line in lines(a_failing_report(), pages()) if line.tone is Tone.STRONG]
    headings = [text for text in strong_lines if text.endswith(")") and not text.startswith(" ")]
    assert headings == [
        "What to fix, in this order (6)",
        "1  Turn default outbound access off and replace addresses that were given (2)",
        "2  Remove NAT gateways from the cluster's network (1)",
        "3  Remove the peering, or narrow it (peering vnet-spoke/to-shared-services) (1)",
        "4  Grant Microsoft.Network/azureFirewalls/read there to the identity that ran the audit (1)",
        "5  Let Azure's resolver answer allowed names only (1)",
        "6  Give every subnet a route table with 0.0.0.0/0 -> None (2)",
        "Excepted (1)",
        "Pass (10)",
        "Not applicable (1)",
    ]


def test_a_path_is_drawn_hop_by_hop():
    assert "    subnet snet-pods -> nat gateway nat-egress -> public ip pip-egress -> internet\n" in as_table(
        a_failing_report(), pages()
    )


def test_a_path_breaks_before_an_arrow_only():
    shown = as_table(a_failing_report(), pages(), width=60)
    assert "subnet snet-pods -> nat gateway nat-egress\n" in shown
    assert "  -> public ip pip-egress -> internet\n" in shown


def test_a_command_stays_one_line_to_copy():
    assert f"  az network vnet subnet update --ids {NODES} --default-outbound-access false\n" in as_table(
        a_failing_report(), pages(), width=80
    )


@pytest.mark.parametrize("width", [80, 100, 120])
def test_nothing_but_commands_is_wider_than_asked(width):
    wide = [line for line in as_table(a_failing_report(), pages(), width=width).splitlines() if len(line) > width]
    assert all(line.strip().startswith("az ") for line in wide)


def test_a_terminal_of_60_columns_is_readable():
    shown = as_table(a_failing_report(), pages(), width=60).splitlines()
    wide = [line for line in shown if len(line) > 60 and not line.strip().startswith("az ")]
    assert wide == []
    assert "  expected: Subnets of the cluster have no default outbound" in shown
    assert max(len(line) - len(line.lstrip()) for line in shown) <= 6


def test_the_order_of_fixing_says_what_each_fix_settles():
    shown = as_table(a_failing_report(), pages())
    assert "  1 Turn default outbound access off and replace addresses that were given; settles 2 findings" in shown


def test_names_are_short_unless_asked_for_whole():
    assert NODES not in as_table(a_failing_report(), pages()).replace(f"--ids {NODES}", "")
    table = as_table(a_failing_report(), pages(), wide=True)
    assert f"          {NODES}\n" in table
    assert CLUSTER in table


def test_wide_shows_every_request_and_its_digest():
    shown = as_table(a_failing_report(), pages(), wide=True)
    for finding in a_failing_report().findings:
        assert all(exchange.request in shown and (exchange.sha256 or "403") in shown for exchange in finding.evidence)


def test_an_exception_shows_who_answers_for_it():
    assert "Fail accepted by Network team until 2027-03-31" in as_table(a_failing_report(), pages())


def test_what_was_not_asked_is_said():
    assert "  kube: k8s-externalips, k8s-public-lb\n" in as_table(a_sealed_report(), pages())


def test_a_check_that_says_the_same_of_many_resources_gives_its_remedy_once():
    assert as_table(a_failing_report(), pages()).count("hermetic explain route-table-missing") == 1


def test_an_empty_report_says_that_nothing_is_known():
    assert as_table(an_empty_report(), pages()).splitlines()[:2] == [
        "Unknown  aks-gpu",
        "Nothing was read, so nothing is known.",
    ]


def test_no_name_reaches_the_terminal_as_a_command():
    shown = as_table(a_hostile_report(), pages(), wide=True)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    shown.encode()


def test_lines_say_what_they_mean_without_colour():
    tones = {line.text: line.tone for line in lines(a_failing_report(), pages())}
    assert tones["Fail  aks-gpu"] is Tone.BAD
    assert tones["critical  nic-default-outbound  Unknown"] is Tone.UNSURE
    assert tones["low       route-table-missing"] is Tone.UNSURE
    assert next(iter(lines(a_sealed_report(), pages()))).tone is Tone.GOOD


def test_a_check_without_a_page_is_told_all_the_same():
    report = replace(a_failing_report(), findings=a_failing_report().findings[:1])
    assert "expected: subnet-default-outbound" in as_table(report, {})


def test_an_answer_that_many_checks_lack_is_explained_once():
    message, remedy = "capacity 5, and 2 instances are listed", "Audit again when Azure lists every machine of the set."
    unread = [
        replace(
            Finding(check, resource, Verdict.UNKNOWN, Severity.HIGH),
            reason="Unreadable",
            message=message,
            remedy=remedy,
        )
        for check, resource in (("nic-public-ip", NODES), ("nsg-missing", NODES), ("vm-pivot", CLUSTER))
    ]
    other = replace(unread[0], check="vnra", message=f"{message}; and this is of its own")
    shown = as_table(replace(a_sealed_report(), findings=(*unread, other)), pages(), width=120)
    assert shown.count(message) == 3, "in the head, in its cause, and in that of the other"
    assert "and this is of its own" in shown
    assert shown.count("remedy:") == 1


def closing(report, *files):
    return [line.text for line in closing_lines(report, pages(), files)]


def test_the_end_on_a_terminal_is_the_verdict_what_to_fix_and_the_report():
    end = closing(a_failing_report(), "report.html", "findings.sarif")
    assert end[0] == ""
    assert end[1].startswith("Fail  ")
    assert "to reach Pass" in " ".join(end)
    assert end[-1] == "Report: report.html, findings.sarif"


def test_the_end_of_a_sealed_estate_asks_for_nothing_but_a_report():
    end = closing(a_sealed_report())
    assert end[1].startswith("Pass  ")
    assert "Fix" not in " ".join(end)
    assert end[-1] == "No report was written: add --out report.html"


def test_the_order_of_fixing_has_a_line_where_the_verdict_flips():
    shown = as_table(a_failing_report(), pages()).splitlines()
    order = shown[next(n for n, line in enumerate(shown) if line.startswith("What to fix")) :]
    (flip,) = [n for n, line in enumerate(order) if line.startswith("    --- Fix 1")]
    assert "to reach Pass" in order[flip]
    assert "are warnings" in order[flip] or "is a warning" in order[flip]

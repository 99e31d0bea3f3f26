"""A remedy's text and its steps say the same: prose, warnings and commands apart, in their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.evaluation.check_findings import Check
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.remedies.steps import RemedyStep, is_command, steps_of, text_of
from hermetic.audit.report.sentences import remedy_steps

ROUTE = "az network route-table show --ids ROUTE_TABLE_ID"
DELETE = "az network route-table delete --ids ROUTE_TABLE_ID"


def test_prose_before_a_command_belongs_to_it_and_prose_after_it_begins_a_step() -> None:
    text = f"See what is there,\nthen take it away:\n{ROUTE}\n{DELETE}\nThen wait."
    assert steps_of(text) == (
        RemedyStep("See what is there, then take it away:", "", (ROUTE, DELETE)),
        RemedyStep("Then wait."),
    )


def test_a_warning_is_told_apart_from_the_explanation_and_may_have_several_lines() -> None:
    text = f"Delete it.\nWarning: connections\nthrough it end.\n{DELETE}"
    assert steps_of(text) == (RemedyStep("Delete it.", "connections through it end.", (DELETE,)),)


def test_a_command_that_a_backslash_continues_is_one_line() -> None:
    assert steps_of("az network nic show \\\n  --ids NIC_ID") == (
        RemedyStep("", "", ("az network nic show --ids NIC_ID",)),
    )


def test_nothing_to_do_has_no_steps() -> None:
    assert steps_of("\n  \n") == ()


LINES = st.sampled_from(
    [ROUTE, DELETE, "kubectl get pods", "hermetic audit", "Prose.", "or prose", "Warning: it cuts off.", ""]
)


@given(st.lists(LINES, max_size=8))
def test_the_text_of_steps_is_read_as_the_same_steps(lines: list[str]) -> None:
    steps = steps_of("\n".join(lines))
    assert steps_of(text_of(steps)) == steps
    assert [line for line in lines if is_command(line)] == [command for step in steps for command in step.commands]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.page.id)
def test_the_steps_of_a_page_say_all_that_its_text_says(check: Check) -> None:
    text = check.page.remedy
    assert text_of(steps_of(text)).split() == text.split()


def test_steps_of_a_finding_are_its_own_and_of_its_page_where_it_has_none() -> None:
    page = CHECKS[0].page
    own = Finding(page.id, "/subscriptions/s", Verdict.FAIL, Severity.HIGH, remedy=DELETE)
    without = Finding(page.id, "/subscriptions/s", Verdict.FAIL, Severity.HIGH)
    fine = Finding(page.id, "/subscriptions/s", Verdict.PASS, Severity.HIGH, remedy=DELETE)
    pages = {page.id: page}
    assert remedy_steps(own, pages) == (RemedyStep("", "", (DELETE,)),)
    assert remedy_steps(without, pages) == steps_of(page.remedy)
    assert remedy_steps(fine, pages) == ()

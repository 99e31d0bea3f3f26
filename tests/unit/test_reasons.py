"""Every reason: one word for programs, a page for people, and a place in the product that sets it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermetic.api.conditions import Condition, ConditionType
from hermetic.api.reasons import REASONS, Reason

PRODUCT = Path(__file__).resolve().parents[2] / "operator" / "hermetic"
every_reason = pytest.mark.parametrize("reason", list(Reason), ids=lambda reason: reason.value)


@every_reason
def test_reason_is_one_word_that_a_condition_can_hold(reason):
    condition = Condition(
        type=ConditionType.READY,
        status="False",
        reason=reason.value,
        last_transition_time="2026-11-24T12:00:00Z",
        observed_generation=1,
    )
    assert re.fullmatch(r"[A-Z][A-Za-z]{2,40}", condition.reason)


@every_reason
def test_page_says_what_it_means_and_what_to_do_in_whole_sentences(reason):
    for text in (reason.meaning, reason.remedy):
        assert len(text.split()) >= 2
        assert text[0].isupper() or text.startswith(("spec.", "maxModelLength", "/"))
        assert text.endswith((".", "'."))
    assert reason.needs_human is bool(reason.needs_human)


@every_reason
def test_remedy_of_what_needs_a_human_is_not_to_wait(reason):
    if reason.needs_human:
        assert not reason.remedy.startswith(("Wait", "Nothing"))


@every_reason
def test_reason_is_said_somewhere(reason):
    """A reason that nothing says is a page without a use."""
    pattern = re.compile(rf"\bReason\.{reason.name}\b")
    assert any(pattern.search(file.read_text()) for file in PRODUCT.rglob("*.py"))


def test_every_reason_is_found_by_its_word():
    assert {word: reason.value for word, reason in REASONS.items()} == {r.value: r.value for r in Reason}


def test_names_and_words_of_reasons_agree():
    for reason in Reason:
        assert reason.name.replace("_", "").lower() == reason.value.lower()


def test_only_the_plan_the_audit_and_the_engines_give_reasons():
    """Why Ready is what it is, is asked in one place; to ask whether it is a certain one is no answer."""
    outside = [
        file.relative_to(PRODUCT).as_posix()
        for file in PRODUCT.rglob("*.py")
        if re.search(r"(?<!\bis )\bReason\.[A-Z_]+\b", file.read_text())
    ]
    outside.remove("api/reasons.py")  # groups of them are named where they are declared
    assert {path.split("/")[0] for path in outside} <= {"plan", "audit", "engines", "cli"}

"""Every reason: one word for programs, a page for people, and a place in the product that sets it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermetic.api.condition_updates import CONDITION_REASONS, STATUS_REASONS
from hermetic.api.conditions import Condition, ConditionType
from hermetic.api.weights_reasons import WeightsReason

PRODUCT = Path(__file__).resolve().parents[2] / "operator" / "hermetic"
every_reason = pytest.mark.parametrize("reason", STATUS_REASONS, ids=lambda reason: reason.value)


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
    pattern = re.compile(rf"\b{type(reason).__name__}\.{reason.name}\b")
    assert any(pattern.search(file.read_text()) for file in PRODUCT.rglob("*.py"))


def test_every_reason_is_found_by_its_word():
    assert [*map(str, CONDITION_REASONS.values())] == [*CONDITION_REASONS]
    assert len(CONDITION_REASONS) == len(STATUS_REASONS) + len(WeightsReason), "two subjects have the same word"


def test_names_and_words_of_reasons_agree():
    for reason in STATUS_REASONS:
        assert reason.name.replace("_", "").lower() == reason.value.lower()


def test_only_the_plan_the_audit_and_the_engines_give_reasons():
    """Why Ready is what it is, is asked in one place; to ask whether it is a certain one is no answer."""
    kinds = "|".join(dict.fromkeys(type(reason).__name__ for reason in STATUS_REASONS))
    outside = {
        file.relative_to(PRODUCT).as_posix()
        for file in PRODUCT.rglob("*.py")
        if re.search(rf"(?<!\bis )\b({kinds})\.[A-Z_]+\b", file.read_text())
    }
    outside -= {
        f"api/{subject}.py" for subject in ("reasons", "audit_reasons", "accelerator_reasons")
    }  # groups of them
    assert {path.split("/")[0] for path in outside} <= {"plan", "audit", "engines", "cli"}

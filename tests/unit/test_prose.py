"""Prose that users read has no construction that must be read twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import Reason
from hermetic.audit.checks.registry import PAGES
from hermetic.cli.explanations import error_pages, refusal_pages, weights_pages

DOCS = Path(__file__).resolve().parents[2] / "docs"
CODE_BLOCK = re.compile(r"```.*?```", re.DOTALL)
PATTERNS = {
    "negated noun": re.compile(r"\b(?:is|are|was|were) (?:none|nothing|no (?!longer\b|more\b))"),
    "clause as subject": re.compile(
        r"(?m)(?:^|(?<=[.:;] ))(?:What|Who|Whether|Those who|That (?:no|none|every|it|a|an|the)) (?!is\b|are\b)"
        r"[^.?:;|\n]+? "
        r"(?:is|are|makes|has|have|counts|stays|ends|shows|decides|lies|leaves|reads|passes)\b"
    ),
    "figure of speech": re.compile(
        r"(?i)\b(?:nobody|somebody|anybody|everybody|whoever|whatever|doors?|walls?|(?<!token )buckets?|one change away"
        r"|counts? for nothing|nothing but)\b"
    ),
}


def plain_text_problems(text: str) -> list[str]:
    """Every match of a pattern outside code blocks, with the name of the pattern."""
    prose = CODE_BLOCK.sub("", text)
    return [f"{name}: {match[0]}" for name, pattern in PATTERNS.items() for match in pattern.finditer(prose)]


def explained_texts() -> Iterator[tuple[str, str]]:
    """The texts of `hermetic explain` with their names: checks, conditions, reasons, refusals, weights and errors."""
    for page in PAGES.values():
        yield page.id, "\n".join((page.title, page.action, page.why, page.remedy, page.administrator, *page.reads))
    yield from ((condition.value, condition.meaning) for condition in ConditionType)
    yield from ((reason.value, f"{reason.meaning}\n{reason.remedy}") for reason in Reason)
    for entry in (*refusal_pages(), *weights_pages(), *error_pages()):
        yield entry.name, f"{entry.meaning}\n{entry.remedy}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("There is none.", "negated noun: is none"),
        ("What the identity cannot read makes it Unknown.", "clause as subject: What the identity cannot read makes"),
        ("It is one change away.", "figure of speech: one change away"),
        ("It has a bucket.", "figure of speech: bucket"),
        ("ARM has token buckets.", None),
        ("It is no longer used. What is read: pods.\n```\nis none\n```\n", None),
    ],
)
def test_problem_of_a_sentence_is_named_outside_code(text: str, problem: str | None) -> None:
    assert plain_text_problems(text) == ([problem] if problem else [])


def test_explained_texts_have_no_problem() -> None:
    assert {name: problems for name, text in explained_texts() if (problems := plain_text_problems(text))} == {}


def test_docs_have_no_problem() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}

    assert {name: problems for name, text in pages.items() if (problems := plain_text_problems(text))} == {}

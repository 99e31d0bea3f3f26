"""Prose that users read has no construction that must be read twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermetic.api.condition_updates import STATUS_REASONS
from hermetic.api.conditions import ConditionType
from hermetic.audit.checks.registry import PAGES
from hermetic.cli.explanations import error_pages, refusal_pages, weights_pages

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PRODUCT = REPOSITORY / "operator" / "hermetic"
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


def texts_of(source: str) -> Iterator[str]:
    """The string literals of a module that have a blank, as they are written; docstrings are left out."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    parts = {
        id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node
    }
    for node in nodes:
        if id(node) in docstrings | parts:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield ast.unparse(node)[2:-1]


def explained_texts() -> Iterator[tuple[str, str]]:
    """The texts of `hermetic explain` with their names: checks, conditions, reasons, refusals, weights and errors."""
    for page in PAGES.values():
        yield page.id, "\n".join((page.title, page.action, page.why, page.remedy, page.administrator, *page.reads))
    yield from ((condition.value, condition.meaning) for condition in ConditionType)
    yield from ((reason.value, f"{reason.meaning}\n{reason.remedy}") for reason in STATUS_REASONS)
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


@pytest.mark.parametrize("package", ["audit", "cli", "collect"])
def test_messages_and_help_texts_have_no_problem(package: str) -> None:
    modules = [path for path in (PRODUCT / package).rglob("*.py") if "program" not in path.parts]
    texts = {str(path): "\n".join(texts_of(path.read_text(encoding="utf-8"))) for path in modules}

    assert len(texts) > 10
    assert {name: problems for name, text in texts.items() if (problems := plain_text_problems(text))} == {}


def test_text_of_a_program_is_a_string_without_docstrings_and_code() -> None:
    source = '''
def name(count):
    """Whoever."""
    return f"of {count} machines none is there", "id"
'''

    assert list(texts_of(source)) == ["of {count} machines none is there"]

"""Every command of the pages is run by a test, or listed with why it cannot be."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.documented import ELSEWHERE, NOT_HERE, PAGES, ROOT, blocks, reason_of, test_of

TEST = re.compile(r"(tests/[\w/]+\.py)::\s*(\w+)")
# What begins a command: a block of anything else is no commands, and says so by its language.
PROGRAMS = {
    "CLUSTER", "URL", "az", "chmod", "cosign", "cp", "ctr", "curl", "flux", "for", "git", "helm", "hermetic",
    "install", "kubectl", "ln", "make", "mkdir", "mv", "notation", "openssl", "oras", "python", "sed", "sha256sum",
    "skopeo", "syft", "systemctl", "tar", "zarf",
}  # fmt: skip
# The programs that the test of this page's own commands has on its path.
RUN_HERE = {"CLUSTER", "chmod", "git", "hermetic", "kubectl", "make", "mv", "openssl", "sed"}


@cache
def functions_of(file: Path) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, functions)}


LINES = [(block, line) for block in blocks() for line in block.commands]


def test_a_block_without_a_language_holds_commands() -> None:
    strange = [(block.name, line) for block, line in LINES if re.split(r"[ =]", line)[0] not in PROGRAMS]
    assert strange == []


def test_every_command_is_run_here_by_another_test_or_cannot_be() -> None:
    here = {
        (block.name, line)
        for block, line in LINES
        if not reason_of(line) and not test_of(block.page, line) and re.split(r"[ =]", line)[0] not in RUN_HERE
    }
    assert here == set()
    assert len([line for block in blocks() for line in block.run_here.splitlines()]) > 60


@pytest.mark.parametrize(("page", "start"), ELSEWHERE)
def test_the_test_that_runs_a_command_exists_and_the_page_has_the_command(page: str, start: str) -> None:
    assert [line for block, line in LINES if block.page == page and re.match(start, line)]
    found = TEST.fullmatch(ELSEWHERE[page, start])
    assert found, ELSEWHERE[page, start]
    assert found[2] in functions_of(ROOT / found[1])


@pytest.mark.parametrize("start", NOT_HERE)
def test_what_cannot_run_here_is_on_a_page_and_a_test_that_is_named_exists(start: str) -> None:
    assert [line for _, line in LINES if re.match(start, line)]
    for file, function in TEST.findall(NOT_HERE[start]):
        assert function in functions_of(ROOT / file)


def test_every_page_with_commands_is_read() -> None:
    with_blocks = {
        path.relative_to(ROOT).as_posix()
        for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("charts/*/*.md"))
        if "\n```\n" in path.read_text()
    }
    # The first two are for developers: tests/unit/test_development_page.py compares them with the Makefile.
    # CHANGELOG.md repeats commands of the pages.
    assert with_blocks - {"CONTRIBUTING.md", "RELEASE.md", "CHANGELOG.md"} <= set(PAGES)

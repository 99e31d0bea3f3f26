"""docs/development.md and CONTRIBUTING.md: their commands exist and run, and the files that they name are there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documented import blocks

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ("CONTRIBUTING.md", "RELEASE.md", "docs/development.md")
MAKEFILE = (REPOSITORY / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)) | set(re.findall(r"\b(test-[a-z-]+)\b", MAKEFILE))
# These fetch, change the checkout, or run for minutes; that each is a target is checked all the same.
NOT_RUN = ("make ", "python -m tests.golden.update", "hermetic audit --snapshot build/")
COMMANDS = [line.strip() for block in blocks() if block.page == "docs/development.md" for line in block.commands]


@pytest.mark.parametrize("command", [line for line in COMMANDS if not line.startswith(NOT_RUN)])
def test_command_of_the_page_succeeds(command: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    program = shutil.which(shlex.split(command)[0], path=path)
    assert program is not None
    arguments = [program, *shlex.split(command)[1:]]
    done = subprocess.run(arguments, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout or command.startswith("git diff")  # nothing in a clean checkout


def test_commands_of_the_page_are_found() -> None:
    assert len(COMMANDS) >= 12


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_of_the_page_exist(page: str) -> None:
    text = (REPOSITORY / page).read_text()
    named = set(re.findall(r"(?:^\s*|`|true |&& )make ([a-z][a-z-]+)", text, re.MULTILINE))
    assert named
    assert named <= TARGETS


@pytest.mark.parametrize("page", PAGES)
def test_files_of_the_page_exist(page: str) -> None:
    text = (REPOSITORY / page).read_text()
    named = re.findall(
        r"`((?:docs|tests|testbed|tools|bench|shipping|manifests|operator|\.devcontainer|\.ci)/[\w./-]*)`", text
    )
    assert [path for path in named if not (REPOSITORY / path).exists()] == []


def test_fast_tests_exist_and_are_without_a_cluster() -> None:
    listed = subprocess.run(
        ["make", "-s", "--eval", "show:;@echo $(FAST)", "show"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    files = listed.stdout.split()
    assert len(files) > 20
    assert all((REPOSITORY / file).exists() for file in files)
    assert all(file.startswith(("tests/unit/", "tests/golden")) for file in files)

"""docs/recipes.md and the chapter of docs/cli.md: their commands run, and print what the page shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.documented import ROOT, blocks

PAGE = "docs/recipes.md"


def ran(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """One line of a page, in a shell that finds the command line of this environment."""
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


def commands_of(page: str, start: str) -> list[str]:
    return [line for block in blocks() if block.page == page for line in block.commands if line.startswith(start)]


def test_the_page_converts_a_command_and_shows_its_notes(tmp_path: Path) -> None:
    convert, validate = commands_of(PAGE, "hermetic ")
    converted = ran(convert, tmp_path)
    assert converted.returncode == 0
    shown = (ROOT / PAGE).read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    assert converted.stderr == shown
    assert ran(validate, tmp_path).returncode == 0


def test_the_examples_of_the_command_run(tmp_path: Path) -> None:
    script = "docker run --gpus all -p 8000:8000 \\\n  vllm/vllm-openai:v0.32.0 \\\n  --model Qwen/Qwen3-8B\n"
    (tmp_path / "docker-run.sh").write_text(script, encoding="utf-8")
    lines = commands_of("docs/cli.md", "hermetic convert ")
    assert len(lines) == 2
    for line in lines:
        converted = ran(line, tmp_path)
        assert converted.returncode == 0, converted.stderr
        assert converted.stdout.startswith("apiVersion: hermetic.dev/v1alpha1\n")

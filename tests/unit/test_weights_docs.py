"""The commands of docs/weights.md run as they are written, and every reason has its page."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from hermetic.api.weights_reasons import WeightsReason
from tests.commandline import hermetic
from tests.weights import a_model

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "weights.md").read_text(encoding="utf-8")


def test_the_commands_in_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    a_model(tmp_path / "model")
    (tmp_path / "share").mkdir()
    commands = PAGE.split("## In short")[1].split("```")[1].strip().splitlines()
    assert len(commands) == 5
    for line in commands:
        program, *arguments = shlex.split(line)
        if program == "hermetic":
            ran = hermetic(*arguments)
            assert ran.code == 0, f"{line}: {ran.err}"
        else:
            subprocess.run([program, *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("reason", WeightsReason)
def test_every_reason_is_explained(reason: WeightsReason) -> None:
    assert reason.meaning in " ".join(hermetic("explain", reason.value).out.split())


def test_every_reason_of_the_page_is_one() -> None:
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", PAGE))
    assert named
    assert named <= {reason.value for reason in WeightsReason}

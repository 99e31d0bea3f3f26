"""`make audit-demo` ends with a command that can be typed again."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from testbed.azure import audit_demo
from tests.sampled_groups import LONG, TEST_BED

pytestmark = TEST_BED


@LONG
def test_its_last_line_is_a_command_that_judges_the_same_estate_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit_demo, "REPORT", tmp_path / "audit-demo.html")
    monkeypatch.setattr(audit_demo, "SNAPSHOT", tmp_path / "audit-demo.json")

    assert audit_demo.main([]) == 0

    printed = capfd.readouterr().out
    again = printed.splitlines()[-1].partition("format: ")[2]
    done = subprocess.run(shlex.split(again), capture_output=True, text=True, check=False)
    assert done.returncode == audit_demo.FAILED
    assert done.stdout.splitlines()[:2] == [line for line in printed.splitlines() if not line.startswith("==")][:2]

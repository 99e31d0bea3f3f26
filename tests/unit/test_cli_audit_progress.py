"""What a person sees on standard error while an audit collects."""

from __future__ import annotations

import io
import logging
from contextlib import redirect_stderr

import pytest

from hermetic.cli.audit.progress import ProgressLine

ERASE_LINE = "\r\x1b[2K"
"""ECMA-48: carriage return, EL 2."""


class Terminal(io.StringIO):
    """Standard error of a person."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """The lines that are to be seen, without empty ones."""
        lines = (line.rpartition(ERASE_LINE)[2] for line in self.getvalue().split("\n"))
        return [line for line in lines if line]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


def test_a_terminal_shows_one_line_that_changes(terminal: Terminal) -> None:
    with redirect_stderr(terminal), ProgressLine() as progress:
        assert terminal.screen() == ["audit: starting"]
        progress.asks(12)
        assert terminal.screen() == ["audit: 0 requests, 0 resources; 12 questions in this round"]
        progress.saw(3)
        progress.answered("GET /subscriptions/" + "x" * 80, 7.25)
        (line,) = terminal.screen()
        assert line.startswith("audit: 1 requests, 3 resources; slowest 7.2 s: GET /subs")
        assert len(line) == 59


def test_notes_stand_above_the_changing_line_and_the_end_leaves_the_sum(terminal: Terminal) -> None:
    with redirect_stderr(terminal), ProgressLine() as progress:
        progress.answered("GET /", 0.1)
        progress.waits("the quota of Resource Graph is used up", 12)
        logging.getLogger("azure.identity").warning("EnvironmentCredential: no variables\x1b[2J")
        progress.answered("GET /", 0.1)
    assert terminal.screen() == [
        "# audit: waiting 12 s: the quota of Resource Graph is used up",
        "# EnvironmentCredential: no variables\ufffd[2J",
        "# audit: 2 requests, 0 resources",
    ]


def test_an_audit_that_fails_leaves_nothing_of_the_changing_line(terminal: Terminal) -> None:
    def fail() -> None:
        with ProgressLine() as progress:
            progress.answered("GET /", 0.1)
            raise RuntimeError

    with redirect_stderr(terminal), pytest.raises(RuntimeError):
        fail()
    assert terminal.screen() == []


def test_a_log_file_gets_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine() as progress:
        progress.answered("GET /", 0.1)
    assert capsys.readouterr().err == "# audit: 1 requests, 0 resources\n"

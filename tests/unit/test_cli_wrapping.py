"""Lines that are longer than the terminal end between words; commands and ids stay whole."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.remedies.steps import is_command
from hermetic.cli import screen
from hermetic.cli.explain import command as explain
from hermetic.cli.output import echo_fitted
from hermetic.cli.wrapping import NARROWEST, beside, fitted, in_rows, wrapped
from tests.unit.test_cli_status_report import on_a_terminal

WORDS = st.lists(st.text("abc-/.:", min_size=1, max_size=30), max_size=30)
WIDTHS = st.integers(NARROWEST, 120)


def is_within(line: str, width: int) -> bool:
    """A line is as long as the terminal at most, but for one word that is longer."""
    return len(line) <= width or len(line.split()) == 1


@given(WORDS, WIDTHS, st.sampled_from(["", "  ", "      "]))
def test_no_word_is_cut_and_no_line_is_too_long(words: list[str], width: int, indent: str) -> None:
    rows = list(wrapped(" ".join(words), width, indent, f"{indent}  "))
    assert " ".join(rows).split() == words
    assert all(is_within(row, width) for row in rows)
    assert all(row.startswith(f"{indent}  ") for row in rows[1:])


@given(WORDS, WIDTHS)
def test_rows_hold_pieces_whole(pieces: list[str], width: int) -> None:
    rows = list(in_rows(pieces, width, "  "))
    assert " ".join(rows).split() == pieces
    assert all(is_within(row, width) for row in rows)


def test_where_the_output_is_no_terminal_a_line_stays_one() -> None:
    text = "word " * 100
    assert list(wrapped(text, 0, "  ")) == [f"  {text}".rstrip()]
    assert list(fitted(f"  observed   {text}", 0)) == [f"  observed   {text}".rstrip()]
    assert list(beside("name", 8, text, 0)) == [f"  name      {text}".rstrip()]


def test_a_line_goes_on_in_the_column_after_its_label() -> None:
    assert list(fitted("  observed   one two three four five six seven eight", 50)) == [
        "  observed   one two three four five six seven",
        "             eight",
    ]
    assert list(fitted("  fix: one two three four", 20)) == ["  fix: one two three", "    four"]


@pytest.mark.parametrize(
    "line", ["az aks update --name x", "    kubectl get pods -A -o wide", "    hermetic audit --kube"]
)
def test_a_command_is_never_wrapped(line: str) -> None:
    assert list(fitted(line, NARROWEST)) == [line]


def test_a_list_of_names_goes_below_them_on_a_narrow_terminal() -> None:
    assert list(beside("name", 24, "what it means", 80)) == ["  name                      what it means"]
    assert list(beside("name", 24, "what it means", 50)) == ["  name", "      what it means"]


@pytest.mark.parametrize("columns", [30, 40, 59, 60, 61, 79, 80, 100])
def test_status_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    shown = on_a_terminal(monkeypatch, columns, NO_COLOR="1")
    prose = [line for line in shown.splitlines() if not is_command(line.strip())]
    assert [line for line in prose if not is_within(line, columns)] == []
    whole = on_a_terminal(monkeypatch, 300, NO_COLOR="1").split("NAMESPACE")[0].replace(":", "").split()
    detail = shown.split("inference/llama")[0].split("NAMESPACE")[0].replace(":", "").split()
    assert detail == whole


def test_a_table_that_does_not_fit_shows_each_deployment_with_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(monkeypatch, 60, NO_COLOR="1")
    assert "NAMESPACE" not in shown
    for piece in ("\ninference/llama\n", "serving 1/2", "ready False", "reason IsolationEvidenceStale"):
        assert piece in shown
    assert "NAMESPACE  NAME " in on_a_terminal(monkeypatch, 120, NO_COLOR="1")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_pages_and_reports_in_words_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in ([], ["dns-security-policy"], ["IsolationEvidenceStale"]):
        explain.main(arguments, standalone_mode=False)
    echo_fitted(f"  verdict    {'word ' * 30}")
    prose = [line for line in terminal.getvalue().splitlines() if not is_command(line.strip())]
    assert len(prose) > 100
    assert [line for line in prose if not is_within(line, columns)] == []


def test_colours_stay_within_the_words_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(monkeypatch, 60)
    assert "  ready: \x1b[31m\x1b[1mNO\x1b[0m\n" in shown
    assert screen.BELOW in shown

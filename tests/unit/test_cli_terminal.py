"""Lines that are longer than the terminal end between words; commands and ids stay whole."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.api.text import aligned, wrapped
from hermetic.audit.remedies.steps import is_command
from hermetic.cli.audit import command as audit
from hermetic.cli.explain import command as explain
from hermetic.cli.status import screen
from hermetic.cli.terminal import NARROWEST, beside, echo_fitted, fitted, in_rows
from hermetic.cli.weights.progress import DRAW_EVERY_SECONDS, TransferProgress
from hermetic.weights.workers import Progress
from tests.audit_reports import a_failing_report, pages
from tests.status_reports import Terminal, on_a_terminal

WORDS = st.lists(st.text("abc-/.:", min_size=1, max_size=30), max_size=30)
WIDTHS = st.integers(NARROWEST, 120)


def is_within(line: str, width: int) -> bool:
    """A line is as long as the terminal at most, but for one word that is longer."""
    return len(line) <= width or len(line.split()) == 1


@given(WORDS, WIDTHS, st.sampled_from(["", "  ", "      "]))
def test_no_word_is_cut_and_no_line_is_too_long(tokens: list[str], width: int, indent: str) -> None:
    rows = list(wrapped(" ".join(tokens), width, indent, f"{indent}  "))
    assert " ".join(rows).split() == tokens
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
    wide_output = on_a_terminal(monkeypatch, 300, NO_COLOR="1").split("NAMESPACE")[0].replace(":", "").split()
    detail = shown.split("inference/llama")[0].split("NAMESPACE")[0].replace(":", "").split()
    assert detail == wide_output


def test_a_table_that_does_not_fit_shows_each_deployment_with_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(monkeypatch, 40, NO_COLOR="1")
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


def audit_on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, **environ: str) -> str:
    """The table of a failing audit, on a screen of this width."""
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    for name, value in {"NO_COLOR": "", "TERM": "xterm-256color", "COLUMNS": str(columns), **environ}.items():
        monkeypatch.setenv(name, value)
    audit._show_table(a_failing_report(), pages(), ["report.html"])
    return terminal.getvalue()


def test_audit_table_on_a_terminal_is_coloured_and_ends_with_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = audit_on_a_terminal(monkeypatch, 100)
    verdict = shown[shown.rindex("Fail  ") :]
    assert "\x1b[31m\x1b[1mFail  " in shown
    assert verdict.endswith("Report: report.html\n")
    assert "\x1b[" not in verdict.splitlines()[1]


@pytest.mark.parametrize(
    ("columns", "environ"), [(100, {"NO_COLOR": "1"}), (100, {"TERM": "dumb"}), (59, {}), (20, {})]
)
def test_audit_table_is_plain_where_colour_is_unwanted_or_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch, columns: int, environ: dict[str, str]
) -> None:
    assert "\x1b[" not in audit_on_a_terminal(monkeypatch, columns, **environ)


def test_audit_table_elsewhere_is_plain_and_has_no_second_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", file := io.StringIO())
    audit._show_table(a_failing_report(), pages(), ["report.html"])
    assert "\x1b[" not in file.getvalue()
    assert "Report: report.html" not in file.getvalue()


def test_transfer_progress_is_cut_to_the_terminal_and_removed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "40")
    with TransferProgress("verify") as progress:
        monkeypatch.setattr("hermetic.cli.weights.progress.DRAW_EVERY_SECONDS", -DRAW_EVERY_SECONDS)
        progress(Progress(started=0.0, bytes_total=2**34))
        (line,) = filter(None, terminal.getvalue().split("\r\x1b[2K"))
        assert line.startswith("verify [")
        assert len(line) == 39
    assert terminal.getvalue().endswith("\r\x1b[2K")


def test_table_has_columns_two_blanks_apart_without_trailing_blanks() -> None:
    assert list(aligned([("size", "GPUs", ""), ("Standard_NC40ads", "1", "")])) == [
        "size              GPUs",
        "Standard_NC40ads  1",
    ]
    with pytest.raises(ValueError, match="shorter"):
        list(aligned([("size", "GPUs"), ("Standard_NC40ads",)]))

"""How `hermetic status` prints: colours, wrapping, widths, ages, and text of the cluster on a terminal."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import replace
from datetime import timedelta

import pytest

from hermetic.api.times import spell_duration
from hermetic.cli.status import screen
from hermetic.cli.status.report import report
from hermetic.cli.status.text import ago, table
from tests.scenarios import CLUSTER, a_nim_model, a_share_model
from tests.status_reports import (
    NOW,
    Terminal,
    a_pod,
    on_a_terminal,
    proven,
    seen,
    starting_model,
)


def test_a_table_has_one_row_each() -> None:
    (row,) = table(
        [report(seen(a_nim_model(), endpoint={"url": "http://10.0.0.4:8000/v1"}), [a_pod("a", ready=True)], None)]
    )
    cells = ("inference", "nim", "NIM-2.1", "1", "1/1", "True", "Serving", "http://10.0.0.4:8000/v1")
    assert row == (*cells, "meta/llama-3.1-8b-instruct", "")


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (timedelta(seconds=-5), "0 s ago"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(minutes=2), "2 min ago"),
        (timedelta(hours=26), "26 h ago"),
        (timedelta(days=3), "3 d ago"),
    ],
)
def test_ages_are_told_in_one_unit(age: timedelta, expected: str) -> None:
    assert ago(NOW - age, NOW) == expected


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(seconds=-5), ("0 s", "0 s")),
        (timedelta(0), ("0 s", "0 s")),
        (timedelta(seconds=59.9), ("59 s", "59 s")),
        (timedelta(minutes=1), ("1 min", "1 min")),
        (timedelta(seconds=130), ("2 min", "2 min 10 s")),
        (timedelta(minutes=65, seconds=30), ("1 h", "1 h 5 min")),
        (timedelta(hours=47, minutes=59, seconds=59), ("47 h", "47 h 59 min")),
        (timedelta(days=2), ("2 d", "2 d")),
        (timedelta(days=7, hours=23), ("7 d", "7 d 23 h")),
    ],
)
def test_duration_is_spelt_in_its_largest_units(duration: timedelta, expected: tuple[str, str]) -> None:
    assert (spell_duration(duration, units=1), spell_duration(duration)) == expected


def test_a_terminal_shows_colours_and_wraps_below_the_column(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(monkeypatch, 100)
    assert "\x1b[" in shown
    detail = on_a_terminal(monkeypatch, 100, NO_COLOR="1").split("NAMESPACE")[0]
    prose = [line for line in detail.splitlines() if not line.startswith(screen.COMMAND_INDENT + "hermetic audit")]
    assert max(map(len, prose)) <= 100


def test_commands_stay_in_one_piece_to_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    command = f"hermetic audit --azure {CLUSTER} --sign KEY --attestation attestation.yaml"
    assert on_a_terminal(monkeypatch, 80, NO_COLOR="1").count(f"\n{screen.COMMAND_INDENT}{command}\n") == 2


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in on_a_terminal(monkeypatch, 100, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal(monkeypatch, 100, TERM="dumb")


def test_words_of_the_cluster_are_never_taken_for_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "[bold]CrashLoopBackOff" in on_a_terminal(monkeypatch, 120)


@pytest.mark.parametrize("columns", [20, 120])
def test_last_words_of_an_engine_cannot_drive_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    deployment = seen(a_share_model(), "False", "CrashLoop", "ended: \x1b]0;owned\x07\x9b31m\r")
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    screen.show_one(report(deployment, [], None), NOW)
    assert isinstance(sys.stdout, Terminal)
    assert not {"\x1b", "\x07", "\x9b", "\r"} & set(sys.stdout.getvalue())


def test_a_terminal_that_lacks_letters_gets_them_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    screen_of_old = io.TextIOWrapper(written, encoding="ascii", write_through=True)
    monkeypatch.setattr(screen_of_old, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", screen_of_old)
    screen.show_one(report(seen(a_share_model(), message="modèles 🦙"), [], None), NOW)
    assert b"mod\\xe8les \\U0001f999" in written.getvalue()


def test_a_terminal_of_twenty_columns_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(monkeypatch, 20)
    assert "\x1b[" not in shown
    assert f"hermetic audit --azure {CLUSTER} --sign KEY" in shown
    assert os.environ["COLUMNS"] == "20"


@pytest.mark.parametrize(
    ("columns", "head"),
    [
        (140, "NAMESPACE  NAME   ENGINE       GPUS  SERVING  READY  REASON    ENDPOINT"),
        (100, "NAMESPACE  NAME   ENGINE       GPUS  SERVING  READY  REASON"),
        (80, "NAMESPACE  NAME   ENGINE       GPUS  SERVING  READY  REASON"),
        (60, "NAMESPACE  NAME   ENGINE       SERVING  READY  REASON"),
    ],
)
def test_a_narrow_terminal_loses_columns_and_keeps_the_table(
    monkeypatch: pytest.MonkeyPatch, columns: int, head: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    long = replace(proven(), endpoint="http://llama-3-1-8b-instruct.inference.svc.cluster.local:8000/v1")
    screen.show_many([long, starting_model()], NOW)
    shown = terminal.getvalue().splitlines()
    assert shown[0] == head
    assert shown[1].startswith("inference  llama")
    assert max(map(len, shown[:3])) <= columns


def test_wide_shows_every_column_on_any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setenv("NO_COLOR", "1")
    screen.show_many([starting_model()], NOW, wide=True)
    head, row = terminal.getvalue().splitlines()[:2]
    assert head.split()[-2:] == ["MODEL", "PHASE"]
    assert row.split()[-2:] == ["meta/llama-3.1-8b-instruct", "LoadingModel"]

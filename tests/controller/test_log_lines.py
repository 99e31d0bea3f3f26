"""Lines of the operator's log: the order of their keys, their levels, the form for people, changes of state."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from hermetic.api.log_settings import LogSettings
from hermetic.controller.condition_events import ReadyChange, ready_change
from hermetic.controller.telemetry import configure_logging, text_line

Manifest = dict[str, Any]


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root, settings = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.configure(**settings)


def logged(capsys: pytest.CaptureFixture[str], **settings: Any) -> list[str]:
    """The lines that these calls write."""
    configure_logging(LogSettings(**settings))
    log = structlog.get_logger("hermetic")
    log.debug("reconcile", ns="a", name="phi", result="unchanged")
    log.info("reconcile", ns="a", name="phi", result="written", wrote=["status"])
    logging.getLogger("kopf").warning("a library warns")
    logging.getLogger("kopf").info("a library tells")
    return capsys.readouterr().out.splitlines()


def test_time_level_and_event_begin_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = logged(capsys)
    assert [[*json.loads(line)][:3] for line in lines] == [["ts", "level", "event"]] * 2
    assert [json.loads(line)["event"] for line in lines] == ["reconcile", "a library warns"]
    assert [*json.loads(lines[0])][3:] == ["ns", "name", "result", "wrote"]
    assert lines[0].startswith('{"ts": "20')


@pytest.mark.parametrize(("level", "levels"), [("debug", ["debug", "info"]), ("info", ["info"]), ("warning", [])])
def test_the_level_of_the_configuration_is_the_least_that_is_written(
    capsys: pytest.CaptureFixture[str], level: str, levels: list[str]
) -> None:
    lines = [json.loads(line) for line in logged(capsys, level=level)]
    assert [line["level"] for line in lines] == [*levels, "warning"]


def test_text_is_one_line_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = logged(capsys, format="text")
    assert first.endswith('Z INFO    reconcile ns=a name=phi result=written wrote=["status"]')
    assert second.endswith("WARNING a library warns")


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ("phi-4", "phi-4"),
        ("contoso.azurecr.io/vllm:0.32", "contoso.azurecr.io/vllm:0.32"),
        (1.5, "1.5"),
        ("two words", '"two words"'),
        ("", '""'),
        ("a\nb", '"a\\nb"'),
        ("\x1b[31m", '"\\u001b[31m"'),
        ('a" level="x', '"a\\" level=\\"x"'),
    ],
)
def test_a_value_can_neither_end_its_line_nor_look_like_another_key(value: Any, spelled: str) -> None:
    line = text_line(None, "", {"ts": "t", "level": "info", "event": "e", "key": value})
    assert line == f"t INFO    e key={spelled}"


def test_a_trace_is_below_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings(format="text"))
    try:
        _ = {}["a bug"]
    except KeyError:
        structlog.get_logger("hermetic").exception("reconcile failed", ns="a")
    head, *trace = capsys.readouterr().out.splitlines()
    assert head.endswith("ERROR   reconcile failed ns=a")
    assert trace[0].startswith("Traceback")
    assert trace[-1] == "KeyError: 'a bug'"


def ready(status: str, reason: str, message: str = "m") -> Manifest:
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}]}


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({}, ready("False", "Starting"), ReadyChange("none", "False Starting", "Starting", "m")),
        (ready("False", "Starting"), ready("True", "Serving"),
         ReadyChange("False Starting", "True Serving", "Serving", "m")),
        (ready("False", "Starting"), ready("False", "CrashLoop"),
         ReadyChange("False Starting", "False CrashLoop", "CrashLoop", "m")),
        (ready("False", "Starting", "one"), ready("False", "Starting", "two"), None),
        (ready("True", "Serving"), {}, None),
    ],
)  # fmt: skip
def test_a_change_of_ready_has_before_after_and_reason(
    before: Manifest, after: Manifest, change: ReadyChange | None
) -> None:
    assert ready_change(before, after) == change

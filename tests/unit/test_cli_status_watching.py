"""`hermetic status`: its options, what it writes for programs, and --watch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml

from hermetic.cli.status import command, reading, watching
from hermetic.cli.status.document import status_document
from hermetic.cli.status.reading import StatusRequest
from hermetic.cli.status.report import DeploymentReport
from hermetic.errors import HermeticError, NotFound, Unreachable
from tests.commandline import hermetic
from tests.status_reports import NOW, proven, starting_model

REQUEST = StatusRequest("llama", "inference", everywhere=False)
Answer = DeploymentReport | HermeticError


class _Ended(Exception):
    """The watch has read every answer."""


def watched(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> list[Sequence[DeploymentReport]]:
    """What --watch shows while the API server gives these answers, one after the other."""
    waiting = list(answers)

    async def read(_: StatusRequest) -> tuple[list[DeploymentReport], str]:
        answer = waiting.pop(0)
        if isinstance(answer, HermeticError):
            raise answer
        return [answer], "inference"

    async def wait(_: float) -> None:
        if not waiting:
            raise _Ended

    shown: list[Sequence[DeploymentReport]] = []
    monkeypatch.setattr(watching, "read_reports", read)
    with pytest.raises(_Ended):
        asyncio.run(watching.watch_reports(REQUEST, lambda reports, _: shown.append(reports), wait))
    return shown


def logging(text: str) -> DeploymentReport:
    starting = starting_model()
    assert starting.start is not None
    return replace(starting, start=replace(starting.start, log=text))


def test_a_report_is_shown_again_once_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    starting, serving = starting_model(), proven()
    assert watched(monkeypatch, starting, starting, serving, serving, starting) == [[starting], [serving], [starting]]


def test_a_new_line_of_the_log_alone_is_not_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, logging("1/8"), logging("2/8")) == [[logging("1/8")]]


def test_a_server_that_does_not_answer_is_noted_once_and_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    away = Unreachable("the API server does not answer")
    assert watched(monkeypatch, proven(), away, away, proven()) == [[proven()]]
    assert capsys.readouterr().err.count("the API server does not answer") == 1


def test_a_model_that_is_deleted_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(_: StatusRequest) -> Any:
        raise NotFound("there is no ModelDeployment 'llama'", status=404)

    monkeypatch.setattr(watching, "read_reports", gone)
    with pytest.raises(NotFound):
        asyncio.run(watching.watch_reports(REQUEST, lambda *_: None))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["llama", "-A"], "-A goes with neither NAME nor -n"),
        (["llama", "-l", "team=a"], "-l does not go with NAME"),
        (["-w", "-o", "json"], "--watch shows text"),
        (["-w", "-o", "yaml"], "--watch shows text"),
        (["-n", "No_Name"], "cannot be the name of a namespace"),
    ],
)
def test_options_that_contradict_each_other_are_refused_before_anything_is_read(
    arguments: list[str], message: str
) -> None:
    ran = hermetic("status", *arguments, "--kubeconfig", "/nowhere")
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_json_and_yaml_are_one_document(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    requests: list[StatusRequest] = []

    async def read(status_request: StatusRequest) -> tuple[list[DeploymentReport], None]:
        requests.append(status_request)
        return [starting_model()], None

    monkeypatch.setattr(command, "read_reports", read)
    shown = hermetic("status", "-A", "-l", "team=a", "-o", output)
    document = json.loads(shown.out) if output == "json" else yaml.safe_load(shown.out)
    assert requests == [StatusRequest("", None, everywhere=True, labels="team=a")]
    assert document["deployments"][0]["start"]["phase"] == "LoadingModel"
    assert [*document] == [*status_document([starting_model()], NOW)]


class _Logs:
    """An API server that has one log, or refuses it."""

    def __init__(self, answer: str | HermeticError) -> None:
        self._answer = answer
        self.asked: list[tuple[str, str, str]] = []

    async def log_end(self, *container: str) -> str:
        self.asked.append(container)  # type: ignore[arg-type]
        if isinstance(self._answer, HermeticError):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "line"),
    [("INFO one\nINFO two\n", "INFO two"), (Unreachable("no"), ""), (NotFound("no", status=404), "")],
)
def test_the_log_of_the_container_that_the_start_waits_for_is_read_where_it_may_be(
    answer: str | HermeticError, line: str
) -> None:
    logs, start = _Logs(answer), starting_model().start
    assert start is not None
    assert asyncio.run(reading._log_line(logs, "inference", start)) == line  # type: ignore[arg-type]
    assert logs.asked == [("inference", "llama-1", "engine")]

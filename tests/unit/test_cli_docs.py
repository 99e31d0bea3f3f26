"""docs/cli.md has every command, every option and every field of JSON output; its examples are what is printed."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from hermetic.cli import COMMANDS, module_of
from hermetic.cli.bench.command import bench_document
from hermetic.cli.bench.running import BenchmarkOutcome
from hermetic.cli.benchmarks import MEASURES, PARTS, BenchmarkRecord
from hermetic.cli.status import screen
from hermetic.cli.status.document import status_document
from tests.commandline import hermetic, hermetic_process
from tests.scenarios import a_baked_model, changed
from tests.status_reports import a_pod, stale

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def chapter(command: str) -> str:
    return PAGE.split(f"\n## hermetic {command}\n")[1].split("\n## ")[0]


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys(inner)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_described(command: str) -> None:
    parameters = importlib.import_module(module_of(command)).command.params
    options = [name for parameter in parameters if isinstance(parameter, click.Option) for name in parameter.opts]
    common = PAGE.split("## Options of every command")[1].split("\n## ")[0]
    assert [name for name in options if f"`{name}" not in chapter(command) + common] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_of_the_help_is_shown(command: str) -> None:
    help_text = " ".join(hermetic(command, "--help").out.split())
    shown = re.findall(r"^hermetic .*", chapter(command), re.MULTILINE)
    assert shown
    assert [example for example in shown if example not in help_text and example != f"hermetic {command}"] == []


def test_every_field_of_a_validation_is_named() -> None:
    typed = yaml.safe_dump_all([a_baked_model(), changed(a_baked_model("b"), replicas=-1)])
    printed = json.loads(hermetic("validate", "-f", "-", "-o", "json", stdin=typed).out)
    assert [key for key in keys(printed) if f"`{key}`" not in chapter("validate")] == []


def test_every_field_of_a_status_is_named() -> None:
    starting = a_pod("a", creationTimestamp="2026-11-20T11:59:00Z")
    starting["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": "2026-11-20T11:59:00Z"}}
    report = replace(stale([starting]), benchmarks=(a_benchmark(),))
    printed = status_document([report], datetime(2026, 11, 20, 12, tzinfo=UTC))
    assert printed["isolation"]
    assert printed["deployments"][0]["start"]
    assert [key for key in keys(printed) if f"`{key}`" not in chapter("status")] == []


def a_benchmark() -> BenchmarkRecord:
    fingerprint = dict.fromkeys(PARTS, "-")
    return BenchmarkRecord(datetime(2026, 11, 20, 11, tzinfo=UTC), fingerprint, dict.fromkeys(MEASURES, 1.0))


def test_every_field_of_a_benchmark_is_named() -> None:
    printed = bench_document("llama", "inference", BenchmarkOutcome(a_benchmark(), (a_benchmark(),)))
    assert printed["comparedWith"]
    assert [key for key in keys(printed) if f"`{key}`" not in chapter("bench")] == []


def test_every_field_of_an_explanation_is_named() -> None:
    printed = json.loads(hermetic("explain", "-o", "json").out)
    named = {*printed, *printed["pages"][0]}
    assert [key for key in named if f"`{key}`" not in chapter("explain")] == []


def test_the_status_shown_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    screen.show_one(stale([a_pod("a", ready=True), a_pod("b", ready=True)]), datetime(2026, 11, 20, 12, tzinfo=UTC))
    assert capsys.readouterr().out in chapter("status")


def test_completion_is_there() -> None:
    assert "_HERMETIC_COMPLETE" in hermetic_process(environ={"_HERMETIC_COMPLETE": "bash_source"}).out

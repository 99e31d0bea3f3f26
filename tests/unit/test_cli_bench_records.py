"""Results of `hermetic bench` that a model is annotated with, as `hermetic status` shows them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from hermetic.cli.benchmarks import ANNOTATION, records_of, stored
from hermetic.cli.status.document import status_document
from hermetic.cli.status.text import lines
from tests.golden.benchmarks import live, shape
from tests.scenarios import Manifest


def recorded(*records: Any) -> Manifest:
    return {"metadata": {"annotations": {ANNOTATION: json.dumps(records)}}}


FIGURES_OF_A_RECORD = {
    "requestsPerSecond": 6.4,
    "outputTokensPerSecond": 819.2,
    "ttftMedianMs": 210,
    "ttftP99Ms": 400,
    "itlMedianMs": 20,
    "itlP99Ms": 35,
}
RECORD = {"at": "2026-11-20T11:00:00Z", "fingerprint": {"engine": "vLLM 0.32.0"}, "figures": FIGURES_OF_A_RECORD}
FOREIGN = {
    "no JSON": {"metadata": {"annotations": {ANNOTATION: "{"}}},
    "no list": {"metadata": {"annotations": {ANNOTATION: "{}"}}},
    "no annotations": {"metadata": {}},
    "a text": recorded("x"),
    "no moment": recorded({**RECORD, "at": "yesterday"}),
    "no figures": recorded({**RECORD, "figures": None}),
    "a figure that is missing": recorded({**RECORD, "figures": {**FIGURES_OF_A_RECORD, "itlP99Ms": None}}),
    "an infinite figure": recorded({**RECORD, "figures": {**FIGURES_OF_A_RECORD, "itlP99Ms": float("inf")}}),
    "no fingerprint": recorded({**RECORD, "fingerprint": []}),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_an_annotation_of_another_form_is_ignored_everywhere(case: str) -> None:
    annotations = FOREIGN[case]["metadata"].get("annotations") or {}
    assert records_of(FOREIGN[case]) == ()
    objects = live(shape("share"), metadata={**live(shape("share")).model["metadata"], "annotations": annotations})
    assert objects.report.benchmarks == ()


def test_status_shows_the_newest_result_and_its_change() -> None:
    older = {**RECORD, "at": "2026-11-19T12:00:00Z", "figures": {**FIGURES_OF_A_RECORD, "outputTokensPerSecond": 800}}
    annotations = recorded(older, RECORD)["metadata"]["annotations"]
    objects = live(shape("share"), metadata={**live(shape("share")).model["metadata"], "annotations": annotations})
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    (line,) = [line for line in lines(objects.report, now) if line.label == "benchmark"]
    assert line.text == (
        "6.4 requests/s, 819.2 output tokens/s, TTFT 210 ms (p99 400), ITL 20 ms (p99 35), 1 h ago, with vLLM "
        "0.32.0; +2.4 % output tokens/s since the last of the same fingerprint, 24 h ago"
    )
    (shown,) = status_document([objects.report], now)["deployments"]
    assert shown["benchmark"]["figures"] == FIGURES_OF_A_RECORD
    assert shown["ready"] == "True"


def test_text_of_an_annotation_cannot_drive_a_terminal() -> None:
    (record,) = records_of(recorded({**RECORD, "fingerprint": {"engine": "\x1b[2J"}}))
    assert "\x1b" not in record.fingerprint["engine"]


def test_the_annotation_has_the_ten_newest_results() -> None:
    moments = [f"2026-11-{day:02}T12:00:00Z" for day in range(1, 13)]
    records = records_of(recorded(*({**RECORD, "at": moment} for moment in moments)))
    assert [record.as_json()["at"] for record in records] == moments[:1:-1]
    assert len(json.loads(stored([*records, *records]))) == 10

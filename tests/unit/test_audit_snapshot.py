"""A snapshot is the whole audit in one file: judged again it says the same, and a file that is not whole is refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermetic.audit.checks.registry import PAGES
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, UnreadReason
from hermetic.audit.estate.snapshot import SCHEMA, Snapshot, from_json, to_json
from hermetic.audit.model.findings import Evidence, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.exceptions import Exceptions
from hermetic.audit.report.json_form import as_json
from hermetic.audit.result.run import audit, evaluate
from hermetic.errors import InputError, SnapshotUnusable
from testbed.azure.baseline import sealed_estate
from testbed.azure.faults import Fault, Status
from testbed.azure.generator import topology
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited, policy_of

AT = datetime(2026, 11, 21, 12, 0, 0, 250, tzinfo=UTC)
CLUSTER = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c"


def _snapshot(answers: dict[Question, Answer] | None = None) -> Snapshot:
    return Snapshot(CLUSTER, ("azure", "kube"), AT, AT + timedelta(seconds=3), "1.2.3", answers or _answers())


def _answers() -> dict[Question, Answer]:
    page = Evidence("GET /list?api-version=1", 200, "ab" * 32)
    shared = {"id": "/a", "properties": {"b": [1, 2.5, None, True, "ü\ud800"], "a": {}}}
    return {
        Question("azure", "list", "X/y", "/s", "1"): Answer(
            (Body(shared, (page,)), Body({"id": "/b"}, (page,))),
            (page,),
            Problem(UnreadReason.TRUNCATED, "cut", "X/y/read"),
        ),
        Question("azure", "get", "X/y", "/A", "1"): Answer((Body(shared, (page,)),), (page,)),
        Question("azure", "post", "X/y", "/a", "1", "act", '{"b":1}'): Answer(
            problem=Problem(UnreadReason.FORBIDDEN, "no", "X/y/act/action"), evidence=(Evidence("POST /a", 403, None),)
        ),
        Question("kube", "list", "v1/services", ""): Answer(evidence=(Evidence("list v1/services", None, None),)),
    }


async def test_what_was_seen_is_judged_again_to_the_same_bytes() -> None:
    for seed in (0, 3, 7):
        estate = topology(seed).estate
        faults = [Fault(Status(403), path="/privateEndpoints"), Fault(Status(503), path="/routeTables/")]
        with ArmStandIn(estate, page_size=3, faults=faults) as arm:
            audit = await audited(arm, retry_budget=5)
        saved = to_json(Snapshot(audit.cluster, ("azure",), AT, AT, "0", audit.answers))
        loaded = from_json(saved.encode())
        assert _told(loaded.estate(), policy_of(estate)) == _told(
            Estate(audit.cluster, ("azure",), audit.answers), policy_of(estate)
        )
        assert not loaded.estate().wanted
        assert to_json(loaded) == saved


def _told(estate: Estate, policy: Policy) -> str:
    report = audit(estate, evaluate(estate, policy), policy, Exceptions(), started_at=AT, finished_at=AT, version="0")
    return as_json(report, PAGES) + repr(evaluate(estate, policy))


def test_everything_in_it_comes_back() -> None:
    before = _snapshot()
    after = from_json(to_json(before))
    assert after == before
    assert to_json(after) == to_json(before)


async def test_what_was_collected_with_another_api_version_is_not_asked() -> None:
    arm_estate = sealed_estate()
    with ArmStandIn(arm_estate) as arm:
        audit = await audited(arm)
    cluster = next(
        question for question in audit.answers if question.verb == "get" and question.target == audit.cluster
    )
    older = {replace(cluster, api_version="2024-09-01"): audit.answers[cluster]}
    other_answers = {question: answer for question, answer in audit.answers.items() if question is not cluster}
    loaded = from_json(to_json(Snapshot(audit.cluster, ("azure",), AT, AT, "0", {**other_answers, **older}))).estate()
    by_check = {question.check: question for question in evaluate(loaded, policy_of(arm_estate))}
    assert by_check["aks-private-api"].verdict is Verdict.UNKNOWN
    assert by_check["aks-private-api"].reason == "NotAsked"
    for word in ("2024-09-01", cluster.api_version, "collect again"):
        assert word in by_check["aks-private-api"].message
    assert loaded.wanted[cluster.key] == cluster
    assert not loaded.with_answers({cluster: audit.answers[cluster]}).one(ManagedCluster, audit.cluster).problem


def test_the_order_of_answers_does_not_show() -> None:
    turned = dict(reversed(_answers().items()))
    assert to_json(_snapshot(turned)) == to_json(_snapshot())


def test_what_many_answers_share_stands_once() -> None:
    big = {"id": "/big", "text": "x" * 10_000}
    page = Evidence("GET /big?api-version=1", 200, "cd" * 32)
    answers = {
        Question("azure", "list", "X/y", f"/{number}", "1"): Answer((Body(dict(big), (page,)),), (page,))
        for number in range(100)
    }
    assert len(to_json(_snapshot(answers))) < 3 * len(json.dumps(big)) + 100 * 200


def test_a_time_that_is_not_utc_is_a_defect_of_the_writer() -> None:
    for moment in (datetime(2026, 11, 21), datetime(2026, 11, 21, tzinfo=timezone(timedelta(hours=1)))):  # noqa: DTZ001
        with pytest.raises(ValueError, match="UTC"):
            replace(_snapshot(), finished_at=moment)


def _changed(change: Callable[[dict[str, Any]], Any], *, digest: bool = True) -> str:
    """The file after a change, with a digest that fits again unless `digest` is False."""
    document = json.loads(to_json(_snapshot()))
    change(document)
    if digest:
        content = json.dumps(document["content"], separators=(",", ":"))
        document["sha256"] = hashlib.sha256(content.encode()).hexdigest()
    return json.dumps(document)


GOOD = to_json(_snapshot())
REFUSED = {
    "nothing": ("", "ends too early"),
    "half of it": (GOOD[: len(GOOD) // 2], "not JSON"),
    "all but the end": (GOOD.rstrip()[:-1], "ends too early"),
    "something behind it": (GOOD + "{}", "not JSON"),
    "not UTF-8": (b"\xff\xfe\x00", "not"),
    "a list": ("[]", "not a snapshot"),
    "a report": ('{"schema": "hermetic.dev/audit/v1", "cluster": ""}', "not a snapshot"),
    "a later schema": (_changed(lambda it: it.update(schema="hermetic.dev/snapshot/v2")), "snapshot/v2"),
    "a changed body": (
        _changed(lambda it: it["content"]["bodies"][0].update(id="/other"), digest=False),
        "changed after it was written",
    ),
    "a key that occurs twice": (GOOD.replace('"schema"', '"schema":"x","schema"', 1), "'schema' twice"),
    "a key that occurs twice in a body": (GOOD.replace('"id":"/b"', '"id":"/a","id":"/b"'), "'id' twice"),
    "an unknown key": (_changed(lambda it: it["content"].update(extra=1)), "extra"),
    "a missing key": (_changed(lambda it: it["content"].pop("cluster")), "cluster"),
    "an unknown source": (_changed(lambda it: it["content"].update(sources=["aws"])), "sources"),
    "an unknown trouble": (
        _changed(lambda it: it["content"]["answers"][-2]["problem"].update(trouble="Fine")),
        "Fine",
    ),
    "a body that is not there": (_changed(lambda it: it["content"]["answers"][0].update(bodies=[[99, [0]]])), "99"),
    "a body from behind": (_changed(lambda it: it["content"]["answers"][0].update(bodies=[[-1, [0]]])), "-1"),
    "a number as text": (_changed(lambda it: it["content"]["answers"][0].update(evidence=["0"])), "evidence"),
    "an exchange that is not there": (_changed(lambda it: it["content"]["answers"][0].update(evidence=[7])), "7"),
    "one answer twice": (
        _changed(lambda it: it["content"]["answers"].append(it["content"]["answers"][0])),
        "answered twice",
    ),
    "a body that is no object": (_changed(lambda it: it["content"]["bodies"].append(7)), "bodies"),
    "a time without a zone": (_changed(lambda it: it["content"].update(startedAt="2026-11-21T12:00:00")), "UTC"),
    "an end before its beginning": (
        _changed(lambda it: it["content"].update(finishedAt="2026-11-20T12:00:00+00:00")),
        "before it was started",
    ),
    "nesting without end": ("[" * 200_000, "nested"),
    "a body that could not be read": (
        _changed(lambda it: it["content"]["bodies"][0].update(a=json.loads("[" * 300 + "]" * 300))),
        "nested",
    ),
    "a number without end": ("9" * 5000, "not a snapshot|not JSON"),
}


@pytest.mark.parametrize("damage", REFUSED)
def test_a_file_that_is_no_whole_snapshot_is_refused_in_words(damage: str) -> None:
    text, message = REFUSED[damage]
    with pytest.raises(SnapshotUnusable, match=message) as caught:
        from_json(text)
    assert isinstance(caught.value, InputError)
    assert len(caught.value.message) < 400


@settings(deadline=None)
@given(st.data())
def test_no_damage_is_a_traceback_or_another_snapshot(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(GOOD) - 1))
    how = data.draw(st.sampled_from(["cut", "drop", "swap", "double"]))
    letter = data.draw(st.characters(codec="ascii"))
    damaged = {
        "cut": GOOD[:at],
        "drop": GOOD[:at] + GOOD[at + 1 :],
        "swap": GOOD[:at] + letter + GOOD[at + 1 :],
        "double": GOOD[:at] + GOOD[at] + GOOD[at:],
    }[how]
    with contextlib.suppress(SnapshotUnusable):
        assert from_json(damaged) == _snapshot()


def test_the_schema_is_named_in_the_file() -> None:
    assert json.loads(GOOD)["schema"] == SCHEMA == "hermetic.dev/snapshot/v1"

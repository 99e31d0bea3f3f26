"""What may pass is tried again, within one budget of waiting; what was asked to wait for is waited for."""

from __future__ import annotations

import asyncio
import re
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.estate.questions import Question, UnreadReason
from hermetic.collect.azure.rate_limits import RetryBudget
from hermetic.collect.azure.replies import Ask, RequestAttempt, parsed, reply_of, wait_asked
from testbed.azure.baseline import sealed_estate
from testbed.azure.faults import Fault, NotJson, Reset, Status, Truncate
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import all_of, client_of, question
from tests.fakes.clocks import START, RealTime
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

ESTATE = sealed_estate()
VNET = question("get", "Microsoft.Network/virtualNetworks", ESTATE.site.vnet)
TABLE = question("get", "Microsoft.Network/routeTables", ESTATE.site.route_table)
EXACTLY = f"virtualNetworks/{ESTATE.site.vnet.rpartition('/')[2]}\\?"


@pytest.mark.parametrize("action", [Status(500), Status(503), Status(429), Status(408), Reset(), Truncate(), NotJson()])
async def test_what_passes_by_itself_costs_only_time(action: Any) -> None:
    with ArmStandIn(ESTATE, faults=[Fault(action, path=EXACTLY, times=3)]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(VNET)
            assert answer.problem is None
            assert [evidence.status for evidence in answer.evidence] == [200]
            assert bench.clock.passed == pytest.approx(0.5 + 1 + 2, rel=0.2)


@pytest.mark.parametrize("action", [Status(500), Status(429), Reset(), Truncate(), NotJson()])
async def test_what_stays_ill_is_unavailable_when_the_budget_is_spent(action: Any) -> None:
    with ArmStandIn(ESTATE, faults=[Fault(action, path=EXACTLY)]) as arm:
        async with client_of(arm, retry_budget=20) as bench:
            answer = await bench.answer(VNET)
            assert answer.problem is not None
            assert answer.problem.reason is UnreadReason.UNAVAILABLE
            assert answer.bodies == ()
            assert answer.evidence[0].request.startswith(f"GET {ESTATE.site.vnet}?")
            assert 10 <= bench.clock.passed <= 20.5


async def test_retry_after_is_waited_for_and_no_less() -> None:
    with ArmStandIn(ESTATE, faults=[Fault(Status(503, retry_after=17), path=EXACTLY, times=2)]) as arm:
        async with client_of(arm) as bench:
            assert (await bench.answer(VNET)).problem is None
            assert bench.clock.passed == pytest.approx(34)


@pytest.mark.parametrize("status", [429, 503])
async def test_an_answer_that_asks_to_come_back_at_once_does_not_hold_the_audit_for_ever(status: int) -> None:
    with ArmStandIn(ESTATE, faults=[Fault(Status(status, retry_after=0), path=EXACTLY)]) as arm:
        async with client_of(arm, retry_budget=20) as bench:
            answer = await asyncio.wait_for(bench.answer(VNET), 20)
            assert answer.problem is not None
            assert answer.problem.reason is UnreadReason.UNAVAILABLE
            assert 10 <= bench.clock.passed <= 20.5
    assert len(arm.requests) < 10


@pytest.mark.parametrize(
    ("asked", "tries", "seconds"), [(None, 1, 0.5), (0.0, 1, 0.5), (0.0, 4, 4.0), (0.9, 1, 0.9), (1.0, 9, 1.0)]
)
def test_asked_for_less_than_a_second_it_backs_off_as_ever(asked: float | None, tries: int, seconds: float) -> None:
    assert RetryBudget(1, lambda: 0.5).before_the_next(tries, asked) == seconds


async def test_a_wait_beyond_the_budget_is_not_begun() -> None:
    with ArmStandIn(ESTATE, faults=[Fault(Status(503, retry_after=121), path=EXACTLY)]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(VNET)
            assert answer.problem is not None
            assert bench.clock.passed == 0
    assert len(arm.requests) == 1


async def test_the_budget_is_one_for_the_whole_run() -> None:
    with ArmStandIn(ESTATE, faults=[Fault(Status(503, retry_after=50), path="virtualNetworks")]) as arm:
        async with client_of(arm, retry_budget=120) as bench:
            assert (await bench.answer(VNET)).problem is not None
            assert bench.clock.passed == pytest.approx(100)
            before = len(arm.requests)
            other = question("get", "Microsoft.Network/virtualNetworks/subnets", ESTATE.site.gpu_subnet)
            assert (await bench.answer(other)).problem is not None
            assert len(arm.requests) == before + 1


async def test_429_stops_the_whole_subscription_not_one_worker() -> None:
    more_questions = [
        question("get", "Microsoft.Network/networkInterfaces", f"{ESTATE.site.sentinel}-{number}")
        for number in range(60)
    ]
    with ArmStandIn(ESTATE, latency=0.02, faults=[Fault(Status(429, retry_after=1), path=EXACTLY, times=1)]) as arm:
        async with client_of(arm, clock=RealTime()) as bench:
            answers = await bench.answerer.answers([VNET, *more_questions])
            assert answers[VNET].problem is None
    [throttled] = [request.at for request in arm.requests if request.status == 429]
    after = sorted(request.at - throttled for request in arm.requests)
    on_the_way = 0.3
    assert [at for at in after if on_the_way < at < 1.0] == []
    assert len([at for at in after if at >= 1.0]) > 30


async def test_with_no_patience_left_a_throttled_subscription_is_left_alone() -> None:
    with ArmStandIn(ESTATE, faults=[Fault(Status(429, retry_after=600))]) as arm:
        async with client_of(arm) as bench:
            for asked_question in (VNET, TABLE):
                answer = await bench.answer(asked_question)
                assert answer.problem is not None
                assert answer.problem.reason is UnreadReason.UNAVAILABLE
    assert len(arm.requests) == 1


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (400, "NoRegisteredProviderFound", UnreadReason.REFUSED),
        (404, "ResourceNotFound", UnreadReason.NOT_FOUND),
        (404, "InvalidResourceType", UnreadReason.REFUSED),
        (403, "AuthorizationFailed", UnreadReason.FORBIDDEN),
        (302, "", UnreadReason.REFUSED),
        (409, "MissingSubscriptionRegistration", UnreadReason.REFUSED),
        (204, "", UnreadReason.REFUSED),
    ],
)
async def test_what_does_not_pass_by_itself_is_asked_once(status: int, code: str, reason: UnreadReason) -> None:
    with ArmStandIn(ESTATE, faults=[Fault(Status(status, code=code), path=EXACTLY)]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(VNET)
            assert answer.problem is not None
            assert answer.problem.reason is reason
            assert bench.clock.passed == 0
    assert len(arm.requests) == 1


async def test_a_refusal_names_the_permission_that_is_missing() -> None:
    estate = sealed_estate()
    estate.deny(estate.site.vnet, "*/subnets/read")
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(
                question("get", "microsoft.network/VIRTUALNETWORKS/subnets", estate.site.gpu_subnet)
            )
    assert answer.problem is not None
    assert answer.problem.permission == "Microsoft.Network/virtualNetworks/subnets/read"


async def test_an_old_api_version_is_refused_and_not_a_missing_resource() -> None:
    old = Question("azure", "get", VNET.kind, VNET.target, "2001-01-01")
    with ArmStandIn(ESTATE) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(old)
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.REFUSED


async def test_one_question_is_asked_once_however_many_want_it() -> None:
    with ArmStandIn(ESTATE, latency=0.05) as arm:
        async with client_of(arm) as bench:
            shouted = Question("azure", "get", VNET.kind.upper(), VNET.target.upper(), VNET.api_version)
            answers = await all_of(bench.answer(asked_question) for asked_question in (VNET, shouted, VNET))
    assert len(arm.requests) == 1
    assert len({answer.evidence for answer in answers}) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0 "}, 0.0),
        ({"retry-after": format_datetime(START.replace(minute=1), usegmt=True)}, 60.0),
        ({"retry-after": format_datetime(START.replace(hour=11), usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1e9"}, None),
        ({}, None),
        ({"x-ms-user-quota-remaining": "0", "x-ms-user-quota-resets-after": "00:01:05"}, 65.0),
        ({"x-ms-user-quota-remaining": "3", "x-ms-user-quota-resets-after": "00:01:05"}, None),
    ],
)
def test_how_long_to_wait_is_read_as_it_is_documented(headers: dict[str, str], seconds: float | None) -> None:
    assert wait_asked(headers, START) == seconds


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50)), max_size=50), st.floats(0, 200))
def test_the_run_never_waits_longer_than_its_budget(waits: list[tuple[float, float]], budget: float) -> None:
    patience, now = RetryBudget(budget), 0.0
    granted: list[tuple[float, float]] = []
    for later, seconds in waits:
        now += later
        if patience.grants(now, seconds):
            granted.append((now, now + seconds))
    assert _covered(granted) <= budget + 1e-6


def test_waits_that_overlap_count_once() -> None:
    patience = RetryBudget(10)
    assert all(patience.grants(100, 8) for _ in range(100))
    assert patience.grants(105, 5)
    assert not patience.grants(105, 6)


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_is_jittered_and_bounded(tries: int, chance: float) -> None:
    seconds = RetryBudget(1, lambda: chance).backoff(tries)
    assert 0.25 <= seconds <= 45


def _covered(spans: list[tuple[float, float]]) -> float:
    total, end = 0.0, float("-inf")
    for begin, until in sorted(spans):
        total += max(0.0, until - max(begin, end))
        end = max(end, until)
    return total


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[" * 100_000, b'{"a":' * 300 + b"1" + b"}" * 300, b"9" * 5000, b"\xff", b'{"a":1'],
)
def test_unreadable_bytes_are_no_json(content: bytes) -> None:
    assert parsed(content) is None


def test_messages_of_arm_are_one_line_and_short() -> None:
    body = b'{"error":{"code":"Bad","message":"one\\ntwo\\u0000 ' + b"x" * 5000 + b'"}}'
    problem = reply_of(Ask("GET", "/subscriptions/s?api-version=1", "p"), RequestAttempt(400, {}, body)).problem
    assert problem is not None
    assert len(problem.detail) < 420
    assert not re.search(r"[\n\r]", problem.detail)

"""POST actions that read: polled as long as they ask for, for a minute at most, side by side."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import Question, UnreadReason
from testbed.azure.baseline import sealed_estate
from testbed.azure.faults import Edit, EndsFailed, Fault, NeverEnds, Remove, Reset, Status, Truncate
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import client_of, question
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

ESTATE = sealed_estate()
NIC = "Microsoft.Network/networkInterfaces"
ROUTES = question("post", NIC, ESTATE.site.sentinel, action="effectiveRouteTable")
GROUPS = question("post", NIC, ESTATE.site.sentinel, action="effectiveNetworkSecurityGroups")
NETWORK = "Microsoft.Network/virtualNetworks"
RULES = question("post", NETWORK, ESTATE.site.vnet, action="listNetworkManagerEffectiveSecurityAdminRules")


async def test_the_result_of_a_long_action_rests_on_the_action_and_its_result() -> None:
    with ArmStandIn(ESTATE, polls=3, retry_after=4) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(ROUTES)
            assert 12 <= bench.clock.passed <= 20
    assert answer.problem is None
    assert answer.bodies[0].value["value"]
    first_evidence, evidence = answer.evidence
    assert first_evidence.request == f"POST {ESTATE.site.sentinel}/effectiveRouteTable?api-version=2025-05-01"
    assert first_evidence.status == 202
    assert evidence.request.startswith("GET /subscriptions/")
    assert (evidence.status, evidence.sha256 is not None) == (200, True)


async def test_actions_run_side_by_side() -> None:
    with ArmStandIn(ESTATE, polls=2, retry_after=4, latency=0.02) as arm:
        async with client_of(arm) as bench:
            answers = await bench.answerer.answers([ROUTES, GROUPS])
            assert [answer.problem for answer in answers.values()] == [None, None]
    assert [request.method for request in arm.requests[:2]] == ["POST", "POST"]


@pytest.mark.parametrize(
    ("action", "path", "reason"),
    [
        (NeverEnds(), "effectiveRouteTable", UnreadReason.UNAVAILABLE),
        (EndsFailed(), "effectiveRouteTable", UnreadReason.REFUSED),
        (Edit("status", "Canceled"), "/operations/", UnreadReason.REFUSED),
        (Edit("status", ["Succeeded"]), "/operations/", UnreadReason.UNAVAILABLE),
        (Remove("status"), "/operations/", UnreadReason.UNAVAILABLE),
        (Status(404), "/operations/", UnreadReason.NOT_FOUND),
        (Status(500), "/operationResults/", UnreadReason.UNAVAILABLE),
        (Truncate(), "/operationResults/", UnreadReason.UNAVAILABLE),
        (Reset(), "/operationResults/", UnreadReason.UNAVAILABLE),
    ],
)
async def test_an_action_that_does_not_end_well_ends_within_its_minute(
    action: Any, path: str, reason: UnreadReason
) -> None:
    with ArmStandIn(ESTATE, faults=[Fault(action, path=path)]) as arm:
        async with client_of(arm, retry_budget=200) as bench:
            answer = await bench.answer(ROUTES)
            assert bench.clock.passed <= 61
    assert answer.bodies == ()
    assert answer.problem is not None
    assert answer.problem.reason is reason
    assert answer.problem.permission == f"{NIC}/effectiveRouteTable/action"
    assert len(arm.requests) < 60


async def test_an_action_on_what_may_not_be_asked_names_its_permission() -> None:
    estate = sealed_estate()
    estate.deny(estate.site.sentinel, "*/action")
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(ROUTES)
    assert answer.problem is not None
    assert (answer.problem.reason, answer.problem.permission) == (
        UnreadReason.FORBIDDEN,
        f"{NIC}/effectiveRouteTable/action",
    )


def _pages(pages: list[dict[str, Any]]) -> list[Fault]:
    """What Network Manager answers to one request after the other."""
    return [
        Fault(Edit(key, page[key]), path="AdminRules", skip=number, times=1)
        for number, page in enumerate(pages)
        for key in page
    ]


async def test_pages_by_token_are_put_together() -> None:
    pages = [{"value": [{"id": "a"}], "skipToken": "1"}, {"value": [{"id": "b"}]}]
    with ArmStandIn(ESTATE, faults=_pages(pages)) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(RULES)
    assert answer.problem is None
    assert [row["id"] for row in answer.bodies[0].value["value"]] == ["a", "b"]
    assert len(answer.evidence) == 2
    assert b'"skipToken":"1"' in arm.requests[1].body.replace(b" ", b"")


@pytest.mark.parametrize(
    "pages",
    [
        [{"value": [], "skipToken": "1"}, {"value": [], "skipToken": "1"}],
        [{"value": [], "skipToken": 7}],
        [{"value": [], "nextLink": "/subscriptions/s/x"}],
    ],
)
async def test_pages_that_cannot_be_followed_are_truncated(pages: list[dict[str, Any]]) -> None:
    with ArmStandIn(ESTATE, faults=_pages(pages)) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(RULES)
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.TRUNCATED


async def test_a_body_is_sent_where_the_action_has_one() -> None:
    body = (
        '{"destinationIPAddress":"198.51.100.7","targetResourceId":"'
        + ESTATE.properties(ESTATE.site.sentinel)["virtualMachine"]["id"]
        + '","sourceIPAddress":"10.0.0.4"}'
    )
    routes_question = Question(
        "azure", "post", "Microsoft.Network/networkWatchers", ESTATE.site.watcher, "2025-05-01", "nextHop", body
    )
    with ArmStandIn(ESTATE) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(routes_question)
    assert answer.problem is None
    assert answer.bodies[0].value["nextHopType"] == "None"

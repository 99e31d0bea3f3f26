"""Lists are followed to their end, and a list whose end was not seen never counts as whole."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from testbed.azure.baseline import sealed_estate
from testbed.azure.estate import Estate
from testbed.azure.faults import (
    DuplicateRows,
    Edit,
    EndlessPages,
    Fault,
    ForeignNextLink,
    NotJson,
    Remove,
    Reset,
    Status,
    Truncate,
)
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import client_of, ids, question
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

KIND = "Microsoft.Network/publicIPAddresses"
HOW_MANY = 25


def _estate() -> tuple[Estate, str, list[str]]:
    """A group with 25 addresses."""
    estate = sealed_estate()
    group = estate.site.node_group
    names = [f"{group}/providers/{KIND}/pip-{number:02}" for number in range(HOW_MANY)]
    for name in names:
        estate.add(name, {"ipAddress": "192.0.2.1"}, location="swedencentral")
    return estate, group, [name.lower() for name in names]


async def test_pages_are_followed_by_the_link_as_it_stands_and_each_row_has_its_page() -> None:
    estate, group, names = _estate()
    with ArmStandIn(estate, page_size=10) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(question("list", KIND, group))
    assert ids(answer) == names
    assert answer.problem is None
    path = f"GET {group}/providers/{KIND}?api-version=2025-05-01"
    assert answer.evidence[0].request == path
    assert [evidence.status for evidence in answer.evidence] == [200, 200, 200]
    assert len({evidence.request for evidence in answer.evidence}) == 3
    assert [body.evidence[0] for body in answer.bodies] == [answer.evidence[number // 10] for number in range(HOW_MANY)]


async def test_evidence_is_the_digest_of_what_was_received() -> None:
    estate, group, _ = _estate()
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(question("get", KIND, f"{group}/providers/{KIND}/pip-00"))
    received = json.dumps(dict(answer.bodies[0].value)).encode()
    assert answer.evidence[0].sha256 == hashlib.sha256(received).hexdigest()


@pytest.mark.parametrize(
    ("action", "reason", "most_requests"),
    [
        (EndlessPages(), UnreadReason.TRUNCATED, 2),
        (ForeignNextLink(), UnreadReason.TRUNCATED, 1),
        (Edit("nextLink", 7), UnreadReason.TRUNCATED, 1),
        (Edit("nextLink", {"href": "/x"}), UnreadReason.TRUNCATED, 1),
        (Edit("nextLink", "no link at all"), UnreadReason.TRUNCATED, 1),
        (Remove("value"), UnreadReason.UNREADABLE, 1),
        (Edit("value", None), UnreadReason.UNREADABLE, 1),
        (Edit("value", {"0": {}}), UnreadReason.UNREADABLE, 1),
        (Edit("value.3", 7), UnreadReason.UNREADABLE, 3),
        (Edit("value.3.id", 7), UnreadReason.UNREADABLE, 3),
        (Edit("value.3.id", ""), UnreadReason.UNREADABLE, 3),
        (Remove("value.3.id"), UnreadReason.UNREADABLE, 3),
    ],
)
async def test_a_list_whose_pages_are_not_right_is_never_whole(
    action: Any, reason: UnreadReason, most_requests: int
) -> None:
    estate, group, _ = _estate()
    with ArmStandIn(estate, page_size=10, faults=[Fault(action, path="publicIPAddresses")]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(question("list", KIND, group))
    assert answer.problem is not None
    assert answer.problem.reason is reason
    assert answer.problem.permission == f"{KIND}/read"
    assert len(arm.requests) <= most_requests


async def test_a_row_that_comes_twice_counts_once() -> None:
    estate, group, names = _estate()
    with ArmStandIn(estate, page_size=10, faults=[Fault(DuplicateRows(), path="publicIPAddresses")]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(question("list", KIND, group))
    assert ids(answer) == names


async def test_two_rows_of_one_id_that_differ_are_both_kept() -> None:
    estate, group, names = _estate()
    twin = {**estate[names[0]], "properties": {"ipAddress": "192.0.2.99"}}
    with ArmStandIn(estate, faults=[Fault(Edit("value.1", twin), path="publicIPAddresses")]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(question("list", KIND, group))
    assert ids(answer)[:2] == [names[0], names[0]]


@pytest.mark.parametrize("action", [Status(503), Reset(), Truncate(), NotJson()])
async def test_pages_that_came_are_kept_beside_the_problem_of_the_one_that_did_not(action: Any) -> None:
    estate, group, names = _estate()
    with ArmStandIn(estate, page_size=10, faults=[Fault(action, path="publicIPAddresses", skip=2)]) as arm:
        async with client_of(arm, retry_budget=10) as bench:
            answer = await bench.answer(question("list", KIND, group))
    assert ids(answer) == names[:20]
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.UNAVAILABLE


async def test_a_list_that_goes_on_for_ever_with_nothing_new_ends() -> None:
    estate, group, _ = _estate()
    with ArmStandIn(estate, page_size=10) as arm:
        link = f"{arm.url}{group}/providers/{KIND}?api-version=2025-05-01&%24skiptoken="
        for number in range(100):
            fault = Edit("nextLink", f"{link}&page={number}")
            arm.inject(Fault(fault, path=f"page={number - 1}$" if number else "publicIPAddresses", times=1))
        async with client_of(arm) as bench:
            answer = await bench.answer(question("list", KIND, group))
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.TRUNCATED
    assert len(arm.requests) < 40


async def test_gateways_are_looked_for_in_every_group_of_a_subscription() -> None:
    kind = "Microsoft.Network/virtualNetworkGateways"
    estate, group, _ = _estate()
    gateway = estate.add(f"{group}/providers/{kind}/vpn", {}, location="swedencentral")
    subscription = "/".join(group.split("/")[:3])
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(question("list", kind, subscription))
            assert ids(answer) == [gateway.lower()]
            assert answer.problem is None
    estate.deny(group, f"{kind}/read")
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(question("list", kind, subscription))
    assert answer.problem is not None
    assert (answer.problem.reason, answer.problem.permission) == (UnreadReason.FORBIDDEN, f"{kind}/read")

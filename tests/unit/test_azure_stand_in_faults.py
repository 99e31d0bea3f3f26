"""What the stand-in can break, and how much it lets through: every fault shows, and goes away again."""

from __future__ import annotations

import json
import time

import httpx
import pytest

from testbed.azure.baseline import sealed_estate
from testbed.azure.baseline.layout import WORKLOAD
from testbed.azure.faults import (
    DuplicateRows,
    Edit,
    EndlessPages,
    Fault,
    ForeignNextLink,
    NotJson,
    Remove,
    Reset,
    Slow,
    Status,
    Truncate,
)
from testbed.azure.quota import Meter, Quota
from testbed.azure.refusals import Refusal
from tests.fakes.clocks import HandClock
from tests.sampled_groups import AZURE_STAND_IN
from tests.unit.azure_stand_in import calling, code_of

pytestmark = AZURE_STAND_IN

NICS = f"/subscriptions/{WORKLOAD}/providers/Microsoft.Network/networkInterfaces"


@pytest.mark.parametrize("status", [403, 404, 429, 500, 502, 503])
def test_a_status_is_given_to_so_many_requests(status: int) -> None:
    estate = sealed_estate()
    with calling(estate, faults=[Fault(Status(status, retry_after=7), path="/subnets/", times=2)]) as caller:
        answers = [caller.get(estate.site.gpu_subnet) for _ in range(3)]
        other = caller.get(estate.site.route_table)

    assert [answer.status_code for answer in answers] == [status, status, 200]
    assert answers[0].headers["Retry-After"] == "7"
    assert other.status_code == 200


def test_fault_can_begin_later_and_be_lifted() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        fault = caller.arm.inject(Fault(Status(500), skip=1))
        statuses = [caller.get(estate.site.vnet).status_code for _ in range(2)]
        caller.arm.lift(fault)
        statuses.append(caller.get(estate.site.vnet).status_code)

    assert statuses == [200, 500, 200]
    assert fault.hits == 1


def test_body_breaks_off_or_is_no_json() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        caller.arm.inject(Fault(Truncate(), path="/subnets/"))
        caller.arm.inject(Fault(NotJson(), path="/routeTables/"))
        short, page = caller.get(estate.site.gpu_subnet), caller.get(estate.site.route_table)

    assert (short.status_code, page.status_code) == (200, 200)
    for answer in (short, page):
        with pytest.raises(json.JSONDecodeError):
            answer.json()


def test_connection_is_reset_in_the_middle_of_the_body() -> None:
    estate = sealed_estate()
    with calling(estate, faults=[Fault(Reset(), times=1)]) as caller:
        with pytest.raises(httpx.TransportError):
            caller.get(estate.site.vnet)
        assert caller.get(estate.site.vnet).status_code == 200


def test_pages_never_end_or_lead_elsewhere() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        fault = caller.arm.inject(Fault(EndlessPages()))
        link = caller.get(NICS).json()["nextLink"]
        assert caller.client.get(link).json()["nextLink"] == link
        caller.arm.lift(fault)
        caller.arm.inject(Fault(ForeignNextLink("https://elsewhere.invalid")))
        assert caller.get(NICS).json()["nextLink"].startswith("https://elsewhere.invalid/")


@pytest.mark.parametrize(
    ("action", "path", "expected"),
    [
        (Edit("properties.enableIPForwarding", "yes"), "nic-sentinel", "yes"),
        (Edit("properties.enableIPForwarding", None), "nic-sentinel", None),
        (Edit("properties.enableIPForwarding", {}), "nic-sentinel", {}),
        (Remove("properties.enableIPForwarding"), "nic-sentinel", "absent"),
    ],
)
def test_fields_can_be_of_any_kind_or_gone(action: Edit | Remove, path: str, expected: object) -> None:
    estate = sealed_estate()
    with calling(estate, faults=[Fault(action, path=path)]) as caller:
        properties = caller.get(estate.site.sentinel).json()["properties"]

    assert properties.get("enableIPForwarding", "absent") == expected
    assert estate.properties(estate.site.sentinel)["enableIPForwarding"] is False


def test_lists_can_be_empty_null_doubled_or_nameless() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:

        def listed(action: Edit | Remove | DuplicateRows) -> object:
            caller.arm.lift()
            caller.arm.inject(Fault(action))
            return caller.get(NICS).json()

        assert listed(Edit("value", [])) == {"value": []}
        assert listed(Edit("value", None)) == {"value": None}
        assert listed(Remove("value")) == {}
        rows = listed(Edit("value.*.properties.ipConfigurations", 7))["value"]  # type: ignore[index]
        assert {row["properties"]["ipConfigurations"] for row in rows} == {7}
        doubled = [row["id"] for row in listed(DuplicateRows())["value"]]  # type: ignore[index]
        assert len(doubled) == 2 * len(set(doubled))


def test_slow_answer_takes_its_time() -> None:
    estate = sealed_estate()
    with calling(estate, faults=[Fault(Slow(0.2), times=1)]) as caller:
        began = time.monotonic()
        caller.get(estate.site.vnet)
        assert time.monotonic() - began >= 0.2


def test_bucket_empties_per_subscription_and_refills() -> None:
    clock = HandClock(100.0)
    meter = Meter(Quota(reads=3, reads_per_second=2), clock.monotonic)

    left = [meter.arm("GET", "a")["x-ms-ratelimit-remaining-subscription-reads"] for _ in range(3)]
    with pytest.raises(Refusal) as refused:
        meter.arm("GET", "A")
    meter.arm("GET", "b")
    clock.seconds += 0.5
    meter.arm("GET", "a")

    assert left == ["2", "1", "0"]
    assert (refused.value.status, refused.value.headers["Retry-After"]) == (429, "1")


def test_graph_refuses_the_sixteenth_query_of_a_window() -> None:
    clock = HandClock(100.0)
    meter = Meter(Quota(), clock.monotonic)

    remaining = [meter.graph()["x-ms-user-quota-remaining"] for _ in range(15)]
    with pytest.raises(Refusal) as refused:
        meter.graph()
    clock.seconds += 5
    meter.graph()

    assert remaining == [str(number) for number in range(14, -1, -1)]
    assert refused.value.status == 429
    assert refused.value.headers["x-ms-user-quota-resets-after"] == "00:00:05"


def test_caller_over_its_quota_gets_429_over_http() -> None:
    estate = sealed_estate()
    with calling(estate, quota=Quota(reads=2, reads_per_second=0.01)) as caller:
        answers = [caller.get(estate.site.vnet) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert code_of(answers[2]) == (429, "TooManyRequests")
    assert int(answers[2].headers["Retry-After"]) >= 1

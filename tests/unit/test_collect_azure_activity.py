"""The activity log: asked by the one documented filter of a group, read to its end, and cut down to its networks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hermetic.audit.estate.azure.activity import ActivityLog
from hermetic.audit.estate.estate import Estate as AuditedEstate
from hermetic.audit.estate.questions import Answer, Question, UnreadReason
from testbed.azure.baseline import sealed_estate
from testbed.azure.estate import Estate
from testbed.azure.faults import Action, Edit, EndlessPages, Fault, ForeignNextLink, NotJson
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import client_of
from tests.fakes.clocks import START
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

WRITE = "Microsoft.Network/virtualNetworks/subnets/write"


def group_of(estate: Estate) -> str:
    return estate.site.vnet.partition("/providers/")[0]


def log_of(estate: Estate) -> Question:
    return Question("azure", "get", ActivityLog.TYPE, group_of(estate), ActivityLog.API_VERSION)


async def asked(estate: Estate, **options: Any) -> tuple[Answer, list[str]]:
    with ArmStandIn(estate, **options) as arm:
        async with client_of(arm) as bench:
            question = log_of(estate)
            answer = (await bench.answerer.answers([question]))[question]
            return answer, [request.query.get("$filter", "") for request in arm.requests]


def read(estate: Estate, answer: Answer) -> ActivityLog:
    activity_log = AuditedEstate(estate.cluster, ["azure"], {log_of(estate): answer}).one(ActivityLog, group_of(estate))
    assert activity_log.value is not None
    return activity_log.value


async def test_every_page_is_read_and_only_networks_are_kept() -> None:
    estate = sealed_estate()
    for hour in range(1, 6):
        at = (START - timedelta(hours=hour)).isoformat()
        estate.log(estate.site.gpu_subnet, WRITE, at)
        estate.log(estate.site.route_table, "Microsoft.Network/routeTables/write", at)
    estate.log(estate.site.gpu_subnet, WRITE, (START - timedelta(days=95)).isoformat())
    estate.log(estate.site.gpu_scale_set, "Microsoft.Compute/virtualMachineScaleSets/write", START.isoformat())
    answer, filters = await asked(estate, page_size=3)
    log = read(estate, answer)
    assert (log.count, len(log.events), len(answer.evidence)) == (10, 5, 4)
    assert log.last_write(estate.site.gpu_subnet, estate.site.vnet) == START - timedelta(hours=1)
    assert log.last_write(estate.site.system_subnet) is None
    assert log.start == START - timedelta(days=89)
    name = group_of(estate).rpartition("/")[2]
    assert all(
        filter_text.startswith("eventTimestamp ge '") and filter_text.endswith(f"resourceGroupName eq '{name}'")
        for filter_text in filters
    )


async def test_an_empty_log_is_an_answer_with_no_event() -> None:
    estate = sealed_estate()
    answer, _ = await asked(estate)
    assert (answer.problem, read(estate, answer).count) == (None, 0)


async def test_a_log_that_is_denied_names_the_permission() -> None:
    estate = sealed_estate()
    estate.deny(f"/subscriptions/{estate.cluster.split('/')[2]}", "Microsoft.Insights/eventtypes/values/read")
    answer, _ = await asked(estate)
    assert answer.problem is not None
    assert (answer.problem.reason, answer.bodies) == (UnreadReason.FORBIDDEN, ())
    assert answer.problem.permission == "Microsoft.Insights/eventtypes/values/read"


@pytest.mark.parametrize(
    "fault",
    [
        Edit("value.0.eventTimestamp", None),
        Edit("value.0.operationName", None),
        Edit("value.0.operationName.value", 7),
        Edit("value.0.resourceId", None),
        Edit("value.0.id", None),
        Edit("value", None),
        ForeignNextLink(),
        EndlessPages(),
        NotJson(),
    ],
)
async def test_a_log_that_is_not_whole_is_no_log(fault: Action) -> None:
    estate = sealed_estate()
    for hour in (2, 3):
        estate.log(estate.site.gpu_subnet, WRITE, (START - timedelta(hours=hour)).isoformat())
    answer, _ = await asked(estate, faults=[Fault(fault, path="/eventtypes/")])
    assert answer.bodies == ()
    assert answer.problem is not None

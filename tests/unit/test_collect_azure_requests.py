"""What an audit of one cluster asks of Azure: nothing twice, and little more than one request a question."""

from __future__ import annotations

from collections import Counter

from testbed.azure.baseline import sealed_estate
from testbed.azure.operations import is_poll
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited
from tests.sampled_groups import AZURE_AUDITS
from tests.stand_in_answers import answers_of

pytestmark = AZURE_AUDITS

MOST_BEYOND = 60


async def test_a_plain_cluster_costs_little_more_than_a_request_for_each_question() -> None:
    estate = sealed_estate()
    with ArmStandIn(estate) as arm:
        await audited(arm)
        requests = [requests for requests in arm.requests if not is_poll(requests.path)]
    again = Counter(
        (request.method, request.path.lower(), str(sorted(request.query.items())), request.body) for request in requests
    )
    assert {request: count for request, count in again.items() if count > 1} == {}
    assert len(arm.requests) <= len(answers_of(estate)) + MOST_BEYOND

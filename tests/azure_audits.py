"""A whole audit of an estate, quickly: everything but the socket, and waiting takes no time.

Requests and answers are those of the stand-in for Azure and of the product's own client; tests of the collector and of
the command line take the same way over real sockets.
"""

from __future__ import annotations

import json

import httpx

from hermetic.audit.findings import Finding
from hermetic.audit.run import Evaluation
from hermetic.collect.azure.answering import AzureAnswerer, How
from hermetic.collect.azure.client import ArmClient, Caller
from hermetic.collect.azure.clouds import cloud_of
from hermetic.collect.azure.credentials import GivenToken
from hermetic.collect.azure.rate_limits import Pacing, RetryBudget
from hermetic.collect.azure.transport import CONNECTIONS, ArmTransport
from hermetic.collect.collecting import collected
from testbed.azure.answering import Desk
from testbed.azure.estate import Estate as AzureEstate
from testbed.azure.requests import ArmRequest
from tests.azure_collecting import policy_of
from tests.fakes.clocks import SleepingClock
from tests.fakes.progress import Progress

ENDPOINT, TOKEN = "http://127.0.0.1:1", "a-token"


class Counter(httpx.AsyncBaseTransport):
    """Hands requests straight to the desk of the stand-in."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        query = dict(request.url.params)
        asked = ArmRequest(
            request.method,
            request.url.path,
            query,
            {name.title(): value for name, value in request.headers.items()},
            body=request.read(),
        )
        answer = self._desk.answer(asked, [], TOKEN)
        content = b"" if answer.body is None else json.dumps(answer.body).encode()
        headers = {**answer.headers, "Content-Type": "application/json; charset=utf-8"}
        return httpx.Response(answer.status, headers=headers, content=content)


async def audited(estate: AzureEstate, discovery: How) -> tuple[Finding, ...]:
    """The findings about an estate, before exceptions."""
    desk = Desk(estate, 100, None, 1, 1)
    desk.listen_at(ENDPOINT)
    clock, progress, cloud, policy = SleepingClock(), Progress(), cloud_of(ENDPOINT), policy_of(estate)
    pacing = Pacing(clock, clock.sleep, connections=CONNECTIONS, reads_per_second=25.0, waits=lambda _: None)
    async with httpx.AsyncClient(transport=Counter(desk), follow_redirects=False) as http:
        caller, patience = Caller(GivenToken(TOKEN)), RetryBudget(120.0, lambda: 0.5)
        client = ArmClient(
            ArmTransport(cloud, http), caller, pacing, patience, clock=clock, sleep=clock.sleep, progress=progress
        )
        azure = AzureAnswerer(client, estate.cluster, discovery)
        _, findings = await collected(estate.cluster, {"azure": azure}, Evaluation(policy).findings, progress)
    return findings

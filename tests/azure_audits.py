"""A whole audit of an estate, quickly: everything but the socket, and waiting takes no time.

Requests and answers are those of the stand-in for Azure and of the product's own client; tests of the collector and of
the command line take the same way over real sockets.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import httpx

from hermetic.audit.estate.estate import Estate
from hermetic.audit.model.findings import Finding
from hermetic.audit.result.run import Evaluation
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

T = TypeVar("T")

ENDPOINT, TOKEN = "http://127.0.0.1:1", "a-token"


class Counter(httpx.AsyncBaseTransport):
    """Hands requests straight to the desk of the stand-in; `requests` takes each of them."""

    def __init__(self, desk: Desk, requests: list[ArmRequest] | None = None) -> None:
        self._desk = desk
        self._requests = [] if requests is None else requests

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        query = dict(request.url.params)
        arm_request = ArmRequest(
            request.method,
            request.url.path,
            query,
            {name.title(): value for name, value in request.headers.items()},
            body=request.read(),
        )
        self._requests.append(arm_request)
        answer = self._desk.answer(arm_request, [], TOKEN)
        content = b"" if answer.body is None else json.dumps(answer.body).encode()
        headers = {**answer.headers, "Content-Type": "application/json; charset=utf-8"}
        return httpx.Response(answer.status, headers=headers, content=content)


async def audited(estate: AzureEstate, discovery: How, requests: list[ArmRequest] | None = None) -> tuple[Finding, ...]:
    """The findings about an estate, before exceptions; `requests` takes what Azure was asked."""
    return await evaluated(estate, discovery, Evaluation(policy_of(estate)).findings, requests)


async def evaluated(
    estate: AzureEstate, discovery: How, evaluate: Callable[[Estate], T], requests: list[ArmRequest] | None = None
) -> T:
    """The result of `evaluate` for an estate of which every question that it asks is answered."""
    async with client_of_desk(estate, requests) as client:
        azure = AzureAnswerer(client, estate.cluster, discovery)
        _, result = await collected(estate.cluster, {"azure": azure}, evaluate, client.progress)
    return result


@asynccontextmanager
async def client_of_desk(estate: AzureEstate, requests: list[ArmRequest] | None) -> AsyncIterator[ArmClient]:
    """The product's client of the stand-in for this estate; `requests` takes what Azure was asked."""
    desk = Desk(estate, 100, None, 1, 1)
    desk.listen_at(ENDPOINT)
    clock, progress, cloud = SleepingClock(), Progress(), cloud_of(ENDPOINT)
    pacing = Pacing(clock, clock.sleep, connections=CONNECTIONS, reads_per_second=25.0, waits=lambda _: None)
    async with httpx.AsyncClient(transport=Counter(desk, requests), follow_redirects=False) as http:
        caller, patience = Caller(GivenToken(TOKEN)), RetryBudget(120.0, lambda: 0.5)
        yield ArmClient(
            ArmTransport(cloud, http), caller, pacing, patience, clock=clock, sleep=clock.sleep, progress=progress
        )

"""From a request to its answer: who asks, how much, and which part of the stand-in knows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from testbed.azure import refusals
from testbed.azure.actions import act
from testbed.azure.estate import Estate
from testbed.azure.faults import Action, EndsFailed, NeverEnds, Status, spoil
from testbed.azure.graph import ResourceGraph
from testbed.azure.ids import subscription_of
from testbed.azure.operations import Operations, is_poll
from testbed.azure.quota import Meter, Quota
from testbed.azure.reads import Reader
from testbed.azure.refusals import Refusal
from testbed.azure.requests import ArmRequest

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """Status, JSON body (None: empty) and headers."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


class Desk:
    """Answers requests for the estate it holds at the moment."""

    def __init__(self, estate: Estate, page_size: int, quota: Quota | None, polls: int, retry_after: int) -> None:
        self.estate = estate
        self._page_size = page_size
        self._meter = Meter(quota)
        self._graph = ResourceGraph()
        self._polls, self._retry_after = polls, retry_after

    def listen_at(self, url: str) -> None:
        self._url = url
        self._operations = Operations(url, self._polls, self._retry_after)

    def answer(self, request: ArmRequest, faults: list[Action], token: str | None) -> Answer:
        """token: what the caller must show; None when it has expired."""
        try:
            _check_token(request, token)
            _check_statuses(faults)
            headers = self._metered(request)
            answer = self._known(request, faults)
        except Refusal as refusal:
            return Answer(refusal.status, refusal.body(), refusal.headers)
        body = answer.body
        for fault in faults:
            body = spoil(body, fault, f"{self._url}{_target(request)}") if isinstance(body, dict) else body
        return Answer(answer.status, body, {**headers, **answer.headers})

    def _metered(self, request: ArmRequest) -> dict[str, str]:
        if request.is_graph:
            return self._meter.graph()
        return self._meter.arm(request.method, subscription_of(request.path))

    def _known(self, request: ArmRequest, faults: list[Action]) -> Answer:
        if not request.is_allowed:
            raise refusals.read_only(request.method)
        if request.is_graph:
            return Answer(200, self._graph.query(self.estate, request.api_version, _json(request)))
        if is_poll(request.path):
            status, body, headers = self._operations.poll(request.path, _query(request))
            return Answer(status, body, headers)
        reader = Reader(self.estate, self._url, self._page_size)
        if request.method == "GET":
            return Answer(200, reader.get(request.path, request.query))
        return self._act(reader, request, faults)

    def _act(self, reader: Reader, request: ArmRequest, faults: list[Action]) -> Answer:
        result = act(reader, request.path, request.query, _json(request))
        if result is None:
            raise refusals.read_only(request.method)
        if not result.long_running:
            return Answer(200, result.value)
        failure = next((fault for fault in faults if isinstance(fault, NeverEnds | EndsFailed)), None)
        headers = self._operations.start(result.scope, request.api_version, result.value, failure)
        return Answer(202, None, headers)


def _check_token(request: ArmRequest, token: str | None) -> None:
    shown = request.headers.get("Authorization", "")
    if not shown:
        raise refusals.no_token()
    if token is None:
        raise refusals.expired_token()
    if shown != f"Bearer {token}":
        raise refusals.wrong_token()


def _check_statuses(faults: list[Action]) -> None:
    for fault in faults:
        if isinstance(fault, Status):
            headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            raise Refusal(fault.status, fault.code, "injected by the stand-in", headers)


def _json(request: ArmRequest) -> Body:
    try:
        body = json.loads(request.body or b"{}")
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise refusals.bad_request("InvalidRequestContent", "The request content is not a JSON object.")
    return body


def _query(request: ArmRequest) -> str:
    return "&".join(f"{name}={value}" for name, value in request.query.items())


def _target(request: ArmRequest) -> str:
    return f"{request.path}?{_query(request)}"

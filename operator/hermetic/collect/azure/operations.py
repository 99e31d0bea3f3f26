"""POST actions that read: some answer at once, some are accepted and polled, two are paged by a token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hermetic.audit.estate.questions import Answer, Body, Problem, UnreadReason
from hermetic.audit.model.findings import Evidence
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.replies import ArmReply, Ask, wait_asked

LONGEST_ACTION_SECONDS = 60.0
FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 0.1, 2.0
"""Least seconds between polls, doubling; for an action that gives no Retry-After."""
MOST_PAGES = 200

_SUCCEEDED = "succeeded"
_ENDED = frozenset({_SUCCEEDED, "failed", "canceled", "cancelled"})


async def act(client: ArmClient, ask: Ask) -> Answer:
    """The result of an action as one body; pages of it are put together in its `value`."""
    result: dict[str, Any] | None = None
    evidence: tuple[Evidence, ...] = ()
    tokens: set[str] = set()
    while True:
        reply, exchanges = await _ended(client, ask)
        evidence += exchanges
        if reply.problem is not None:
            return _answer(result, evidence, reply.problem)
        result = _joined(result, reply.value)
        token = reply.value.get("skipToken")
        if token is None or token == "":
            return _answer(result, evidence, _unread(reply))
        if not isinstance(token, str) or token in tokens or len(tokens) >= MOST_PAGES:
            why = "the pages lead back to themselves, or have no end"
            return _answer(result, evidence, reply.but(UnreadReason.TRUNCATED, why).problem)
        tokens.add(token)
        ask = ask.to(ask.target, {**(ask.body or {}), "skipToken": token})


def _unread(reply: ArmReply) -> Problem | None:
    """The reply as a problem: how the next page of this POST is requested is not documented."""
    if reply.value.get("nextLink"):
        return reply.but(UnreadReason.TRUNCATED, "there are further pages, and no documented way to read them").problem
    return None


def _joined(result: dict[str, Any] | None, page: Mapping[str, Any]) -> dict[str, Any]:
    rows = page.get("value")
    if result is None or not isinstance(rows, list) or not isinstance(result.get("value"), list):
        return dict(page)
    return {**page, "value": [*result["value"], *rows]}


def _answer(result: dict[str, Any] | None, evidence: tuple[Evidence, ...], problem: Problem | None) -> Answer:
    return Answer((Body(result, evidence),) if result is not None else (), evidence, problem)


async def _ended(client: ArmClient, ask: Ask) -> tuple[ArmReply, tuple[Evidence, ...]]:
    """The reply with the result, and its evidence: the action itself and the last poll."""
    until = client.clock.monotonic() + LONGEST_ACTION_SECONDS
    accepted = await client.ask(ask)
    if accepted.problem is not None or accepted.status != 202:
        return accepted, accepted.evidence
    reply = await _polled(client, accepted, until)
    return reply, accepted.evidence if reply is accepted else (*accepted.evidence, *reply.evidence)


async def _polled(client: ArmClient, accepted: ArmReply, until: float) -> ArmReply:
    """Poll the state of the action until it ends, then read its result."""
    state, location = (_link(client, accepted, name) for name in ("azure-asyncoperation", "location"))
    if not state and not location:
        return accepted.but(UnreadReason.UNREADABLE, "accepted, but without a place on this host to ask for the result")
    if not state:
        return await _asked_while(client, accepted, location, until, _is_accepted)
    reply = await _asked_while(client, accepted, state, until, _is_running)
    if reply.problem is not None:
        return reply
    if _state(reply) != _SUCCEEDED:
        return reply.but(UnreadReason.REFUSED, f"the action ended as {_state(reply)}")
    if not location:
        return _within(reply)
    return await _asked_while(client, reply, location, until, _is_accepted)


async def _asked_while(
    client: ArmClient, last: ArmReply, url: str, until: float, is_pending: Callable[[ArmReply], bool]
) -> ArmReply:
    """The first reply that is not pending, or has a problem. Waits before each poll as the previous answer asks."""
    reply, shortest = last, FIRST_POLL_SECONDS
    while True:
        requested_wait = wait_asked(reply.headers, client.clock.now())
        pause = max(requested_wait if requested_wait is not None else 0.0, shortest)
        shortest = min(shortest * 2, LONGEST_POLL_SECONDS)
        if client.clock.monotonic() + pause > until:
            return reply.but(UnreadReason.UNAVAILABLE, f"has not ended within {LONGEST_ACTION_SECONDS:.0f} s")
        await client.sleep(pause)
        reply = await client.ask(last.ask.to(url), until=until)
        if reply.problem is not None or not is_pending(reply):
            return reply


def _is_accepted(reply: ArmReply) -> bool:
    return reply.status == 202


def _is_running(reply: ArmReply) -> bool:
    return _state(reply) not in _ENDED


def _state(reply: ArmReply) -> str:
    return str(reply.value.get("status", "")).lower() if isinstance(reply.value, Mapping) else ""


def _within(reply: ArmReply) -> ArmReply:
    """The result, where it comes with the state."""
    result = reply.value.get("properties")
    if not isinstance(result, Mapping):
        return reply.but(UnreadReason.UNREADABLE, "the action succeeded, but its result is not in the answer")
    return ArmReply(reply.ask, reply.status, reply.headers, dict(result), reply.sha256)


def _link(client: ArmClient, reply: ArmReply, header: str) -> str:
    return client.wire.local(reply.headers[header]) if reply.headers.get(header) else ""

"""Providers that a subscription has not registered: nothing of their types is in it.

A list of such a type may be refused, though there is only nothing to list. Azure wants a provider registered before its
types are used, and lets nobody unregister it while something of them is left; so the registration itself tells.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from hermetic.audit.estate.arm_ids import subscription_of
from hermetic.audit.estate.questions import Answer, Question, Trouble
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.exchange import Reply
from hermetic.collect.azure.pages import Listed
from hermetic.collect.azure.paths import provider_in

_REFUSALS = frozenset({"missingsubscriptionregistration", "subscriptionnotregistered"})
_NOTHING_THERE = frozenset({"notregistered", "unregistered"})
"""Every other state leaves it open: while one is registering or unregistering there may be something."""


class Registrations:
    """What subscriptions say of providers; each is asked for once, and only after a refusal."""

    def __init__(self, client: ArmClient) -> None:
        self._client = client
        self._asking: dict[tuple[str, str], asyncio.Lock] = {}
        self._replies: dict[tuple[str, str], Reply] = {}

    async def weighed(self, question: Question, listed: Listed) -> Answer:
        """What a list comes to: nothing, where it was refused because the provider is not registered."""
        if not _asks_for_registration(question, listed):
            return listed.answer
        namespace = question.kind.partition("/")[0]
        reply = await self._of(subscription_of(question.target), namespace)
        problem = None if _is_unregistered(reply, namespace) else listed.problem
        return Answer((), (*listed.evidence, *reply.evidence), problem)

    async def _of(self, subscription: str, namespace: str) -> Reply:
        key = subscription, namespace.lower()
        async with self._asking.setdefault(key, asyncio.Lock()):
            if key not in self._replies:
                self._replies[key] = await self._client.ask(provider_in(subscription, namespace))
            return self._replies[key]


def _asks_for_registration(question: Question, listed: Listed) -> bool:
    """Only for a list of resources, and only where nothing of it came: what lies below one shows that it is in use."""
    is_of_resources = question.kind.count("/") == 1 and bool(subscription_of(question.target))
    is_refused = listed.problem is not None and listed.problem.trouble is Trouble.REFUSED and not listed.bodies
    return is_of_resources and is_refused and listed.refusal.lower() in _REFUSALS


def _is_unregistered(reply: Reply, namespace: str) -> bool:
    if reply.problem is not None or reply.status != 200 or not isinstance(reply.value, Mapping):
        return False
    named, state = reply.value.get("namespace"), reply.value.get("registrationState")
    is_ours = isinstance(named, str) and named.lower() == namespace.lower()
    return is_ours and isinstance(state, str) and state.lower() in _NOTHING_THERE

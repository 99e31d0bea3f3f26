"""Types that a subscription cannot have: their provider is not registered, or the cloud does not offer them.

A list of such a type is refused, although it is empty. Azure requires a provider to be registered before its types are
used, and does not unregister it while resources of them exist. A region or a sovereign cloud that lags behind leaves a
type out of the provider's `resourceTypes`. So the provider's own record decides, never the refusal alone: the same
error also refuses an api-version that a cloud does not know for a type that it has.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from hermetic.audit.estate.arm_ids import subscription_of
from hermetic.audit.estate.questions import Answer, Question, UnreadReason
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.pages import PagedList
from hermetic.collect.azure.paths import provider_in
from hermetic.collect.azure.replies import ArmReply

_NOT_REGISTERED = frozenset({"missingsubscriptionregistration", "subscriptionnotregistered"})
_NOT_OFFERED = frozenset(
    {
        "invalidresourcenamespace",
        "invalidresourcetype",
        "noregisteredproviderfound",
        "subscriptionnotregisteredforfeature",
    }
)
_VERSIONS = re.compile(r"supported api-versions are '[^']")
_NOTHING_THERE = frozenset({"notregistered", "unregistered"})
"""In every other state (registering, unregistering) there may be resources."""


class Registrations:
    """Provider registrations by subscription; each is read once, and only after a refused list."""

    def __init__(self, client: ArmClient) -> None:
        self._client = client
        self._asking: dict[tuple[str, str], asyncio.Lock] = {}
        self._replies: dict[tuple[str, str], ArmReply] = {}

    async def weighed(self, question: Question, listed: PagedList) -> Answer:
        """The answer of a list; an empty one, where the provider's record proves that there can be no resources."""
        if not _asks_for_registration(question, listed):
            return listed.answer
        namespace = question.kind.partition("/")[0]
        reply = await self._of(subscription_of(question.target), namespace)
        holds_none = not _names_versions(listed) and _can_hold_none(reply, question.kind, listed.refusal.lower())
        problem = None if holds_none else listed.problem
        return Answer((), (*listed.evidence, *reply.evidence), problem)

    async def _of(self, subscription: str, namespace: str) -> ArmReply:
        key = subscription, namespace.lower()
        async with self._asking.setdefault(key, asyncio.Lock()):
            if key not in self._replies:
                self._replies[key] = await self._client.ask(provider_in(subscription, namespace))
            return self._replies[key]


def _asks_for_registration(question: Question, listed: PagedList) -> bool:
    """Whether to read the provider: only for a list, and only if no row was read.

    A parent resource proves that its provider is in use, but the child's type may be one that is not offered.
    """
    refusals = _NOT_REGISTERED | _NOT_OFFERED if question.kind.count("/") == 1 else _NOT_OFFERED
    is_refused = listed.problem is not None and listed.problem.reason is UnreadReason.REFUSED and not listed.bodies
    return bool(subscription_of(question.target)) and is_refused and listed.refusal.lower() in refusals


def _names_versions(listed: PagedList) -> bool:
    """Whether the refusal names supported api-versions: then the type exists."""
    return listed.problem is not None and _VERSIONS.search(listed.problem.detail) is not None


def _can_hold_none(reply: ArmReply, kind: str, refusal: str) -> bool:
    if refusal == "invalidresourcenamespace" and reply.code.lower() == refusal:
        return True  # the cloud does not know the provider: this is the answer for the provider itself
    namespace, _, resource_type = kind.partition("/")
    if not _is_about(reply, namespace):
        return False
    state = reply.value.get("registrationState")
    if "/" not in resource_type and isinstance(state, str) and state.lower() in _NOTHING_THERE:
        return True
    return refusal in _NOT_OFFERED and _lacks(reply.value.get("resourceTypes"), resource_type)


def _is_about(reply: ArmReply, namespace: str) -> bool:
    if reply.problem is not None or reply.status != 200 or not isinstance(reply.value, Mapping):
        return False
    named = reply.value.get("namespace")
    return isinstance(named, str) and named.lower() == namespace.lower()


def _lacks(types: Any, resource_type: str) -> bool:
    """Whether a complete and readable list of types lacks this one."""
    if not isinstance(types, list) or not types:
        return False
    names = [entry.get("resourceType") if isinstance(entry, Mapping) else None for entry in types]
    listed_names = {str(name).lower() for name in names}
    return (
        all(isinstance(name, str) for name in names)
        and resource_type.lower() not in listed_names
        and _lists_siblings(resource_type, listed_names)
    )


def _lists_siblings(resource_type: str, listed_names: set[str]) -> bool:
    """Whether the list names sibling types of a child type, and so covers it; top-level types are always listed."""
    above, _, _ = resource_type.lower().rpartition("/")
    return not above or any(name.startswith(f"{above}/") for name in listed_names)

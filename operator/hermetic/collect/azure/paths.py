"""Translates a question into the ARM request that answers it."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from hermetic.audit.estate.arm_ids import group_of, is_arm_id, type_of
from hermetic.audit.estate.questions import Problem, Question, UnreadReason
from hermetic.collect.azure.replies import Ask

RESOURCE_GROUPS = "Microsoft.Resources/subscriptions/resourceGroups"
RESOURCE_GROUPS_VERSION = "2021-04-01"
TENANTS = "Microsoft.Resources/tenants"
"""The only list that is below no subscription."""
PROVIDERS = "Microsoft.Resources/subscriptions/providers"
PROVIDERS_VERSION = "2021-04-01"

WITH_INSTANCE_VIEW = frozenset(
    {
        ("list", "microsoft.compute/virtualmachinescalesets/virtualmachines"),
        ("get", "microsoft.compute/virtualmachines"),
    }
)
"""Types requested with the instance view (what the agent of each VM reports); the answer is larger."""

_KIND = re.compile(r"[A-Za-z][A-Za-z0-9.]*(/[A-Za-z0-9]+)+")
_VERSION = re.compile(r"\d{4}-\d\d-\d\d(-preview)?")
_KEPT = "!$&'()*+,;=:@-._~"
"""Characters that need no escape in a path segment."""


def ask_for(question: Question) -> Ask | Problem:
    """The request of a get, a list or a POST action; a problem where there is none for the question.

    Ids come from answers; an invalid one must not become another request, so it is Unreadable.
    """
    if question.verb == "list" and question.kind.lower() == TENANTS.lower():
        return Ask("GET", f"/tenants?api-version={question.api_version}", question.permission)
    path = _path(question.target)
    if not path or not _KIND.fullmatch(question.kind) or not _VERSION.fullmatch(question.api_version):
        return _unreadable(question, "not an ARM id")
    where = _listed(question.kind, path) if question.verb == "list" else path
    if not where:
        return _unreadable(question, f"{question.kind} cannot be listed there")
    if question.verb == "post":
        target = f"{where}/{quote(question.action, safe='')}?api-version={question.api_version}"
        body = json.loads(question.body) if question.body else _empty_body(question.action)
        return Ask("POST", target, question.permission, body)
    view = "&$expand=instanceView" if (question.verb, question.kind.lower()) in WITH_INSTANCE_VIEW else ""
    return Ask("GET", f"{where}?api-version={question.api_version}{view}", question.permission)


def groups_in(subscription: str) -> Ask:
    """The list of a subscription's resource groups."""
    target = f"{_path(subscription)}/resourceGroups?api-version={RESOURCE_GROUPS_VERSION}"
    return Ask("GET", target, f"{RESOURCE_GROUPS}/read")


def provider_in(subscription: str, namespace: str) -> Ask:
    """The registration of a resource provider in a subscription (a bare id)."""
    target = f"{_path(f'/subscriptions/{subscription}')}/providers/{namespace}?api-version={PROVIDERS_VERSION}"
    return Ask("GET", target, f"{PROVIDERS}/read")


def is_subscription(target: str) -> bool:
    """Whether this is /subscriptions/… and nothing below it."""
    return re.fullmatch(r"/subscriptions/[^/]+/?", target, re.IGNORECASE) is not None


def _path(arm_id: str) -> str:
    """The id as a URL path; "" for an invalid one: dot segments, empty segments, control characters."""
    segments = arm_id.rstrip("/").split("/")[1:]
    if not is_arm_id(arm_id.rstrip("/")) or not arm_id.isprintable():
        return ""
    if any(segment in {"", ".", ".."} or "\\" in segment for segment in segments):
        return ""
    try:
        return "".join(f"/{quote(segment, safe=_KEPT)}" for segment in segments)
    except UnicodeEncodeError:
        return ""


def _listed(kind: str, scope: str) -> str:
    """The list's path: below a parent, in a subscription or group, or attached to a scope; "" for none of these."""
    above, _, last = kind.rpartition("/")
    at = type_of(scope)
    if at and at.lower() == above.lower():
        return f"{scope}/{last}"
    if kind.count("/") != 1 or (not at and not _is_container(scope)):
        return ""
    return f"{scope}/providers/{kind}"


def _is_container(scope: str) -> bool:
    return is_subscription(scope) or group_of(scope) == scope


def _empty_body(action: str) -> dict[str, Any] | None:
    """The body of an action: Network Manager requires an empty object; the others define none."""
    return {} if action.lower().startswith("listnetworkmanagereffective") else None


def _unreadable(question: Question, why: str) -> Problem:
    return Problem(UnreadReason.UNREADABLE, f"{question.verb} {question.kind} at {question.target!r}: {why}")

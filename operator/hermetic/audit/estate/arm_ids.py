"""ARM ids: compared without regard to case, parsed by position."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ID = re.compile(r"^/subscriptions/[^/]+(/.*)?$", re.IGNORECASE)
_SUBSCRIPTION = re.compile(r"^/subscriptions/([^/]+)", re.IGNORECASE)
_GROUP = re.compile(r"^(/subscriptions/[^/]+/resourceGroups/[^/]+)(/|$)", re.IGNORECASE)


def is_arm_id(text: str) -> bool:
    """Whether it starts as an ARM id does."""
    return _ID.match(text) is not None and not text.endswith("/")


def same_id(arm_id: str, other: str) -> bool:
    """Whether both are the same id; ARM ignores case and a trailing slash."""
    return arm_id.rstrip("/").lower() == other.rstrip("/").lower()


def subscription_of(arm_id: str) -> str:
    """The bare subscription id in lower case; "" where there is none."""
    match = _SUBSCRIPTION.match(arm_id)
    return match[1].lower() if match else ""


def group_of(arm_id: str) -> str:
    """/subscriptions/…/resourceGroups/… as written; "" where there is none."""
    match = _GROUP.match(arm_id)
    return match[1] if match else ""


def parent_of(arm_id: str) -> str:
    """The id without its last type and name: the virtual network of a subnet."""
    return arm_id.rsplit("/", 2)[0]


def name_of(arm_id: str) -> str:
    """The last segment."""
    return arm_id.rstrip("/").rsplit("/", 1)[-1]


def type_of(arm_id: str) -> str:
    """The resource type, as written: Microsoft.Network/virtualNetworks/subnets; "" for scopes above resources."""
    start = arm_id.lower().rfind("/providers/")
    if start < 0:
        return ""
    namespace, *segments = arm_id[start + len("/providers/") :].split("/")
    return "/".join((namespace, *segments[::2]))


def owner_of(arm_id: str) -> str:
    """The id without child types and their names: the scale set of an interface of one of its instances."""
    start = arm_id.lower().rfind("/providers/")
    head, tail = arm_id[: start + len("/providers/")], arm_id[start + len("/providers/") :]
    return head + "/".join(tail.split("/")[:3]) if start >= 0 else arm_id


def is_below(arm_id: str, scope: str) -> bool:
    """Whether the resource is in this subscription or group, or is a child of this resource."""
    return arm_id.lower().startswith(scope.rstrip("/").lower() + "/")


def is_in(subnet_ids: Iterable[str], networks: frozenset[str]) -> bool:
    """Whether one of the subnets is in one of the networks (ids in lower case)."""
    return any(parent_of(subnet_id).lower() in networks for subnet_id in subnet_ids)

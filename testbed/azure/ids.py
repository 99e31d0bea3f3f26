"""ARM ids: what their segments say. Pure text; Azure ignores letter case, so callers that compare ids fold it."""

from __future__ import annotations

import re
from dataclasses import dataclass

RESOURCE_GROUP = "Microsoft.Resources/resourceGroups"
SUBSCRIPTION = "Microsoft.Resources/subscriptions"
_PROVIDERS = re.compile("/providers/", re.IGNORECASE)


@dataclass(frozen=True)
class ArmPath:
    """A path below the management endpoint, taken apart.

    scope: what stands before the last `/providers/`. namespace: `Microsoft.Network`, empty where there is none.
    types and names alternate after it; a path with one more type than names is a list.
    """

    scope: str
    namespace: str
    types: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def is_list(self) -> bool:
        return len(self.types) > len(self.names)

    @property
    def type(self) -> str:
        return "/".join((self.namespace, *self.types)) if self.namespace else _container_type(self.scope)


def take_apart(path: str) -> ArmPath:
    """Any path, of a resource or of a list; a trailing slash is nothing."""
    path = path.rstrip("/")
    scope, _, rest = _rpartition(path)
    if not rest:
        return ArmPath(path, "", (), ())
    namespace, *segments = rest.split("/")
    return ArmPath(scope, namespace, tuple(segments[0::2]), tuple(segments[1::2]))


def type_of(identifier: str) -> str:
    """`Microsoft.Network/virtualNetworks/subnets` of a subnet's id, in the id's own letters."""
    return take_apart(identifier).type


def name_of(identifier: str) -> str:
    return identifier.rstrip("/").rpartition("/")[2]


def parent_of(identifier: str) -> str:
    """The resource that a child lies in; for a top resource its scope."""
    path = take_apart(identifier)
    if len(path.types) > 1:
        return identifier.rstrip("/").rsplit("/", 2)[0]
    return path.scope


def subscription_of(identifier: str) -> str:
    """The GUID, empty at tenant scope."""
    parts = identifier.split("/")
    return parts[2] if len(parts) > 2 and parts[1].lower() == "subscriptions" else ""


def group_of(identifier: str) -> str:
    """The resource group's name, empty where there is none."""
    parts = identifier.split("/")
    return parts[4] if len(parts) > 4 and parts[3].lower() == "resourcegroups" else ""


def _rpartition(path: str) -> tuple[str, str, str]:
    """As `str.rpartition` on `/providers/` in any letter case."""
    matches = list(_PROVIDERS.finditer(path))
    if not matches:
        return path, "", ""
    last = matches[-1]
    return path[: last.start()], last.group(), path[last.end() :]


def _container_type(scope: str) -> str:
    return RESOURCE_GROUP if group_of(scope) else SUBSCRIPTION

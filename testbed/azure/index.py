"""Where every resource of an estate is found without reading all of them: by parent, by group, by subscription."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from testbed.azure.ids import ArmPath, group_of, subscription_of, take_apart

Body = dict[str, Any]
Key = tuple[str, str]  # folded scope, folded type

SCALE_SET = "microsoft.compute/virtualmachinescalesets"
# listed below the scale set, though each lies below one of its machines
INSTANCE_NICS = f"{SCALE_SET}/virtualmachines/networkinterfaces"
SCALE_SET_LISTS = {
    INSTANCE_NICS: f"{SCALE_SET}/networkinterfaces",
    f"{INSTANCE_NICS}/ipconfigurations/publicipaddresses": f"{SCALE_SET}/publicipaddresses",
}


class Index:
    """Built once for a set of resources; the bodies in it are the estate's own, so later changes to them show."""

    def __init__(self, resources: Mapping[str, Body]) -> None:
        self.lists: dict[Key, list[Body]] = defaultdict(list)
        self.types: dict[str, list[Body]] = defaultdict(list)
        self.scopes: dict[str, list[Body]] = defaultdict(list)  # subscription or group -> all its resources
        self.subscriptions: dict[str, str] = {}
        self.groups: dict[str, str] = {}
        for _, body in sorted(resources.items()):
            self._take(body)

    def of_type(self, kind: str) -> list[Body]:
        return self.types.get(kind.lower(), [])

    def listed(self, scope: str, kind: str) -> list[Body]:
        """Resources of a type at a scope: their parent, or for top resources their group or subscription."""
        return self.lists.get((scope.lower(), kind.lower()), [])

    def _take(self, body: Body) -> None:
        identifier = body["id"]
        subscription, group = subscription_of(identifier), group_of(identifier)
        subscription_scope = f"/subscriptions/{subscription}"
        group_scope = f"{subscription_scope}/resourceGroups/{group}"
        self.subscriptions.setdefault(subscription_scope.lower(), subscription_scope)
        if group:
            self.groups.setdefault(group_scope.lower(), group_scope)
        path, kind = take_apart(identifier), body["type"].lower()
        self.types[kind].append(body)
        if not path.namespace:
            return
        for scope in (group_scope, subscription_scope):
            self.scopes[scope.lower()].append(body)
        for key in _list_keys(identifier, kind, path, (group_scope, subscription_scope)):
            self.lists[key].append(body)


def _list_keys(identifier: str, kind: str, path: ArmPath, containers: Iterable[str]) -> Iterable[Key]:
    if len(path.types) > 1:
        parent = identifier.lower().rsplit("/", 2)[0]
        yield parent, kind
        if kind in SCALE_SET_LISTS:
            scale_set = identifier.lower().split("/virtualmachines/")[0]
            yield scale_set, SCALE_SET_LISTS[kind]
    elif path.scope.lower() == next(iter(containers)).lower():
        for scope in containers:
            yield scope.lower(), kind
    else:
        # an extension resource, such as a role assignment, lies at the resource it extends
        yield path.scope.lower(), kind

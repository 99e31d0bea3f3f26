"""Index of the ModelDeployments that ask for a gateway, by gateway, path and model name; and what meets at it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hermetic.kube.owners import Key, Name
from hermetic.objects.http_route import GROUP_PREFIX, is_of_group
from hermetic.plan.exposure.route_claims import (
    RouteClaim,
    RouteRequest,
    model_name_holder,
    path_holder,
    requested_route,
)


class RouteIndex:
    """Updated with each ModelDeployment, so that a change of a Gateway does not parse a thousand of them."""

    def __init__(self) -> None:
        self._requests: dict[Key, RouteRequest] = {}
        self._users: dict[Name, set[Key]] = defaultdict(set)
        self._groups: dict[str, set[Key]] = defaultdict(set)

    def put(self, key: Key, manifest: Mapping[str, Any]) -> None:
        self.drop(key)
        if (request := requested_route(manifest)) is not None:
            self._requests[key] = request
            self._users[request.gateway].add(key)
            if request.group:
                self._groups[request.group].add(key)

    def drop(self, key: Key) -> None:
        request = self._requests.pop(key, None)
        if request is not None:
            self._users[request.gateway].discard(key)
            if not self._users[request.gateway]:
                del self._users[request.gateway]
        if request is not None and request.group:
            self._groups[request.group].discard(key)
            if not self._groups[request.group]:
                del self._groups[request.group]

    def route_of(self, key: Key) -> Name | None:
        """The HTTPRoute that leads to a ModelDeployment with a gateway."""
        request = self._requests.get(key)
        if request is None:
            return None
        return key if not request.group else (key[0], f"{GROUP_PREFIX}{request.group.partition('/')[2]}")

    def members(self, key: Key) -> Mapping[Key, RouteRequest]:
        """The members of a ModelDeployment's group, itself among them; none without a group."""
        request = self._requests.get(key)
        group = () if request is None or not request.group else self._groups[request.group]
        return {member: self._requests[member] for member in sorted(group)}

    def members_of_route(self, route: Name) -> frozenset[Key]:
        """The ModelDeployments that ask for the route of a group; none for the name of another route."""
        group = f"{route[0]}/{route[1].removeprefix(GROUP_PREFIX)}" if is_of_group(route[1]) else ""
        return frozenset(self._groups.get(group, ()))

    def gateway_of(self, key: Key) -> Name | None:
        """The Gateway that a ModelDeployment asks for."""
        request = self._requests.get(key)
        return None if request is None else request.gateway

    def users_of(self, gateway: Name) -> frozenset[Key]:
        """The ModelDeployments that ask for a Gateway."""
        return frozenset(self._users.get(gateway, ()))

    def rivals_of(self, key: Key) -> Iterator[Key]:
        """Other ModelDeployments that ask for its path or its model name at the same Gateway, or are in its group."""
        own = self._requests.get(key)
        for rival in sorted(self._users.get(own.gateway, ())) if own is not None else ():
            other = self._requests[rival]
            if rival != key and own is not None and (own.path == other.path or own.model_name == other.model_name):
                yield rival
        yield from (member for member in self.members(key) if member != key)

    def holders(self, key: Key, claim_of: Callable[[Key, RouteRequest], RouteClaim]) -> tuple[str, str]:
        """The other ModelDeployments that its path and its model name lead to; "" for itself."""
        keys = dict.fromkeys((key, *self.rivals_of(key)))
        own, *rivals = (claim_of(member, self._requests[member]) for member in keys)
        return path_holder(own, rivals), model_name_holder(own, rivals)

"""What the store knows of the Gateway of a model, and of the models that share its route."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.kinds import GATEWAY, HTTP_ROUTE, MODEL_DEPLOYMENT, SERVICE, Kind
from hermetic.kube.exposure_index import ExposureIndex
from hermetic.kube.owners import Key, Name
from hermetic.kube.route_index import RouteIndex
from hermetic.kube.store_entry import StoredObject
from hermetic.objects.http_route import is_of_group
from hermetic.objects.names import Owner
from hermetic.objects.workloads.registry import WORKLOAD_KINDS, observed_workload
from hermetic.plan.exposure.route_claims import RouteClaim, RouteRequest, group_member
from hermetic.plan.snapshot import ChildKey, GatewayFacts, GroupMember

Entries = Mapping[Kind, Mapping[Name, StoredObject]]


class ObservedGateways:
    """Reads the objects of the store. `owned_by`: the objects of a ModelDeployment."""

    def __init__(
        self,
        policy: Configuration,
        routes: RouteIndex,
        exposures: ExposureIndex,
        entries: Entries,
        owned_by: Callable[[Key], Iterable[tuple[Kind, Name]]],
    ) -> None:
        self._policy = policy
        self._routes = routes
        self._exposures = exposures
        self._entries = entries
        self._owned_by = owned_by

    def facts(self, key: Key) -> GatewayFacts:
        """Of the Gateway that a ModelDeployment asks for."""
        owned = (name for kind, name in self._owned_by(key) if kind is HTTP_ROUTE and is_of_group(name[1]))
        abandoned = tuple(name[1] for name in owned if not self._routes.members_of_route(name))
        gateway = self._routes.gateway_of(key)
        if gateway is None:
            return GatewayFacts(abandoned=abandoned)
        members = [self._member(member, request) for member, request in self._routes.members(key).items()]
        return GatewayFacts(
            self._manifest(GATEWAY, gateway),
            self._exposures.exposed_by(gateway),
            *self._routes.holders(key, self._claim),
            members=tuple(member for _, member in sorted(members, key=itemgetter(0))),
            abandoned=abandoned,
        )

    def shared_route(self, key: Key) -> dict[ChildKey, dict[str, Any]]:
        """The route of a ModelDeployment's group, which may not name it as an owner yet."""
        name = self._routes.route_of(key)
        route = self._manifest(HTTP_ROUTE, name) if name is not None and is_of_group(name[1]) else None
        return {} if name is None or route is None else {(HTTP_ROUTE.kind, name[1]): route}

    def _member(self, key: Key, request: RouteRequest) -> tuple[tuple[str, str], GroupMember]:
        """A member of a group, and by what it is sorted: its age, then its name."""
        manifest, owned = self._manifest(MODEL_DEPLOYMENT, key) or {}, list(self._owned_by(key))
        live = {
            (kind.kind, name[1]): self._entries[kind][name].manifest for kind, name in owned if kind in WORKLOAD_KINDS
        }
        owner = Owner(*key, str(manifest["metadata"].get("uid")))
        workload, has_service = observed_workload(live, owner), (SERVICE, key) in owned
        member = group_member(manifest, request, workload, has_service=has_service)
        return (str(manifest["metadata"].get("creationTimestamp") or ""), key[1]), member

    def _claim(self, key: Key, request: RouteRequest) -> RouteClaim:
        name = self._routes.route_of(key) or key
        entry = self._entries.get(HTTP_ROUTE, {}).get(name)
        route = entry.manifest if entry is not None and key in entry.owners else None
        allowed = any(
            line.allows_hostname(request.hostname or None) and line.allows_path(request.path, key[0])
            for line in self._policy.gateways_for(request.gateway, key[0])
        )
        return RouteClaim(self._manifest(MODEL_DEPLOYMENT, key) or {}, request, route, allowed)

    def _manifest(self, kind: Kind, name: Name) -> dict[str, Any] | None:
        entry = self._entries.get(kind, {}).get(name)
        return None if entry is None else entry.manifest

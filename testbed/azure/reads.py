"""GET at ARM: what an estate answers to a path, as the caller is allowed to see it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from testbed.azure import activity, embedded, permissions, providers, refusals, versions
from testbed.azure.estate import Estate
from testbed.azure.ids import ArmPath, group_of, parent_of, subscription_of, take_apart
from testbed.azure.index import INSTANCE_NICS

Body = dict[str, Any]
Query = Mapping[str, str]

# the provider has no list of these at a subscription, only in a group
GROUP_LISTS_ONLY = {"microsoft.network/virtualnetworkgateways", "microsoft.network/connections"}
GATEWAY_CONNECTIONS = "microsoft.network/virtualnetworkgateways/connections"
ASSIGNMENTS = "microsoft.authorization/roleassignments"
_OF_THE_CALLER = {
    permissions.PERMISSIONS: permissions.permissions,
    permissions.DENY_ASSIGNMENTS: permissions.deny_assignments,
}
OUTBOUND = "defaultOutboundConnectivityEnabled"
# what the agent of a machine reports: only where the request expands it
VIEW = "instanceView"
MACHINES = {"microsoft.compute/virtualmachines", "microsoft.compute/virtualmachinescalesets/virtualmachines"}


@dataclass(frozen=True)
class Reader:
    """Answers for one estate at one address. page_size: rows of a list before its nextLink."""

    estate: Estate
    url: str
    page_size: int

    def get(self, path: str, query: Query) -> Body:
        """The body of a 200; raises the refusal otherwise."""
        parsed, version = take_apart(path), query.get("api-version", "")
        if not parsed.namespace:
            return self._container(path.rstrip("/"), query)
        if not parsed.types:
            return providers.body_of(self, path.rstrip("/"), parsed, version)
        if parsed.type.lower() == activity.TYPE.lower():
            return self._activity(path.rstrip("/"), query)
        if parsed.type.lower() in _OF_THE_CALLER:
            return self._of_the_caller(parsed, query)
        if parsed.is_list:
            return self._list(path.rstrip("/"), parsed, query)
        versions.check(parsed.type, version)
        providers.must_be_offered(self.estate, parsed.type, version)
        self.demand(path, f"{parsed.type}/read")
        providers.must_be_registered(self.estate, path, parsed)
        return self.shown(self._resource(path.rstrip("/"), parsed), version, query)

    def _of_the_caller(self, arm_path: ArmPath, query: Query) -> Body:
        """What the caller may do at a scope; a caller that may read anything there may read that."""
        versions.check_endpoint(query.get("api-version", ""), permissions.VERSIONS)
        self.demand(arm_path.scope, f"{arm_path.type}/read")
        return {"value": _OF_THE_CALLER[arm_path.type.lower()](self.estate, arm_path.scope)}

    def demand(self, scope: str, action: str) -> None:
        """Raises unless the subscription exists, the caller may do it, and the group exists: in Azure's order."""
        subscription = subscription_of(scope)
        if subscription and f"/subscriptions/{subscription}".lower() not in self.estate.index.subscriptions:
            raise refusals.no_subscription(subscription)
        if denial := self.estate.denial(scope, action):
            raise (refusals.locked if denial.by_lock else refusals.forbidden)(action, scope)
        group = group_of(scope)
        if group and f"/subscriptions/{subscription}/resourceGroups/{group}".lower() not in self.estate.index.groups:
            raise refusals.no_group(group)

    def shown(self, body: Body, version: str, query: Query) -> Body:
        """The body as this version and the caller's provider show it."""
        shown = versions.as_of(body, version)
        if body["type"].lower() == INSTANCE_NICS and "arm" not in self.estate.scale_set_outbound_shown_by:
            return _without(shown, OUTBOUND)
        if body["type"].lower() in MACHINES and query.get("$expand", "").lower() != VIEW.lower():
            return _without(shown, VIEW)
        return shown

    def _activity(self, path: str, query: Query) -> Body:
        """The activity log of a subscription; it is denied at the subscription or not at all."""
        versions.check_endpoint(query.get("api-version", ""), activity.VERSIONS)
        subscription = subscription_of(path)
        self.demand(f"/subscriptions/{subscription}", f"{activity.TYPE}/read")
        rows = activity.matching(self.estate.events, subscription, query.get("$filter", ""))
        return self._page(path, query, self._slice(rows, query), len(rows))

    # ------------------------------------------------------------------ one resource

    def _resource(self, path: str, arm_path: ArmPath) -> Body:
        own = self.estate.resources.get(path.lower())
        if own is not None:
            return own
        parent = self.estate.resources.get(parent_of(path).lower())
        child = embedded.find(parent, arm_path.types[-1], arm_path.names[-1]) if parent else None
        if parent is None or child is None:
            raise refusals.not_found(path)
        return embedded.as_alone(parent, arm_path.types[-1], child)

    # ------------------------------------------------------------------ lists

    def _list(self, path: str, arm_path: ArmPath, query: Query) -> Body:
        scope, version = path.rpartition("/")[0], query.get("api-version", "")
        versions.check(arm_path.type, version)
        if len(arm_path.types) == 1:
            scope = arm_path.scope
            at_subscription = not group_of(scope)
            if at_subscription and arm_path.type.lower() in GROUP_LISTS_ONLY:
                raise refusals.no_such_type(arm_path.namespace, arm_path.types[0], version)
        providers.must_be_offered(self.estate, arm_path.type, version)
        self.demand(scope, f"{arm_path.type}/read")
        providers.must_be_registered(self.estate, path, arm_path)
        every = self._assigned(scope, query) if arm_path.type.lower() == ASSIGNMENTS else self._rows(scope, arm_path)
        rows = [row for row in every if self.estate.may(row["id"], f"{row['type']}/read")]
        page = [_as_listed(self.shown(row, version, query)) for row in self._slice(rows, query)]
        return self._page(path, query, page, len(rows))

    def _rows(self, scope: str, arm_path: ArmPath) -> list[Body]:
        if not _is_container(scope):
            holder = self.estate.resources.get(scope.lower())
            if holder is None:
                raise refusals.not_found(scope)
            if embedded.key_of(holder["type"], arm_path.types[-1]):
                return [
                    embedded.as_alone(holder, arm_path.types[-1], child)
                    for child in embedded.members(holder, arm_path.types[-1])
                ]
        if arm_path.type.lower() == GATEWAY_CONNECTIONS:
            return self._connections_of(scope)
        return self.estate.index.listed(scope, arm_path.type)

    def _connections_of(self, gateway: str) -> list[Body]:
        """A gateway lists the connections that name it, wherever they lie."""
        return [
            connection
            for connection in self.estate.of_type("Microsoft.Network/connections")
            for end in ("virtualNetworkGateway1", "virtualNetworkGateway2")
            if (connection["properties"].get(end) or {}).get("id", "").lower() == gateway.lower()
        ]

    def _assigned(self, scope: str, query: Query) -> list[Body]:
        """Role assignments at the scope and above it; below it too unless the filter says `atScope()`."""
        at_scope, only_at = scope.lower().rstrip("/"), "atscope()" in query.get("$filter", "").lower()
        chosen = []
        for row in self.estate.of_type(ASSIGNMENTS):
            at = take_apart(row["id"]).scope.lower()
            above, below = f"{at_scope}/".startswith(f"{at}/"), at.startswith(f"{at_scope}/")
            if above or (below and not only_at):
                chosen.append(row)
        return chosen

    def _slice(self, rows: list[Body], query: Query) -> list[Body]:
        start = _offset(query)
        return rows[start : start + self.page_size]

    def _page(self, path: str, query: Query, rows: list[Body], total: int) -> Body:
        end = _offset(query) + len(rows)
        if end >= total:
            return {"value": rows}
        token = base64.urlsafe_b64encode(f"offset:{end}".encode()).decode()
        parameters = "".join(f"&{quote(name)}={quote(value)}" for name, value in query.items() if name not in _PAGING)
        link = f"{self.url}{path}?api-version={query['api-version']}{parameters}&%24skiptoken={quote(token)}"
        return {"value": rows, "nextLink": link}

    # ------------------------------------------------------------------ subscriptions and groups

    def _container(self, path: str, query: Query) -> Body:
        versions.check_endpoint(query.get("api-version", ""), versions.CONTAINERS)
        match [part.lower() for part in path.split("/")[1:]]:
            case ["tenants"]:
                return {"value": [{**refusals.TENANT_OF_THE_CALLER}]}
            case ["subscriptions"]:
                return self._containers(path, query, self.estate.index.subscriptions)
            case ["subscriptions", _] | ["subscriptions", _, "resourcegroups", _]:
                self.demand(path, f"{take_apart(path).type}/read")
                return self._container_body(self._known(path))
            case ["subscriptions", _, "resourcegroups"]:
                scope = path.rpartition("/")[0]
                self.demand(scope, "Microsoft.Resources/subscriptions/resourceGroups/read")
                inside = {
                    key: at for key, at in self.estate.index.groups.items() if key.startswith(scope.lower() + "/")
                }
                return self._containers(path, query, inside)
            case ["subscriptions", _, *_, "resources"]:
                return self._all_resources(path, query)
        raise refusals.Refusal(404, "InvalidRequestUri", f"Nothing is served at '{path}'.")

    def _known(self, path: str) -> str:
        index = self.estate.index
        return index.groups.get(path.lower()) or index.subscriptions[path.lower()]

    def _containers(self, path: str, query: Query, known: Mapping[str, str]) -> Body:
        readable = [at for _, at in sorted(known.items()) if self.estate.may(at, f"{take_apart(at).type}/read")]
        bodies = [self._container_body(at) for at in readable]
        return self._page(path, query, self._slice(bodies, query), len(bodies))

    def _container_body(self, scope: str) -> Body:
        own = self.estate.resources.get(scope.lower())
        subscription, group = subscription_of(scope), group_of(scope)
        if group:
            fields = {"location": "swedencentral", "properties": {"provisioningState": "Succeeded"}}
            return own or {"id": scope, "name": group, "type": "Microsoft.Resources/resourceGroups", **fields}
        return own or {
            "id": scope,
            "subscriptionId": subscription,
            "tenantId": refusals.TENANT,
            "displayName": "Contoso AI",
            "state": "Enabled",
        }

    def _all_resources(self, path: str, query: Query) -> Body:
        """The generic list: what there is, without properties; `$filter=resourceType eq '...'` narrows it."""
        scope = path.rpartition("/")[0]
        self.demand(scope, "Microsoft.Resources/subscriptions/resources/read")
        resource_type = _resource_type(query.get("$filter", ""))
        rows = [
            {key: value for key, value in body.items() if key not in {"properties", "etag"}}
            for body in self.estate.index.scopes.get(scope.lower(), [])
            if len(take_apart(body["id"]).types) == 1
            and resource_type in {"", body["type"].lower()}
            and self.estate.may(body["id"], f"{body['type']}/read")
        ]
        return self._page(path, query, self._slice(rows, query), len(rows))


_PAGING = {"api-version", "$skiptoken"}


def _offset(query: Query) -> int:
    token = query.get("$skiptoken", "")
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token.encode()).decode().removeprefix("offset:"))
    except (binascii.Error, ValueError):
        raise refusals.bad_request("InvalidSkipToken", "The $skiptoken is not one that this list gave out.") from None


def _without(body: Body, field: str) -> Body:
    return {**body, "properties": {key: value for key, value in body["properties"].items() if key != field}}


def _as_listed(body: Body) -> Body:
    """The compute provider writes group names in capitals and itself in small letters when it lists."""
    identifier, group = body["id"], group_of(body["id"])
    if not body["type"].lower().startswith("microsoft.compute/"):
        return body
    capitals = identifier.replace(f"/{group}/", f"/{group.upper()}/", 1)
    return {**body, "id": capitals.replace("/Microsoft.Compute/", "/microsoft.Compute/")}


def _is_container(scope: str) -> bool:
    return not take_apart(scope).namespace


def _resource_type(expression: str) -> str:
    if not expression:
        return ""
    left, _, right = expression.partition(" eq ")
    if left.strip().lower() != "resourcetype" or not right:
        raise refusals.bad_request("InvalidFilterInQueryString", f"Unsupported $filter: {expression}")
    return right.strip().strip("'").lower()

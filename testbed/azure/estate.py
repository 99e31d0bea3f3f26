"""An estate: the ARM resources that a stand-in serves, and what its caller may see of them."""

from __future__ import annotations

import copy
import fnmatch
from dataclasses import dataclass, field
from typing import Any

from testbed.azure import activity, embedded
from testbed.azure.ids import name_of, parent_of, type_of
from testbed.azure.index import Index

Body = dict[str, Any]


@dataclass(frozen=True)
class Site:
    """The ids of the pieces that every baseline has, by their role; empty where a variant lacks one."""

    cluster: str
    node_group: str  # resource group of the nodes
    vnet: str
    system_subnet: str
    gpu_subnet: str
    pod_subnet: str
    api_subnet: str
    endpoint_subnet: str
    route_table: str
    node_rules: str  # network security group of the node subnets
    gpu_scale_set: str
    balancer: str  # the internal load balancer of the cluster's Services
    sentinel: str  # a virtual machine's interface in the GPU subnet
    registry: str
    storage: str
    share: str
    dns_policy: str
    watcher: str
    peering: str = ""  # from the cluster's network to the hub
    hub: str = ""
    firewall: str = ""


@dataclass(frozen=True)
class Denied:
    """What the caller may not do: an action (glob) at a scope and below. by_lock: a deny assignment forbids it."""

    scope: str
    action: str
    by_lock: bool = False

    def covers(self, identifier: str, action: str) -> bool:
        scope, resource = self.scope.lower().rstrip("/"), identifier.lower().rstrip("/")
        below = resource == scope or resource.startswith(scope + "/")
        return below and fnmatch.fnmatch(action.lower(), self.action.lower())


@dataclass
class Estate:
    """Resources by folded id, and what is known beside them."""

    site: Site
    resources: dict[str, Body] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    profile: str = "sealed"
    denied: list[Denied] = field(default_factory=list)
    answers: dict[tuple[str, str], Any] = field(default_factory=dict)
    graph: dict[str, Body | None] = field(default_factory=dict)
    # folded subscription and namespace -> state; every other provider is registered
    registrations: dict[tuple[str, str], str] = field(default_factory=dict)
    # folded types that the region or the cloud does not offer -> the code that ARM answers of them
    not_offered: dict[str, str] = field(default_factory=dict)
    # the activity log, oldest first: what `log` put there. Azure leaves it empty where nothing happened for 90 days
    events: list[Body] = field(default_factory=list)
    # who shows `defaultOutboundConnectivityEnabled` of scale set interfaces is unconfirmed: any of "arm", "graph"; in
    # the worst case neither
    scale_set_outbound_shown_by: frozenset[str] = frozenset()
    _index: Index | None = field(default=None, repr=False)

    @property
    def index(self) -> Index:
        """Rebuilt after resources came or went, not after they changed."""
        if self._index is None:
            self._index = Index(self.resources)
        return self._index

    @property
    def cluster(self) -> str:
        return self.site.cluster

    def restore(self, resources: dict[str, Body]) -> None:
        """Hold these resources and no others."""
        self.resources, self._index = resources, None

    def __contains__(self, identifier: str) -> bool:
        return self.find(identifier) is not None

    def __getitem__(self, identifier: str) -> Body:
        body = self.find(identifier)
        if body is None:
            raise KeyError(identifier)
        return body

    def find(self, identifier: str) -> Body | None:
        """The stored body itself, of a resource or of a child inside its parent."""
        own = self.resources.get(identifier.lower().rstrip("/"))
        if own is not None:
            return own
        parent = self.resources.get(parent_of(identifier).lower())
        if parent is None:
            return None
        return embedded.find(parent, type_of(identifier).rpartition("/")[2], name_of(identifier))

    def properties(self, identifier: str) -> Body:
        """Of the resource, to read or to change; agent pools keep theirs flat beside the name."""
        body = self[identifier]
        if type_of(identifier).lower() in embedded.FLAT:
            return body
        properties: Body = body.setdefault("properties", {})
        return properties

    def add(self, identifier: str, properties: Body | None = None, **rest: Any) -> str:
        """A new resource, or a new child inside its parent; `rest` are fields beside `properties` (sku, identity)."""
        parent = self.resources.get(parent_of(identifier).lower())
        kind = type_of(identifier)
        key = embedded.key_of(parent["type"], kind.rpartition("/")[2]) if parent else None
        if parent and key:
            flat = kind.lower() in embedded.FLAT
            child = {"name": name_of(identifier), **(properties or {})} if flat else _child(identifier, properties)
            parent_properties = parent.setdefault("properties", {})
            parent_properties[key] = [*(parent_properties.get(key) or ()), child]
            return identifier
        self._index = None
        self.resources[identifier.lower()] = {
            "id": identifier,
            "name": name_of(identifier),
            "type": kind,
            **copy.deepcopy(rest),  # several resources are given the same SKU
            "properties": {"provisioningState": "Succeeded", **(properties or {})},
        }
        return identifier

    def remove(self, identifier: str) -> None:
        """The resource with all that lies below it."""
        folded = identifier.lower().rstrip("/")
        parent = self.resources.get(parent_of(identifier).lower())
        key = embedded.key_of(parent["type"], type_of(identifier).rpartition("/")[2]) if parent else None
        if parent and key:
            children = [child for child in parent["properties"][key] if child["name"].lower() != name_of(folded)]
            parent["properties"][key] = children
            return
        self._index = None
        del self.resources[folded]
        for below in [other for other in self.resources if other.startswith(folded + "/")]:
            del self.resources[below]

    def of_type(self, kind: str) -> list[Body]:
        """Resources of exactly this type, in the order of their ids; children inside a parent are not among them."""
        return self.index.of_type(kind)

    def deny(self, scope: str, action: str = "*") -> None:
        self.denied.append(Denied(scope, action))

    def lock(self, group: str) -> None:
        """Node resource group lockdown: reading works, and every action in the group is denied, those that read too.

        learn.microsoft.com/azure/aks/node-resource-group-lockdown: resources can be viewed, a deny assignment blocks
        the rest. Which actions that deny assignment leaves out is not documented: none, in the worst case.
        """
        self.denied.append(Denied(group, "*/action", by_lock=True))

    def leave_out(self, kind: str, code: str = "NoRegisteredProviderFound") -> None:
        """The region or cloud does not offer this type; ARM's words are `NoRegisteredProviderFound` (400) or
        `InvalidResourceType` (404)."""
        self.not_offered[kind.lower()] = code

    def answer(self, identifier: str, action: str, value: Any) -> None:
        """What a POST action answers from now on: `estate.answer(nic, "effectiveRouteTable", {"value": [...]})`."""
        self.answers[identifier.lower(), action.lower()] = value

    def unregister(self, subscription: str, namespace: str, state: str = "NotRegistered") -> None:
        """From now on the subscription (a GUID) says so of this resource provider."""
        self.registrations[subscription.lower(), namespace.lower()] = state

    def log(self, identifier: str, operation: str, at: str) -> None:
        """An event of the activity log about a resource: an operation, such as a type with /write, at a time."""
        self.events.append(activity.event(identifier, operation, at, len(self.events)))

    def in_graph(self, identifier: str, body: Body | None) -> None:
        self.graph[identifier.lower()] = body

    def may(self, identifier: str, action: str) -> bool:
        return self.denial(identifier, action) is None

    def denial(self, identifier: str, action: str) -> Denied | None:
        """What forbids it; a deny assignment comes before what no role allows, as ARM weighs them."""
        denials = [denial for denial in self.denied if denial.covers(identifier, action)]
        return max(denials, key=lambda denial: denial.by_lock, default=None)

    def copy(self) -> Estate:
        self._index = None
        return copy.deepcopy(self)


def _child(identifier: str, properties: Body | None) -> Body:
    return {
        "id": identifier,
        "name": name_of(identifier),
        "properties": {"provisioningState": "Succeeded", **(properties or {})},
    }

"""Effective routes, rules and next hop of an interface, as Azure computes them. POST actions that only read."""

from __future__ import annotations

from hermetic.audit.estate.azure.security_groups import SecurityRule
from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class EffectiveRoute(Part):
    """One line of an effective route table; source, state and next hop are open strings."""

    name: str | None = None
    source: str | None = None
    state: str | None = None
    address_prefix: list[str] | None = None
    next_hop_type: str | None = None
    next_hop_ip_address: list[str] | None = None


@arm("Microsoft.Network/networkInterfaces", NETWORK, "effectiveRouteTable")
class EffectiveRoutes(Resource):
    """effectiveRouteTable of a network interface whose machine is running."""

    value: list[EffectiveRoute] | None = None


class EffectiveGroup(Part):
    """One security group that applies to an interface, its rules with tags and application groups expanded."""

    network_security_group: Reference | None = None
    effective_security_rules: list[SecurityRule] | None = None


@arm("Microsoft.Network/networkInterfaces", NETWORK, "effectiveNetworkSecurityGroups")
class EffectiveGroups(Resource):
    """effectiveNetworkSecurityGroups of a network interface whose machine is running."""

    value: list[EffectiveGroup] | None = None


@arm("Microsoft.Network/networkWatchers", NETWORK)
class NetworkWatcher(Resource):
    """One per region and subscription."""

    location: str = ""


@arm("Microsoft.Network/networkWatchers", NETWORK, "nextHop")
class NextHop(Resource):
    """nextHop of a network watcher: the route that a packet of one VM would take."""

    next_hop_type: str | None = None
    next_hop_ip_address: str | None = None
    route_table_id: str | None = None

"""What decides about the packets of one subnet: its routes, security groups and address space."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.audit.cluster.members import ScopedSubnet
from hermetic.audit.cluster.resource_lookup import readable, security_group
from hermetic.audit.estate.arm_ids import parent_of
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.azure.vnet import Peering, Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation, missing
from hermetic.audit.model.address_ranges import Space, networks, space, union
from hermetic.audit.rules.nsg_reachability import Attached, attached
from hermetic.audit.rules.nsg_rules import Hole, RuleContext, holes, reachable_through, sure
from hermetic.audit.rules.prefix_sets import prefix_sets
from hermetic.audit.rules.routes import NextHopKind, OutboundRoute, public_routes
from hermetic.errors import FactDamaged


@dataclass(frozen=True, slots=True)
class Layers:
    """The security groups that one kind of interface in a subnet passes, outermost first: none, one or two."""

    groups: tuple[Lookup[SecurityGroup], ...]

    @property
    def unseen(self) -> tuple[Lookup[SecurityGroup], ...]:
        """Groups that could not be read."""
        return tuple(group for group in self.groups if group.value is None)


@dataclass(frozen=True, slots=True)
class SubnetContext:
    """One subnet with everything that decides about its packets; `observations`: of interface lists, not of groups."""

    id: str
    subnet: Subnet
    table: Lookup[RouteTable] | None
    combinations: tuple[Layers, ...]
    rule_context: RuleContext
    observations: tuple[Observation, ...]
    is_for_the_api_server_only: bool = False

    @property
    def read_combinations(self) -> tuple[Layers, ...]:
        """The groups of each combination that were read: no other group can open what they deny."""
        return tuple(
            Layers(tuple(group for group in layers.groups if group.value is not None)) for layers in self.combinations
        )

    @property
    def outbound_routes(self) -> tuple[OutboundRoute, ...]:
        """User-defined routes with a default, a public prefix or a service tag."""
        if self.table is None or self.table.value is None:
            return ()
        return public_routes(self.table.value.routes, self.rule_context.local)

    @property
    def are_routes_seen(self) -> bool:
        """Whether the routes are completely known."""
        return self.table is None or (self.table.value is not None and self.table.value.routes is not None)

    def drops(self, version: int) -> bool:
        """Whether every default route of this IP version has the next hop `None`, and there is one."""
        defaults = [
            route
            for route in self.outbound_routes
            if route.is_default and route.prefix and route.prefix.version == version
        ]
        return bool(defaults) and all(route.hop is NextHopKind.DROPPED for route in defaults)

    @property
    def is_private(self) -> bool:
        """Whether default outbound access is off or not applicable: a subnet of the API server alone has no machine."""
        return self.is_for_the_api_server_only or self.subnet.default_outbound_access is False

    def holes_of(self, layers: Layers) -> tuple[tuple[Hole, ...], ...]:
        """What each group of a combination lets out, without unreadable groups: they may stop nothing."""
        return tuple(holes(group.value.rules, self.rule_context) for group in layers.groups if group.value is not None)

    def is_sealed(self, layers: Layers) -> bool:
        """Whether no packet to the internet passes the groups of a combination."""
        return not reachable_through(self.holes_of(layers), self.rule_context)

    def is_open(self, layers: Layers) -> bool:
        """Whether a packet is sure to pass them."""
        return bool(reachable_through(sure(self.holes_of(layers)), self.rule_context))

    def doubts(self, layers: Layers) -> tuple[Observation, ...]:
        """The missing observations that leave open whether a combination lets packets out."""
        unsure_holes = [hole for layer in self.holes_of(layers) for hole in layer if not hole.is_sure]
        if any(hole.through_the_network_tag for hole in unsure_holes) and self.table is not None:
            cut = missing(f"{self.table.target}: its routes could not be read")
            return (self.table, *(() if self.table.problem is not None else (cut,)))
        ends = ", ".join(group.target for group in layers.groups)
        return (missing(f"{ends}: answered without the rules that every group ends in"),)

    def is_sealed_by_rules(self) -> bool:
        """Whether `is_sealed` holds for every interface."""
        return all(self.is_sealed(layers) for layers in self.combinations)


def surroundings(estate: Estate, scoped: ScopedSubnet, subnet: Subnet) -> SubnetContext:
    """The context of a subnet of the cluster. Raises FactDamaged for a reference that cannot be read."""
    return estate.once(("surroundings", scoped.id.lower()), lambda: _surroundings(estate, scoped, subnet))


def _surroundings(estate: Estate, scoped: ScopedSubnet, subnet: Subnet) -> SubnetContext:
    by_subnet, observations = attached(estate)
    on_interfaces = by_subnet.get(scoped.id.lower(), Attached())
    table = estate.one(RouteTable, subnet.route_table.id) if subnet.route_table is not None else None
    own = (security_group(estate, subnet.network_security_group.id),) if subnet.network_security_group else ()
    combinations = tuple(
        Layers((*own, *((security_group(estate, group),) if group else ())))
        for _, group in sorted(on_interfaces.groups.items() or [("", "")])
    )
    groups = (group.value for layers in combinations for group in layers.groups if group.value is not None)
    sets, of_sets = prefix_sets(estate, groups)
    prefixes, local = networks(subnet.prefixes), local_space(estate, scoped.id)
    has_v6 = any(prefix.version == 6 for prefix in prefixes)
    rule_context = RuleContext(
        sources=space(prefixes),
        local=union((*space(prefixes), *local)),
        has_v6=has_v6,
        network_tag_leads_out=widens_the_network_tag(table, local, has_v6=has_v6),
        application_groups=frozenset(on_interfaces.application_groups),
        prefix_sets=sets,
    )
    return SubnetContext(
        scoped.id,
        subnet,
        table,
        combinations,
        rule_context,
        (*observations, *of_sets),
        scoped.is_for_the_api_server_only,
    )


def local_space(estate: Estate, subnet_id: str) -> Space:
    """The address space of the subnet's network and of its peers, as far as it can be read."""
    return network_space(estate, parent_of(subnet_id))


def network_space(estate: Estate, network_id: str) -> Space:
    """The address space of a network and of its peers, as far as it can be read."""
    return estate.once(("local", network_id.lower()), lambda: _local(estate, network_id))


def _local(estate: Estate, network_id: str) -> Space:
    network = estate.one(VirtualNetwork, network_id).value
    holders = (*((network,) if network is not None else ()), *estate.every(Peering, network_id))
    unread: list[Observation] = []  # addresses not known to be ours count as the internet, so no observation is needed
    return union(span for _, spans in readable(holders, _space, unread) for span in spans)


def _space(holder: VirtualNetwork | Peering) -> Space:
    if isinstance(holder, Peering) and not holder.connects:
        return ()
    address_space = holder.address_space if isinstance(holder, VirtualNetwork) else holder.remote_address_space
    return space(networks(address_space.address_prefixes)) if address_space is not None else ()


def widens_the_network_tag(table: Lookup[RouteTable] | None, local: Space, *, has_v6: bool) -> bool | None:
    """Whether any default or public user-defined route of an IP version in use exists, one to `None` included.

    None where the table was not read completely.
    """
    if table is None:
        return False
    try:
        if table.value is None or table.value.routes is None:
            return None
        prefixes = [route.prefix for route in public_routes(table.value.routes, local)]
        return any(prefix is not None and (prefix.version == 4 or has_v6) for prefix in prefixes)
    except FactDamaged:
        return None

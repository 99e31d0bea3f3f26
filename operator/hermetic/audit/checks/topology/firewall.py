"""A firewall is a path out: every one that packets can reach is a finding, except the declared one."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.text import first_of
from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import network_ids_of, peerings_of, subnets_of
from hermetic.audit.cluster.virtual_hubs import Joined, hub_connections, joins
from hermetic.audit.estate.arm_ids import is_below, is_in, name_of, same_id
from hermetic.audit.estate.azure.managed_services import AzureFirewall
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.each_resource import found_or_none, whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import networks, overlap, space
from hermetic.audit.model.address_ranges import prefixes as address_prefixes
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, NODE_SUBNETS, Hop, Path, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.behind_firewall import BehindFirewall, behind_firewall
from hermetic.audit.rules.firewall_rules import Rules
from hermetic.audit.scope.reachable_networks import throughout
from hermetic.audit.scope.reached_subnets import is_reached

NAMED = 5
"""How many prefixes a message names."""

SHARED_REMEDY = """\
The rule that the message names has sources of other networks too, which other teams may need. Take the addresses of
the cluster's networks and of their peers out of its sources, in the rule or in the IP groups that it names, and keep
the others. Give the cluster a rule of its own that names hosts. The command needs the az extension azure-firewall.
az network firewall policy rule-collection-group show --subscription SUBSCRIPTION_ID --resource-group RESOURCE_GROUP \\
--policy-name FIREWALL_POLICY --name RULE_GROUP"""


@check("firewall-in-path")
def firewall_in_path(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Firewalls in the network, in a peer, in a connected hub or behind a route; and the rules of the declared one."""
    firewalls = throughout(estate, policy, AzureFirewall)
    other_firewalls = firewalls.where(lambda firewall: not _is_declared(firewall.id, policy))
    next_hops, tables = _next_hops(estate)
    for firewall in other_firewalls:
        yield from _reached(estate, policy, firewall, next_hops)
    if policy.profile == "filtered":
        yield from _declared(estate, policy)
    observations = (firewalls, peerings_of(estate), *tables)
    none = ("NoFirewall", "no firewall exists but a declared one")
    yield from found_or_none(estate.cluster, other_firewalls, "firewalls in reach", none, *observations)


def _is_declared(firewall: str, policy: Policy) -> bool:
    return policy.profile == "filtered" and same_id(firewall, policy.firewall)


def _next_hops(estate: Estate) -> tuple[frozenset[str], tuple[Observation, ...]]:
    """Next hop addresses of the routes of the cluster's subnets."""
    subnets = [scoped.observation for scoped in subnets_of(estate)[0]]
    ids = {
        subnet.value.route_table.id.lower(): subnet.value.route_table.id
        for subnet in subnets
        if subnet.value is not None and subnet.value.route_table is not None
    }
    tables = [estate.one(RouteTable, table_id) for _, table_id in sorted(ids.items())]
    routes = [route for table in tables if table.value is not None for route in table.value.routes or ()]
    return frozenset(route.next_hop_ip_address for route in routes if route.next_hop_ip_address), (*subnets, *tables)


def _reached(
    estate: Estate, policy: Policy, firewall: AzureFirewall, next_hops: frozenset[str]
) -> Iterator[CheckResult]:
    observations: tuple[Observation, ...] = (firewall,)
    own = frozenset(network_id.lower() for network_id in network_ids_of(estate))
    path: Path = ()
    if is_in(firewall.subnet_ids, own):
        path = (NODE_SUBNETS,)
    elif any(is_reached(estate, policy, subnet_id) for subnet_id in firewall.subnet_ids):
        path = path_of(NODE_SUBNETS, hops.peer("peering"))
    elif next_hops & set(firewall.private_addresses):
        path = path_of(NODE_SUBNETS, Hop(PlaceKind.ROUTE_TABLE, "route table"))
    elif firewall.virtual_hub is not None:
        joined = hub_connections(estate, policy)
        observations = (firewall, joined)
        if any(
            is_below(f"{hub_connection.connection.id}/", firewall.virtual_hub.id) and _is_ours(estate, hub_connection)
            for hub_connection in joined
        ):
            path = path_of(NODE_SUBNETS, hops.peer(f"virtual hub {name_of(firewall.virtual_hub.id)}"))
    if path:
        message = "packets can come to this firewall; its rules decide whether they leave"
        yield fails(
            firewall.id,
            "FirewallInReach",
            message,
            *observations,
            paths=(path_of(*path, hops.firewall(f"firewall {firewall.name}"), INTERNET),),
        )
    else:
        yield passes(
            firewall.id, "OutOfReach", "no peering, hub or route leads to it", *observations, peerings_of(estate)
        )


def _is_ours(estate: Estate, joined: Joined) -> bool:
    return any(joins(joined, network_id) for network_id in network_ids_of(estate))


def _declared(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """The declared firewall of the profile `filtered`: no rule may allow arbitrary destinations."""
    firewall = estate.one(AzureFirewall, policy.firewall)
    if firewall.value is None:
        message = "the declared firewall could not be read"
        yield unknown(policy.firewall, "FirewallNotSeen", message, firewall, severity=Severity.CRITICAL)
        return
    behind = behind_firewall(estate, policy)
    if behind is None:
        return
    rules = behind.rules
    observations = (firewall, *rules.observations)
    if rules.wide:
        path = path_of(
            NODE_SUBNETS, hops.peer("peering"), hops.firewall(f"firewall {name_of(policy.firewall)}"), INTERNET
        )
        yield fails(
            policy.firewall,
            "AllowsAnything",
            f"rules let anything out: {'; '.join(rules.wide)}",
            *observations,
            paths=(path,),
            severity=Severity.CRITICAL,
            remedy=SHARED_REMEDY if rules.first_sources.other_sources else "",
            fill=rules.first,
        )
    elif rules.unclear:
        message = f"rules are not understood: {'; '.join(rules.unclear)}"
        yield unknown(policy.firewall, "RuleUnknown", message, *observations, severity=Severity.CRITICAL)
    elif not (rules.unproven or behind.beyond or behind.public):
        accepted = "".join(f"; accepted by the policy file: {entry}" for entry in _accepted(policy, rules))
        message = f"every rule names what it allows{accepted}"
        yield passes(
            policy.firewall, "NamedOnly", message, *observations, *behind.observations, severity=Severity.CRITICAL
        )
    yield from _unproven(policy, behind, *observations)


def _unproven(policy: Policy, behind: BehindFirewall, *observations: Observation) -> Iterator[CheckResult]:
    """Hosts and addresses of an unknown owner, and private destinations that were not read: high."""
    if behind.rules.unproven:
        message = f"rules name hosts of an unknown owner: {'; '.join(behind.rules.unproven)}"
        yield unknown(policy.firewall, "HostUnknown", message, *observations, severity=Severity.HIGH)
        yield from whole_or_unknown(policy.firewall, "instances of our subscriptions", *behind.rules.host_lists)
    if behind.public:
        prefixes = first_of([str(prefix) for prefix in address_prefixes(behind.public)], NAMED)
        message = (
            f"rules let nodes go to {prefixes}: a public address does not show whose it is. Name the host in an "
            "application rule, or list the prefix with the reason under `allowedPublicDestinations` of the policy file"
        )
        yield unknown(policy.firewall, "AddressUnknown", message, *observations, severity=Severity.HIGH)
    if behind.beyond:
        prefixes = first_of([str(prefix) for prefix in address_prefixes(behind.beyond)], NAMED)
        message = (
            f"rules let nodes go to {prefixes}, in no network that was read: a machine there may pass packets on. Put "
            "its subscription under `ownSubscriptions` and allow reads there, or list the prefix with the reason under "
            "`allowedPrivateDestinations` of the policy file"
        )
        yield unknown(policy.firewall, "DestinationBeyond", message, *observations, severity=Severity.HIGH)


def _accepted(policy: Policy, rules: Rules) -> tuple[str, ...]:
    met = (
        f"prefix {entry.prefix}: {entry.reason}"
        for entry in (*policy.allowed_public_destinations, *policy.allowed_private_destinations)
        if overlap(space(networks((entry.prefix,))), rules.destinations)
    )
    return (*rules.accepted, *met)

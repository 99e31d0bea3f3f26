"""Managed services that Azure puts into a subnet in reach of the nodes: what they pass on leaves past every rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.audit.checks.family import check
from hermetic.audit.checks.topology.backends import of_balancer, of_gateway
from hermetic.audit.cluster.members import MANAGED_CLUSTERS, is_of_the_cluster, node_group_of, peerings_of, subnets_of
from hermetic.audit.egress.firewall_reach import reach_by_firewall
from hermetic.audit.egress.reach import Destination, Reach, reach_of
from hermetic.audit.egress.relay_entries import Backend, reach_by_others
from hermetic.audit.estate.arm_ids import is_below, name_of, owner_of, parent_of, type_of
from hermetic.audit.estate.azure.balancing import LoadBalancer
from hermetic.audit.estate.azure.managed_services import ApplicationGateway
from hermetic.audit.estate.azure.vnet import InhabitedSubnet, ScaleSet, Subnet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation, not_answered
from hermetic.audit.evaluation.each_resource import found_or_none
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import networks
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, NODE_SUBNETS, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.balancers import Members
from hermetic.audit.scope.reachable_networks import reached_networks, throughout
from hermetic.audit.scope.reached_subnets import is_reached

# Services with an address in a subnet that relay: by type, in lower case, what they do with what is sent to them.
# The types are those that a subnet can be delegated to (learn.microsoft.com/azure/virtual-network/
# virtual-network-for-azure-services), and those of service links.
RELAYS = {
    "microsoft.containerinstance/containergroups": "the containers in it can call any address",
    "microsoft.network/networkprofiles": "the container groups of it can call any address",
    "microsoft.web/hostingenvironments": "the code in it can call any address",
    "microsoft.app/environments": "the containers in it can call any address",
    "microsoft.apimanagement/service": "it passes requests on to its backends",
    "microsoft.logic/integrationserviceenvironments": "its workflows can call any address",
    "microsoft.databricks/workspaces": "its clusters and notebooks can call any address",
    "microsoft.machinelearningservices/workspaces": "its endpoints and jobs can call any address",
    "microsoft.machinelearningservices/workspacecomputes": "its endpoints and jobs can call any address",
    "microsoft.synapse/workspaces": "its pipelines copy to other stores",
    "microsoft.kusto/clusters": "its data is read, and its callouts go, elsewhere",
    "microsoft.cache/redis": "its data is read and replicated elsewhere",
    "microsoft.sql/managedinstances": "its data is read, and its procedures call, from elsewhere",
    "microsoft.dbforpostgresql/flexibleservers": "its data is read, and its extensions call, from elsewhere",
    "microsoft.dbformysql/flexibleservers": "its data is read and replicated elsewhere",
    "microsoft.avs/privateclouds": "its machines can have the internet",
    "paloaltonetworks.cloudngfw/firewalls": "it passes packets on to the internet",
    MANAGED_CLUSTERS: "it is of another cluster, whose pods and nodes it leads to",
}

# These keep what is sent to them: volumes are read in the networks that mount them.
ENDS = {"microsoft.netapp/volumes": "data sent to volumes stays there"}

# These send from the subnet and take nothing there: integration of apps is for their outbound calls alone
# (learn.microsoft.com/azure/app-service/overview-vnet-integration; power-platform/admin/vnet-support-overview).
SENDERS = {
    "microsoft.web/serverfarms": "apps send from it, and nothing answers there",
    "microsoft.powerplatform/enterprisepolicies": "environments send from it, and nothing answers there",
}

RESOLVERS = "microsoft.network/dnsresolvers"
UNNAMED = "a service that is not named"

# Types that other checks evaluate wherever they are in reach, or that only let in.
EVALUATED_ELSEWHERE = {
    ApplicationGateway.TYPE.lower(),
    "microsoft.servicenetworking/trafficcontrollers",
    "microsoft.network/networkinterfaces",
    "microsoft.network/privateendpoints",
    "microsoft.network/privatelinkservices",
    "microsoft.network/azurefirewalls",
    "microsoft.network/bastionhosts",
    "microsoft.network/virtualnetworkgateways",
    "microsoft.network/virtualnetworkappliances",
    "microsoft.network/virtualhubs",
}

# Types that are evaluated where a list shows them. The balancers and scale sets of a service are in its provider's
# subscription, and no list of ours does.
LISTED = (LoadBalancer, ScaleSet, ApplicationGateway)


@dataclass(frozen=True, slots=True)
class Occupant:
    """A service in a subnet, by its type in lower case. `is_seen`: the answer shows that it is there."""

    kind: str
    how: str
    is_seen: bool = True


@check("service-pivot")
def service_pivot(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every subnet of the networks and their peers, by its delegation, its service links and what has addresses in it.

    What a service does with the packets that it is sent is up to its own settings, which are not read.
    """
    observations, subnets = _subnets(estate, policy)
    results = [
        result
        for subnet in subnets
        for result in whatever_is_damaged(subnet.id, _evaluate(estate, policy, subnet, observations))
    ]
    gateways, balancers = throughout(estate, policy, ApplicationGateway), throughout(estate, policy, LoadBalancer)
    inside = {subnet.id.lower() for subnet in subnets}
    for gateway in gateways:
        results += whatever_is_damaged(gateway.id, of_gateway(estate, policy, gateway, inside))
    for balancer in balancers:
        results += whatever_is_damaged(balancer.id, of_balancer(estate, policy, balancer, inside))
    yield from results
    none = ("NoService", "no managed service is in reach")
    yield from found_or_none(estate.cluster, results, "services in reach", none, *observations, gateways, balancers)


def _subnets(estate: Estate, policy: Policy) -> tuple[tuple[Observation, ...], list[InhabitedSubnet]]:
    """The subnets of all networks in reach, after the observations that show whether there may be more."""
    observations: list[Observation] = [peerings_of(estate), *subnets_of(estate)[1]]
    subnets: list[InhabitedSubnet] = []
    for network in reached_networks(estate, policy):
        observations.append(network)
        if network.value is not None and network.value.subnets is None:
            observations.append(not_answered(network.target, "list of subnets"))
        listed = (network.value.subnets or ()) if network.value is not None else ()
        subnets += [subnet for subnet in listed if is_reached(estate, policy, subnet.id)]
    return tuple(observations), subnets


def _evaluate(
    estate: Estate, policy: Policy, subnet: InhabitedSubnet, observations: tuple[Observation, ...]
) -> Iterator[CheckResult]:
    for occupant in dict.fromkeys(_occupants(estate, policy, subnet)):
        ends = ENDS.get(occupant.kind) or SENDERS.get(occupant.kind)
        if ends:
            yield passes(subnet.id, "ServiceEnds", f"{occupant.how}: {ends}", *observations)
        else:
            yield _by_reach(estate, policy, subnet, occupant, observations)


def _by_reach(
    estate: Estate, policy: Policy, subnet: InhabitedSubnet, occupant: Occupant, observations: tuple[Observation, ...]
) -> CheckResult:
    # Whether a service obeys the security group of its subnet differs from service to service.
    to_it = (Destination((subnet.id,), obeys_its_subnet=False),)
    reach, rests_on = reach_of(estate, to_it)
    if reach is Reach.SHUT:
        reach, by_firewall = reach_by_firewall(estate, policy, to_it)
        rests_on += by_firewall
    if reach is Reach.SHUT:
        reach, by_others = reach_by_others(estate, policy, Backend(to_it, _members(estate, subnet)))
        rests_on += by_others
        if reach is Reach.UNSEEN:
            message = (
                f"{occupant.how}, and the audit could not see whether nodes come to it by a load balancer or a gateway"
            )
            return unknown(subnet.id, "ReachNotSeen", message, *rests_on)
    if reach is Reach.SHUT:
        message = f"{occupant.how}, and rules stop every packet of the nodes to the subnet"
        return passes(subnet.id, "OutOfReach", message, *observations, *rests_on)
    if occupant.kind == RESOLVERS:
        message = f"{occupant.how}: the audit does not read which names it resolves for all who reach it"
        return unknown(subnet.id, "ResolverInReach", message, *observations, severity=Severity.MEDIUM)
    relays = RELAYS.get(occupant.kind, "")
    if relays and occupant.is_seen:
        path = path_of(NODE_SUBNETS, hops.subnet(name_of(subnet.id)), hops.service(occupant.kind), INTERNET)
        return fails(subnet.id, "ServiceRelays", f"{occupant.how}: {relays}", *observations, paths=(path,))
    if relays:
        message = f"{occupant.how}: {relays}; it is not shown whether one is there"
        return unknown(subnet.id, "ServiceNotShown", message, *observations)
    message = f"{occupant.how}: it is not known whether it passes on what it receives"
    return unknown(subnet.id, "ServiceUnknown", message, *observations)


def _members(estate: Estate, subnet: InhabitedSubnet) -> Members:
    """What identifies a service in pools: any address of its subnet, which `reach_of` has asked for as well."""
    subnet_fields = estate.one(Subnet, subnet.id).value
    prefixes = (
        tuple((subnet.id, prefix) for prefix in networks(subnet_fields.prefixes)) if subnet_fields is not None else ()
    )
    return Members("", frozenset(), (), frozenset(), prefixes, frozenset({parent_of(subnet.id).lower()}))


def _occupants(estate: Estate, policy: Policy, subnet: InhabitedSubnet) -> Iterator[Occupant]:
    """Services in a subnet that no other check evaluates."""
    delegated = [delegation.service_name or UNNAMED for delegation in subnet.delegations or ()]
    if MANAGED_CLUSTERS in map(str.lower, delegated) and _is_ours(estate, subnet):
        yield from _other_clusters(estate, subnet)
        return
    services = [service for service in delegated if service.lower() not in EVALUATED_ELSEWHERE]
    for service in services:
        yield Occupant(service.lower(), f"the subnet is delegated to {service}", subnet.has_visible_inhabitants)
    if services:
        return  # the service manages what is in its subnet
    for service in (link.linked_resource_type or UNNAMED for link in subnet.service_links):
        if service.lower() not in EVALUATED_ELSEWHERE:
            yield Occupant(service.lower(), f"{service} is in the subnet")
    yield from _owners(estate, policy, subnet)


def _is_ours(estate: Estate, subnet: InhabitedSubnet) -> bool:
    """Whether a subnet is the cluster's. In AKS's own network it is, though no profile names that of the API server."""
    group = node_group_of(estate)
    return is_of_the_cluster(estate, subnet.id) or (bool(group) and is_below(subnet.id, group))


def _other_clusters(estate: Estate, subnet: InhabitedSubnet) -> Iterator[Occupant]:
    """API servers of other clusters: clusters may share the subnet, each behind a balancer in its own node group."""
    for owner in dict.fromkeys(owner_of(configuration.id.lower()) for configuration in subnet.ip_configurations or ()):
        if type_of(owner) == LoadBalancer.TYPE.lower() and not is_below(owner, node_group_of(estate) or "-"):
            yield Occupant(MANAGED_CLUSTERS, f"{owner} has an address in the subnet")


def _owners(estate: Estate, policy: Policy, subnet: InhabitedSubnet) -> Iterator[Occupant]:
    """Owners of addresses in a subnet that are of no kind that is evaluated, or in no list."""
    references = (
        *(subnet.ip_configurations or ()),
        *(subnet.application_gateway_ip_configurations or ()),
        *(subnet.ip_configuration_profiles or ()),
    )
    for owner in dict.fromkeys(owner_of(reference.id.lower()) for reference in references):
        kind = type_of(owner)
        is_listed_kind = kind in {listed_type.TYPE.lower() for listed_type in LISTED}
        if is_listed_kind and owner not in _listed(estate, policy):
            yield Occupant(kind, f"{owner} has an address in the subnet, and no list shows it")
        elif not is_listed_kind and kind not in EVALUATED_ELSEWHERE:
            yield Occupant(kind, f"{owner} has an address in the subnet")


@derived
def _listed(estate: Estate, policy: Policy) -> frozenset[str]:
    """Ids, in lower case, of the resources of these types that were listed."""
    balancers, sets = throughout(estate, policy, LoadBalancer), throughout(estate, policy, ScaleSet)
    return frozenset(
        resource.id.lower() for resource in (*balancers, *sets, *throughout(estate, policy, ApplicationGateway))
    )

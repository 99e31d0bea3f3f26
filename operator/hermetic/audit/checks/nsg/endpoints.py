"""Subnets of private endpoints: security rules apply to them only if `privateEndpointNetworkPolicies` enables it."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import network_ids_of, node_group_of, subnets_of
from hermetic.audit.cluster.resource_lookup import everywhere, readable
from hermetic.audit.estate.arm_ids import is_below, parent_of
from hermetic.audit.estate.azure.private_link import PrivateEndpoint
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.evaluation.each_resource import found_or_none
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.hops import NODE, path_of
from hermetic.audit.policy.declarations import Policy

APPLIES = {"enabled", "networksecuritygroupenabled"}
DOES_NOT_APPLY = {"disabled", "routetableenabled", ""}


@check("nsg-pe-bypass")
def nsg_pe_bypass(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every subnet of the cluster's networks with a private endpoint that is not AKS's own."""
    endpoints = everywhere(estate, policy, PrivateEndpoint)
    networks, group = {network_id.lower() for network_id in network_ids_of(estate)}, node_group_of(estate)
    observations: list[Observation] = [endpoints, *subnets_of(estate)[1]]
    homes: dict[str, str] = {}
    for _, home in readable(endpoints, lambda endpoint: _home(endpoint, group), observations):
        if parent_of(home).lower() in networks:
            homes[home.lower()] = home
    for _, home in sorted(homes.items()):
        subnet = estate.one(Subnet, home)
        yield from whatever_is_damaged(home, _results(home, subnet))
    none = ("NoPrivateEndpoint", "no private endpoint but AKS's own is in the cluster's networks")
    yield from found_or_none(estate.cluster, homes, "private endpoints", none, *observations)


def _home(endpoint: PrivateEndpoint, node_group: str) -> str:
    """The endpoint's subnet; "" for the endpoint of a private API server, which AKS puts into the nodes' subnet."""
    services = {service for connection in endpoint.connections for service in connection.group_ids or ()}
    is_of_aks = bool(node_group) and is_below(endpoint.id, node_group) and services == {"management"}
    return "" if is_of_aks or endpoint.subnet is None else endpoint.subnet.id


def _results(home: str, subnet: Lookup[Subnet]) -> Iterator[CheckResult]:
    if subnet.value is None:
        yield unknown(home, "SubnetNotSeen", "the subnet could not be read", subnet)
        return
    policies = subnet.value.private_endpoint_network_policies or ""
    if policies.lower() in APPLIES:
        yield passes(home, "RulesApply", f"privateEndpointNetworkPolicies is {policies}", subnet)
    elif policies.lower() in DOES_NOT_APPLY:
        message = f"privateEndpointNetworkPolicies is {policies or 'absent'}: packets to private endpoints pass no rule"
        yield fails(
            home,
            "RulesBypassed",
            message,
            subnet,
            paths=(path_of(NODE, hops.private_endpoint(f"private endpoint in {subnet.value.name}")),),
        )
    else:
        yield unknown(home, "PolicyUnknown", f"privateEndpointNetworkPolicies {policies!r} is not known", subnet)

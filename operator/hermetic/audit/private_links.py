"""Private endpoints in the cluster's networks and their peers, and the resources they connect to."""

from __future__ import annotations

from hermetic.audit.cluster_scope import peerings_of
from hermetic.audit.estate.arm_ids import is_arm_id, type_of
from hermetic.audit.estate.azure.private_link import PrivateEndpoint
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import is_in, reached_network_ids, throughout
from hermetic.errors import FactDamaged


def private_endpoints_of(estate: Estate, policy: Policy) -> Listing[PrivateEndpoint]:
    """Those with an address in one of the networks. One whose subnet is not readable adds a problem."""
    return estate.once(("private endpoints", policy), lambda: _private_endpoints(estate, policy))


def _private_endpoints(estate: Estate, policy: Policy) -> Listing[PrivateEndpoint]:
    every, networks = throughout(estate, policy, PrivateEndpoint), reached_network_ids(estate)
    found: list[PrivateEndpoint] = []
    problem = every.problem
    for endpoint in every:
        try:
            subnet = endpoint.subnet
        except FactDamaged as damage:
            problem = problem or Problem(Trouble.UNREADABLE, damage.message)
            continue
        if subnet is None:
            problem = problem or Problem(Trouble.UNREADABLE, f"{endpoint.id}: names no subnet")
        elif is_in((subnet.id,), networks):
            found.append(endpoint)
    peerings = peerings_of(estate)
    return Listing(estate.cluster, tuple(found), (*every.evidence, *peerings.evidence), problem or peerings.problem)


def targets_of(estate: Estate, policy: Policy, resource_type: str) -> Listing[str]:
    """Ids of the resources of a type that private endpoints connect to, without duplicates."""
    endpoints = private_endpoints_of(estate, policy)
    found: dict[str, str] = {}
    problem = endpoints.problem
    for endpoint in endpoints:
        try:
            ids = [one.private_link_service_id or "" for one in endpoint.connections]
        except FactDamaged as damage:
            problem = problem or Problem(Trouble.UNREADABLE, damage.message)
            continue
        for one in ids:
            if is_arm_id(one) and type_of(one).lower() == resource_type.lower():
                found.setdefault(one.lower(), one)
    targets = tuple(found[key] for key in sorted(found))
    return Listing(estate.cluster, targets, endpoints.evidence, problem)

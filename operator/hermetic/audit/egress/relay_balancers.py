"""Load balancers with a public frontend that hold a machine beside the nodes, and the public side that they give it.

A pool by address names no interface, and no interface names it; the balancer may be in another subscription than the
machine (learn.microsoft.com/azure/load-balancer/backend-pool-management, cross-subscription-overview). So balancers
that an interface names are asked, and every one that a list shows is searched for the machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.cluster.resource_lookup import each_of, readable, values_of
from hermetic.audit.egress.methods import by_balancer
from hermetic.audit.estate.arm_ids import parent_of
from hermetic.audit.estate.azure.balancing import LoadBalancer
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Observation, not_answered
from hermetic.audit.model import hops
from hermetic.audit.model.hops import Path
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.balancers import Members, pools_with, public_frontends
from hermetic.audit.scope.reachable_networks import throughout


def balancer_egress_paths(
    estate: Estate, policy: Policy, members: Members, observations: list[Observation]
) -> Iterator[Path]:
    """The ways of every balancer that the machine names, or that holds it."""
    named = [
        estate.one(LoadBalancer, balancer_id) for balancer_id in sorted({parent_of(pool) for pool in members.pools})
    ]
    named_ids = {balancer.target.lower() for balancer in named}
    listed, unread = _public_balancers(estate, policy)
    other_balancers = [balancer for balancer in listed if balancer.id.lower() not in named_ids]
    observations += (*named, listed, *unread)
    yield from each_of(
        (*values_of(named), *other_balancers),
        lambda balancer: _of_balancer(balancer, members, observations),
        observations,
    )


def _of_balancer(balancer: LoadBalancer, members: Members, observations: list[Observation]) -> Iterator[Path]:
    pools = pools_with(balancer, members)
    absent = [list_name for list_name, rows in _lists_of(balancer) if rows is None]
    if absent and (pools or balancer.backend_address_pools is None):
        observations.append(not_answered(balancer.id, f"list of {absent[0]}"))
    if not pools:
        return
    paths = [(method.hop,) for _, method in by_balancer(balancer, pools)]
    # Who calls a public frontend from outside fetches what nodes brought to the machine, with no translation at all.
    if public_frontends(balancer) and not paths:
        paths.append((hops.load_balancer(f"public frontend of load balancer {balancer.name}"),))
    yield from paths


def _lists_of(balancer: LoadBalancer) -> tuple[tuple[str, object], ...]:
    """What decides, by its name. Azure answers these lists even when they are empty: a missing one was cut off."""
    return (
        ("frontends", balancer.frontend_ip_configurations),
        ("backend pools", balancer.backend_address_pools),
        ("rules", balancer.load_balancing_rules),
        ("outbound rules", balancer.outbound_rules),
    )


@derived
def _public_balancers(estate: Estate, policy: Policy) -> tuple[Listing[LoadBalancer], tuple[Observation, ...]]:
    """The listed balancers that are not known to be internal, and those that could not be read."""
    listed = throughout(estate, policy, LoadBalancer)
    unread: list[Observation] = []
    public = tuple(balancer for balancer, is_public in readable(listed, _may_be_public, unread) if is_public)
    return Listing(listed.target, public, listed.evidence, listed.problem), tuple(unread)


def _may_be_public(balancer: LoadBalancer) -> bool:
    return balancer.frontend_ip_configurations is None or bool(public_frontends(balancer))

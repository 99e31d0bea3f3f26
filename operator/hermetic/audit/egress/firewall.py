"""Routes to the one firewall that the profile `filtered` allows."""

from __future__ import annotations

from hermetic.audit.egress.routes import NextHopKind, OutboundRoute, leads_to_appliance
from hermetic.audit.egress.subnet_context import SubnetContext
from hermetic.audit.estate.azure.managed_services import AzureFirewall
from hermetic.audit.estate.azure.routing import Route
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.policy import Policy


def declared_addresses(estate: Estate, policy: Policy) -> tuple[tuple[str, ...], tuple[Observation, ...]]:
    """Private addresses of the declared firewall and its observation; both empty in the profile `sealed`.

    Raises FactDamaged where the firewall's addresses cannot be read.
    """
    if policy.profile != "filtered":
        return (), ()
    seen = estate.one(AzureFirewall, policy.firewall)
    return (seen.value.private_addresses if seen.value is not None else ()), (seen,)


def leads_to_the_firewall(way: OutboundRoute, addresses: tuple[str, ...]) -> bool:
    """Whether it is a default route to one of these addresses; a route for any other prefix never qualifies."""
    return way.is_default and is_to_the_firewall(way.route, addresses)


def is_to_the_firewall(route: Route, addresses: tuple[str, ...]) -> bool:
    """Whether the next hop is an appliance at one of these addresses."""
    return leads_to_appliance(route, addresses)


def firewall_observations(estate: Estate, policy: Policy, around: SubnetContext) -> tuple[Observation, ...] | None:
    """Observations that every default route leads to the declared firewall, which then decides in place of the rules.

    None where a default route leads elsewhere. Where the firewall was not seen, every route to an appliance counts
    and the observations carry the problem, so that no Pass follows. Raises FactDamaged for a route or a firewall that
    cannot be read.
    """
    addresses, observations = declared_addresses(estate, policy)
    defaults = [way for way in around.ways if way.is_default and way.hop is not NextHopKind.DROPPED]
    if not observations or around.table is None or not _are_all_routed(around):
        return None
    if any(observation.problem is not None for observation in observations):
        may_lead_there = all(way.hop is NextHopKind.FORWARDED for way in defaults)
    else:
        may_lead_there = all(leads_to_the_firewall(way, addresses) for way in defaults)
    return (around.table, *observations) if defaults and may_lead_there else None


def _are_all_routed(around: SubnetContext) -> bool:
    """Whether each IP version in use has a user-defined default route; otherwise Azure's system route decides."""
    versions = {way.prefix.version for way in around.ways if way.is_default and way.prefix is not None}
    return 4 in versions and (6 in versions or not around.ground.has_v6)

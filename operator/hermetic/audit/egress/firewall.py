"""The one firewall that the profile `filtered` allows, as far as routes go."""

from __future__ import annotations

from hermetic.audit.egress.routes import NextHopKind, OutboundRoute, leads_to_appliance
from hermetic.audit.egress.subnet_context import SubnetContext
from hermetic.audit.estate.azure.firewalls import AzureFirewall
from hermetic.audit.estate.azure.routing import Route
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.policy import Policy


def declared_addresses(estate: Estate, policy: Policy) -> tuple[tuple[str, ...], tuple[Observation, ...]]:
    """Private addresses of the declared firewall, and the look at it; nothing of either in the profile `sealed`.

    Raises FactDamaged where the firewall does not say its addresses in a readable way.
    """
    if policy.profile != "filtered":
        return (), ()
    seen = estate.one(AzureFirewall, policy.firewall)
    return (seen.value.private_addresses if seen.value is not None else ()), (seen,)


def leads_to_the_firewall(way: OutboundRoute, addresses: tuple[str, ...]) -> bool:
    """Whether a default route goes exactly there; no other prefix is allowed to."""
    return way.is_default and is_to_the_firewall(way.route, addresses)


def is_to_the_firewall(route: Route, addresses: tuple[str, ...]) -> bool:
    """Whether the next hop is an appliance with one of its addresses."""
    return leads_to_appliance(route, addresses)


def firewall_looks(estate: Estate, policy: Policy, around: SubnetContext) -> tuple[Observation, ...] | None:
    """Not None when every default route of the subnet leads to the declared firewall: it decides then, not the rules.

    The looks are what that rests on; where the firewall was not seen, they say so, and nothing follows.
    Raises FactDamaged for a route or a firewall that cannot be read.
    """
    addresses, looks = declared_addresses(estate, policy)
    defaults = [way for way in around.ways if way.is_default and way.hop is not NextHopKind.DROPPED]
    if not looks or around.table is None or not _are_all_routed(around):
        return None
    if any(look.problem is not None for look in looks):
        may_lead_there = all(way.hop is NextHopKind.FORWARDED for way in defaults)
    else:
        may_lead_there = all(leads_to_the_firewall(way, addresses) for way in defaults)
    return (around.table, *looks) if defaults and may_lead_there else None


def _are_all_routed(around: SubnetContext) -> bool:
    """Whether a route of ours decides about each IP version in use; else Azure's own does."""
    versions = {way.prefix.version for way in around.ways if way.is_default and way.prefix is not None}
    return 4 in versions and (6 in versions or not around.ground.has_v6)

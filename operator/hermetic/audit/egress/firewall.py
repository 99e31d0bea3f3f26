"""The one firewall that the profile `filtered` allows, as far as routes go."""

from __future__ import annotations

from hermetic.audit.egress.routes import Way, leads_to_appliance
from hermetic.audit.estate.azure.firewalls import AzureFirewall
from hermetic.audit.estate.azure.routing import Route
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Look
from hermetic.audit.policy import Policy


def declared_addresses(estate: Estate, policy: Policy) -> tuple[tuple[str, ...], tuple[Look, ...]]:
    """Private addresses of the declared firewall, and the look at it; nothing of either in the profile `sealed`.

    Raises FactDamaged where the firewall does not say its addresses in a readable way.
    """
    if policy.profile != "filtered":
        return (), ()
    seen = estate.one(AzureFirewall, policy.firewall)
    return (seen.value.private_addresses if seen.value is not None else ()), (seen,)


def leads_to_the_firewall(way: Way, addresses: tuple[str, ...]) -> bool:
    """Whether a default route goes exactly there; no other prefix is allowed to."""
    return way.is_default and is_to_the_firewall(way.route, addresses)


def is_to_the_firewall(route: Route, addresses: tuple[str, ...]) -> bool:
    """Whether the next hop is an appliance with one of its addresses."""
    return leads_to_appliance(route, addresses)

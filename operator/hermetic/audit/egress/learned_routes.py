"""Routes that a virtual network gateway has learned, as its action lists them."""

from __future__ import annotations

from hermetic.audit.cluster_scope import missing
from hermetic.audit.egress.address_ranges import Space, is_public, space, without
from hermetic.audit.egress.address_ranges import network as prefix_of
from hermetic.audit.estate.azure.routing import LearnedRoute, LearnedRoutes
from hermetic.audit.estate.observation import Missing, Seen


def learned_routes(learned: Seen[LearnedRoutes]) -> list[LearnedRoute]:
    """The routes that were answered; none where nothing was."""
    return (learned.value.value or []) if learned.value is not None else []


def without_a_list(learned: Seen[LearnedRoutes]) -> Missing | None:
    """What is missing where the action was answered without its list."""
    if learned.value is None or learned.value.value is not None:
        return None
    return missing(f"{learned.target}: the answer of {LearnedRoutes.ACTION} has no list")


def public_prefixes(learned: Seen[LearnedRoutes], own: Space) -> list[str]:
    """Public prefixes that were learned, but for the networks' `own` space; text that is no prefix counts as public.

    Networks may use public prefixes, and a gateway lists those of its own with the origin Network. It lists static
    routes so too (Azure PowerShell, Get-AzVirtualNetworkGatewayLearnedRoute), so the origin alone excuses none.
    """
    return [route.network or "?" for route in learned_routes(learned) if not _is_private(route, own)]


def _is_private(route: LearnedRoute, own: Space) -> bool:
    prefix = prefix_of(route.network or "?")
    if prefix is None:
        return False
    is_own = (route.origin or "").lower() == "network" and not without(space((prefix,)), own)
    return is_own or not is_public(prefix)

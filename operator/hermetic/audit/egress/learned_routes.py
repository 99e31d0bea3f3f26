"""Routes that a virtual network gateway has learned, as its action lists them."""

from __future__ import annotations

from hermetic.audit.cluster_scope import missing
from hermetic.audit.egress.address_ranges import is_public
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


def is_public_route(route: LearnedRoute) -> bool:
    """Whether its prefix is public; text that is no prefix counts as public."""
    prefix = prefix_of(route.network or "?")
    return prefix is None or is_public(prefix)

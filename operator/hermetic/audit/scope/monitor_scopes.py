"""The members of the Azure Monitor private link scopes that private endpoints in reach lead to.

In mode PrivateOnly a network sends to the members of its scopes alone, so the list of members is the list of what a
pod can send to (learn.microsoft.com/azure/azure-monitor/logs/private-link-security).
"""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.azure.deliveries import ScopedResource
from hermetic.audit.estate.azure.private_link import MonitorScope
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.private_links import targets_of
from hermetic.errors import FactDamaged


@derived
def members_of(estate: Estate, policy: Policy) -> Listing[str]:
    """ARM ids of the members of every scope in reach. A member that cannot be read is a problem."""
    scopes = targets_of(estate, policy, MonitorScope.TYPE)
    listed = [estate.every(ScopedResource, scope) for scope in scopes]
    problem = next((listing.problem for listing in (scopes, *listed) if listing.problem is not None), None)
    evidence = tuple(part for listing in (scopes, *listed) for part in listing.evidence)
    members: dict[str, str] = {}
    for member in _readable_members(listed):
        if isinstance(member, Problem):
            problem = problem or member
        else:
            members[member.lower()] = member
    return Listing(estate.cluster, tuple(members[key] for key in sorted(members)), evidence, problem)


def _readable_members(listed: list[Listing[ScopedResource]]) -> Iterator[str | Problem]:
    for member in (member for listing in listed for member in listing):
        try:
            linked = member.linked_resource_id
        except FactDamaged as damage:
            yield Problem(UnreadReason.UNREADABLE, damage.message)
        else:
            yield linked or Problem(UnreadReason.UNREADABLE, f"{member.id}: names no resource")

"""Storage accounts in a network security perimeter: who is let in by its rules, its members and its links."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.estate.azure.perimeters import (
    AccountPerimeter,
    PerimeterLink,
    PerimeterLinkReference,
    PerimeterMember,
    PerimeterRule,
)
from hermetic.audit.estate.azure.storage import StorageAccount
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Lookup
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, POD, STORAGE, path_of
from hermetic.audit.policy.declarations import Policy

ENFORCED, INBOUND = "enforced", "inbound"


def of_perimeters(estate: Estate, policy: Policy, account: Lookup[StorageAccount]) -> Iterator[CheckResult]:
    """Results about an account whose access a perimeter decides; every perimeter must admit nobody but us."""
    perimeters = estate.every(AccountPerimeter, account.target)
    for perimeter in perimeters:
        yield from _of_perimeter(estate, policy, account, perimeter)
    if perimeters.items:
        yield passes(account.target, "PerimeterRead", "its perimeters were read", account, perimeters)
    else:
        message = "publicNetworkAccess is SecuredByPerimeter, and the account is in no perimeter that was read"
        yield unknown(account.target, "PerimeterNotSeen", message, perimeters, account)


def _of_perimeter(
    estate: Estate, policy: Policy, account: Lookup[StorageAccount], perimeter: AccountPerimeter
) -> Iterator[CheckResult]:
    reference, profile = perimeter.network_security_perimeter, perimeter.profile
    association = perimeter.resource_association
    mode = (association.access_mode if association is not None else None) or ""
    rules = profile.access_rules if profile is not None else None
    if reference is None or rules is None or mode.lower() != ENFORCED:
        message = f"a perimeter in mode {mode or 'not shown'} does not show that it enforces its rules"
        yield unknown(account.target, "PerimeterNotEnforced", message, perimeter, account)
    if reference is None:
        return
    members = estate.every(PerimeterMember, reference.id)
    links = (estate.every(PerimeterLink, reference.id), estate.every(PerimeterLinkReference, reference.id))
    admitted = [text for rule in rules or () for text in _admitted(estate, policy, rule)]
    admitted += [f"member {text}" for text in _foreign_members(estate, policy, members.items)]
    admitted += [f"link to {text}" for listing in links for text in _foreign_links(estate, policy, listing)]
    if admitted:
        message = f"perimeter {reference.id} lets in or out: {', '.join(admitted)}"
        path = path_of(POD, STORAGE, hops.service("network security perimeter"), INTERNET)
        yield fails(account.target, "PerimeterAdmits", message, account, perimeter, members, *links, paths=(path,))
    else:
        message = f"perimeter {reference.id} lets in subscriptions of ours alone"
        yield passes(account.target, "PerimeterOurs", message, account, perimeter, members, *links)


def _admitted(estate: Estate, policy: Policy, rule: PerimeterRule) -> Iterator[str]:
    """What a rule admits that is not a subscription of ours; a rule of a kind that is not known admits anything."""
    subscriptions = [reference.id for reference in rule.subscriptions or ()]
    other_sources = (
        *(rule.address_prefixes or ()),
        *(reference.id for reference in rule.network_security_perimeters or ()),
        *(rule.fully_qualified_domain_names or ()),
        *(rule.email_addresses or ()),
        *(rule.phone_numbers or ()),
        *(rule.service_tags or ()),
    )
    yield from other_sources
    ours = (estate.cluster, *network_ids_of(estate))
    yield from (subscription for subscription in subscriptions if not policy.owns(subscription, *ours))
    is_inbound = (rule.direction or "").lower() == INBOUND
    if not (subscriptions and is_inbound) and not other_sources:
        yield f"rule {rule.name or 'without a name'}, of a kind that is not known"


# A link in one of these states passes nothing: Microsoft.Network, NspLinkStatus.
NO_LINK = {"rejected", "disconnected"}


def _foreign_links(
    estate: Estate, policy: Policy, links: Listing[PerimeterLink] | Listing[PerimeterLinkReference]
) -> Iterator[str]:
    """Perimeters that are not ours and are linked with this one, or wait to be; a link may name none."""
    ours = (estate.cluster, *network_ids_of(estate))
    for link in links:
        if (link.status or "").lower() not in NO_LINK and not (link.remote and policy.owns(link.remote, *ours)):
            yield link.remote or f"a perimeter that {link.name} does not name"


def _foreign_members(estate: Estate, policy: Policy, members: tuple[PerimeterMember, ...]) -> Iterator[str]:
    ours = (estate.cluster, *network_ids_of(estate))
    for member in members:
        resource = member.private_link_resource.id if member.private_link_resource is not None else ""
        if not resource or not policy.owns(resource, *ours):
            yield resource or f"{member.name}, which names no resource"

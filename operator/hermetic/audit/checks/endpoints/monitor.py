"""Azure Monitor behind a private endpoint: who receives what is sent, by the modes and members of its scope."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.estate.arm_ids import is_arm_id, name_of
from hermetic.audit.estate.azure.deliveries import ScopedResource
from hermetic.audit.estate.azure.private_link import AccessModes, MonitorScope
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Lookup
from hermetic.audit.evaluation.each_resource import whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model.hops import NODE_SUBNETS, PRIVATE_ENDPOINT, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.private_links import targets_of

PRIVATE, OPEN = "privateonly", "open"
NO_SCOPE = "no private endpoint in reach leads to Azure Monitor"


@check("ampls-open")
def ampls_open(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every monitor scope that a private endpoint in reach leads to."""
    targets = targets_of(estate, policy, MonitorScope.TYPE)
    for target in targets:
        scope = estate.one(MonitorScope, target)
        yield from whatever_is_damaged(target, _scope(scope))
    if targets.items:
        yield from whole_or_unknown(estate.cluster, "monitor scopes in reach", targets)
    else:
        yield does_not_apply(estate.cluster, "NoMonitorScope", NO_SCOPE, targets)


def _scope(scope: Lookup[MonitorScope]) -> Iterator[CheckResult]:
    settings = scope.value.access_mode_settings if scope.value is not None else None
    if settings is None:
        yield unknown(scope.target, "ModesNotSeen", "the access modes were not seen", scope)
        return
    modes = [(name, mode or "Open by default") for name, mode in _modes(settings)]
    for exclusion in settings.exclusions or ():
        where = exclusion.private_endpoint_connection_name
        modes += [(f"{name} of connection {where}", mode or "not reported") for name, mode in _modes(exclusion)]
    is_open = [f"{name} is {mode}" for name, mode in modes if mode.lower().startswith(OPEN)]
    not_private = [f"{name} is {mode}" for name, mode in modes if mode.lower() != PRIVATE]
    if is_open:
        path = path_of(NODE_SUBNETS, PRIVATE_ENDPOINT, "azure monitor", "other tenant")
        yield fails(scope.target, "OpenMode", "; ".join(is_open), scope, paths=(path,))
    elif not_private:
        yield unknown(scope.target, "ModeUnknown", "; ".join(not_private), scope)
    else:
        yield passes(scope.target, "PrivateOnly", "ingestion and query are private only", scope)


def _modes(modes: AccessModes) -> tuple[tuple[str, str | None], ...]:
    return ("ingestion", modes.ingestion_access_mode), ("query", modes.query_access_mode)


@check("ampls-members")
def ampls_members(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every member of the monitor scopes in reach is ours: a pod with the key of a member sends to it."""
    targets = targets_of(estate, policy, MonitorScope.TYPE)
    for target in targets:
        members = estate.every(ScopedResource, target)
        for member in members:
            yield from whatever_is_damaged(member.id or target, _member(estate, policy, member, members))
        message = f"{len(members)} members were read" if members.items else "it has no member"
        yield passes(target, "MembersRead", message, members)
    if targets.items:
        yield from whole_or_unknown(estate.cluster, "monitor scopes in reach", targets)
    else:
        yield does_not_apply(estate.cluster, "NoMonitorScope", NO_SCOPE, targets)


def _member(
    estate: Estate, policy: Policy, member: ScopedResource, members: Listing[ScopedResource]
) -> Iterator[CheckResult]:
    linked = member.linked_resource_id or ""
    if not is_arm_id(linked):
        yield unknown(member.id, "MemberNotNamed", "the member names no resource", members, member)
    elif not policy.owns(linked, estate.cluster, *network_ids_of(estate)):
        message = f"the scope holds {linked}, which is not ours: data that our endpoint sends to it is read elsewhere"
        path = path_of(NODE_SUBNETS, PRIVATE_ENDPOINT, "azure monitor", f"{name_of(linked)} of another subscription")
        yield fails(member.id, "ForeignMember", message, member, members, paths=(path,))

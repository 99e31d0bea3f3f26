"""Private endpoints to our own resources that relay what they receive: into another network, or to other readers."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.estate.arm_ids import is_arm_id, name_of, same_id, type_of
from hermetic.audit.estate.azure.private_link import LinkConnection, PrivateEndpoint
from hermetic.audit.estate.azure.private_link_types import ENDS, QUERIED, RELAYS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation.each_resource import each_private_endpoint
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.private_links import is_allowed


@check_each("pe-relay-target", each_private_endpoint)
def pe_relay_target(estate: Estate, policy: Policy, endpoint: PrivateEndpoint) -> Iterator[CheckResult]:
    """Every private endpoint in the networks and their peers that leads to a resource of our subscriptions."""
    if not endpoint.connections:
        yield unknown(endpoint.id, "NoConnection", "the answer names nothing that it leads to", endpoint)
    for connection in endpoint.connections:
        yield _target(estate, policy, endpoint, connection)


def _target(estate: Estate, policy: Policy, endpoint: PrivateEndpoint, connection: LinkConnection) -> CheckResult:
    target = connection.private_link_service_id or ""
    if not target:
        return unknown(endpoint.id, "TargetNotNamed", "a connection does not show where it leads", endpoint)
    if is_allowed(policy, target):
        return passes(endpoint.id, "TargetAllowed", f"the policy allows {target}", endpoint)
    if not is_arm_id(target) or not policy.owns(target, estate.cluster, *network_ids_of(estate)):
        message = f"{target} is not ours, which pe-foreign-target evaluates"
        return does_not_apply(endpoint.id, "TargetNotOurs", message, endpoint)
    if same_id(target, estate.cluster):
        return passes(endpoint.id, "ApiServer", "it leads to the cluster's own API server", endpoint)
    return _by_kind(endpoint, target)


def _by_kind(endpoint: PrivateEndpoint, target: str) -> CheckResult:
    kind = type_of(target).lower()
    if kind in ENDS:
        return passes(endpoint.id, "TargetEnds", f"data sent to {target} ends there: {ENDS[kind]}", endpoint)
    if kind in QUERIED:
        path = path_of(hops.private_endpoint(f"private endpoint {endpoint.name}"), name_of(target), "its readers")
        message = f"it leads to {target}: {QUERIED[kind]}"
        return fails(endpoint.id, "TargetQueried", message, endpoint, paths=(path,), severity=Severity.MEDIUM)
    reason = next(
        (
            description
            for relay_kind, description in RELAYS.items()
            if kind == relay_kind or kind.startswith(f"{relay_kind}/")
        ),
        "",
    )
    if reason:
        path = path_of(hops.private_endpoint(f"private endpoint {endpoint.name}"), name_of(target), "elsewhere")
        return fails(endpoint.id, "TargetRelays", f"it leads to {target}: {reason}", endpoint, paths=(path,))
    explanation = f"it leads to {target}: it is not known whether a resource of this type passes on what it receives"
    return unknown(endpoint.id, "KindUnknown", explanation, endpoint)

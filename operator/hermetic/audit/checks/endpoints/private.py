"""Private Link in both directions: endpoints to resources of others, and link services offered to others."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.members import cluster_of, network_ids_of, node_group_of
from hermetic.audit.estate.arm_ids import is_arm_id, is_below, is_in, name_of, type_of
from hermetic.audit.estate.azure.private_link import Audience, LinkConnection, PrivateEndpoint, PrivateLinkService
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation.each_resource import each_or_none, each_private_endpoint
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import LOAD_BALANCER, POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.private_links import is_allowed, others_of
from hermetic.audit.scope.reachable_networks import where_readable

ARM = "microsoft.authorization/resourcemanagementprivatelinks"
API_SERVER_ENDPOINT = "kube-apiserver"


@check_each("pe-foreign-target", each_private_endpoint)
def pe_foreign_target(estate: Estate, policy: Policy, endpoint: PrivateEndpoint) -> Iterator[CheckResult]:
    """Every private endpoint in the networks and their peers leads to a resource of our subscriptions."""
    if not endpoint.connections:
        yield unknown(endpoint.id, "NoConnection", "the answer names nothing that it leads to", endpoint)
    manual = endpoint.manual_private_link_service_connections or ()
    for connection in endpoint.connections:
        yield _target(estate, policy, endpoint, connection, manual=connection in manual)


def _target(
    estate: Estate, policy: Policy, endpoint: PrivateEndpoint, connection: LinkConnection, *, manual: bool
) -> CheckResult:
    target = connection.private_link_service_id or ""
    if not target:
        return unknown(endpoint.id, "TargetNotNamed", "a connection does not show where it leads", endpoint)
    path = path_of(hops.private_endpoint(f"private endpoint {endpoint.name}"), name_of(target))
    if is_arm_id(target) and type_of(target).lower() == ARM:
        message = "it leads to Azure Resource Manager: with a token the tenant is managed from here"
        return fails(endpoint.id, "ResourceManager", message, endpoint, paths=(path,), severity=Severity.HIGH)
    if is_allowed(policy, target):
        return passes(endpoint.id, "TargetAllowed", f"the policy allows {target}", endpoint)
    if _is_for_the_api_server(estate, endpoint, connection):
        message = "AKS's own endpoint for the API server, in the node resource group"
        return passes(endpoint.id, "ApiServer", message, endpoint, cluster_of(estate))
    reason, message = _objection(estate, policy, target, manual=manual)
    if reason:
        return fails(endpoint.id, reason, message, endpoint, paths=(path,))
    return passes(endpoint.id, "TargetOurs", f"it leads to {target}", endpoint)


def _objection(estate: Estate, policy: Policy, target: str, *, manual: bool) -> tuple[str, str]:
    if not is_arm_id(target):
        return "TargetIsAlias", f"it leads to the alias {target}, which does not show whose it is"
    if not policy.owns(target, estate.cluster, *network_ids_of(estate)):
        return "TargetNotOurs", f"it leads to {target}, in a subscription that is not ours"
    if manual:
        return "ManualConnection", f"the connection to {target} was asked for by hand, and its owner decides about it"
    return "", ""


def _is_for_the_api_server(estate: Estate, endpoint: PrivateEndpoint, connection: LinkConnection) -> bool:
    """Whether name, group and subresource are those of a private cluster's one endpoint (without API server subnet)."""
    cluster, group = cluster_of(estate).value, node_group_of(estate)
    access = cluster.api_server_access_profile if cluster is not None else None
    return (
        access is not None
        and access.is_behind_private_link
        and bool(group)
        and is_below(endpoint.id, group)
        and name_of(endpoint.id).lower() == API_SERVER_ENDPOINT
        and [group_id.lower() for group_id in connection.group_ids or ()] == ["management"]
    )


@check("pls-exposed")
def pls_exposed(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Private link services in the node resource group or in the cluster's networks."""
    group = node_group_of(estate)
    own = frozenset(network_id.lower() for network_id in network_ids_of(estate))

    def is_ours(service: PrivateLinkService) -> bool:
        subnets = [
            configuration.subnet.id
            for configuration in service.ip_configurations or ()
            if configuration.subnet is not None
        ]
        return (bool(group) and is_below(service.id, group)) or is_in(subnets, own)

    services = where_readable(estate, policy, PrivateLinkService).where(is_ours)
    yield from each_or_none(
        estate.cluster,
        services,
        lambda service: _exposure(estate, policy, service),
        "nothing is offered",
        cluster_of(estate),
    )


def _exposure(estate: Estate, policy: Policy, service: PrivateLinkService) -> Iterator[CheckResult]:
    ours = (estate.cluster, *network_ids_of(estate))
    other_connections = others_of(estate, policy, service.private_endpoint_connections or ())
    undecided = [connection for connection in other_connections.undecided if not connection.other.waits]
    foreign = [
        subscription for subscription in _subscriptions(service.visibility) if not policy.owns(subscription, *ours)
    ]
    exposures = [f"visible to {subscription}" for subscription in foreign]
    unasked = _subscriptions(service.auto_approval)
    exposures += [f"lets {subscription} in unasked" for subscription in unasked if not policy.owns(subscription, *ours)]
    exposures += [f"used by {other.description}" for other in other_connections.strangers if not other.waits]
    if exposures:
        path = path_of(POD, LOAD_BALANCER, hops.service(f"private link service {service.name}"), "other subscription")
        yield fails(service.id, "OfferedToOthers", "; ".join(exposures), service, paths=(path,))
    elif unasked:
        message = f"lets subscriptions of ours in unasked: {', '.join(unasked)}"
        yield fails(service.id, "OwnApproved", message, service, severity=Severity.MEDIUM)
    for connection in undecided:
        explanation = f"it is not known who uses it: {connection.other.description}"
        yield unknown(service.id, connection.reason, explanation, *connection.observations, service)
    if other_connections.unclear:
        yield unknown(service.id, "StatusUnknown", "; ".join(other_connections.unclear), service)
    for damage in other_connections.damage:
        yield unknown(service.id, "Unreadable", damage.problem.detail, damage)
    if not (exposures or unasked or undecided or other_connections.unclear or other_connections.damage):
        yield passes(service.id, "OursOnly", "only subscriptions of ours see it", service)


def _subscriptions(audience: Audience | None) -> tuple[str, ...]:
    return tuple(audience.subscriptions or ()) if audience is not None else ()

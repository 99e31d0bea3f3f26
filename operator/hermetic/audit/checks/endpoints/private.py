"""Private Link in both directions: endpoints to resources of others, and link services offered to others."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster_scope import cluster_of, network_ids_of, node_group_of
from hermetic.audit.estate.arm_ids import is_arm_id, is_below, name_of, same_id, type_of
from hermetic.audit.estate.azure.private_link import Audience, LinkConnection, PrivateEndpoint, PrivateLinkService
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown
from hermetic.audit.findings import Severity
from hermetic.audit.hops import LOAD_BALANCER, POD, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.private_links import each_private_endpoint, others_of
from hermetic.audit.reachable_networks import each_or_none, is_in, throughout

ARM = "microsoft.authorization/resourcemanagementprivatelinks"
API_SERVER_ENDPOINT = "kube-apiserver"


def is_allowed(policy: Policy, target: str) -> bool:
    """Whether the policy names this target of a private endpoint."""
    return any(same_id(target, allowed) for allowed in policy.allowed_private_link_services)


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
        words = "it leads to Azure Resource Manager: with a token the tenant is managed from here"
        return fails(endpoint.id, "ResourceManager", words, endpoint, paths=(path,), severity=Severity.HIGH)
    if is_allowed(policy, target):
        return passes(endpoint.id, "TargetAllowed", f"the policy allows {target}", endpoint)
    if _is_for_the_api_server(estate, endpoint, connection):
        words = "AKS's own endpoint for the API server, in the node resource group"
        return passes(endpoint.id, "ApiServer", words, endpoint, cluster_of(estate))
    reason, words = _objection(estate, policy, target, manual=manual)
    if reason:
        return fails(endpoint.id, reason, words, endpoint, paths=(path,))
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
        and [one.lower() for one in connection.group_ids or ()] == ["management"]
    )


@check("pls-exposed")
def pls_exposed(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Private link services in the node resource group or in the cluster's networks."""
    group = node_group_of(estate)
    own = frozenset(one.lower() for one in network_ids_of(estate))

    def is_ours(service: PrivateLinkService) -> bool:
        subnets = [one.subnet.id for one in service.ip_configurations or () if one.subnet is not None]
        return (bool(group) and is_below(service.id, group)) or is_in(subnets, own)

    services = throughout(estate, policy, PrivateLinkService).where(is_ours)
    yield from each_or_none(
        estate.cluster, services, lambda one: _exposure(estate, policy, one), "nothing is offered", cluster_of(estate)
    )


def _exposure(estate: Estate, policy: Policy, service: PrivateLinkService) -> Iterator[CheckResult]:
    ours = (estate.cluster, *network_ids_of(estate))
    others = others_of(estate, policy, service.private_endpoint_connections or ())
    undecided = [one for one in others.undecided if not one.other.waits]
    foreign = [one for one in _subscriptions(service.visibility) if not policy.owns(one, *ours)]
    exposures = [f"visible to {one}" for one in foreign]
    exposures += [f"lets {one} in unasked" for one in _subscriptions(service.auto_approval)]
    exposures += [f"used by {other.words}" for other in others.strangers if not other.waits]
    if exposures:
        path = path_of(POD, LOAD_BALANCER, hops.service(f"private link service {service.name}"), "other subscription")
        yield fails(service.id, "OfferedToOthers", "; ".join(exposures), service, paths=(path,))
    for one in undecided:
        words = f"it is not known who uses it: {one.other.words}"
        yield unknown(service.id, one.reason, words, *one.observations, service)
    if others.odd:
        yield unknown(service.id, "StatusUnknown", "; ".join(others.odd), service)
    for damage in others.damage:
        yield unknown(service.id, "Unreadable", damage.problem.detail, damage)
    if not (exposures or undecided or others.odd or others.damage):
        yield passes(service.id, "OursOnly", "only subscriptions of ours see it", service)


def _subscriptions(audience: Audience | None) -> tuple[str, ...]:
    return tuple(audience.subscriptions or ()) if audience is not None else ()

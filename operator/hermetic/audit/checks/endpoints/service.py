"""Service endpoints of subnets: a direct route to a service, for all tenants' instances, that overrides others."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.members import ScopedSubnet, subnets_of
from hermetic.audit.egress.service_endpoints import is_storage, resources_of, storage_reach, too_wide
from hermetic.audit.estate.azure.private_link import ServiceEndpointPolicy
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.audit.evaluation.each_resource import each_subnet
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.hops import SERVICE_ENDPOINT, STORAGE, path_of
from hermetic.audit.policy.declarations import Policy


@check_each("svc-endpoint-storage", each_subnet)
def svc_endpoint_storage(estate: Estate, policy: Policy, scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
    """An endpoint to storage: critical without a policy, high with a wide one, medium with one that names accounts."""
    reach = storage_reach(estate, policy, subnet)
    if reach is None:
        yield from _none(scoped, subnet, "no service endpoint to storage")
        return
    message = f"{', '.join(reach.services)}: {reach.message}"
    if reach.severity is None:
        yield unknown(scoped.id, "PolicyNotSeen", message, *reach.observations)
        return
    yield fails(
        scoped.id,
        "StorageEndpoint",
        message,
        *reach.observations,
        paths=(path_of(hops.subnet(subnet.name), SERVICE_ENDPOINT, STORAGE),),
        severity=reach.severity,
    )


@check_each("svc-endpoint-other", each_subnet)
def svc_endpoint_other(_estate: Estate, _policy: Policy, scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
    """An endpoint to any other service reaches vaults, databases or registries of any tenant."""
    services = [
        endpoint.service
        for endpoint in subnet.service_endpoints
        if endpoint.service and not is_storage(endpoint.service)
    ]
    if services:
        yield fails(
            scoped.id,
            "ServiceEndpoint",
            f"{', '.join(services)}: instances of any tenant are in reach",
            scoped.observation,
            paths=tuple(path_of(hops.subnet(subnet.name), SERVICE_ENDPOINT, service) for service in services),
        )
    else:
        yield from _none(scoped, subnet, "no service endpoint to another service")


def _none(scoped: ScopedSubnet, subnet: Subnet, message: str) -> Iterator[CheckResult]:
    """Pass without an endpoint; Unknown where an endpoint does not name its service, since it may be any."""
    if any(not endpoint.service for endpoint in subnet.service_endpoints):
        yield unknown(scoped.id, "ServiceNotNamed", "a service endpoint does not name its service", scoped.observation)
    else:
        yield passes(scoped.id, "NoEndpoint", message, scoped.observation)


@check("svc-endpoint-policy-scope")
def svc_endpoint_policy_scope(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Each service endpoint policy of the cluster's subnets lists single accounts, all of our subscriptions."""
    ids = {
        reference.id.lower(): reference.id
        for scoped in subnets_of(estate)[0]
        if scoped.observation.value is not None
        for reference in scoped.observation.value.service_endpoint_policies
    }
    for _, policy_id in sorted(ids.items()):
        endpoint_policy = estate.one(ServiceEndpointPolicy, policy_id)
        yield from whatever_is_damaged(policy_id, _policy(estate, policy, endpoint_policy))

    def without(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
        if not subnet.service_endpoint_policies:
            yield does_not_apply(scoped.id, "NoPolicy", "the subnet has no service endpoint policy", scoped.observation)

    yield from each_subnet(estate, policy, without)


def _policy(estate: Estate, policy: Policy, endpoint_policy: Lookup[ServiceEndpointPolicy]) -> Iterator[CheckResult]:
    wide = too_wide(estate, policy, endpoint_policy)
    if wide:
        yield fails(
            endpoint_policy.target,
            "PolicyTooWide",
            f"it lists more than accounts of ours: {'; '.join(wide)}",
            endpoint_policy,
        )
    elif endpoint_policy.value is None or not resources_of(endpoint_policy.value):
        yield unknown(
            endpoint_policy.target,
            "ListsNothing",
            "it lists no account; it is not known what that allows",
            endpoint_policy,
        )
    else:
        yield passes(endpoint_policy.target, "AccountsOnly", "it lists accounts of ours, one by one", endpoint_policy)

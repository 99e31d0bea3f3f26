"""Service endpoints to storage: the accounts that a subnet reaches with any routes.

Without a policy these are all accounts of the paired regions, in any tenant. A policy narrows them to what it lists;
it counts as narrow only when it names single accounts, all of them ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.private_link import ServiceEndpointPolicy
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation, missing
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import SERVICE_ENDPOINT, Path, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.subnet_context import Layers, SubnetContext


def storage_path(around: SubnetContext, layers: Layers) -> Path:
    """The open path past these security groups to storage accounts of others; empty where there is none.

    Storage of the same region can be reached from a private subnet without any outbound method, any account of any
    tenant: Azure documents it as a limit of private subnets. Only a security rule, or a default route to `None`, closes
    it.
    """
    if any(is_storage(endpoint.service) for endpoint in around.subnet.service_endpoints):
        reached = "what its policy allows" if around.subnet.service_endpoint_policies else "storage of any account"
        return path_of(hops.subnet(name_of(around.id)), SERVICE_ENDPOINT, reached)
    if around.drops(4) or around.is_sealed(layers):
        return ()
    return path_of(hops.subnet(name_of(around.id)), hops.storage("same-region storage of any account"))


STORAGE = "microsoft.storage"
_ACCOUNT = re.compile(
    r"^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.(Classic)?Storage/storageAccounts/[^/]+$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StorageReach:
    """The reach of a subnet's storage endpoints, its severity (None: policy not seen), and the observations."""

    services: tuple[str, ...]
    severity: Severity | None
    message: str
    observations: tuple[Observation, ...]


def storage_reach(estate: Estate, policy: Policy, subnet: Subnet) -> StorageReach | None:
    """The reach of the subnet's storage endpoints; None without any."""
    services = tuple(
        endpoint.service for endpoint in subnet.service_endpoints if is_storage(endpoint.service) and endpoint.service
    )
    if not services:
        return None
    if not subnet.service_endpoint_policies:
        message = "no policy: any storage account of the paired regions, in any tenant"
        return StorageReach(services, Severity.CRITICAL, message, (subnet,))
    policies = [estate.one(ServiceEndpointPolicy, reference.id) for reference in subnet.service_endpoint_policies]
    observations: tuple[Observation, ...] = (subnet, *policies)
    wide = [description for endpoint_policy in policies for description in too_wide(estate, policy, endpoint_policy)]
    if wide:
        return StorageReach(
            services, Severity.HIGH, f"the policy is wider than our accounts: {'; '.join(wide)}", observations
        )
    if any(endpoint_policy.value is None for endpoint_policy in policies):
        return StorageReach(services, None, "the policy was not seen", observations)
    empty = [
        endpoint_policy.target
        for endpoint_policy in policies
        if endpoint_policy.value is not None and not resources_of(endpoint_policy.value)
    ]
    if empty:
        gap = missing(f"{empty[0]}: lists no account; it is not known what Azure makes of that")
        return StorageReach(services, None, "the policy lists nothing", (*observations, gap))
    return StorageReach(services, Severity.MEDIUM, "a policy names our accounts one by one", observations)


def is_storage(service: str | None) -> bool:
    """Whether it is Microsoft.Storage, Microsoft.Storage.Global or any other name with that prefix."""
    return (service or "").lower().startswith(STORAGE)


def too_wide(estate: Estate, policy: Policy, endpoint_policy: Lookup[ServiceEndpointPolicy]) -> tuple[str, ...]:
    """What a policy lists beside single accounts of ours; empty for a policy that could not be read."""
    value = endpoint_policy.value
    if value is None:
        return ()
    wide = [f"{resource} is not one account" for resource in resources_of(value) if not _ACCOUNT.match(resource)]
    ours = (estate.cluster, *network_ids_of(estate))
    wide += [
        f"{resource} is not ours"
        for resource in resources_of(value)
        if _ACCOUNT.match(resource) and not policy.owns(resource, *ours)
    ]
    aliases = (
        *(value.contextual_service_endpoint_policies or ()),
        *((value.service_alias,) if value.service_alias else ()),
    )
    return (*wide, *(f"alias {alias}" for alias in aliases))


def resources_of(policy: ServiceEndpointPolicy) -> tuple[str, ...]:
    """The service resources of all definitions."""
    definitions = policy.service_endpoint_policy_definitions or ()
    return tuple(resource for definition in definitions for resource in definition.service_resources or ())

"""Service endpoint policies: which accounts a storage endpoint may reach."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Resource, arm


class PolicyDefinition(Part):
    """The resources of one service: accounts, or whole groups, subscriptions and aliases."""

    service: str | None = None
    service_resources: list[str] | None = None


@arm("Microsoft.Network/serviceEndpointPolicies", NETWORK)
class ServiceEndpointPolicy(Resource):
    service_endpoint_policy_definitions: list[PolicyDefinition] | None = None
    service_alias: str | None = None
    contextual_service_endpoint_policies: list[str] | None = None

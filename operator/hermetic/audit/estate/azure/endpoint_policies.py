"""Service endpoint policies: which accounts a storage endpoint may reach."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Resource


class PolicyDefinition(Part):
    """The resources of one service: accounts, or whole groups, subscriptions and aliases."""

    service: str | None = None
    service_resources: list[str] | None = None


class ServiceEndpointPolicy(Resource):
    """Microsoft.Network/serviceEndpointPolicies."""

    TYPE: ClassVar[str] = "Microsoft.Network/serviceEndpointPolicies"
    API_VERSION: ClassVar[str] = NETWORK

    service_endpoint_policy_definitions: list[PolicyDefinition] | None = None
    service_alias: str | None = None
    contextual_service_endpoint_policies: list[str] | None = None

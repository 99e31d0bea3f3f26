"""Container registries and what is attached to them, and who may do what there."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import AUTHORIZATION, CONTAINER_REGISTRY
from hermetic.audit.estate.resource import Part, Resource


class Switch(Part):
    """A policy of a registry: enabled or disabled."""

    status: str | None = None


class RegistryPolicies(Part):
    """Absent is what Azure ships: export enabled."""

    export_policy: Switch | None = None
    azure_ad_authentication_as_arm_policy: Switch | None = None


class NetworkRuleSet(Part):
    """Who may come in by the public endpoint."""

    default_action: str | None = None


class Registry(Resource):
    """Microsoft.ContainerRegistry/registries."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY

    location: str | None = None
    login_server: str | None = None
    public_network_access: str | None = None
    network_rule_set: NetworkRuleSet | None = None
    network_rule_bypass_options: str | None = None
    anonymous_pull_enabled: bool | None = None
    admin_user_enabled: bool | None = None
    policies: RegistryPolicies | None = None


class CacheRule(Resource):
    """Microsoft.ContainerRegistry/registries/cacheRules: what the registry fetches from elsewhere when asked."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/cacheRules"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY

    source_repository: str | None = None
    target_repository: str | None = None


class ConnectedRegistry(Resource):
    """Microsoft.ContainerRegistry/registries/connectedRegistries."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/connectedRegistries"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY


class Webhook(Resource):
    """Microsoft.ContainerRegistry/registries/webhooks."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/webhooks"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY


class Replication(Resource):
    """Microsoft.ContainerRegistry/registries/replications; the home region is one of them."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/replications"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY

    location: str | None = None


class RoleAssignment(Resource):
    """Microsoft.Authorization/roleAssignments: at a resource, above it, or below it."""

    TYPE: ClassVar[str] = "Microsoft.Authorization/roleAssignments"
    API_VERSION: ClassVar[str] = AUTHORIZATION

    role_definition_id: str | None = None
    principal_id: str | None = None

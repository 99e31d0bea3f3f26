"""Container registries, their child resources, and their role assignments and tokens."""

from __future__ import annotations

from typing import Any

from hermetic.audit.estate.azure.private_link import ConsumerConnection
from hermetic.audit.estate.azure.versions import (
    AUTHORIZATION,
    CONTAINER_REGISTRY,
    CONTAINER_REGISTRY_PREVIEW,
    REGISTRY_TASKS,
)
from hermetic.audit.estate.resource import Part, Resource, arm


class Switch(Part):
    """A policy of a registry: enabled or disabled."""

    status: str | None = None


class RegistryPolicies(Part):
    """Policies of a registry; absent is Azure's default: export enabled."""

    export_policy: Switch | None = None
    azure_ad_authentication_as_arm_policy: Switch | None = None


class NetworkRuleSet(Part):
    default_action: str | None = None
    ip_rules: list[dict[str, Any]] | None = None


class RegistrySku(Part):
    """Basic, Standard or Premium."""

    name: str | None = None


@arm("Microsoft.ContainerRegistry/registries", CONTAINER_REGISTRY)
class Registry(Resource):
    location: str | None = None
    sku: RegistrySku | None = None
    login_server: str | None = None
    public_network_access: str | None = None
    network_rule_set: NetworkRuleSet | None = None
    network_rule_bypass_options: str | None = None
    network_rule_bypass_allowed_for_tasks: bool | None = None
    anonymous_pull_enabled: bool | None = None
    admin_user_enabled: bool | None = None
    policies: RegistryPolicies | None = None
    private_endpoint_connections: list[ConsumerConnection] | None = None


@arm("Microsoft.ContainerRegistry/registries", CONTAINER_REGISTRY_PREVIEW)
class RegistryInPreview(Resource):
    """The registry in a preview version: fields that no stable version has."""

    writable_cache_repos: str | None = None
    regional_endpoints: str | None = None
    endpoint_protocol: str | None = None


class PipelineTarget(Part):
    """The destination of an export pipeline: a container of a storage account."""

    uri: str | None = None


@arm("Microsoft.ContainerRegistry/registries/exportPipelines", CONTAINER_REGISTRY_PREVIEW)
class ExportPipeline(Resource):
    target: PipelineTarget | None = None


@arm("Microsoft.ContainerRegistry/registries/tasks", REGISTRY_TASKS)
class RegistryTask(Resource):
    """Containers that run on machines of the registry service."""

    status: str | None = None


@arm("Microsoft.ContainerRegistry/registries/agentPools", REGISTRY_TASKS)
class RegistryAgentPool(Resource):
    """Machines for tasks, in a subnet where one is named."""

    virtual_network_subnet_resource_id: str | None = None


@arm("Microsoft.ContainerRegistry/registries/cacheRules", CONTAINER_REGISTRY)
class CacheRule(Resource):
    """Upstreams that the registry fetches images from on demand."""

    source_repository: str | None = None
    target_repository: str | None = None
    credential_set_resource_id: str | None = None


@arm("Microsoft.ContainerRegistry/registries/connectedRegistries", CONTAINER_REGISTRY)
class ConnectedRegistry(Resource):
    pass


@arm("Microsoft.ContainerRegistry/registries/webhooks", CONTAINER_REGISTRY)
class RegistryWebhook(Resource):
    pass


@arm("Microsoft.ContainerRegistry/registries/replications", CONTAINER_REGISTRY)
class Replication(Resource):
    """The home region is one of them."""

    location: str | None = None


class TokenCredentials(Part):
    """The credentials of a token; Azure returns no secret."""

    passwords: list[dict[str, Any]] | None = None
    certificates: list[dict[str, Any]] | None = None


@arm("Microsoft.ContainerRegistry/registries/tokens", CONTAINER_REGISTRY)
class RegistryToken(Resource):
    """A name and a password outside Entra ID."""

    status: str | None = None
    scope_map_id: str | None = None
    credentials: TokenCredentials | None = None


@arm("Microsoft.ContainerRegistry/registries/scopeMaps", CONTAINER_REGISTRY)
class ScopeMap(Resource):
    """Permissions of tokens, repositories/NAME/content/read."""

    actions: list[str] | None = None


@arm("Microsoft.Authorization/roleAssignments", AUTHORIZATION)
class RoleAssignment(Resource):
    """At a resource, above it, or below it."""

    role_definition_id: str | None = None
    principal_id: str | None = None
    principal_type: str | None = None
    scope: str | None = None

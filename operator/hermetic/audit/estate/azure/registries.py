"""Container registries, their child resources, and their role assignments and tokens."""

from __future__ import annotations

from typing import Any, ClassVar

from hermetic.audit.estate.azure.private_link import ConsumerConnection
from hermetic.audit.estate.azure.versions import (
    AUTHORIZATION,
    CONTAINER_REGISTRY,
    CONTAINER_REGISTRY_PREVIEW,
    REGISTRY_TASKS,
)
from hermetic.audit.estate.resource import Part, Resource


class Switch(Part):
    """A policy of a registry: enabled or disabled."""

    status: str | None = None


class RegistryPolicies(Part):
    """Policies of a registry; absent is Azure's default: export enabled."""

    export_policy: Switch | None = None
    azure_ad_authentication_as_arm_policy: Switch | None = None


class NetworkRuleSet(Part):
    """Network rules of the public endpoint."""

    default_action: str | None = None
    ip_rules: list[dict[str, Any]] | None = None


class RegistrySku(Part):
    """Basic, Standard or Premium."""

    name: str | None = None


class Registry(Resource):
    """Microsoft.ContainerRegistry/registries."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY

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


class RegistryInPreview(Resource):
    """The registry in a preview version: fields that no stable version has."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY_PREVIEW

    writable_cache_repos: str | None = None
    regional_endpoints: str | None = None
    endpoint_protocol: str | None = None


class PipelineTarget(Part):
    """The destination of an export pipeline: a container of a storage account."""

    uri: str | None = None


class ExportPipeline(Resource):
    """Microsoft.ContainerRegistry/registries/exportPipelines."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/exportPipelines"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY_PREVIEW

    target: PipelineTarget | None = None


class RegistryTask(Resource):
    """Microsoft.ContainerRegistry/registries/tasks: containers that run on machines of the registry service."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/tasks"
    API_VERSION: ClassVar[str] = REGISTRY_TASKS

    status: str | None = None


class RegistryAgentPool(Resource):
    """Microsoft.ContainerRegistry/registries/agentPools: machines for tasks, in a subnet where one is named."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/agentPools"
    API_VERSION: ClassVar[str] = REGISTRY_TASKS

    virtual_network_subnet_resource_id: str | None = None


class CacheRule(Resource):
    """Microsoft.ContainerRegistry/registries/cacheRules: upstreams that the registry fetches images from on demand."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/cacheRules"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY

    source_repository: str | None = None
    target_repository: str | None = None
    credential_set_resource_id: str | None = None


class ConnectedRegistry(Resource):
    """Microsoft.ContainerRegistry/registries/connectedRegistries."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/connectedRegistries"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY


class RegistryWebhook(Resource):
    """Microsoft.ContainerRegistry/registries/webhooks."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/webhooks"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY


class Replication(Resource):
    """Microsoft.ContainerRegistry/registries/replications; the home region is one of them."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/replications"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY

    location: str | None = None


class TokenCredentials(Part):
    """The credentials of a token; Azure returns no secret."""

    passwords: list[dict[str, Any]] | None = None
    certificates: list[dict[str, Any]] | None = None


class RegistryToken(Resource):
    """Microsoft.ContainerRegistry/registries/tokens: a name and a password outside Entra ID."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/tokens"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY

    status: str | None = None
    scope_map_id: str | None = None
    credentials: TokenCredentials | None = None


class ScopeMap(Resource):
    """Microsoft.ContainerRegistry/registries/scopeMaps: permissions of tokens, repositories/NAME/content/read."""

    TYPE: ClassVar[str] = "Microsoft.ContainerRegistry/registries/scopeMaps"
    API_VERSION: ClassVar[str] = CONTAINER_REGISTRY

    actions: list[str] | None = None


class RoleAssignment(Resource):
    """Microsoft.Authorization/roleAssignments: at a resource, above it, or below it."""

    TYPE: ClassVar[str] = "Microsoft.Authorization/roleAssignments"
    API_VERSION: ClassVar[str] = AUTHORIZATION

    role_definition_id: str | None = None
    principal_id: str | None = None
    principal_type: str | None = None
    scope: str | None = None

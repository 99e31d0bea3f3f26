"""Private endpoints (from a network), private link services (into a network), and Azure Monitor's scopes."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE, INSIGHTS_PRIVATE_LINK, NETWORK
from hermetic.audit.estate.resource import Part, Reference, Resource, arm

DEFENDER = "Microsoft.Security/privateLinks"
"""Type of the target of private endpoints of Defender for Cloud; its sensors use the group `containers`."""


class ConnectionState(Part):
    """Approved, Pending, Rejected or Disconnected; open."""

    status: str | None = None


class LinkConnection(Part):
    """The target of a private endpoint: an ARM id, or an alias without an owner."""

    private_link_service_id: str | None = None
    group_ids: list[str] | None = None
    private_link_service_connection_state: ConnectionState | None = None


@arm("Microsoft.Network/privateEndpoints", NETWORK)
class PrivateEndpoint(Resource):
    subnet: Reference | None = None
    private_link_service_connections: list[LinkConnection] | None = None
    manual_private_link_service_connections: list[LinkConnection] | None = None

    @property
    def connections(self) -> tuple[LinkConnection, ...]:
        """Automatic and manual connections."""
        return (*(self.private_link_service_connections or ()), *(self.manual_private_link_service_connections or ()))


class Audience(Part):
    """Subscriptions that may see a service, or are approved automatically; `*` is all of them."""

    subscriptions: list[str] | None = None


class Consumer(Part):
    """A connected private endpoint; Azure omits the id where it may not show it."""

    id: str | None = None


class ConsumerConnection(Part):
    """A consumer's private endpoint at our service."""

    id: str = ""
    name: str = ""
    private_endpoint: Consumer | None = None
    private_link_service_connection_state: ConnectionState | None = None


@arm("Microsoft.ContainerService/managedClusters/privateEndpointConnections", CONTAINER_SERVICE)
class ApiServerConnection(ConsumerConnection, Resource):
    """A consumer's private endpoint at the API server of a private cluster."""


class ServiceAddress(Part):
    subnet: Reference | None = None


@arm("Microsoft.Network/privateLinkServices", NETWORK)
class PrivateLinkService(Resource):
    ip_configurations: list[ServiceAddress] | None = None
    visibility: Audience | None = None
    auto_approval: Audience | None = None
    private_endpoint_connections: list[ConsumerConnection] | None = None


class AccessModes(Part):
    """Open or PrivateOnly; Azure treats absent as Open."""

    private_endpoint_connection_name: str | None = None
    ingestion_access_mode: str | None = None
    query_access_mode: str | None = None


class ScopeModes(AccessModes):
    """The modes of a scope, and the connections that they do not apply to."""

    exclusions: list[AccessModes] | None = None


@arm("Microsoft.Insights/privateLinkScopes", INSIGHTS_PRIVATE_LINK)
class MonitorScope(Resource):
    access_mode_settings: ScopeModes | None = None
    private_endpoint_connections: list[ConsumerConnection] | None = None


class PolicyDefinition(Part):
    """The resources of one service: accounts, or whole groups, subscriptions and aliases."""

    service: str | None = None
    service_resources: list[str] | None = None


@arm("Microsoft.Network/serviceEndpointPolicies", NETWORK)
class ServiceEndpointPolicy(Resource):
    service_endpoint_policy_definitions: list[PolicyDefinition] | None = None
    service_alias: str | None = None
    contextual_service_endpoint_policies: list[str] | None = None

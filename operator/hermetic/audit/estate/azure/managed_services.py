"""Managed services with an address in a virtual network: application gateways, bastions, firewalls and their rules."""

from __future__ import annotations

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.azure.vnet import Sku
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class ServiceIpConfiguration(Part):
    """An address of such a service: in a subnet, public, or both."""

    name: str = ""
    subnet: Reference | None = None
    public_ip_address: Reference | None = None
    private_ip_address: str | None = None


class GatewayBackend(Part):
    """One backend of an application gateway, by name or by address."""

    fqdn: str | None = None
    ip_address: str | None = None


class GatewayPool(Part):
    name: str = ""
    backend_addresses: list[GatewayBackend] | None = None


@arm("Microsoft.Network/applicationGateways", NETWORK)
class ApplicationGateway(Resource):
    backend_address_pools: list[GatewayPool] | None = None
    gateway_ip_configurations: list[ServiceIpConfiguration] | None = None
    frontend_ip_configurations: list[ServiceIpConfiguration] | None = None

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """The subnets that it has an address in."""
        return tuple(
            configuration.subnet.id
            for configuration in self.gateway_ip_configurations or ()
            if configuration.subnet is not None
        )

    @property
    def backend_ip_addresses(self) -> tuple[str, ...]:
        """The backends of all pools that are named by an address."""
        backends = (backend for pool in self.backend_address_pools or () for backend in pool.backend_addresses or ())
        return tuple(backend.ip_address for backend in backends if backend.ip_address)


@arm("Microsoft.Network/bastionHosts", NETWORK)
class Bastion(Resource):
    """An absent switch has Azure's default: copying is on, the rest off."""

    sku: Sku | None = None
    ip_configurations: list[ServiceIpConfiguration] | None = None
    virtual_network: Reference | None = None
    enable_private_only_bastion: bool | None = None
    disable_copy_paste: bool | None = None
    enable_file_copy: bool | None = None
    enable_tunneling: bool | None = None
    enable_shareable_link: bool | None = None
    enable_ip_connect: bool | None = None


class FirewallAddress(Part):
    subnet: Reference | None = None
    private_ip_address: str | None = None
    public_ip_address: Reference | None = None


class HubAddresses(Part):
    private_ip_address: str | None = None


class FirewallRuleAction(Part):
    """Allow or Deny; for address translation, Dnat."""

    type: str | None = None


class FirewallRule(Part):
    """A rule of any kind; `rule_type` only in policies."""

    name: str = ""
    rule_type: str | None = None
    source_addresses: list[str] | None = None
    source_ip_groups: list[str] | None = None
    destination_addresses: list[str] | None = None
    destination_ip_groups: list[str] | None = None
    destination_ports: list[str] | None = None
    destination_fqdns: list[str] | None = None
    target_fqdns: list[str] | None = None
    target_urls: list[str] | None = None
    fqdn_tags: list[str] | None = None
    web_categories: list[str] | None = None
    translated_address: str | None = None
    translated_fqdn: str | None = None


class RuleCollection(Part):
    """Rules with one action; `rule_collection_type` only in policies."""

    name: str = ""
    rule_collection_type: str | None = None
    action: FirewallRuleAction | None = None
    rules: list[FirewallRule] | None = None


@arm("Microsoft.Network/azureFirewalls", NETWORK)
class AzureFirewall(Resource):
    ip_configurations: list[FirewallAddress] | None = None
    hub_ip_addresses: HubAddresses | None = None
    virtual_hub: Reference | None = None
    firewall_policy: Reference | None = None
    additional_properties: FreeMap[str] = {}
    """Of a firewall without a policy, its DNS settings among them."""
    network_rule_collections: list[RuleCollection] | None = None
    application_rule_collections: list[RuleCollection] | None = None
    nat_rule_collections: list[RuleCollection] | None = None

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """The subnets that it has an address in."""
        return tuple(
            configuration.subnet.id
            for configuration in self.ip_configurations or ()
            if configuration.subnet is not None
        )

    @property
    def private_addresses(self) -> tuple[str, ...]:
        """The addresses that routes can use as next hop."""
        hub = self.hub_ip_addresses.private_ip_address if self.hub_ip_addresses else None
        return tuple(
            address
            for address in (*(configuration.private_ip_address for configuration in self.ip_configurations or ()), hub)
            if address
        )


class DnsSettings(Part):
    """The DNS proxy of a firewall; without servers it asks Azure's own resolver."""

    enable_proxy: bool | None = None
    servers: list[str] | None = None


class AnalyticsWorkspace(Part):
    """The workspace of one region."""

    workspace_id: Reference | None = None


class AnalyticsResources(Part):
    workspaces: list[AnalyticsWorkspace] | None = None
    default_workspace_id: Reference | None = None


class PolicyInsights(Part):
    """Policy analytics of a firewall policy. Disabled ones count: one change enables them."""

    log_analytics_resources: AnalyticsResources | None = None


@arm("Microsoft.Network/firewallPolicies", NETWORK)
class FirewallPolicy(Resource):
    base_policy: Reference | None = None
    dns_settings: DnsSettings | None = None
    insights: PolicyInsights | None = None

    @property
    def sinks(self) -> tuple[tuple[str, str], ...]:
        """The workspaces of its analytics: the kind of each, and its ARM id."""
        resources = self.insights.log_analytics_resources if self.insights is not None else None
        if resources is None:
            return ()
        named = (*(workspace.workspace_id for workspace in resources.workspaces or ()), resources.default_workspace_id)
        return tuple(("workspace", reference.id) for reference in named if reference is not None)


@arm("Microsoft.Network/firewallPolicies/ruleCollectionGroups", NETWORK)
class RuleCollectionGroup(Resource):
    rule_collections: list[RuleCollection] | None = None


@arm("Microsoft.Network/ipGroups", NETWORK)
class IpGroup(Resource):
    """Addresses, prefixes and ranges under one name."""

    ip_addresses: list[str] | None = None

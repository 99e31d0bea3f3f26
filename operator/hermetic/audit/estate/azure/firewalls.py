"""Azure Firewall: its subnets, and every rule that applies (its own, its policy's, those of base policies)."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


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
    destination_addresses: list[str] | None = None
    destination_ip_groups: list[str] | None = None
    destination_fqdns: list[str] | None = None
    target_fqdns: list[str] | None = None
    target_urls: list[str] | None = None
    fqdn_tags: list[str] | None = None
    web_categories: list[str] | None = None


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
    network_rule_collections: list[RuleCollection] | None = None
    application_rule_collections: list[RuleCollection] | None = None

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """The subnets that it has an address in."""
        return tuple(one.subnet.id for one in self.ip_configurations or () if one.subnet is not None)

    @property
    def private_addresses(self) -> tuple[str, ...]:
        """The addresses that routes can use as next hop."""
        hub = self.hub_ip_addresses.private_ip_address if self.hub_ip_addresses else None
        return tuple(one for one in (*(one.private_ip_address for one in self.ip_configurations or ()), hub) if one)


@arm("Microsoft.Network/firewallPolicies", NETWORK)
class FirewallPolicy(Resource):
    base_policy: Reference | None = None


@arm("Microsoft.Network/firewallPolicies/ruleCollectionGroups", NETWORK)
class RuleCollectionGroup(Resource):
    rule_collections: list[RuleCollection] | None = None


@arm("Microsoft.Network/ipGroups", NETWORK)
class IpGroup(Resource):
    """Addresses, prefixes and ranges under one name."""

    ip_addresses: list[str] | None = None

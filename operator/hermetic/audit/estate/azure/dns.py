"""DNS security policies, forwarding rulesets, private zones."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import DNS_RESOLVER, PRIVATE_DNS
from hermetic.audit.estate.resource import Part, Reference, Resource


class LinkedToNetwork(Resource):
    """Resources of one kind that are linked to a network; each kind has its own POST action that lists them."""

    TYPE: ClassVar[str] = "Microsoft.Network/virtualNetworks"
    API_VERSION: ClassVar[str] = DNS_RESOLVER
    WRAPPED: ClassVar[bool] = False

    value: list[Reference] | None = None
    next_link: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether this page has all of them."""
        return self.value is not None and not self.next_link


class LinkedDnsPolicies(LinkedToNetwork):
    """The DNS security policies linked to a network."""

    ACTION: ClassVar[str] = "listDnsResolverPolicies"


class LinkedRulesets(LinkedToNetwork):
    """The forwarding rulesets linked to a network."""

    ACTION: ClassVar[str] = "listDnsForwardingRulesets"


class LinkToNetwork(Resource):
    """A link as its owner lists it: the network to which the owner's rules apply."""

    API_VERSION: ClassVar[str] = DNS_RESOLVER

    virtual_network: Reference | None = None
    provisioning_state: str | None = None

    @property
    def is_in_force(self) -> bool:
        """Whether Azure has finished creating it."""
        return (self.provisioning_state or "").lower() == "succeeded"


class DnsPolicy(Resource):
    """Microsoft.Network/dnsResolverPolicies; its content is in its rules."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsResolverPolicies"
    API_VERSION: ClassVar[str] = DNS_RESOLVER


class DnsPolicyLink(LinkToNetwork):
    """Microsoft.Network/dnsResolverPolicies/virtualNetworkLinks."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsResolverPolicies/virtualNetworkLinks"


class Ruleset(Resource):
    """Microsoft.Network/dnsForwardingRulesets; its content is in its rules."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsForwardingRulesets"
    API_VERSION: ClassVar[str] = DNS_RESOLVER


class RulesetLink(LinkToNetwork):
    """Microsoft.Network/dnsForwardingRulesets/virtualNetworkLinks."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsForwardingRulesets/virtualNetworkLinks"


class DnsRuleAction(Part):
    """Allow, Block or Alert; open."""

    action_type: str | None = None


class DnsSecurityRule(Resource):
    """Microsoft.Network/dnsResolverPolicies/dnsSecurityRules; of those that match, the lowest priority applies."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsResolverPolicies/dnsSecurityRules"
    API_VERSION: ClassVar[str] = DNS_RESOLVER

    priority: int | None = None
    action: DnsRuleAction | None = None
    dns_resolver_domain_lists: list[Reference] | None = None
    managed_domain_lists: list[str] | None = None
    dns_security_rule_state: str | None = None


class DomainList(Resource):
    """Microsoft.Network/dnsResolverDomainLists; "." matches every name."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsResolverDomainLists"
    API_VERSION: ClassVar[str] = DNS_RESOLVER

    domains: list[str] | None = None


class TargetServer(Part):
    """A server that names are forwarded to."""

    ip_address: str | None = None
    port: int | None = None


class ForwardingRule(Resource):
    """Microsoft.Network/dnsForwardingRulesets/forwardingRules."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsForwardingRulesets/forwardingRules"
    API_VERSION: ClassVar[str] = DNS_RESOLVER

    domain_name: str | None = None
    target_dns_servers: list[TargetServer] | None = None
    forwarding_rule_state: str | None = None


class PrivateZone(Resource):
    """Microsoft.Network/privateDnsZones."""

    TYPE: ClassVar[str] = "Microsoft.Network/privateDnsZones"
    API_VERSION: ClassVar[str] = PRIVATE_DNS

    number_of_virtual_network_links: int | None = None


class ZoneLink(Resource):
    """Microsoft.Network/privateDnsZones/virtualNetworkLinks."""

    TYPE: ClassVar[str] = "Microsoft.Network/privateDnsZones/virtualNetworkLinks"
    API_VERSION: ClassVar[str] = PRIVATE_DNS

    virtual_network: Reference | None = None
    resolution_policy: str | None = None
    """Default or NxDomainRedirect; absent where the zone does not support it."""

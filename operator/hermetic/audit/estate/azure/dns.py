"""Names: DNS security policies, forwarding rulesets, private zones."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import DNS_RESOLVER, PRIVATE_DNS
from hermetic.audit.estate.resource import Part, Reference, Resource


class LinkedToNetwork(Resource):
    """What of one kind is linked to a network; each kind has an action of its own that lists it."""

    TYPE: ClassVar[str] = "Microsoft.Network/virtualNetworks"
    API_VERSION: ClassVar[str] = DNS_RESOLVER
    WRAPPED: ClassVar[bool] = False

    value: list[Reference] | None = None
    next_link: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all of it is on this page."""
        return self.value is not None and not self.next_link


class LinkedDnsPolicies(LinkedToNetwork):
    """The DNS security policies linked to a network."""

    ACTION: ClassVar[str] = "listDnsResolverPolicies"


class LinkedRulesets(LinkedToNetwork):
    """The forwarding rulesets linked to a network."""

    ACTION: ClassVar[str] = "listDnsForwardingRulesets"


class LinkToNetwork(Resource):
    """A link as its owner lists it: which network the owner decides for."""

    API_VERSION: ClassVar[str] = DNS_RESOLVER

    virtual_network: Reference | None = None
    provisioning_state: str | None = None

    @property
    def is_in_force(self) -> bool:
        """Whether Azure has finished it."""
        return (self.provisioning_state or "").lower() == "succeeded"


class DnsPolicy(Resource):
    """Microsoft.Network/dnsResolverPolicies; what it says is in its rules."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsResolverPolicies"
    API_VERSION: ClassVar[str] = DNS_RESOLVER


class DnsPolicyLink(LinkToNetwork):
    """Microsoft.Network/dnsResolverPolicies/virtualNetworkLinks."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsResolverPolicies/virtualNetworkLinks"


class Ruleset(Resource):
    """Microsoft.Network/dnsForwardingRulesets; what it says is in its rules."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsForwardingRulesets"
    API_VERSION: ClassVar[str] = DNS_RESOLVER


class RulesetLink(LinkToNetwork):
    """Microsoft.Network/dnsForwardingRulesets/virtualNetworkLinks."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsForwardingRulesets/virtualNetworkLinks"


class DnsRuleAction(Part):
    """Allow, Block or Alert; open."""

    action_type: str | None = None


class DnsSecurityRule(Resource):
    """Microsoft.Network/dnsResolverPolicies/dnsSecurityRules; the lowest number that matches a name decides."""

    TYPE: ClassVar[str] = "Microsoft.Network/dnsResolverPolicies/dnsSecurityRules"
    API_VERSION: ClassVar[str] = DNS_RESOLVER

    priority: int | None = None
    action: DnsRuleAction | None = None
    dns_resolver_domain_lists: list[Reference] | None = None
    managed_domain_lists: list[str] | None = None
    dns_security_rule_state: str | None = None


class DomainList(Resource):
    """Microsoft.Network/dnsResolverDomainLists; "." stands for every name."""

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
    """Default or NxDomainRedirect; absent where the zone has no such choice."""

"""DNS security policies, forwarding rulesets, private zones."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import DNS_RESOLVER, PRIVATE_DNS
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class LinkedToNetwork(Resource):
    """Resources of one kind that are linked to a network; each kind has its own POST action that lists them."""

    value: list[Reference] | None = None
    next_link: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether this page has all of them."""
        return self.value is not None and not self.next_link


@arm("Microsoft.Network/virtualNetworks", DNS_RESOLVER, "listDnsResolverPolicies")
class LinkedDnsPolicies(LinkedToNetwork):
    pass


@arm("Microsoft.Network/virtualNetworks", DNS_RESOLVER, "listDnsForwardingRulesets")
class LinkedRulesets(LinkedToNetwork):
    pass


class LinkToNetwork(Resource):
    """A link as its owner lists it: the network to which the owner's rules apply."""

    virtual_network: Reference | None = None
    provisioning_state: str | None = None

    @property
    def is_in_force(self) -> bool:
        """Whether Azure has finished creating it."""
        return (self.provisioning_state or "").lower() == "succeeded"


@arm("Microsoft.Network/dnsResolverPolicies", DNS_RESOLVER)
class DnsPolicy(Resource):
    """Its content is in its rules."""


@arm("Microsoft.Network/dnsResolverPolicies/virtualNetworkLinks", DNS_RESOLVER)
class DnsPolicyLink(LinkToNetwork):
    pass


@arm("Microsoft.Network/dnsForwardingRulesets", DNS_RESOLVER)
class Ruleset(Resource):
    """Its content is in its rules."""


@arm("Microsoft.Network/dnsForwardingRulesets/virtualNetworkLinks", DNS_RESOLVER)
class RulesetLink(LinkToNetwork):
    pass


class DnsRuleAction(Part):
    """Allow, Block or Alert; open."""

    action_type: str | None = None


@arm("Microsoft.Network/dnsResolverPolicies/dnsSecurityRules", DNS_RESOLVER)
class DnsSecurityRule(Resource):
    """Of those that match, the lowest priority applies."""

    priority: int | None = None
    action: DnsRuleAction | None = None
    dns_resolver_domain_lists: list[Reference] | None = None
    managed_domain_lists: list[str] | None = None
    dns_security_rule_state: str | None = None


@arm("Microsoft.Network/dnsResolverDomainLists", DNS_RESOLVER)
class DomainList(Resource):
    """ "." matches every name."""

    domains: list[str] | None = None
    domains_url: str | None = None

    @property
    def listed(self) -> list[str] | None:
        """All its domains; None where they were not seen: a large list is kept behind `domainsUrl`, and `domains` is
        then empty or absent."""
        return None if self.domains_url else self.domains


class TargetServer(Part):
    ip_address: str | None = None
    port: int | None = None


@arm("Microsoft.Network/dnsForwardingRulesets/forwardingRules", DNS_RESOLVER)
class ForwardingRule(Resource):
    domain_name: str | None = None
    target_dns_servers: list[TargetServer] | None = None
    forwarding_rule_state: str | None = None


@arm("Microsoft.Network/privateDnsZones", PRIVATE_DNS)
class PrivateZone(Resource):
    number_of_virtual_network_links: int | None = None


@arm("Microsoft.Network/privateDnsZones/virtualNetworkLinks", PRIVATE_DNS)
class ZoneLink(Resource):
    virtual_network: Reference | None = None
    resolution_policy: str | None = None
    """Default or NxDomainRedirect; absent where the zone does not support it."""

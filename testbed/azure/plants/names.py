"""Table G: name resolution."""

from __future__ import annotations

from testbed.azure.baseline.layout import LOCATION
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import network
from testbed.azure.plants.plant import Named, plant

PUBLIC_RESOLVER = "20.91.53.53"
SEEN_BY = ("nsg-platform-dns",)


@plant("vnet-dns-servers", "high", spot="dns-servers")
def resolver_outside(estate: Estate) -> Named:
    """The network's machines ask a resolver on a public address."""
    estate.properties(estate.site.vnet)["dhcpOptions"]["dnsServers"] = [PUBLIC_RESOLVER]
    return estate.site.vnet


@plant("vnet-dns-servers", "high", spot="dns-servers")
def resolver_that_nobody_allowed(estate: Estate) -> Named:
    """The network's machines ask a private resolver that is on no list."""
    estate.properties(estate.site.vnet)["dhcpOptions"]["dnsServers"] = ["10.40.12.53"]
    return estate.site.vnet


@plant("vnet-dns-servers", "high", needs=("sentinel",))
def interface_with_a_resolver_of_its_own(estate: Estate) -> Named:
    """A machine's interface names a resolver of its own."""
    estate.properties(estate.site.sentinel)["dnsSettings"]["dnsServers"] = [PUBLIC_RESOLVER]
    return estate.site.sentinel


@plant("dns-security-policy", "medium", also=SEEN_BY, spot="dns-policy")
def no_dns_policy(estate: Estate) -> Named:
    """No DNS security policy is linked to the network."""
    estate.remove(f"{estate.site.dns_policy}/virtualNetworkLinks/inference")
    return estate.site.vnet, estate.site.dns_policy


@plant("dns-security-policy", "medium", also=SEEN_BY, spot="dns-policy")
def dns_policy_that_only_alerts(estate: Estate) -> Named:
    """The rule for all other names alerts instead of blocking."""
    estate.properties(f"{estate.site.dns_policy}/dnsSecurityRules/block")["action"] = {"actionType": "Alert"}
    return estate.site.vnet, estate.site.dns_policy


@plant("dns-security-policy", "medium", also=SEEN_BY, spot="dns-policy")
def dns_policy_switched_off(estate: Estate) -> Named:
    """The rule that blocks all other names is disabled."""
    estate.properties(f"{estate.site.dns_policy}/dnsSecurityRules/block")["dnsSecurityRuleState"] = "Disabled"
    return estate.site.vnet, estate.site.dns_policy


@plant("dns-forwarding-ruleset", "high")
def forwarding_to_a_resolver_outside(estate: Estate) -> Named:
    """A forwarding ruleset linked to the network sends questions to a resolver on a public address."""
    ruleset = network(estate, "dnsForwardingRulesets", "frs-inference")
    estate.add(ruleset, {"dnsResolverOutboundEndpoints": []}, location=LOCATION)
    estate.add(f"{ruleset}/virtualNetworkLinks/inference", {"virtualNetwork": {"id": estate.site.vnet}})
    rule = f"{ruleset}/forwardingRules/everything"
    servers = [{"ipAddress": PUBLIC_RESOLVER, "port": 53}]
    estate.add(rule, {"domainName": ".", "targetDnsServers": servers, "forwardingRuleState": "Enabled"})
    return rule, ruleset


@plant("privdns-fallthrough", "medium")
def private_zone_that_falls_through(estate: Estate) -> Named:
    """Names that the private zone does not know are asked for in public."""
    zone = network(estate, "privateDnsZones", "privatelink.azurecr.io")
    link = f"{zone}/virtualNetworkLinks/inference"
    estate.properties(link)["resolutionPolicy"] = "NxDomainRedirect"
    return link

"""Table G: name resolution."""

from __future__ import annotations

import ipaddress

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
def resolver_that_no_policy_allows(estate: Estate) -> Named:
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


@plant("dns-allowed-domains", "high", spot="dns-policy")
def name_of_a_stranger_let_through(estate: Estate) -> Named:
    """A rule above the block allows a domain whose servers are foreign."""
    return _let_through(estate, "attacker.example.")


@plant("dns-allowed-domains", "high", spot="dns-policy")
def parent_of_own_names_let_through(estate: Estate) -> Named:
    """A rule allows the parent of a domain of ours, and with it every customer's names."""
    return _let_through(estate, "windows.net.")


def _let_through(estate: Estate, domain: str) -> str:
    """Adds a domain to the list of the rule that allows."""
    rule = estate.properties(f"{estate.site.dns_policy}/dnsSecurityRules/allow")
    allowed = str(rule["dnsResolverDomainLists"][0]["id"])
    estate.properties(allowed)["domains"].append(domain)
    return allowed


@plant("dns-forwarding-ruleset", "high", also=("vnet-dns-servers", "dns-security-policy"), needs=("hub",))
def ruleset_of_the_hubs_resolver(estate: Estate) -> Named:
    """The network asks a resolver in the hub, where a ruleset forwards to a public address."""
    estate.properties(estate.site.vnet)["dhcpOptions"]["dnsServers"] = [address_in_the_hub(estate)]
    ruleset = f"{estate.site.hub.partition('/virtualNetworks/')[0]}/dnsForwardingRulesets/frs-hub"
    estate.add(ruleset, {"dnsResolverOutboundEndpoints": []}, location=LOCATION)
    estate.add(f"{ruleset}/virtualNetworkLinks/hub", {"virtualNetwork": {"id": estate.site.hub}})
    servers = [{"ipAddress": PUBLIC_RESOLVER, "port": 53}]
    rule = {"domainName": ".", "targetDnsServers": servers, "forwardingRuleState": "Enabled"}
    estate.add(f"{ruleset}/forwardingRules/everything", rule)
    return ruleset


def address_in_the_hub(estate: Estate) -> str:
    """One that an inbound endpoint of a resolver there could have."""
    return str(ipaddress.ip_network(estate.properties(estate.site.hub)["addressSpace"]["addressPrefixes"][0])[70])


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
    links = estate.of_type("Microsoft.Network/privateDnsZones/virtualNetworkLinks")
    link: str = next(link["id"] for link in links if "/privatelink.azurecr.io/" in link["id"])
    estate.properties(link)["resolutionPolicy"] = "NxDomainRedirect"
    return link

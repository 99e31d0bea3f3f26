"""Estates in which nodes come to what lies beyond the networks in reach: by relays, routes, names and telemetry."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.firewall import POLICY
from testbed.azure.baseline.layout import HUB_GROUP, LOCATION, NETWORK
from testbed.azure.baseline.network import add_machine, rule
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import change_rules, network, outbound_rule, public_balancer, set_route
from tests.decision_cases import Change, gateway_of_the_hub, hub_connection

OTHERS = "/subscriptions/9b1f0d6e-5a37-4c82-b0e4-1d7c93f5a2e8/resourceGroups/rg-of-others/providers"
WORKSPACE = f"{OTHERS}/Microsoft.OperationalInsights/workspaces/law-of-others"
HUB_RULES = f"{HUB_GROUP}/{NETWORK}/networkSecurityGroups/nsg-hub"


def relay(*around: Change, sealed: bool = True, **home: Any) -> Change:
    """A machine in the hub without a public address; `home` changes its subnet, `sealed`: its group denies out."""

    def change(estate: Estate) -> None:
        subnet = f"{estate.site.hub}/subnets/snet-shared"
        add_machine(estate, "vm-relay", f"{HUB_GROUP}/{NETWORK}/networkInterfaces/nic-relay", subnet, "10.10.1.20")
        estate.properties(subnet).update(home)
        if sealed:
            change_rules(estate, HUB_RULES, plus=rule("DenyOut", 4000, "Deny", "Internet"))
        for change in around:
            change(estate)

    return change


def hub_table(*, propagates: bool, hop: str = "") -> Change:
    """The route table of the machine's subnet."""

    def change(estate: Estate) -> None:
        table = f"{HUB_GROUP}/{NETWORK}/routeTables/rt-hub"
        routes = [{"name": "default", "properties": {"addressPrefix": "0.0.0.0/0", "nextHopType": hop}}] if hop else []
        estate.add(table, {"disableBgpRoutePropagation": not propagates, "routes": routes}, location=LOCATION)
        estate.properties(f"{estate.site.hub}/subnets/snet-shared")["routeTable"] = {"id": table}

    return change


def hub_gateway(*learned: str, origin: str = "EBgp") -> Change:
    """A gateway in the hub, which the cluster's network does not use; static routes and own prefixes are of Network."""

    def change(estate: Estate) -> None:
        gateway_of_the_hub(used=False)(estate)
        routes = [{"network": prefix, "origin": origin} for prefix in learned]
        identifier = f"{HUB_GROUP}/{NETWORK}/virtualNetworkGateways/vgw-hub"
        estate.answer(identifier, "getLearnedRoutes", {"value": routes})

    return change


def with_public_space(prefix: str) -> Change:
    """The hub has a public prefix in its own address space."""
    return lambda estate: estate.properties(estate.site.hub)["addressSpace"]["addressPrefixes"].append(prefix)


def learned_routes_denied(estate: Estate) -> None:
    estate.deny(HUB_GROUP, "*/getLearnedRoutes/action")


def hub_of_the_hub(*, internet: bool) -> Change:
    return hub_connection(internet=internet, home="hub")


def route_server_of_the_hub(estate: Estate) -> None:
    estate.add(f"{estate.site.hub}/subnets/RouteServerSubnet", {"addressPrefix": "10.10.3.0/26"})


def endpoints(*services: str) -> dict[str, Any]:
    """The service endpoints of a subnet."""
    return {"serviceEndpoints": [{"service": service, "locations": [LOCATION]} for service in services]}


def allowing_storage(estate: Estate) -> None:
    change_rules(estate, HUB_RULES, plus=rule("AllowStorage", 200, "Allow", "Storage"))


def denying_storage(estate: Estate) -> None:
    change_rules(estate, HUB_RULES, plus=rule("DenyStorage", 200, "Deny", "Storage"))


def bare_metal(estate: Estate) -> None:
    """The same interface, of a machine that is no virtual machine."""
    relay()(estate)
    properties = estate.properties(f"{HUB_GROUP}/{NETWORK}/networkInterfaces/nic-relay")
    properties["virtualMachine"] = None
    properties["hostedWorkloads"] = [f"{HUB_GROUP}/providers/Microsoft.BareMetal/bareMetalConnections/metal"]


def private_route(prefix: str, hop: str = "VirtualAppliance", address: str = "10.10.1.20") -> Change:
    return lambda estate: set_route(estate, "transit", prefix, hop, address if hop == "VirtualAppliance" else "")


def forwarding(server: str | None, *, allowed: bool = False) -> Change:
    """A forwarding ruleset that is linked to the network and sends every name to one server."""

    def change(estate: Estate) -> None:
        ruleset = network(estate, "dnsForwardingRulesets", "frs-inference")
        estate.add(ruleset, {"dnsResolverOutboundEndpoints": []}, location=LOCATION)
        estate.add(f"{ruleset}/virtualNetworkLinks/inference", {"virtualNetwork": {"id": estate.site.vnet}})
        servers = [{"ipAddress": server, "port": 53}] if server is not None else []
        forwarding_rule = {"domainName": "corp.example.", "targetDnsServers": servers, "forwardingRuleState": "Enabled"}
        estate.add(f"{ruleset}/forwardingRules/corp", forwarding_rule)
        if allowed:
            estate.policy["allowedDnsServers"] = [server]

    return change


def allow_rule_without_lists(estate: Estate) -> None:
    estate.properties(f"{estate.site.dns_policy}/dnsSecurityRules/allow")["dnsResolverDomainLists"] = []


def firewall_rule(kind: str = "NetworkRule", **fields: Any) -> Change:
    """One more rule of the declared firewall."""

    def change(estate: Estate) -> None:
        group = estate.properties(f"{POLICY}/ruleCollectionGroups/inference")
        group["ruleCollections"][0]["rules"].append(
            {"ruleType": kind, "name": "more", "sourceAddresses": ["*"], **fields}
        )

    return change


def to_addresses(*addresses: str) -> Change:
    return firewall_rule(destinationAddresses=list(addresses), ipProtocols=["TCP"], destinationPorts=["443"])


def to_accepted_addresses(*addresses: str) -> Change:
    """Addresses that the policy file states the owner of."""

    def change(estate: Estate) -> None:
        to_addresses(*addresses)(estate)
        estate.policy["allowedPublicDestinations"] = [
            {"prefix": prefix, "reason": "a partner, by contract"} for prefix in addresses
        ]

    return change


def to_hosts(*hosts: str) -> Change:
    return firewall_rule("ApplicationRule", targetFqdns=list(hosts), protocols=[{"protocolType": "Https", "port": 443}])


def to_fqdn_tags(*tags: str) -> Change:
    return firewall_rule("ApplicationRule", fqdnTags=list(tags), protocols=[{"protocolType": "Https", "port": 443}])


def own_hosts(domain: str) -> Change:
    """A rule for every host of a domain that the policy file lists."""

    def change(estate: Estate) -> None:
        to_hosts(f"*.{domain}")(estate)
        estate.policy["allowedDnsDomains"] = [domain]

    return change


def to_name_servers(*servers: str, port: str = "53", listed: tuple[str, ...] = ()) -> Change:
    """A rule for these servers; the policy file lists some."""

    def change(estate: Estate) -> None:
        firewall_rule(destinationAddresses=list(servers), ipProtocols=["UDP"], destinationPorts=[port])(estate)
        estate.policy["allowedDnsServers"] = list(listed)

    return change


def dns_proxy(*servers: str, enabled: bool = True, listed: tuple[str, ...] = ()) -> Change:
    """The declared firewall's policy forwards names to these servers; the policy file lists some."""

    def change(estate: Estate) -> None:
        estate.properties(POLICY)["dnsSettings"] = {"enableProxy": enabled, "servers": list(servers)}
        estate.policy["allowedDnsServers"] = list(listed)

    return change


def dns_proxy_of_a_base_policy(estate: Estate) -> None:
    settings = {"enableProxy": True, "servers": ["9.9.9.9"]}
    base = f"{HUB_GROUP}/{NETWORK}/firewallPolicies/afwp-base"
    estate.add(base, {"dnsSettings": settings, "ruleCollectionGroups": []}, location=LOCATION)
    estate.properties(POLICY)["basePolicy"] = {"id": base}


def dns_proxy_without_a_policy(estate: Estate) -> None:
    properties = estate.properties(estate.site.firewall)
    properties["firewallPolicy"] = None
    properties["additionalProperties"] = {
        "Network.DNS.EnableProxy": "true",
        "Network.DNS.Servers": "9.9.9.9,149.112.112.112",
    }


def container_insights(workspace: str) -> Change:
    def change(estate: Estate) -> None:
        config = {"logAnalyticsWorkspaceResourceID": workspace, "useAADAuth": "true"}
        estate.properties(estate.cluster)["addonProfiles"] = {"omsagent": {"enabled": True, "config": config}}

    return change


def insights_of_the_monitor_profile(estate: Estate) -> None:
    insights = {"enabled": True, "logAnalyticsWorkspaceResourceId": WORKSPACE}
    estate.properties(estate.cluster)["azureMonitorProfile"] = {"containerInsights": insights}


def defender(estate: Estate) -> None:
    sensor = {"logAnalyticsWorkspaceResourceId": WORKSPACE, "securityMonitoring": {"enabled": True}}
    estate.properties(estate.cluster)["securityProfile"] = {"defender": sensor}


def balancer_without(field: str) -> Change:
    def change(estate: Estate) -> None:
        del estate.properties(estate.site.balancer)[field]

    return change


def balancer_elsewhere_without_pools(estate: Estate) -> None:
    """A public balancer in another group translates for the nodes, and the answer does not list its pools."""
    identifier = network(estate, "loadBalancers", "lb-elsewhere")
    public_balancer(estate, identifier, rules=[], outbound=[outbound_rule(identifier)])
    del estate.properties(identifier)["backendAddressPools"]


def model_without(field: str) -> Change:
    """The scale set's model lacks the addresses of its interface, or their subnets."""

    def change(estate: Estate) -> None:
        profile = estate.properties(estate.site.gpu_scale_set)["virtualMachineProfile"]["networkProfile"]
        interface = profile["networkInterfaceConfigurations"][0]["properties"]
        interface_fields = interface if field in interface else interface["ipConfigurations"][0]["properties"]
        del interface_fields[field]

    return change


def assignment_without_principal(estate: Estate) -> None:
    """A role that may write, of a holder that the answer leaves out."""
    contributor = "/providers/Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c"
    for role_assignment in estate.of_type("Microsoft.Authorization/roleAssignments"):
        role_assignment["properties"] |= {"principalId": None, "roleDefinitionId": contributor}

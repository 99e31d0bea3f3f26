"""The decision about each estate that leads beyond the networks in reach is the one of Azure's documents."""

from __future__ import annotations

import pytest

from testbed.azure.baseline.layout import NETWORK_GROUP
from tests.decision_cases import Case
from tests.decision_cases_transit import (
    WORKSPACE,
    allow_rule_without_lists,
    allowing_storage,
    assignment_without_principal,
    balancer_elsewhere_without_pools,
    balancer_without,
    bare_metal,
    container_insights,
    defender,
    denying_storage,
    dns_proxy,
    dns_proxy_of_a_base_policy,
    dns_proxy_without_a_policy,
    endpoints,
    firewall_rule,
    forwarding,
    hub_gateway,
    hub_of_the_hub,
    hub_table,
    insights_of_the_monitor_profile,
    learned_routes_denied,
    model_without,
    own_hosts,
    private_route,
    relay,
    route_server_of_the_hub,
    to_accepted_addresses,
    to_addresses,
    to_fqdn_tags,
    to_hosts,
    to_name_servers,
    with_public_space,
)
from tests.decisions import must_be_decided_as_documented, must_be_distinct_and_sourced

RELAY, TUNNEL, PRIVATE_SUBNETS = "vm-pivot", "About forced tunneling", "Default outbound access: private subnets"
STATIC = "Azure PowerShell: Get-AzVirtualNetworkGatewayLearnedRoute"
SITE, ENDPOINTS = "VPN gateway: routes learned by BGP", "Virtual network service endpoints"
STORAGE, KEYS = endpoints("Microsoft.Storage"), endpoints("Microsoft.KeyVault")
RELAYS = (
    Case("machine without a way", "Pass", "", relay(), PRIVATE_SUBNETS, "peered"),
    Case("machine behind a tunnel", "Fail", RELAY, relay(hub_gateway("0.0.0.0/0")), TUNNEL, "peered"),
    Case("machine behind public routes", "Fail", RELAY, relay(hub_gateway("52.96.0.0/14")), SITE, "peered"),
    Case(
        "machine behind public routes of a local network gateway",
        "Fail",
        RELAY,
        relay(hub_gateway("52.96.0.0/14", origin="Network")),
        STATIC,
        "peered",
    ),
    Case(
        "machine behind the public space of its own network",
        "Pass",
        "",
        relay(hub_gateway("52.96.0.0/14", origin="Network"), with_public_space("52.96.0.0/14")),
        STATIC,
        "peered",
    ),
    Case("machine behind private routes", "Pass", "", relay(hub_gateway("192.168.0.0/16")), SITE, "peered"),
    Case(
        "machine that learns no routes",
        "Pass",
        "",
        relay(hub_gateway("0.0.0.0/0"), hub_table(propagates=False)),
        "User-defined routes: propagate gateway routes",
        "peered",
    ),
    Case(
        "machine behind a gateway that is not read",
        "Unknown",
        RELAY,
        relay(hub_gateway("192.168.0.0/16"), learned_routes_denied),
        SITE,
        "peered",
    ),
    Case("machine behind a hub", "Fail", RELAY, relay(hub_of_the_hub(internet=True)), "About Virtual WAN", "peered"),
    Case(
        "machine behind a hub without internet",
        "Unknown",
        RELAY,
        relay(hub_of_the_hub(internet=False)),
        "Virtual WAN: only the default route is withheld, prefixes of branches are not",
        "peered",
    ),
    Case(
        "machine behind a hub that learns no routes",
        "Pass",
        "",
        relay(hub_of_the_hub(internet=True), hub_table(propagates=False)),
        "User-defined routes: propagate gateway routes",
        "peered",
    ),
    Case(
        "machine behind a route server",
        "Unknown",
        RELAY,
        relay(route_server_of_the_hub),
        "What is Route Server",
        "peered",
    ),
    Case("machine before storage", "Fail", RELAY, relay(**STORAGE), ENDPOINTS, "peered"),
    Case("machine before vaults", "Fail", RELAY, relay(**KEYS), ENDPOINTS, "peered"),
    Case("machine without rules", "Fail", RELAY, relay(sealed=False), PRIVATE_SUBNETS, "peered"),
    Case("machine that may reach storage", "Fail", RELAY, relay(allowing_storage), PRIVATE_SUBNETS, "peered"),
    Case(
        "machine that may not reach storage",
        "Pass",
        "",
        relay(denying_storage, sealed=False),
        PRIVATE_SUBNETS,
        "peered",
    ),
    Case(
        "machine that is routed to nowhere",
        "Pass",
        "",
        relay(hub_table(propagates=False, hop="None"), sealed=False),
        "User-defined routes: none",
        "peered",
    ),
    Case("machine without a group", "Fail", RELAY, relay(networkSecurityGroup=None), PRIVATE_SUBNETS, "peered"),
    Case("bare metal", "Unknown", RELAY, bare_metal, "Network Interfaces, REST: hostedWorkloads", "peered"),
)

SPLIT, ROUTES, SPOKES = "route-split-default", "Virtual network traffic routing", "Hub-spoke: spokes by an appliance"
TRANSIT = (
    Case("spoke behind an appliance", "Unknown", SPLIT, private_route("10.50.0.0/16"), SPOKES, "peered"),
    Case("everything private to an appliance", "Unknown", SPLIT, private_route("10.0.0.0/8"), SPOKES, "peered"),
    Case("shared space to an appliance", "Unknown", SPLIT, private_route("100.64.0.0/10"), ROUTES, "peered"),
    Case("own peer by an appliance", "Pass", "", private_route("10.10.0.0/24"), ROUTES, "peered"),
    Case(
        "private prefix to a gateway",
        "Unknown",
        SPLIT,
        private_route("192.168.0.0/16", "VirtualNetworkGateway"),
        ROUTES,
    ),
    Case("private prefix to nowhere", "Pass", "", private_route("10.50.0.0/16", "None"), ROUTES),
    Case("private prefix to a hop of tomorrow", "Unknown", SPLIT, private_route("10.50.0.0/16", "ContosoHop"), ROUTES),
    Case(
        "private prefix to the firewall",
        "Pass",
        "",
        private_route("10.50.0.0/16", address="10.10.0.4"),
        ROUTES,
        "filtered",
    ),
    Case("private prefix past the firewall", "Unknown", SPLIT, private_route("10.50.0.0/16"), ROUTES, "filtered"),
)

FORWARD, RESOLVER = "dns-forwarding-ruleset", "Azure DNS Private Resolver: endpoints and rulesets"
NAMES = (
    Case("names to a server elsewhere", "Unknown", FORWARD, forwarding("192.168.7.4"), RESOLVER),
    Case("names to a server here", "Unknown", FORWARD, forwarding("10.40.12.53"), RESOLVER),
    Case("names to a public server", "Fail", FORWARD, forwarding("9.9.9.9"), RESOLVER),
    Case("names to no server", "Unknown", FORWARD, forwarding(None), RESOLVER),
    Case("allow rule without lists", "Unknown", "dns-allowed-domains", allow_rule_without_lists, "DNS security policy"),
)

SERVERS, FIREWALL_DNS = "vnet-dns-servers", "Azure Firewall: DNS settings"
NAMES_BY_FIREWALL = (
    Case("proxy to Azure's resolver", "Pass", "", dns_proxy(), FIREWALL_DNS, "filtered"),
    Case("proxy to a public server", "Fail", SERVERS, dns_proxy("9.9.9.9"), FIREWALL_DNS, "filtered"),
    Case(
        "proxy to a listed server",
        "Pass",
        "",
        dns_proxy("10.10.1.5", listed=("10.10.1.5",)),
        FIREWALL_DNS,
        "filtered",
    ),
    Case("proxy that is off", "Pass", "", dns_proxy("9.9.9.9", enabled=False), FIREWALL_DNS, "filtered"),
    Case("proxy of a base policy", "Fail", SERVERS, dns_proxy_of_a_base_policy, FIREWALL_DNS, "filtered"),
    Case("proxy without a policy", "Fail", SERVERS, dns_proxy_without_a_policy, FIREWALL_DNS, "filtered"),
)

FIREWALL, TAGS, WILDCARDS = "firewall-in-path", "Virtual network service tags", "Azure Firewall: FQDN filtering"
TUTORIAL = "Tutorial: Deploy and configure Azure Firewall and policy"
FQDN_TAGS, EGRESS_OF_AKS = "Azure Firewall: FQDN tags", "AKS: outbound network and FQDN rules"
ZONES = "Azure Private Endpoint: public DNS zones"
BY_RULE = tuple(
    Case(
        f"firewall to {' and '.join(phrases)}",
        decision,
        FIREWALL if decision != "Pass" else "",
        change(*phrases),
        source,
        "filtered",
    )
    for decision, change, source, phrases in (
        ("Fail", to_addresses, TAGS, ("AzureCloud",)),
        ("Fail", to_addresses, TAGS, ("azurecloud.swedencentral",)),
        ("Fail", to_addresses, TAGS, ("Storage.SwedenCentral",)),
        ("Fail", to_addresses, TAGS, ("Sql",)),
        ("Fail", to_addresses, TAGS, ("AzureFrontDoor.Frontend",)),
        ("Pass", to_addresses, TAGS, ("AzureFrontDoor.FirstParty", "MicrosoftContainerRegistry")),
        ("Unknown", to_addresses, TAGS, ("ContosoUnheardOf",)),
        ("Unknown", to_addresses, WILDCARDS, ("20.91.66.7",)),
        ("Unknown", to_addresses, WILDCARDS, ("20.91.66.7-20.91.66.9",)),
        ("Pass", to_accepted_addresses, WILDCARDS, ("20.91.66.7", "20.91.66.9")),
        ("Fail", to_hosts, WILDCARDS, ("*.blob.core.windows.net",)),
        ("Fail", to_hosts, WILDCARDS, ("*.windows.net",)),
        ("Fail", to_hosts, WILDCARDS, ("*.z13.web.core.windows.net",)),
        ("Fail", to_hosts, WILDCARDS, ("*.com",)),
        ("Fail", to_hosts, WILDCARDS, ("*net",)),
        ("Unknown", to_hosts, WILDCARDS, ("*.mirror.contoso.example",)),
        ("Pass", to_hosts, WILDCARDS, ("*.data.mcr.microsoft.com", "mcr.microsoft.com")),
        ("Fail", to_hosts, ZONES, ("*.azuredatabricks.net",)),
        ("Fail", to_hosts, ZONES, ("*.hcp.swedencentral.azmk8s.io",)),
        ("Fail", to_fqdn_tags, FQDN_TAGS, ("Office365.SharePoint.Optimize",)),
        ("Fail", to_fqdn_tags, EGRESS_OF_AKS, ("AzureKubernetesService",)),
        ("Unknown", to_fqdn_tags, FQDN_TAGS, ("ContosoTomorrow",)),
        ("Pass", to_fqdn_tags, FQDN_TAGS, ("WindowsUpdate",)),
        ("Fail", to_addresses, WILDCARDS, ("20.0.0.0/9", "40.0.0.0/9", "60.0.0.0/9")),
        ("Unknown", to_hosts, ZONES, ("weights.blob.core.windows.net",)),
        ("Pass", to_hosts, EGRESS_OF_AKS, ("mcr.microsoft.com", "packages.aks.azure.com")),
        ("Fail", to_hosts, EGRESS_OF_AKS, ("management.azure.com",)),
    )
)
THROUGH_THE_FIREWALL = (
    *BY_RULE,
    Case(
        "firewall to URLs of any account",
        "Fail",
        FIREWALL,
        firewall_rule("ApplicationRule", targetUrls=["https://*.blob.core.windows.net/weights"], terminateTLS=True),
        "Azure Firewall Premium: URL filtering",
        "filtered",
    ),
    *(
        Case(f"firewall to {title}", decision, FIREWALL if decision != "Pass" else "", change, TUTORIAL, "filtered")
        for title, decision, change in (
            ("a public name server", "Unknown", to_name_servers("209.244.0.3", "209.244.0.4")),
            ("a name server by TLS", "Unknown", to_name_servers("9.9.9.9", port="853")),
            ("a listed name server", "Pass", to_name_servers("10.50.0.4", listed=("10.50.0.4",))),
            (
                "a name server by name",
                "Unknown",
                firewall_rule(destinationFqdns=["dns.example.com"], destinationPorts=["53"]),
            ),
        )
    ),
    Case("firewall to a declared domain", "Pass", "", own_hosts("mirror.contoso.example"), WILDCARDS, "filtered"),
)

SINK, OURS = "diag-foreign-sink", f"{NETWORK_GROUP}/providers/Microsoft.OperationalInsights/workspaces/law"
TELEMETRY = (
    Case("insights of others", "Fail", SINK, container_insights(WORKSPACE), "Enable monitoring for AKS clusters"),
    Case("insights of ours", "Pass", "", container_insights(OURS), "Enable monitoring for AKS clusters"),
    Case("monitor profile of others", "Fail", SINK, insights_of_the_monitor_profile, "AKS, REST: azureMonitorProfile"),
    Case("defender of others", "Fail", SINK, defender, "Defender for Containers: workspace of the sensor"),
)

MODEL = "vmss-public-ip-config"
CUT_OFF = (
    Case("no list of frontends", "Unknown", "lb-public-frontend", balancer_without("frontendIPConfigurations"), "REST"),
    Case("no list of rules", "Unknown", "lb-rule-snat", balancer_without("loadBalancingRules"), "REST"),
    Case("no list of outbound rules", "Unknown", "lb-outbound-rule", balancer_without("outboundRules"), "REST"),
    Case("no list of pools", "Unknown", "lb-outbound-rule", balancer_elsewhere_without_pools, "REST"),
    Case("model without addresses", "Unknown", MODEL, model_without("ipConfigurations"), "REST"),
    Case("model without subnets", "Unknown", MODEL, model_without("subnet"), "REST"),
    Case("role of no principal", "Unknown", "acr-push-identity", assignment_without_principal, "REST"),
)

ESTATES = (*RELAYS, *TRANSIT, *NAMES, *NAMES_BY_FIREWALL, *THROUGH_THE_FIREWALL, *TELEMETRY, *CUT_OFF)


@pytest.mark.parametrize("tried", ESTATES, ids=lambda tried_estate: tried_estate.name)
def test_the_decision_is_what_the_documents_of_azure_lead_to(tried: Case) -> None:
    must_be_decided_as_documented(tried)


def test_no_estate_is_tried_twice_and_each_names_its_source() -> None:
    must_be_distinct_and_sourced(ESTATES)

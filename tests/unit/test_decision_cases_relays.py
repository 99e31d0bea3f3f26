"""The decision about each estate with a machine that something holds by its address is the one of Azure's documents."""

from __future__ import annotations

from functools import partial

import pytest

from testbed.azure.baseline.layout import NETWORK_GROUP
from tests.decision_cases import Case, admin_rule, backends, balancer_before
from tests.decision_cases_relays import (
    ACROSS,
    ADDRESS,
    BEFORE,
    GATEWAY_PREFIX,
    admin_rules_denied,
    application_gateway,
    by_address,
    by_interface,
    by_rule,
    denied,
    denied_containers,
    distant_network,
    gateway_without_group,
    inbound_translation,
    internal_balancer,
    kind_denied,
    peering_says,
    public,
    scale_set_in_the_hub,
    without_list,
)
from tests.decision_cases_transit import denying_storage, hub_table, relay
from tests.decisions import must_be_decided_as_documented, must_be_distinct_and_sourced

of_the_hub = partial(admin_rule, home="hub")
RELAY, BACKENDS = "vm-pivot", "Load Balancer: backend pool management"
ACROSS_SUBSCRIPTIONS = "Load Balancer: cross-subscription overview"
APART = f"{NETWORK_GROUP}/providers/Microsoft.Network/virtualNetworks/vnet-apart"
HELD_BY_A_BALANCER = tuple(
    Case(name, decision, "" if decision == "Pass" else RELAY, relay(*around), source, "peered")
    for name, decision, source, around in (
        ("address, network of the member", "Fail", BACKENDS, (by_address(),)),
        ("address, network of the pool", "Fail", BACKENDS, (by_address(named_by="pool"),)),
        ("address, subnet of the member", "Fail", BACKENDS, (by_address(named_by="subnet"),)),
        ("address, no network named", "Fail", BACKENDS, (by_address(named_by=""),)),
        ("address, balancer of another subscription", "Fail", ACROSS_SUBSCRIPTIONS, (by_address(at=ACROSS),)),
        ("address of another machine", "Pass", BACKENDS, (by_address("10.10.1.21"),)),
        ("same address, another network", "Pass", BACKENDS, (by_address(home=APART),)),
        ("same address, pool of another network", "Pass", BACKENDS, (by_address(home=APART, named_by="pool"),)),
        ("address, internal balancer", "Pass", BACKENDS, (by_address(public=False),)),
        ("interface, named by the pool alone", "Fail", BACKENDS, (by_interface,)),
        ("rule that translates", "Fail", "Outbound rules", (by_rule(translates=True),)),
        ("rule that only lets in", "Fail", "Load balancing rules", (by_rule(translates=False),)),
        ("inbound NAT rule", "Fail", "Inbound NAT rules", (inbound_translation(public=True),)),
        ("inbound NAT rule, internal", "Pass", "Inbound NAT rules", (inbound_translation(public=False),)),
        ("no list of pools", "Unknown", "REST", (without_list("backendAddressPools"),)),
        ("no list of frontends", "Unknown", "REST", (without_list("frontendIPConfigurations"),)),
        ("balancers that no list shows", "Unknown", "REST", (kind_denied("loadBalancers"),)),
    )
)
HELD = (
    *HELD_BY_A_BALANCER,
    Case(
        "address of a scale set to come",
        "Fail",
        RELAY,
        relay(scale_set_in_the_hub, by_address("10.10.1.33")),
        BACKENDS,
        "peered",
    ),
    Case("scale set to come", "Pass", "", relay(scale_set_in_the_hub), BACKENDS, "peered"),
)

OFF, NOT_SAID = {"allowVirtualNetworkAccess": False}, {"allowVirtualNetworkAccess": None}
PARTIAL = {"peerCompleteVnets": False}
PEERINGS = "Create, change, or delete a virtual network peering"
BEHIND_A_DENIED_TAG = tuple(
    Case(name, decision, "" if decision == "Pass" else RELAY, relay(public, *around), PEERINGS, "peered")
    for name, decision, around in (
        ("tag denied to us", "Pass", (denied("Outbound"),)),
        ("tag denied to us, no access", "Fail", (denied("Outbound"), peering_says("ours", **OFF))),
        ("tag denied to us, access not said", "Unknown", (denied("Outbound"), peering_says("ours", **NOT_SAID))),
        ("tag denied to us, single subnets", "Unknown", (denied("Outbound"), peering_says("ours", **PARTIAL))),
        ("tag denied to us, no access from there", "Pass", (denied("Outbound"), peering_says("theirs", **OFF))),
        ("tag denied there", "Pass", (denied("Inbound"),)),
        ("tag denied there, no access", "Fail", (denied("Inbound"), peering_says("theirs", **OFF))),
        ("tag denied there, access not said", "Unknown", (denied("Inbound"), peering_says("theirs", **NOT_SAID))),
        ("tag denied there, no access from us", "Pass", (denied("Inbound"), peering_says("ours", **OFF))),
        (
            "tag denied as our own end",
            "Pass",
            (denied("Outbound", by="near"), peering_says("ours", **OFF)),
        ),
        (
            "addresses denied to us, no access",
            "Pass",
            (denied("Outbound", "10.10.0.0/22"), peering_says("ours", **OFF)),
        ),
        ("everything denied to us, no access", "Pass", (denied("Outbound", "*"), peering_says("ours", **OFF))),
    )
)

SERVERS, ADMIN_RULES = "Route Server FAQ: peered networks", "Security admin rules"
GROUP = f"{NETWORK_GROUP}/providers/Microsoft.Network/networkManagers/avnm/networkGroups/g"
OF_ITS_NETWORK = tuple(
    Case(name, decision, "" if decision == "Pass" else RELAY, relay(*around), source, "peered")
    for name, decision, source, around in (
        ("route server of a peer", "Unknown", SERVERS, (distant_network(route_server=True),)),
        ("route server that is not used", "Pass", SERVERS, (distant_network(route_server=True, used=False),)),
        ("peer without a route server", "Pass", SERVERS, (distant_network(route_server=False),)),
        ("storage always allowed", "Fail", ADMIN_RULES, (of_the_hub("AlwaysAllow", "Storage", "ServiceTag"),)),
        (
            "storage denied and always allowed",
            "Fail",
            ADMIN_RULES,
            (denying_storage, of_the_hub("AlwaysAllow", "Storage", "ServiceTag")),
        ),
        ("public prefix always allowed", "Fail", ADMIN_RULES, (of_the_hub("AlwaysAllow", "20.60.0.0/16"),)),
        ("everything always allowed", "Fail", ADMIN_RULES, (of_the_hub("AlwaysAllow", "*"),)),
        ("access of tomorrow", "Fail", ADMIN_RULES, (of_the_hub("ContosoAllow", "Storage", "ServiceTag"),)),
        ("group always allowed", "Unknown", ADMIN_RULES, (of_the_hub("AlwaysAllow", GROUP, "NetworkGroup"),)),
        ("private prefix always allowed", "Pass", ADMIN_RULES, (of_the_hub("AlwaysAllow", "10.0.0.0/8"),)),
        ("network always allowed", "Pass", ADMIN_RULES, (of_the_hub("AlwaysAllow", "VirtualNetwork", "ServiceTag"),)),
        ("storage left to groups", "Pass", ADMIN_RULES, (of_the_hub("Allow", "Storage", "ServiceTag"),)),
        (
            "always allowed inwards",
            "Pass",
            ADMIN_RULES,
            (of_the_hub("AlwaysAllow", "*", direction="Inbound"),),
        ),
        (
            "always allowed and routed to nowhere",
            "Pass",
            ADMIN_RULES,
            (of_the_hub("AlwaysAllow", "*"), hub_table(propagates=False, hop="None")),
        ),
        (
            "network always allowed, widened by a route",
            "Fail",
            ADMIN_RULES,
            (
                of_the_hub("AlwaysAllow", "VirtualNetwork", "ServiceTag"),
                hub_table(propagates=False, hop="Internet"),
            ),
        ),
        ("admin rules not read", "Unknown", ADMIN_RULES, (admin_rules_denied,)),
    )
)

SESSIONS, POOLS = "How an application gateway works", "Network security groups: virtual machines in load-balanced pools"
TO_IT, FROM_NODES = denied("Outbound", ADDRESS), denied("Inbound", "10.40.0.0/16")
TO_THE_FRONTEND, TO_THE_HUB = denied("Outbound", BEFORE), denied("Outbound", "10.10.0.0/22")
ELSEWHERE = f"{NETWORK_GROUP}/providers/Microsoft.Network/virtualNetworks/vnet-agw"
SHUT_OUT = tuple(
    Case(name, decision, "" if decision == "Pass" else RELAY, relay(public, *around), source, "peered")
    for name, decision, source, around in (
        ("denied", "Pass", SESSIONS, (TO_IT,)),
        ("denied, gateway", "Fail", SESSIONS, (TO_IT, application_gateway(ADDRESS))),
        ("denied, gateway by interface", "Fail", SESSIONS, (TO_IT, application_gateway(by_interface=True))),
        ("denied, gateway of another machine", "Pass", SESSIONS, (TO_IT, application_gateway("10.10.1.21"))),
        ("denied with the gateway", "Pass", SESSIONS, (TO_THE_HUB, application_gateway(ADDRESS))),
        ("denied, gateway in another network", "Pass", SESSIONS, (TO_IT, application_gateway(ADDRESS, home=ELSEWHERE))),
        ("denied there, gateway", "Fail", SESSIONS, (FROM_NODES, application_gateway(ADDRESS))),
        (
            "gateway denied there",
            "Pass",
            SESSIONS,
            (FROM_NODES, denied("Inbound", GATEWAY_PREFIX), application_gateway(ADDRESS)),
        ),
        ("everything denied there, gateway", "Pass", SESSIONS, (denied("Inbound", "*"), application_gateway(ADDRESS))),
        ("denied, gateways not listed", "Unknown", SESSIONS, (TO_IT, kind_denied("applicationGateways"))),
        ("denied, balancer", "Unknown", POOLS, (TO_IT, internal_balancer())),
        ("denied, balancer of another machine", "Pass", POOLS, (TO_IT, internal_balancer("10.10.1.21"))),
        ("denied with the frontend", "Pass", POOLS, (TO_IT, TO_THE_FRONTEND, internal_balancer())),
        ("denied there, balancer", "Pass", POOLS, (FROM_NODES, internal_balancer())),
        (
            "denied with the frontend, gateway before it",
            "Unknown",
            POOLS,
            (TO_IT, TO_THE_FRONTEND, internal_balancer(), application_gateway(BEFORE)),
        ),
    )
)
CONTAINERS = "service-pivot"
SHUT_OUT_SERVICES = tuple(
    Case(name, decision, "" if decision == "Pass" else CONTAINERS, denied_containers(*around), source)
    for name, decision, source, around in (
        ("containers denied, gateway", "Fail", SESSIONS, (gateway_without_group("10.40.45.5"),)),
        ("containers denied to the gateway too", "Pass", SESSIONS, (backends({"ipAddress": "10.40.45.5"}),)),
        ("containers denied, gateway of others", "Pass", SESSIONS, (gateway_without_group("10.40.12.10"),)),
        ("containers denied, balancer", "Unknown", POOLS, (balancer_before({"ipAddress": "10.40.45.5"}),)),
    )
)

HELD_NODES = (
    Case(
        "node by its address, balancer of another subscription",
        "Fail",
        "lb-outbound-rule",
        by_address("10.40.1.4", home="vnet"),
        ACROSS_SUBSCRIPTIONS,
        "peered",
    ),
    Case(
        "address of a node in another network",
        "Pass",
        "",
        by_address("10.40.1.4", home=APART),
        ACROSS_SUBSCRIPTIONS,
        "peered",
    ),
    Case(
        "address of a node, pool of another network",
        "Pass",
        "",
        by_address("10.40.1.4", home=APART, named_by="pool"),
        ACROSS_SUBSCRIPTIONS,
        "peered",
    ),
)

ESTATES = (*HELD, *HELD_NODES, *BEHIND_A_DENIED_TAG, *OF_ITS_NETWORK, *SHUT_OUT, *SHUT_OUT_SERVICES)


@pytest.mark.parametrize("tried", ESTATES, ids=lambda tried_estate: tried_estate.name)
def test_the_decision_is_what_the_documents_of_azure_lead_to(tried: Case) -> None:
    must_be_decided_as_documented(tried)


def test_no_estate_is_tried_twice_and_each_names_its_source() -> None:
    must_be_distinct_and_sourced(ESTATES)

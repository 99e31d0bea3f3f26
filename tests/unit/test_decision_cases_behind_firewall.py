"""The declared firewall is not the end: what its rules lead to decides, over peerings, balancers and gateways.

A machine in a second spoke is sealed unless a case says otherwise: then a rule that leads to it is no egress path.
"""

from __future__ import annotations

import pytest

from testbed.azure.baseline.layout import NETWORK_GROUP
from tests.decision_cases import Case, tunnel
from tests.decision_cases_behind_firewall import (
    FRONTEND,
    GATEWAY,
    INNER,
    INNER_MEMBER,
    PROXY,
    SITE,
    THIRD,
    accepted_site,
    allowed_to,
    balancer_of_the_spoke,
    balancers_denied,
    gateway_in_another_network,
    gateway_of_the_hub,
    gateway_of_the_spoke,
    gateways_denied,
    learned_routes_denied,
    machine_in_another_subnet,
    member_at,
    public,
    routed_past_the_firewall,
    second_spoke,
    spoke_denied,
    spoke_peering,
    third_network,
)
from tests.decision_cases_masks import all_of
from tests.decisions import must_be_decided_as_documented, must_be_distinct_and_sourced

RELAY, FIREWALL, SERVICES, PROPAGATION = "vm-pivot", "firewall-in-path", "service-pivot", "route-bgp-propagation"
SPOKES, OUTBOUND = "Hub-spoke network topology in Azure: spokes by a firewall", "Load Balancer: outbound rules"
BACKENDS, ACROSS = "Load Balancer: backend pool management", "Load Balancer: cross-subscription overview"
PEERINGS, SNAT = "Virtual network peering: not transitive", "Azure Firewall: SNAT private IP address ranges"
TRANSIT, BORDER = "VPN gateway transit for peering", "Virtual network traffic routing: border gateway protocol"
LISTED = {"ipAddress": "20.91.66.7"}

BY_A_BALANCER = tuple(
    Case(name, decision, check, second_spoke(*around, destinations=destinations), source, "filtered")
    for name, decision, check, source, destinations, around in (
        ("machine without an egress path", "Pass", "", SPOKES, (PROXY,), ()),
        ("machine with a public address", "Fail", RELAY, SPOKES, (PROXY,), (public,)),
        (
            "machine with a public address, rule for a machine beside it",
            "Pass",
            "",
            SPOKES,
            ("10.79.5.0/24",),
            (public,),
        ),
        (
            "outbound rule",
            "Fail",
            RELAY,
            OUTBOUND,
            (PROXY,),
            (balancer_of_the_spoke(member_at(PROXY), is_public=True),),
        ),
        (
            "outbound rule of a balancer in another subscription",
            "Fail",
            RELAY,
            ACROSS,
            (PROXY,),
            (balancer_of_the_spoke(member_at(PROXY), is_public=True, group=NETWORK_GROUP),),
        ),
        (
            "public balancer without an outbound rule",
            "Fail",
            RELAY,
            OUTBOUND,
            (PROXY,),
            (balancer_of_the_spoke(member_at(PROXY), is_public=True, outbound=False),),
        ),
        (
            "outbound rule for another machine",
            "Pass",
            "",
            BACKENDS,
            (PROXY,),
            (balancer_of_the_spoke(member_at("10.79.4.5"), is_public=True),),
        ),
        (
            "outbound rule for the same address in another network",
            "Pass",
            "",
            BACKENDS,
            (PROXY,),
            (balancer_of_the_spoke(member_at(PROXY, THIRD), is_public=True),),
        ),
        (
            "internal balancer before a sealed machine",
            "Pass",
            "",
            BACKENDS,
            (FRONTEND, PROXY),
            (balancer_of_the_spoke(member_at(PROXY), is_public=False),),
        ),
        (
            "internal balancer before another network",
            "Fail",
            SERVICES,
            BACKENDS,
            (FRONTEND,),
            (balancer_of_the_spoke(member_at("10.81.4.4", THIRD), is_public=False),),
        ),
        (
            "internal balancer before a public address",
            "Fail",
            SERVICES,
            BACKENDS,
            (FRONTEND,),
            (balancer_of_the_spoke(LISTED, is_public=False),),
        ),
        ("balancers that no list shows", "Unknown", RELAY, "REST", (PROXY,), (balancers_denied,)),
    )
)

SUBNETS = "Load Balancer: backends in any subnet of its network"
OWN_SUBNET = "Application Gateway infrastructure configuration: dedicated subnet"
BY_ADDRESS, BY_NIC = (balancer_of_the_spoke(member, is_public=False) for member in (member_at(INNER), INNER_MEMBER))
BEFORE_THE_BALANCER = gateway_of_the_spoke(FRONTEND)
# A rule of the firewall names what stands before the machine; the machine is in a subnet that no rule names.
BEHIND_A_FRONT = tuple(
    Case(
        f"{name}, {'public' if is_public else 'sealed'} machine",
        "Fail" if is_public else "Pass",
        RELAY if is_public else "",
        second_spoke(machine_in_another_subnet(is_public=is_public), *fronts, destinations=(named,)),
        source,
        "filtered",
    )
    for is_public in (True, False)
    for name, source, named, fronts in (
        ("balancer, member by address", SUBNETS, FRONTEND, (BY_ADDRESS,)),
        ("balancer, member by interface", SUBNETS, FRONTEND, (BY_NIC,)),
        ("gateway, backend by address", OWN_SUBNET, GATEWAY, (gateway_of_the_spoke(INNER),)),
        ("gateway, backend by interface", OWN_SUBNET, GATEWAY, (gateway_of_the_spoke(),)),
        ("gateway before a balancer", OWN_SUBNET, GATEWAY, (BEFORE_THE_BALANCER, BY_NIC)),
    )
)
NOT_BEHIND_ONE = (
    Case(
        "gateway that no rule names, public machine",
        "Pass",
        "",
        second_spoke(machine_in_another_subnet(is_public=True), gateway_of_the_spoke(INNER), destinations=(PROXY,)),
        SPOKES,
        "filtered",
    ),
    Case(
        "public machine beside a gateway that no list shows",
        "Unknown",
        SERVICES,
        second_spoke(
            machine_in_another_subnet(is_public=True),
            gateway_of_the_spoke(INNER),
            gateways_denied,
            destinations=(GATEWAY,),
        ),
        "REST",
        "filtered",
    ),
)

OVER_PEERINGS = tuple(
    Case(name, decision, check, second_spoke(public, *around, destinations=destinations), source, "filtered")
    for name, decision, check, source, destinations, around in (
        (
            "forwarded traffic refused by the spoke",
            "Fail",
            RELAY,
            SNAT,
            (PROXY,),
            (spoke_peering("spoke", allowForwardedTraffic=False), spoke_peering("hub", allowForwardedTraffic=False)),
        ),
        (
            "forwarded traffic allowed by both",
            "Fail",
            RELAY,
            SPOKES,
            (PROXY,),
            (spoke_peering("spoke", allowForwardedTraffic=True), spoke_peering("hub", allowForwardedTraffic=True)),
        ),
        (
            "disconnected peering",
            "Unknown",
            FIREWALL,
            PEERINGS,
            (PROXY,),
            (spoke_peering("hub", peeringState="Disconnected"), spoke_peering("spoke", peeringState="Disconnected")),
        ),
        (
            "peering in a state of tomorrow",
            "Fail",
            RELAY,
            PEERINGS,
            (PROXY,),
            (spoke_peering("hub", peeringState="Syncing"),),
        ),
        ("spoke that is not readable", "Unknown", FIREWALL, "REST", (PROXY,), (spoke_denied,)),
        (
            "third network peered with the hub",
            "Fail",
            RELAY,
            SPOKES,
            ("10.81.4.4",),
            (third_network(peered_with="hub"),),
        ),
        (
            "third network peered with the spoke alone",
            "Unknown",
            FIREWALL,
            PEERINGS,
            ("10.81.4.4",),
            (third_network(peered_with="spoke"),),
        ),
    )
)

TO_A_SITE = tuple(
    Case(name, decision, check, all_of(*changes), source, "filtered")
    for name, decision, check, source, changes in (
        ("rule to a site", "Unknown", FIREWALL, SPOKES, (allowed_to(SITE),)),
        (
            "rule to a site by ExpressRoute",
            "Unknown",
            FIREWALL,
            TRANSIT,
            (allowed_to(SITE), gateway_of_the_hub("ExpressRoute", "192.168.0.0/16")),
        ),
        ("rule to an accepted site", "Pass", "", SPOKES, (allowed_to(SITE), accepted_site)),
        (
            "rule to a wider prefix than the accepted one",
            "Unknown",
            FIREWALL,
            SPOKES,
            (allowed_to("192.168.0.0/16"), accepted_site),
        ),
        ("rule to a site, of other sources", "Pass", "", SPOKES, (allowed_to(SITE, sources=("10.79.0.0/16",)),)),
        ("gateway of the hub, not used", "Pass", "", TRANSIT, (gateway_of_the_hub("Vpn", "0.0.0.0/0"),)),
        (
            "VPN gateway of the hub, used",
            "Fail",
            "peering-remote-gateway",
            TRANSIT,
            (gateway_of_the_hub("Vpn", "0.0.0.0/0", used=True),),
        ),
        (
            "ExpressRoute gateway of the hub, used and propagated",
            "Fail",
            PROPAGATION,
            BORDER,
            (gateway_of_the_hub("ExpressRoute", "0.0.0.0/0", used=True, propagates=True),),
        ),
        (
            "gateway of the hub, used, routes not read",
            "Fail",
            "peering-remote-gateway",
            TRANSIT,
            (gateway_of_the_hub("ExpressRoute", used=True), learned_routes_denied),
        ),
        (
            "VPN gateway in the network",
            "Fail",
            "gateway-forced-tunnel",
            "About forced tunneling",
            (tunnel("0.0.0.0/0"),),
        ),
        (
            "ExpressRoute gateway in the network, propagated",
            "Fail",
            PROPAGATION,
            BORDER,
            (tunnel("0.0.0.0/0", propagates=True, gatewayType="ExpressRoute"),),
        ),
        ("gateway of a network beside the hub", "Pass", "", TRANSIT, (gateway_in_another_network,)),
        (
            "rule to a site behind the gateway of a network beside the hub",
            "Unknown",
            FIREWALL,
            TRANSIT,
            (gateway_in_another_network, allowed_to(SITE)),
        ),
        (
            "site by a route past the firewall",
            "Unknown",
            "route-split-default",
            BORDER,
            (routed_past_the_firewall("192.168.0.0/16", "VirtualNetworkGateway"),),
        ),
        (
            "half of all addresses past the firewall",
            "Fail",
            "route-split-default",
            BORDER,
            (routed_past_the_firewall("0.0.0.0/1"),),
        ),
    )
)

ESTATES = (*BY_A_BALANCER, *BEHIND_A_FRONT, *NOT_BEHIND_ONE, *OVER_PEERINGS, *TO_A_SITE)


@pytest.mark.parametrize("case", ESTATES, ids=lambda case: case.name)
def test_the_decision_is_what_the_documents_of_azure_lead_to(case: Case) -> None:
    must_be_decided_as_documented(case)


def test_no_estate_is_tried_twice_and_each_names_its_source() -> None:
    must_be_distinct_and_sourced(ESTATES)

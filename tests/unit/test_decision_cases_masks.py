"""A deny masks exactly the packets that it names: what it leaves of a later allow is an egress path.

Sources: learn.microsoft.com/azure/virtual-network/network-security-groups-overview (priority, service tags, augmented
rules), service-tags-overview (regions of a tag), application-security-groups (groups of interfaces).
"""

from __future__ import annotations

import pytest

from tests.decision_cases import Case
from tests.decision_cases_groups import by_group
from tests.decision_cases_masks import (
    all_of,
    interface_group_denied,
    interface_rules,
    ruled,
    subnet_group_denied,
    subnet_rules,
    without_deny,
)
from tests.decisions import must_be_decided_as_documented, must_be_distinct_and_sourced

DENY = "nsg-internet-deny"
PRIORITY, AUGMENTED = "Network security groups: security rules, priority", "Network security groups: augmented rules"
TAGS, GROUPS = "Virtual network service tags: regions", "Application security groups"
LAYERS = "How network security groups filter network traffic: subnet and interface"
ASG = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/applicationSecurityGroups/others"

# (name, decision, source, rules of the subnet's group before its own deny of the internet)
OF_ONE_GROUP = (
    ("allow after a deny of everything", "Pass", PRIORITY, (ruled("Deny", "*"), ruled("Allow"))),
    ("allow after a deny of the same", "Pass", PRIORITY, (ruled("Deny"), ruled("Allow"))),
    ("allow before a deny of the same", "Fail", PRIORITY, (ruled("Allow"), ruled("Deny"))),
    ("deny of one port", "Fail", PRIORITY, (ruled("Deny", destinationPortRange="443"), ruled("Allow"))),
    ("deny of all ports but one", "Fail", AUGMENTED, (ruled("Deny", ports=["0-442", "444-65535"]), ruled("Allow"))),
    (
        "deny of all ports in two ranges",
        "Pass",
        AUGMENTED,
        (ruled("Deny", ports=["0-442", "443-65535"]), ruled("Allow")),
    ),
    ("deny of ranges that overlap", "Pass", AUGMENTED, (ruled("Deny", ports=["100-65535", "0-443"]), ruled("Allow"))),
    ("deny from some ports", "Fail", AUGMENTED, (ruled("Deny", source_ports=["1024-65535"]), ruled("Allow"))),
    ("deny of one protocol", "Fail", PRIORITY, (ruled("Deny", protocol="Tcp"), ruled("Allow"))),
    ("deny of the allowed protocol", "Pass", PRIORITY, (ruled("Deny", protocol="Tcp"), ruled("Allow", protocol="Tcp"))),
    (
        "denies of two protocols before an allow of a third",
        "Fail",
        PRIORITY,
        (ruled("Deny", protocol="Tcp"), ruled("Deny", protocol="Udp"), ruled("Allow", protocol="Icmp")),
    ),
    (
        "denies of the named protocols, and an allow of every protocol",
        "Fail",
        PRIORITY,
        (*(ruled("Deny", protocol=name) for name in ("Tcp", "Udp", "Icmp", "Esp", "Ah")), ruled("Allow")),
    ),
    ("deny of half of all addresses", "Fail", AUGMENTED, (ruled("Deny", "0.0.0.0/1"), ruled("Allow"))),
    (
        "deny of both halves in one rule",
        "Pass",
        AUGMENTED,
        (ruled("Deny", destinations=["0.0.0.0/1", "128.0.0.0/1"]), ruled("Allow")),
    ),
    (
        "denies of both halves in two rules",
        "Pass",
        PRIORITY,
        (ruled("Deny", "0.0.0.0/1"), ruled("Deny", "128.0.0.0/1"), ruled("Allow")),
    ),
    ("deny of a wider prefix", "Pass", PRIORITY, (ruled("Deny", "20.0.0.0/8"), ruled("Allow", "20.60.0.0/16"))),
    ("deny of a narrower prefix", "Fail", PRIORITY, (ruled("Deny", "20.60.0.0/17"), ruled("Allow", "20.60.0.0/16"))),
    (
        "deny of the allowed prefix in two parts",
        "Pass",
        AUGMENTED,
        (ruled("Deny", destinations=["20.60.0.0/17", "20.60.128.0/17"]), ruled("Allow", "20.60.0.0/16")),
    ),
    (
        "allow of a list that the deny covers in part",
        "Fail",
        AUGMENTED,
        (ruled("Deny", "20.0.0.0/8"), ruled("Allow", destinations=["20.60.0.0/16", "52.96.0.0/14"])),
    ),
    (
        "allow of a list of private prefixes",
        "Pass",
        AUGMENTED,
        (ruled("Allow", destinations=["10.0.0.0/8", "fd00::/8"]),),
    ),
    ("deny from a part of the nodes", "Fail", PRIORITY, (ruled("Deny", sources=["10.40.1.0/25"]), ruled("Allow"))),
    ("deny from the network of the nodes", "Pass", PRIORITY, (ruled("Deny", sources=["10.40.0.0/16"]), ruled("Allow"))),
    ("allow from other subnets", "Pass", AUGMENTED, (ruled("Allow", sources=["10.77.0.0/16", "10.78.0.0/16"]),)),
    (
        "allow from a list with the nodes",
        "Fail",
        AUGMENTED,
        (ruled("Allow", sources=["10.77.0.0/16", "10.40.1.0/24"]),),
    ),
    ("deny of inbound packets", "Fail", PRIORITY, (ruled("Deny", "*", direction="Inbound"), ruled("Allow"))),
    ("allow of inbound packets", "Pass", PRIORITY, (ruled("Allow", "*", direction="Inbound"),)),
    (
        "deny of a tag, allow of one of its regions",
        "Pass",
        TAGS,
        (ruled("Deny", "Storage"), ruled("Allow", "Storage.SwedenCentral")),
    ),
    (
        "deny of a region, allow of the tag",
        "Fail",
        TAGS,
        (ruled("Deny", "Storage.SwedenCentral"), ruled("Allow", "Storage")),
    ),
    (
        "deny of another region",
        "Fail",
        TAGS,
        (ruled("Deny", "Storage.WestEurope"), ruled("Allow", "Storage.SwedenCentral")),
    ),
    ("deny of a tag on one port", "Fail", TAGS, (ruled("Deny", "Storage", ports=["80"]), ruled("Allow", "Storage"))),
    ("deny of another tag", "Fail", TAGS, (ruled("Deny", "Sql"), ruled("Allow", "Storage"))),
    ("deny of a tag before an allow of the internet", "Fail", TAGS, (ruled("Deny", "Storage"), ruled("Allow"))),
    ("deny of the internet before an allow of a tag", "Pass", TAGS, (ruled("Deny"), ruled("Allow", "AzureCloud"))),
    ("deny from a group of other machines", "Fail", GROUPS, (by_group(ASG, "source", "Deny"), ruled("Allow"))),
    ("deny to a group of machines", "Fail", GROUPS, (by_group(ASG, "destination", "Deny"), ruled("Allow"))),
)
MASKS = tuple(
    Case(name, decision, "" if decision == "Pass" else DENY, subnet_rules(*rules), source, "overlay")
    for name, decision, source, rules in OF_ONE_GROUP
)

WEB = ruled("Allow", protocol="Tcp", ports=["443"])
OF_TWO_GROUPS = tuple(
    Case(name, decision, "" if decision == "Pass" else DENY, all_of(without_deny, *changes), LAYERS, "overlay")
    for name, decision, changes in (
        ("deny on the interfaces alone", "Pass", (interface_rules(ruled("Deny")),)),
        (
            "deny of another protocol on the interfaces",
            "Fail",
            (subnet_rules(WEB), interface_rules(ruled("Deny", protocol="Udp"))),
        ),
        (
            "each group denies what the other lets out, by protocol",
            "Pass",
            (
                subnet_rules(ruled("Deny", protocol="Tcp")),
                interface_rules(ruled("Allow", protocol="Tcp"), ruled("Deny")),
            ),
        ),
        (
            "each group denies what the other lets out, by prefix",
            "Pass",
            (
                subnet_rules(ruled("Allow", "20.0.0.0/8"), ruled("Deny")),
                interface_rules(ruled("Allow", "52.0.0.0/8"), ruled("Deny")),
            ),
        ),
        (
            "both groups let the same prefix out",
            "Fail",
            (
                subnet_rules(ruled("Allow", "20.0.0.0/8"), ruled("Deny")),
                interface_rules(ruled("Allow", "20.60.0.0/16"), ruled("Deny")),
            ),
        ),
        ("no deny, group of the interfaces not read", "Unknown", (interface_group_denied,)),
    )
)
NOT_READ = (
    Case("group of the subnets not read", "Unknown", DENY, subnet_group_denied, "REST", "overlay"),
    Case(
        "deny with a protocol of tomorrow",
        "Fail",
        DENY,
        subnet_rules(ruled("Deny", protocol="Quic"), ruled("Allow")),
        "REST: SecurityRuleProtocol",
        "overlay",
    ),
    Case(
        "allow with a protocol of tomorrow",
        "Fail",
        DENY,
        subnet_rules(ruled("Allow", protocol="Quic")),
        "REST: SecurityRuleProtocol",
        "overlay",
    ),
)

ESTATES = (*MASKS, *OF_TWO_GROUPS, *NOT_READ)


@pytest.mark.parametrize("case", ESTATES, ids=lambda case: case.name)
def test_the_decision_is_what_the_documents_of_azure_lead_to(case: Case) -> None:
    must_be_decided_as_documented(case)


def test_no_estate_is_tried_twice_and_each_names_its_source() -> None:
    must_be_distinct_and_sourced(ESTATES)

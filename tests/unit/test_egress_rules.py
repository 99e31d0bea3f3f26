"""The arithmetic behind security rules: address sets, priorities, ports, protocols, sources, tags, two layers."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.azure.security_groups import SecurityGroup, SecurityRule
from hermetic.audit.estate.questions import Body
from hermetic.audit.model.address_ranges import internet, is_public, network, networks, overlap, space, union, without
from hermetic.audit.rules.nsg_rules import RuleContext, denies_tag, holes, reachable_through
from tests.audit_estates import default_rules, deny_internet, rule

NODES = RuleContext(space(networks(["10.0.1.0/24"])), space(networks(["10.0.0.0/16"])), application_groups=frozenset())
SHUT = deny_internet(4000)


def group(*rules: dict[str, Any]) -> tuple[SecurityRule, ...]:
    """As they are read from ARM, with the default rules."""
    properties = {"securityRules": list(rules), "defaultSecurityRules": default_rules()}
    return SecurityGroup.read(Body({"id": "g", "properties": properties}, ())).rules


def names(*rules: dict[str, Any], rule_context: RuleContext = NODES) -> list[str]:
    return [hole.rule.name for hole in holes(group(*rules), rule_context)]


# ---------------------------------------------------------------- address sets


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("8.8.8.8", True),
        ("8.0.0.0/6", True),
        ("0.0.0.0/0", True),
        ("9.0.0.0/7", True),
        ("11.0.0.0/8", True),
        ("172.32.0.0/16", True),
        ("2001:4860::/32", True),
        ("64:ff9b::808:808/128", True),
        ("2002::/16", True),
        ("2001::/32", True),
        ("::ffff:0.0.0.0/96", True),
        ("::ffff:8.8.8.0/120", True),
        ("::ffff:808:808", True),
        ("::ffff:10.0.0.0/104", False),
        ("::ffff:10.1.2.3", False),
        ("10.1.2.3", False),
        ("172.16.0.0/12", False),
        ("192.168.0.0/16", False),
        ("100.127.255.255", False),
        ("169.254.169.254", False),
        ("168.63.129.16", False),
        ("224.0.0.1", False),
        ("fd00::/8", False),
        ("fe80::/10", False),
        ("::1", False),
    ],
)
def test_public_is_what_is_neither_private_nor_reserved(text: str, public: bool) -> None:
    parsed = network(text)
    assert parsed is not None
    assert is_public(parsed) is public


MAPPED = "::ffff:0.0.0.0/96"
AS_SOURCE = {"sourceAddressPrefix": MAPPED}


@pytest.mark.parametrize(
    "out", [rule("out", 100, "Allow", MAPPED), rule("out", 100, "Allow", sourceAddressPrefix=MAPPED)]
)
def test_an_allow_for_ipv4_written_as_ipv6_counts_as_one_for_ipv4(out: dict[str, Any]) -> None:
    assert names(out, SHUT) == ["out"]


@pytest.mark.parametrize(
    "deny", [rule("deny", 100, "Deny", MAPPED), rule("deny", 100, "Deny", sourceAddressPrefix=MAPPED)]
)
def test_a_deny_for_ipv4_written_as_ipv6_stops_nothing_of_ipv4(deny: dict[str, Any]) -> None:
    """Whether Azure reads such a prefix as IPv4 is not documented."""
    assert names(deny) == names()


@pytest.mark.parametrize("text", ["Internet", "Storage.WestEurope", "*", "", "10.0.0.0/33", "10.0.0", "::/129"])
def test_what_is_no_prefix_is_none(text: str) -> None:
    assert network(text) is None


def test_sets_are_joined_cut_and_overlapped() -> None:
    low, high = space(networks(["10.0.0.0/25"])), space(networks(["10.0.0.128/25"]))
    address_space = space(networks(["10.0.0.0/24"]))
    assert union((*high, *low)) == address_space
    assert without(address_space, high) == low
    assert overlap(address_space, high) == high
    assert without(address_space, address_space) == ()
    assert without(space(networks(["::/0"])), space(networks(["0.0.0.0/0"]))) == space(networks(["::/0"]))


def test_what_the_network_uses_for_itself_is_not_the_internet() -> None:
    ours = space(networks(["20.0.0.0/8"]))
    assert overlap(internet(ours), ours) == ()


# ---------------------------------------------------------------- one layer


BY_DEFAULT = ["AllowInternetOutBound"]
TWO_HALVES = {"destinationAddressPrefixes": ["0.0.0.0/1", "128.0.0.0/1"]}
REACHED: list[tuple[str, tuple[dict[str, Any], ...], list[str]]] = [
    ("only Azure's rules", (), BY_DEFAULT),
    ("deny to the tag", (SHUT,), []),
    ("deny to everything", (rule("d", 100, "Deny", "*"),), []),
    ("deny to the prefix", (rule("d", 100, "Deny", "0.0.0.0/0"),), []),
    ("deny in two halves", (rule("d", 100, "Deny", "0.0.0.0/1"), rule("e", 101, "Deny", "128.0.0.0/1")), []),
    ("deny in a plural field", (rule("d", 100, "Deny", "", **TWO_HALVES),), []),
    ("one half is missing", (rule("d", 100, "Deny", "0.0.0.0/1"),), BY_DEFAULT),
    ("deny to a tag without known ranges", (rule("d", 100, "Deny", "AzureCloud"),), BY_DEFAULT),
    ("deny on one protocol", (rule("d", 100, "Deny", protocol="Tcp"),), BY_DEFAULT),
    ("deny on one port", (rule("d", 100, "Deny", destinationPortRange="443"),), BY_DEFAULT),
    (
        "deny on every port in two ranges",
        (rule("d", 100, "Deny", destinationPortRange="", destinationPortRanges=["0-1023", "1024-65535"]),),
        [],
    ),
    (
        "deny on ranges with a gap",
        (rule("d", 100, "Deny", destinationPortRange="", destinationPortRanges=["0-79", "81-65535"]),),
        BY_DEFAULT,
    ),
    ("deny from one source port", (rule("d", 100, "Deny", sourcePortRange="1024-2048"),), BY_DEFAULT),
    ("deny for the subnet", (rule("d", 100, "Deny", sourceAddressPrefix="10.0.1.0/24"),), []),
    ("deny for the network's tag", (rule("d", 100, "Deny", sourceAddressPrefix="VirtualNetwork"),), []),
    ("deny for half of the subnet", (rule("d", 100, "Deny", sourceAddressPrefix="10.0.1.0/25"),), BY_DEFAULT),
    (
        "deny for an application security group",
        (rule("d", 100, "Deny", sourceAddressPrefix="", sourceApplicationSecurityGroups=[{"id": "a"}]),),
        BY_DEFAULT,
    ),
    ("inbound deny", (rule("d", 100, "Deny", direction="Inbound"),), BY_DEFAULT),
    ("deny in an unknown direction", (rule("d", 100, "Deny", direction="Sideways"),), ["d", *BY_DEFAULT]),
    ("unknown access", (rule("d", 100, "Refuse"), SHUT), ["d"]),
    ("unknown protocol, deny", (rule("d", 100, "Deny", protocol="Quic"),), BY_DEFAULT),
    ("unknown protocol, allow", (rule("a", 100, "Allow", "8.8.8.8", protocol="Quic"), SHUT), ["a"]),
    ("allow above the deny", (rule("a", 100, "Allow", "Internet"), SHUT), ["a"]),
    ("allow below the deny", (rule("a", 4050, "Allow", "Internet"), SHUT), []),
    ("allow to a public prefix", (rule("a", 100, "Allow", "20.0.0.0/8"), SHUT), ["a"]),
    ("allow to one public address", (rule("a", 100, "Allow", "20.0.0.1"), SHUT), ["a"]),
    ("allow to private prefixes", (rule("a", 100, "Allow", "10.50.0.0/16"), SHUT), []),
    (
        "a public prefix among private ones",
        (rule("a", 100, "Allow", "", destinationAddressPrefixes=["10.0.0.0/8", "20.0.0.0/8"]), SHUT),
        ["a"],
    ),
    (
        "singular and plural together",
        (rule("a", 100, "Allow", "10.0.0.0/8", destinationAddressPrefixes=["20.0.0.0/8"]), SHUT),
        ["a"],
    ),
    ("allow to a service tag", (rule("a", 100, "Allow", "Storage.WestEurope"), SHUT), ["a"]),
    ("allow to the tag of tomorrow", (rule("a", 100, "Allow", "NewService"), SHUT), ["a"]),
    (
        "allow to a region of a denied tag",
        (rule("d", 50, "Deny", "Storage"), rule("a", 100, "Allow", "Storage.WestEurope"), SHUT),
        [],
    ),
    (
        "allow to a tag whose region is denied",
        (rule("d", 50, "Deny", "Storage.WestEurope"), rule("a", 100, "Allow", "Storage"), SHUT),
        ["a"],
    ),
    ("allow to a tag after the deny", (rule("a", 4050, "Allow", "Storage"), SHUT), []),
    ("allow to host addresses", (rule("a", 100, "Allow", "AzurePlatformDNS"), SHUT), []),
    ("allow to the network's tag", (rule("a", 100, "Allow", "VirtualNetwork"), SHUT), []),
    ("allow for another subnet", (rule("a", 100, "Allow", "Internet", sourceAddressPrefix="10.0.9.0/24"), SHUT), []),
    ("allow for part of the subnet", (rule("a", 9, "Allow", "*", sourceAddressPrefix="10.0.1.9"), SHUT), ["a"]),
    (
        "allow for a group that no node is in",
        (
            rule("a", 100, "Allow", "Internet", sourceAddressPrefix="", sourceApplicationSecurityGroups=[{"id": "x"}]),
            SHUT,
        ),
        [],
    ),
    ("allow without a destination", (rule("a", 100, "Allow", ""), SHUT), ["a"]),
    ("deny without a destination", (rule("d", 100, "Deny", ""),), BY_DEFAULT),
    ("allow without a number", (rule("a", None, "Allow", "Internet"), SHUT), ["a"]),
    ("deny without a number", (rule("d", None, "Deny"),), BY_DEFAULT),
    ("allow and deny of one number", (rule("d", 100, "Deny"), rule("a", 100, "Allow", "Internet")), ["a"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "expected"), [pytest.param(rules, expected, id=title) for title, rules, expected in REACHED]
)
def test_which_allows_are_reached(rules: tuple[dict[str, Any], ...], expected: list[str]) -> None:
    assert names(*rules) == expected


def test_the_order_in_a_list_does_not_matter() -> None:
    rules = (rule("a", 100, "Allow", "20.0.0.0/8"), SHUT, rule("b", 50, "Allow", "Storage"))
    assert names(*rules) == names(*reversed(rules)) == ["b", "a"]


def test_the_networks_tag_holds_the_internet_where_a_route_widens_it() -> None:
    widened = RuleContext(NODES.sources, NODES.local, network_tag_leads_out=True)
    allow = rule("a", 100, "Allow", "VirtualNetwork")
    openings = holes(group(allow, SHUT), widened)
    assert [(hole.rule.name, hole.through_the_network_tag) for hole in openings] == [("a", True)]
    assert names(rule("a", 4050, "Allow", "VirtualNetwork"), SHUT, rule_context=widened) == []
    assert "AllowVnetOutBound" in names(rule_context=widened)


def test_ipv6_counts_where_the_subnet_has_a_prefix() -> None:
    allow = rule("a", 100, "Allow", "::/0")
    assert names(allow, SHUT) == []
    both = RuleContext(NODES.sources, NODES.local, has_v6=True)
    assert names(allow, SHUT, rule_context=both) == ["a"]
    assert names(rule("d", 100, "Deny", "0.0.0.0/0"), rule_context=both) == ["AllowInternetOutBound"]
    assert names(rule("d", 100, "Deny", "0.0.0.0/0"), rule("e", 101, "Deny", "::/0"), rule_context=both) == []


def test_an_application_group_of_the_nodes_matches() -> None:
    allow = rule("a", 100, "Allow", "Internet", sourceAddressPrefix="", sourceApplicationSecurityGroups=[{"id": "X"}])
    member = RuleContext(NODES.sources, NODES.local, application_groups=frozenset({"x"}))
    assert names(allow, SHUT, rule_context=member) == ["a"]


# ---------------------------------------------------------------- two layers


TO_20 = rule("a", 1, "Allow", "20.0.0.0/8")
LAYERS: list[tuple[str, list[tuple[dict[str, Any], ...]], bool]] = [
    ("no group", [], False),
    ("one that is open", [()], False),
    ("one that is sealed", [(SHUT,)], True),
    ("open below sealed", [(SHUT,), ()], True),
    ("sealed below open", [(), (SHUT,)], True),
    ("both open", [(), ()], False),
    ("holes apart", [(TO_20, SHUT), (rule("a", 1, "Allow", "30.0.0.0/8"), SHUT)], True),
    ("holes that meet", [(TO_20, SHUT), (rule("a", 1, "Allow", "20.1.0.0/16"), SHUT)], False),
    (
        "holes of different protocols",
        [
            (rule("a", 1, "Allow", "Internet", protocol="Tcp"), SHUT),
            (rule("a", 1, "Allow", "Internet", protocol="Udp"), SHUT),
        ],
        True,
    ),
    (
        "each denies a half",
        [(rule("d", 1, "Deny", "0.0.0.0/1"),), (rule("d", 1, "Deny", "128.0.0.0/1"),)],
        True,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("layers", "sealed"), [pytest.param(layers, sealed, id=title) for title, layers, sealed in LAYERS]
)
def test_a_packet_must_pass_every_layer(layers: list[tuple[dict[str, Any], ...]], sealed: bool) -> None:
    openings = [holes(group(*rules), NODES) for rules in layers]
    assert (not reachable_through(openings, NODES)) is sealed


# ---------------------------------------------------------------- platform tags


DNS = "AzurePlatformDNS"


@pytest.mark.parametrize(
    ("rules", "denied"),
    [
        ((), False),
        ((rule("d", 100, "Deny", DNS),), True),
        ((rule("d", 100, "Deny", DNS.upper()),), True),
        ((rule("d", 100, "Deny", "*"),), False),
        ((rule("d", 100, "Deny", "168.63.129.16"),), False),
        ((rule("a", 50, "Allow", DNS), rule("d", 100, "Deny", DNS)), False),
        ((rule("a", 150, "Allow", DNS), rule("d", 100, "Deny", DNS)), True),
        ((rule("d", 100, "Deny", DNS, destinationPortRange="53"),), True),
        ((rule("d", 100, "Deny", DNS, destinationPortRange="50-60"),), True),
        ((rule("d", 100, "Deny", DNS, destinationPortRange="443"),), False),
        ((rule("d", 100, "Deny", DNS, protocol="Udp"),), False),
        ((rule("d", 100, "Deny", DNS, direction="Inbound"),), False),
    ],
)
def test_the_platforms_resolver_heeds_rules_to_its_own_tag_only(
    rules: tuple[dict[str, Any], ...], denied: bool
) -> None:
    assert denies_tag(group(*rules), DNS, NODES, 53) is denied

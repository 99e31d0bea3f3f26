"""What a group is said to stop is stopped, packet by packet; sets of addresses are those of the standard library."""

from __future__ import annotations

from ipaddress import collapse_addresses, ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.questions import Body
from hermetic.audit.model.address_ranges import prefixes, space
from hermetic.audit.rules.nsg_reachability import Traffic, stops_all
from hermetic.audit.rules.nsg_rules import Direction
from tests.audit_estates import rule

ADDRESSES = st.sampled_from(["10.0.1.0/24", "10.0.1.0/25", "10.0.1.7/32", "10.1.0.0/16"])
WORDS = st.sampled_from(["*", "*", "*", "VirtualNetwork", "10.0.1.0/24", "10.0.1.128/25", "10.1.0.0/16"])
RULES = st.lists(
    st.fixed_dictionaries(
        {
            "number": st.integers(100, 140),
            "access": st.sampled_from(["Allow", "Deny", "Deny"]),
            "direction": st.sampled_from(["Inbound", "Outbound"]),
            "protocol": st.sampled_from(["*", "*", "*", "Tcp", "Udp"]),
            "destinationPortRange": st.sampled_from(["*", "*", "0-65535", "443", "0-1023"]),
            "sourcePortRange": st.sampled_from(["*", "0-1023"]),
            "sourceAddressPrefix": WORDS,
            "to": WORDS,
        }
    ),
    max_size=4,
    unique_by=lambda rule_fields: rule_fields["number"],
)
PACKETS = st.fixed_dictionaries(
    {
        "from": st.integers(0, 255),
        "to": st.integers(0, 255),
        "protocol": st.sampled_from(["Tcp", "Udp"]),
        "port": st.sampled_from([22, 443, 8080]),
        "source port": st.sampled_from([80, 40000]),
    }
)


def is_about(
    one: dict[str, Any], source: str, destination: str, packet: dict[str, Any], *, in_the_tag: tuple[bool, bool]
) -> bool:
    """As Azure documents it: every part of a rule must match. `in_the_tag`: whether source and destination are."""

    def holds(word: str, address: str, *, tagged: bool) -> bool:
        if word == "VirtualNetwork":
            return tagged
        return word == "*" or ip_address(address) in ip_network(word)

    def spans(text: str, port: int) -> bool:
        low, _, high = ("0-65535" if text == "*" else text).partition("-")
        return int(low) <= port <= int(high or low)

    return (
        one["protocol"] in {"*", packet["protocol"]}
        and spans(one["destinationPortRange"], packet["port"])
        and spans(one["sourcePortRange"], packet["source port"])
        and holds(one["sourceAddressPrefix"], source, tagged=in_the_tag[0])
        and holds(one["to"], destination, tagged=in_the_tag[1])
    )


@given(RULES, ADDRESSES, ADDRESSES, PACKETS, st.sampled_from(["inbound", "outbound"]), st.booleans())
def test_a_packet_of_a_trip_that_is_stopped_meets_a_deny_first(
    chosen: list[dict[str, Any]],
    sources: str,
    destinations: str,
    packet: dict[str, Any],
    direction: Direction,
    peer_is_tagged: bool,
) -> None:
    bodies = [
        rule(f"r{rule_fields['number']}", rule_fields["number"], rule_fields["access"], rule_fields["to"], **{
            name: rule_fields[name]
            for name in ("direction", "protocol", "destinationPortRange", "sourcePortRange", "sourceAddressPrefix")
        })
        for rule_fields in chosen
    ]  # fmt: skip
    group = SecurityGroup.read(Body({"id": "g", "properties": {"securityRules": bodies}}, ()))
    here, there = ip_network(sources), ip_network(destinations)
    if stops_all(group.rules, direction, Traffic((here,), (there,), peer_is_tagged)):
        source = str(here[packet["from"] % here.num_addresses])
        destination = str(there[packet["to"] % there.num_addresses])
        tagged = (direction == "outbound" or peer_is_tagged, direction == "inbound" or peer_is_tagged)
        met = [
            rule_fields
            for rule_fields in sorted(chosen, key=lambda rule_fields: rule_fields["number"])
            if rule_fields["direction"].lower() == direction
            and is_about(rule_fields, source, destination, packet, in_the_tag=tagged)
        ]
        assert met[0]["access"] == "Deny"


NARROWER = {
    "sourcePortRange": "0-1023",
    "destinationPortRange": "443",
    "protocol": "Tcp",
    "sourceAddressPrefix": "10.0.1.0/25",
    "to": "10.1.0.0/17",
    "direction": "Inbound",
    "access": "Allow",
}


@pytest.mark.parametrize("field", [None, *NARROWER])
def test_a_deny_that_is_narrower_in_one_field_stops_no_trip(field: str | None) -> None:
    ports = {"protocol": "*", "destinationPortRange": "*", "sourcePortRange": "*"}
    deny = {**ports, "sourceAddressPrefix": "10.0.1.0/24", "to": "10.1.0.0/16", "direction": "Outbound"}
    deny["access"] = "Deny"
    if field is not None:
        deny[field] = NARROWER[field]
    body = rule("r", 100, deny.pop("access"), deny.pop("to"), **deny)
    group = SecurityGroup.read(Body({"id": "g", "properties": {"securityRules": [body]}}, ()))
    traffic = Traffic((ip_network("10.0.1.0/24"),), (ip_network("10.1.0.0/16"),), tag_covers_far_end=False)
    assert stops_all(group.rules, "outbound", traffic) is (field is None)


@given(
    st.lists(st.builds("{}.{}.0.0/{}".format, st.integers(0, 3), st.integers(0, 255), st.integers(1, 24)), max_size=6)
)
def test_the_prefixes_of_a_set_are_as_few_as_can_be(texts: list[str]) -> None:
    given_prefixes = [ip_network(text, strict=False) for text in texts]
    assert list(prefixes(space(given_prefixes))) == list(collapse_addresses(given_prefixes))  # type: ignore[type-var]

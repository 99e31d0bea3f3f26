"""The one table of address ranges, held against Python's own table of IANA's special-purpose registries."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network

import pytest
from hypothesis import example, given
from hypothesis.strategies import DrawFn, composite, integers, ip_addresses, lists, sampled_from, tuples

from hermetic.api.ip_ranges import (
    AZURE_HOST,
    HOST_ADDRESSES,
    NEVER_FORWARDED_IPV4,
    PUBLIC_IPV6,
    is_host_address,
    is_in,
    is_inside,
    is_private,
    is_public,
    leads_outside,
    parse_numbers,
    unmapped,
)
from hermetic.audit.model import address_ranges as ranges
from hermetic.audit.policy.declarations import Policy, never_met

FORMS = ("{}", "{:#x}", "0{:o}", "0X{:X}", "{:09d}", "x{}", "0x", "")
NUMBERS = lists(tuples(sampled_from(FORMS), integers(0, 2**33) | integers(0, 300)), min_size=1, max_size=5)


SPANS = lists(tuples(sampled_from((4, 6)), integers(0, 30), integers(0, 9)), max_size=8)


def numbers_in(spans: ranges.Space) -> set[tuple[int, int]]:
    return {(version, number) for version, first, last in spans for number in range(first, last + 1)}


@given(SPANS, SPANS)
@example([(4, 0, 9)], [(4, 3, 0), (4, 5, 0)])
@example([(4, 0, 2), (4, 5, 2)], [(4, 1, 5)])
def test_arithmetic_of_spans_is_that_of_sets(left: list[ranges.Span], right: list[ranges.Span]) -> None:
    space, removed = (ranges.union((version, at, at + more) for version, at, more in spans) for spans in (left, right))
    for spans, numbers in (
        (ranges.overlap(space, removed), numbers_in(space) & numbers_in(removed)),
        (ranges.without(space, removed), numbers_in(space) - numbers_in(removed)),
        (ranges.overlap(space, space), numbers_in(space)),
    ):
        assert numbers_in(spans) == numbers
        assert spans == ranges.union(spans), "sorted, and no two spans adjoin"


@composite
def ranges_of_ipv4(draw: DrawFn) -> IPv4Network:
    """Any range of IPv4, of any length."""
    return IPv4Network((int(draw(ip_addresses(v=4))), draw(integers(0, 32))), strict=False)


@given(ip_addresses())
def test_what_iana_calls_global_is_never_taken_for_inside(address: object) -> None:
    """Azure's host is the only exception: public by number, answered by the host."""
    text = str(address)
    if ip_address(text).is_global and not ip_address(text).is_multicast and text != AZURE_HOST:
        assert is_public(text)
        assert not is_private(text)


@given(ip_addresses(v=4))
def test_what_is_global_may_be_forwarded(address: object) -> None:
    parsed = ip_address(str(address))
    if parsed.is_global and not parsed.is_multicast and str(parsed) != AZURE_HOST:
        assert not is_in(parsed, NEVER_FORWARDED_IPV4)


@given(ip_addresses(v=6))
def test_what_is_global_in_ipv6_is_in_the_public_part(address: object) -> None:
    parsed = ip_address(str(address))
    if parsed.is_global and not parsed.is_multicast and parsed.ipv4_mapped is None and not parsed.is_reserved:
        assert is_in(parsed, PUBLIC_IPV6)


@pytest.mark.parametrize("address", [*HOST_ADDRESSES, "::ffff:168.63.129.16", "::ffff:a9fe:a9fe"])
def test_is_host_address_is_neither_inside_nor_public(address: str) -> None:
    assert is_host_address(address)
    assert leads_outside(address)
    assert not is_inside(address)
    assert not is_public(address)


@given(ip_addresses())
def test_each_address_is_inside_or_public_or_of_the_host(address: object) -> None:
    text = str(address)
    assert [is_inside(text), is_public(text), is_host_address(text)].count(True) == 1


@pytest.mark.parametrize("inside", ["10.0.0.1", "172.31.255.255", "192.168.0.0", "100.64.0.1", "fd00::1"])
def test_private_addresses(inside: str) -> None:
    assert is_private(inside)
    assert not is_public(inside)


@pytest.mark.parametrize("outside", ["172.32.0.1", "100.128.0.1", "192.0.2.1", "2001:db8::1", "224.0.0.1", "fe00::1"])
def test_what_is_not_known_to_be_private_is_public(outside: str) -> None:
    assert is_public(outside)
    assert not is_private(outside)


def test_an_ipv4_address_written_as_ipv6_is_that_address() -> None:
    assert is_private("::ffff:10.0.0.1")
    assert is_public("::ffff:8.8.8.8")


@given(ranges_of_ipv4())
def test_a_range_of_ipv4_written_as_ipv6_is_that_range(network: IPv4Network) -> None:
    written = ip_network(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    assert unmapped(written) == network
    assert ranges.is_public(written) is ranges.is_public(network)


@pytest.mark.parametrize("text", ["::/0", "::/80", "::fffe:0:0/95", "2001:db8::/32", "::808:808/128", "10.0.0.0/8"])
def test_no_other_range_is_one_of_ipv4(text: str) -> None:
    assert unmapped(ip_network(text)) == ip_network(text)


@pytest.mark.parametrize("text", ["::ffff:0.0.0.0/96", "::ffff:8.8.8.0/120", "0.0.0.0/0"])
def test_no_configured_range_is_private_that_is_ipv4_written_as_ipv6(text: str) -> None:
    assert list(never_met(Policy.model_validate({"additionalPrivateRanges": (text,)})))
    assert not list(never_met(Policy.model_validate({"additionalPrivateRanges": ("203.0.113.0/24",)})))


def test_additional_ranges_count_for_their_own_ip_version_only() -> None:
    assert is_private("203.0.113.7", ["203.0.113.0/24"])
    assert not is_private("203.0.113.7", ["2001:db8::/32"])
    assert not is_private("name.example", ["0.0.0.0/1"])


def of_the_resolver(text: str) -> IPv4Address | None:
    """What the C library of this machine reads."""
    try:
        return IPv4Address(socket.inet_aton(text))
    except OSError:
        return None


@given(NUMBERS)
@example([("{}", 134744072)])
@example([("{}", 8), ("{}", 2056)])
def test_numbers_are_read_as_the_resolver_reads_them(numbers: list[tuple[str, int]]) -> None:
    text = ".".join(form.format(number) for form, number in numbers)
    assert parse_numbers(text) == of_the_resolver(text)

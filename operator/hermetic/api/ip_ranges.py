"""Ranges of IP addresses: which are private, which are not forwarded on the internet, and whether they contain one.

The only such table of the product, used by plan, audit and the builders of objects. The probe's own program runs
without Hermetic in a pod and reports addresses unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PRIVATE_IPV4 = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
"""RFC 1918, and RFC 6598, which Azure uses as private too."""
PRIVATE_IPV6 = "fc00::/7"
"""RFC 4193, unique local addresses."""
AZURE_HOST = "168.63.129.16"
"""Azure's host channel: a public address by number, but answered by the host itself."""
METADATA_HOST = "169.254.169.254"
"""Azure's instance metadata service, which the host answers too."""
HOST_ADDRESSES = (AZURE_HOST, METADATA_HOST)
"""Addresses that the host of a virtual machine answers: neither inside a network nor public.

A pod that reaches the first on ports 80 and 32526 reads the settings of the machine's extensions and can make the host
fetch and store data; the second gives tokens of the machine's identities. Azure's resolver answers on port 53 of the
first. Sources: learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16; AKS release notes of
2026-04-02, which restrict Services that lead to it.
"""

# RFC 3927, 1122. Documentation ranges are left out on purpose: examples use them in place of public addresses.
_LOCAL_IPV4 = ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", f"{AZURE_HOST}/32")
# RFC 4291.
_LOCAL_IPV6 = ("fe80::/10", "::1/128", "::/128")
# RFC 5771 (multicast) and RFC 1112 (reserved): no router forwards them, and no host has one as its own address.
_UNUSABLE_IPV4 = ("224.0.0.0/4", "240.0.0.0/4")

NEVER_FORWARDED_IPV4 = tuple(IPv4Network(cidr) for cidr in (*PRIVATE_IPV4, *_LOCAL_IPV4, *_UNUSABLE_IPV4))
"""What no router of the internet forwards."""
PUBLIC_IPV6 = (IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96"))
"""The only part of IPv6 that is assigned for the internet (RFC 4291); 64:ff9b::/96 is translated to IPv4 (RFC 6052)."""

IPV4_MAPPED = IPv6Network("::ffff:0:0/96")
"""IPv4 written as IPv6 (RFC 4291, section 2.5.5.2). Programs in Go read a prefix inside it as one of IPv4."""

_INSIDE: tuple[Network, ...] = tuple(
    ip_network(cidr) for cidr in (*PRIVATE_IPV4, *_LOCAL_IPV4, PRIVATE_IPV6, *_LOCAL_IPV6)
)
_HOST: tuple[Network, ...] = tuple(ip_network(address) for address in HOST_ADDRESSES)
_LONGEST_NUMBER = 64
_PRIVATE: tuple[Network, ...] = tuple(ip_network(cidr) for cidr in (*PRIVATE_IPV4, PRIVATE_IPV6))


def parse_address(text: str) -> Address | None:
    """The address, with an IPv4 address written as IPv6 (::ffff:10.0.0.1) as IPv4; None for any other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def unmapped(prefix: Network) -> Network:
    """The same prefix, with a part of IPv4 written as IPv6 (::ffff:10.0.0.0/104) as IPv4.

    For what a prefix may open. Not every program reads it so: for what a prefix takes away, it counts as it is written.
    """
    if not isinstance(prefix, IPv6Network) or not prefix.subnet_of(IPV4_MAPPED):
        return prefix
    return IPv4Network((int(prefix.network_address) & 0xFFFF_FFFF, prefix.prefixlen - IPV4_MAPPED.prefixlen))


_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*", re.ASCII)


def parse_numbers(text: str) -> IPv4Address | None:
    """The IPv4 address that a resolver reads in one to four numbers, as in 134744072, 0x08080808, 8.8 and 010.8.8.8.

    Source: inet_aton(3), whose rules getaddrinfo(3) applies to a host name. A number is decimal, octal after 0, or
    hexadecimal after 0x; the last one fills the bytes that the others leave. None for any other text.
    """
    parts = text.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) and len(part) <= _LONGEST_NUMBER for part in parts):
        return None
    *first, last = [_number(part) for part in parts]
    if any(number > 255 for number in first) or last >= 256 ** (4 - len(first)):
        return None
    return IPv4Address(sum(number << (24 - 8 * at) for at, number in enumerate(first)) + last)


def _number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text[2:], 16)
    return int(text, 8 if text.startswith("0") else 10)


def is_address(text: str) -> bool:
    """Whether it is an IPv4 or IPv6 address."""
    return parse_address(text) is not None


def is_in(address: Address | None, networks: Iterable[Network]) -> bool:
    """Whether one of the networks contains the address; False for None."""
    return address is not None and any(
        address.version == network.version and address in network for network in networks
    )


def is_private(text: str, additional: Iterable[str] = ()) -> bool:
    """Whether it is an address of RFC 1918, 6598 or 4193, or of the additional ranges (CIDRs); False for a name."""
    address = parse_address(text)
    return is_in(address, _PRIVATE) or is_in(address, map(ip_network, additional))


def is_host_address(text: str) -> bool:
    """Whether it is one of `HOST_ADDRESSES`; False if it is no address."""
    return is_in(parse_address(text), _HOST)


def is_azure_resolver(text: str) -> bool:
    """Whether it is the address at which Azure's own resolver answers on port 53, in any spelling."""
    return parse_address(text) == IPv4Address(AZURE_HOST)


def leads_outside(text: str) -> bool:
    """Whether it is an address that is not inside: a public one, or one that the host answers."""
    return is_public(text) or is_host_address(text)


def is_inside(text: str) -> bool:
    """Whether it is an address of a private or local range that the host does not answer; False for other text."""
    return is_address(text) and not leads_outside(text)


def is_public(text: str) -> bool:
    """Whether it is an address outside of every private, local and platform range; False if it is no address.

    Multicast and reserved addresses count as public: traffic to them is not known to stay in the network.
    """
    address = parse_address(text)
    return address is not None and not is_in(address, _INSIDE)

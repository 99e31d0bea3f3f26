"""Which addresses lie outside of every network that can be somebody's own."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

# RFC 1918, 6598, 3927, 1122, 4193, 4291. Documentation ranges are left out on purpose: they stand for public ones.
_INSIDE = tuple(
    ip_network(prefix)
    for prefix in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "127.0.0.0/8",
        "0.0.0.0/8",
        "fc00::/7",
        "fe80::/10",
        "::1/128",
        "::/128",
    )
)
# Azure's host channel: a public address by number, but the host itself by route.
_HOST = ip_address("168.63.129.16")


def is_address(text: str) -> bool:
    """Whether it is an IPv4 or IPv6 address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_public(text: str) -> bool:
    """Whether it is an address outside of every private range, and not Azure's host; False for what is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address != _HOST and not any(address in network for network in _INSIDE if network.version == address.version)

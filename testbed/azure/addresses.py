"""Prefixes that the stand-in computes with: what every Azure subnet routes by itself, and what services advertise."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# system routes to nowhere, unless the network's own space takes the prefix over
RESERVED = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
DEFAULTS = ("0.0.0.0/0", "::/0")
# a few prefixes for each; the real lists are long and change weekly
SERVICE_PREFIXES = {
    "microsoft.storage": ("20.60.78.0/24", "20.150.32.0/23", "52.239.131.0/24"),
    "microsoft.keyvault": ("20.21.36.0/26", "51.12.17.0/27"),
    "microsoft.containerregistry": ("20.21.46.0/26", "51.12.32.0/27"),
    "microsoft.sql": ("51.12.46.32/27", "51.12.198.32/27"),
}
OTHER_SERVICE = ("51.12.96.0/24",)
# what service tags stand for where a rule's prefixes are spelled out
TAG_PREFIXES = {
    "internet": ("0.0.0.0/0",),
    "virtualnetwork": (),
    "azureloadbalancer": ("168.63.129.16/32",),
    "azureplatformdns": ("168.63.129.16/32",),
    "azureplatformimds": ("169.254.169.254/32",),
}


def service_prefixes(service: str) -> tuple[str, ...]:
    """Of a service endpoint such as `Microsoft.Storage.Global`."""
    family = ".".join(service.lower().split(".")[:2])
    return SERVICE_PREFIXES.get(family, OTHER_SERVICE)


def network_of(prefix: str) -> Network | None:
    """None for a service tag or anything else that is no prefix."""
    try:
        return ipaddress.ip_network(prefix, strict=False)
    except ValueError:
        return None


def covered(prefix: str, by: Iterable[str]) -> bool:
    """Whether one of the prefixes holds this one whole."""
    inner = network_of(prefix)
    return any(_holds(network_of(outer), inner) for outer in by)


def _holds(outer: Network | None, inner: Network | None) -> bool:
    if isinstance(outer, ipaddress.IPv4Network) and isinstance(inner, ipaddress.IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(outer, ipaddress.IPv6Network) and isinstance(inner, ipaddress.IPv6Network):
        return inner.subnet_of(outer)
    return False


def holds_address(prefix: str, address: str) -> int | None:
    """The prefix length when the prefix holds the address, else None."""
    network = network_of(prefix)
    if network is None:
        return None
    parsed = ipaddress.ip_address(address)
    return network.prefixlen if parsed.version == network.version and parsed in network else None

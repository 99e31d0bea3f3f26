"""Parses prefixes as Azure and Kubernetes write them, and separates them from service tags. Sets: `address_ranges`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network

from hermetic.api.ip_ranges import Network

ANY_V4, ANY_V6 = IPv4Network("0.0.0.0/0"), IPv6Network("::/0")


@lru_cache(maxsize=4096)
def network(text: str) -> Network | None:
    """A prefix or a single address; None for a service tag and for anything else that is neither."""
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        return None


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Those that are prefixes or addresses."""
    return tuple(found for text in texts if (found := network(text)) is not None)


def is_default(prefix: Network) -> bool:
    """0.0.0.0/0 or ::/0."""
    return prefix in (ANY_V4, ANY_V6)

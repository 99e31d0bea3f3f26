"""Address arithmetic: what is public, what is ours, what of one prefix is left when others are taken away."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Final, cast

from hermetic.api.ip_ranges import NEVER_FORWARDED_IPV4, PUBLIC_IPV6, Network

ANY_V4, ANY_V6 = IPv4Network("0.0.0.0/0"), IPv6Network("::/0")


def network(text: str) -> Network | None:
    """A prefix or a single address; None for a service tag and for anything else that is neither."""
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        return None


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Those that are prefixes or addresses."""
    return tuple(found for text in texts if (found := network(text)) is not None)


def without(whole: Iterable[Network], taken: Iterable[Network]) -> tuple[Network, ...]:
    """What is left of some prefixes when others are taken away; sorted, and no two of them touch."""
    left = joined(whole)
    for hole in joined(taken):
        left = tuple(rest for one in left for rest in _minus(one, hole))
    return joined(left)


def overlap(some: Iterable[Network], others: Iterable[Network]) -> tuple[Network, ...]:
    """What both hold; sorted."""
    right = tuple(others)
    return joined(shared for one in some for other in right if (shared := _shared(one, other)) is not None)


def joined(some: Iterable[Network]) -> tuple[Network, ...]:
    """The same addresses in as few prefixes as possible, IPv4 first."""
    found = tuple(some)
    v4 = collapse_addresses(one for one in found if isinstance(one, IPv4Network))
    v6 = collapse_addresses(one for one in found if isinstance(one, IPv6Network))
    return (*cast("Iterable[Network]", v4), *cast("Iterable[Network]", v6))


@lru_cache(maxsize=64)
def internet(local: tuple[Network, ...] = ()) -> tuple[Network, ...]:
    """Every public prefix, without those that the virtual network and its peers use for themselves."""
    return without((*_PUBLIC_V4, *PUBLIC_IPV6), local)


def public_part(prefix: Network, local: tuple[Network, ...] = ()) -> tuple[Network, ...]:
    """What of a prefix is on the internet, that is neither private nor ours."""
    return overlap((prefix,), internet(local))


def is_default(prefix: Network) -> bool:
    """0.0.0.0/0 or ::/0."""
    return prefix in (ANY_V4, ANY_V6)


def _minus(one: Network, hole: Network) -> tuple[Network, ...]:
    shared = _shared(one, hole)
    if shared is None:
        return (one,)
    if shared == one:
        return ()
    return tuple(cast("Iterable[Network]", one.address_exclude(shared)))  # type: ignore[arg-type]


def _shared(one: Network, other: Network) -> Network | None:
    """Prefixes lie inside each other or apart."""
    if one.version != other.version:
        return None
    small, large = (one, other) if one.prefixlen >= other.prefixlen else (other, one)
    return small if small.subnet_of(large) else None  # type: ignore[arg-type]


_PUBLIC_V4: Final = without((ANY_V4,), NEVER_FORWARDED_IPV4)

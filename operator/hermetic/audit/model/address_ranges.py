"""Sets of addresses as sorted spans of integers; rules and routes are computed with them, in time linear in the spans.

A set with one address missing is two spans; as prefixes it is up to 128.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network, summarize_address_range

from hermetic.api.ip_ranges import HOST_ADDRESSES, NEVER_FORWARDED_IPV4, PUBLIC_IPV6, Network, unmapped

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
    return tuple(prefix for text in texts if (prefix := network(text)) is not None)


def is_default(prefix: Network) -> bool:
    """0.0.0.0/0 or ::/0."""
    return prefix in (ANY_V4, ANY_V6)


Span = tuple[int, int, int]
"""IP version, first and last address."""
Space = tuple[Span, ...]
"""Sorted; no two spans overlap or adjoin. () is the empty set."""


def space(networks: Iterable[Network]) -> Space:
    """The addresses of some prefixes."""
    return union((prefix.version, int(prefix.network_address), int(prefix.broadcast_address)) for prefix in networks)


def prefixes(addresses: Space) -> Iterator[Network]:
    """The same addresses in the fewest prefixes, IPv4 first."""
    for version, first, last in addresses:
        if version == 4:
            yield from summarize_address_range(IPv4Address(first), IPv4Address(last))
        else:
            yield from summarize_address_range(IPv6Address(first), IPv6Address(last))


def union(spans: Iterable[Span]) -> Space:
    """The addresses of all spans, which may come in any order."""
    merged_spans: list[Span] = []
    for version, first, last in sorted(spans):
        if merged_spans and merged_spans[-1][0] == version and first <= merged_spans[-1][2] + 1:
            merged_spans[-1] = (version, merged_spans[-1][1], max(last, merged_spans[-1][2]))
        else:
            merged_spans.append((version, first, last))
    return tuple(merged_spans)


def overlap(addresses: Space, other: Space) -> Space:
    """The addresses in both sets."""
    if addresses == other:  # rules that allow everything are most of those that are compared
        return addresses
    spans: list[Span] = []
    here = there = 0
    while here < len(addresses) and there < len(other):
        left, right = addresses[here], other[there]
        first, last = max(left[1], right[1]), min(left[2], right[2])
        if left[0] == right[0] and first <= last:
            spans.append((left[0], first, last))
        if (left[0], left[2]) <= (right[0], right[2]):
            here += 1
        else:
            there += 1
    return tuple(spans)


def without(addresses: Space, removed: Space) -> Space:
    """The addresses of `addresses` that are not in `removed`."""
    left: list[Span] = []
    position = 0
    for version, first, last in addresses:
        while position < len(removed) and (removed[position][0], removed[position][2]) < (version, first):
            position += 1
        start, hole = first, position
        while hole < len(removed) and (removed[hole][0], removed[hole][1]) <= (version, last):
            if start < removed[hole][1]:
                left.append((version, start, removed[hole][1] - 1))
            start = removed[hole][2] + 1
            hole += 1
        if start <= last:
            left.append((version, start, last))
    return tuple(left)


@lru_cache(maxsize=256)
def internet(local: Space = (), *, with_v6: bool = True) -> Space:
    """Every public address except those in `local`, the space of the virtual network and its peers."""
    public = _PUBLIC if with_v6 else tuple(span for span in _PUBLIC if span[0] == 4)
    return without(public, local)


def is_public(prefix: Network, local: Space = ()) -> bool:
    """Whether a prefix contains a public address outside `local`."""
    return bool(overlap(space((unmapped(prefix),)), internet(local)))


def holds_outside(prefix: Network) -> bool:
    """Whether a prefix contains a public address, or one that the host of a machine answers."""
    return is_public(prefix) or bool(overlap(space((unmapped(prefix),)), OF_THE_HOST))


OF_THE_HOST: Space = space(IPv4Network(address) for address in HOST_ADDRESSES)
"""The addresses that the host of a virtual machine answers, see `ip_ranges.HOST_ADDRESSES`."""
_PUBLIC: Space = (*without(space((ANY_V4,)), space(NEVER_FORWARDED_IPV4)), *space(PUBLIC_IPV6))

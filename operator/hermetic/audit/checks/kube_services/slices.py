"""Destinations of EndpointSlices: outside, or pods and nodes, whose network may use public addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.services import EndpointSlice
from hermetic.audit.policy import Policy
from hermetic.errors import FactDamaged


def addresses_of(*some: Iterable[Pod] | Iterable[Node]) -> frozenset[str]:
    """Addresses of these pods or nodes; objects that cannot be read are skipped."""
    return frozenset(address for each in some for address in _addresses(each))


def outside(one: EndpointSlice, policy: Policy, known: Collection[str]) -> tuple[str, ...]:
    """The names or addresses of a slice that are outside and not in `known`. Raises FactDamaged."""
    by_name = one.address_type == "FQDN"
    return tuple(
        address
        for address in one.addresses
        if (not is_inside(address) if by_name else policy.is_public(address)) and address not in known
    )


def _addresses(some: Iterable[Pod] | Iterable[Node]) -> Iterator[str]:
    for one in some:
        try:
            yield from one.addresses
        except FactDamaged:
            continue

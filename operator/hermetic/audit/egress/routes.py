"""Routes: where each kind of next hop leads, and which prefixes lead out. Unknown words lead out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from hermetic.api.ip_ranges import Network
from hermetic.audit.egress.address_ranges import Space, is_public
from hermetic.audit.egress.prefixes import is_default, network
from hermetic.audit.estate.azure.routing import Route


class Hop(StrEnum):
    """What a next hop does with a packet to a public address."""

    DROPPED = "dropped"
    STAYS = "stays"
    INTERNET = "internet"
    FORWARDED = "forwarded"
    SERVICE = "service endpoint"
    UNKNOWN = "unknown"


_HOPS = {
    "none": Hop.DROPPED,
    "vnetlocal": Hop.STAYS,
    "virtualnetwork": Hop.STAYS,
    "vnetpeering": Hop.STAYS,
    "virtualnetworkpeering": Hop.STAYS,
    "vnetglobalpeering": Hop.STAYS,
    "globalvnetpeering": Hop.STAYS,
    "interfaceendpoint": Hop.STAYS,
    "internet": Hop.INTERNET,
    "microsoftedge": Hop.INTERNET,
    "virtualappliance": Hop.FORWARDED,
    "virtualnetworkgateway": Hop.FORWARDED,
    "virtualnetworkserviceendpoint": Hop.SERVICE,
}
APPLIANCE = "virtualappliance"


def hop_of(next_hop_type: str | None) -> Hop:
    """`nextHopType` is an open string, in route tables and in what Azure computes."""
    return _HOPS.get((next_hop_type or "").replace(" ", "").lower(), Hop.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Way:
    """A route for packets to public addresses. `prefix` is None where it is a service tag."""

    route: Route
    prefix: Network | None
    hop: Hop

    @property
    def is_default(self) -> bool:
        """0.0.0.0/0 or ::/0, spelt in any way."""
        return self.prefix is not None and is_default(self.prefix)

    @property
    def leads_on(self) -> bool:
        """Whether packets leave by this route alone; one to the internet needs a method, which counts by itself."""
        return self.hop not in (Hop.DROPPED, Hop.STAYS, Hop.INTERNET)

    @property
    def words(self) -> str:
        """The route as one writes it."""
        address = f" {self.route.next_hop_ip_address}" if self.route.next_hop_ip_address else ""
        return f"{self.route.address_prefix} -> {self.route.next_hop_type}{address}"


def public_ways(routes: Iterable[Route] | None, local: Space) -> tuple[Way, ...]:
    """Routes with a default, a public prefix or a service tag, whatever the next hop; in their order of prefixes."""
    return tuple(sorted(_public(routes or (), local), key=lambda way: (way.words, way.route.name)))


def _public(routes: Iterable[Route], local: Space) -> Iterator[Way]:
    for route in routes:
        prefix = network(route.address_prefix or "")
        if prefix is None or is_default(prefix) or is_public(prefix, local):
            yield Way(route, prefix, hop_of(route.next_hop_type))


def leads_to_appliance(route: Route, addresses: Iterable[str]) -> bool:
    """Whether a route goes to an appliance at one of these addresses, and nowhere else."""
    is_appliance = (route.next_hop_type or "").lower() == APPLIANCE
    return is_appliance and route.next_hop_ip_address in set(addresses)

"""Routes: where each kind of next hop leads, and which prefixes lead out. An unknown next hop type leads out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from hermetic.api.ip_ranges import Network
from hermetic.audit.estate.arm_fields import folded
from hermetic.audit.estate.azure.routing import Route
from hermetic.audit.model.address_ranges import Space, is_default, is_public, network, space, without
from hermetic.audit.model.hops import Hop, Path, path_of, written
from hermetic.audit.model.topology import PlaceKind


class NextHopKind(StrEnum):
    """What a next hop does with a packet to a public address."""

    DROPPED = "dropped"
    STAYS = "stays"
    INTERNET = "internet"
    FORWARDED = "forwarded"
    SERVICE = "service endpoint"
    UNKNOWN = "unknown"


_HOPS = {
    "none": NextHopKind.DROPPED,
    "vnetlocal": NextHopKind.STAYS,
    "virtualnetwork": NextHopKind.STAYS,
    "vnetpeering": NextHopKind.STAYS,
    "virtualnetworkpeering": NextHopKind.STAYS,
    "vnetglobalpeering": NextHopKind.STAYS,
    "globalvnetpeering": NextHopKind.STAYS,
    "interfaceendpoint": NextHopKind.STAYS,
    "internet": NextHopKind.INTERNET,
    "microsoftedge": NextHopKind.INTERNET,
    "virtualappliance": NextHopKind.FORWARDED,
    "virtualnetworkgateway": NextHopKind.FORWARDED,
    "virtualnetworkserviceendpoint": NextHopKind.SERVICE,
}
APPLIANCE = "virtualappliance"


def hop_of(next_hop_type: str | None) -> NextHopKind:
    """The kind of a next hop type, an open string in route tables and effective routes; UNKNOWN for any other."""
    return _HOPS.get(folded(next_hop_type), NextHopKind.UNKNOWN)


_PLACES = {
    "internet": PlaceKind.INTERNET,
    "virtualappliance": PlaceKind.FIREWALL,
    "azurefirewall": PlaceKind.FIREWALL,
    "virtualnetworkgateway": PlaceKind.GATEWAY,
    "vpn_s2s_gateway": PlaceKind.GATEWAY,
    "expressroutegateway": PlaceKind.GATEWAY,
    "hubbgpconnection": PlaceKind.PEER_VNET,
    "vnetlocal": PlaceKind.VNET,
    "vnetpeering": PlaceKind.PEER_VNET,
    "virtualnetworkpeering": PlaceKind.PEER_VNET,
    "virtualnetworkserviceendpoint": PlaceKind.SERVICE_ENDPOINT,
}


def next_hop(next_hop_type: str | None, label: str) -> Hop:
    """A hop of a path for this next hop type; `label` is its text."""
    return Hop(_PLACES.get(folded(next_hop_type), PlaceKind.OTHER), label)


@dataclass(frozen=True, slots=True)
class OutboundRoute:
    """A route for packets to public addresses. `prefix` is None where it is a service tag."""

    route: Route
    prefix: Network | None
    hop: NextHopKind

    @property
    def is_default(self) -> bool:
        """Whether the prefix is 0.0.0.0/0 or ::/0, in any spelling."""
        return self.prefix is not None and is_default(self.prefix)

    @property
    def leads_on(self) -> bool:
        """Whether the route alone lets packets out; one to the internet needs a method, which is counted separately."""
        return self.hop not in (NextHopKind.DROPPED, NextHopKind.STAYS, NextHopKind.INTERNET)

    @property
    def description(self) -> str:
        return written(self.path)

    @property
    def path(self) -> Path:
        """The prefix and the next hop."""
        return path_of(str(self.route.address_prefix), self.next_hop)

    @property
    def next_hop(self) -> Hop:
        """The next hop with its address, if it has one."""
        label = f"{self.route.next_hop_type} {self.route.next_hop_ip_address or ''}".strip()
        return next_hop(self.route.next_hop_type, label)


def public_routes(routes: Iterable[Route] | None, local: Space) -> tuple[OutboundRoute, ...]:
    """Routes for a default prefix, a public prefix or a service tag, with any next hop; sorted by their text."""
    return tuple(
        sorted(
            _public(routes or (), local),
            key=lambda outbound_route: (outbound_route.description, outbound_route.route.name),
        )
    )


def _public(routes: Iterable[Route], local: Space) -> Iterator[OutboundRoute]:
    for route in routes:
        prefix = network(route.address_prefix or "")
        if prefix is None or is_default(prefix) or is_public(prefix, local):
            yield OutboundRoute(route, prefix, hop_of(route.next_hop_type))


def routes_beyond(routes: Iterable[Route] | None, local: Space, *, with_v6: bool) -> tuple[OutboundRoute, ...]:
    """Routes for private prefixes that are not wholly local and that the next hop passes on; sorted by their text."""
    outbound_routes = (
        OutboundRoute(route, network(route.address_prefix or ""), hop_of(route.next_hop_type)) for route in routes or ()
    )
    beyond = (
        outbound_route
        for outbound_route in outbound_routes
        if outbound_route.leads_on and _is_beyond(outbound_route.prefix, local, with_v6=with_v6)
    )
    return tuple(sorted(beyond, key=lambda outbound_route: (outbound_route.description, outbound_route.route.name)))


def _is_beyond(prefix: Network | None, local: Space, *, with_v6: bool) -> bool:
    """Whether it is a private prefix, of an IP version in use, with addresses outside of the local ones."""
    if prefix is None or is_default(prefix) or is_public(prefix, local) or (prefix.version == 6 and not with_v6):
        return False
    return bool(without(space((prefix,)), local))


def leads_to_appliance(route: Route, addresses: Iterable[str]) -> bool:
    """Whether the next hop is an appliance at one of these addresses."""
    is_appliance = (route.next_hop_type or "").lower() == APPLIANCE
    return is_appliance and route.next_hop_ip_address in set(addresses)

"""Paths of findings, written short: "subnet a -> nat gateway n -> internet"."""

from __future__ import annotations

from hermetic.audit.model.hops import Hop, Path
from hermetic.audit.model.topology import PlaceKind

KINDS = {
    "subnet": PlaceKind.SUBNET,
    "nic": PlaceKind.NIC,
    "vnet": PlaceKind.VNET,
    "peer vnet": PlaceKind.PEER_VNET,
    "nat gateway": PlaceKind.NAT_GATEWAY,
    "public ip": PlaceKind.PUBLIC_IP,
    "load balancer": PlaceKind.LOAD_BALANCER,
    "default outbound": PlaceKind.DEFAULT_OUTBOUND,
    "firewall": PlaceKind.FIREWALL,
    "platform dns": PlaceKind.DNS,
    "storage": PlaceKind.STORAGE,
    "service": PlaceKind.SERVICE,
    "pod": PlaceKind.POD,
    "internet": PlaceKind.INTERNET,
}


def hops(text: str) -> Path:
    """The path of these labels; the first words of a label are its kind."""
    return tuple(
        Hop(next((kind for prefix, kind in KINDS.items() if label.startswith(prefix)), PlaceKind.OTHER), label)
        for label in text.split(" -> ")
    )

"""The network around a cluster, reduced to what is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class PlaceKind(StrEnum):
    """The kind at one end of a link; decides the place's column and icon in the drawing."""

    CLUSTER = "cluster"
    POOL = "pool"
    NODE = "node"
    POD = "pod"
    SERVICE = "service"
    VNET = "vnet"
    SUBNET = "subnet"
    NIC = "nic"
    VM = "virtual machine"
    ROUTE_TABLE = "route table"
    LOAD_BALANCER = "load balancer"
    NAT_GATEWAY = "nat gateway"
    DEFAULT_OUTBOUND = "default outbound"
    PUBLIC_IP = "public ip"
    FIREWALL = "firewall"
    GATEWAY = "gateway"
    PEER_VNET = "peer vnet"
    PRIVATE_ENDPOINT = "private endpoint"
    SERVICE_ENDPOINT = "service endpoint"
    REGISTRY = "registry"
    DNS = "dns"
    STORAGE = "storage"
    ON_PREMISES = "on-premises"
    INTERNET = "internet"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class NetworkPlace:
    """One box. `id` is unique within a topology: an ARM id, or any text; `label` is the text in the box.

    `count` is the number of places of one kind that the box represents.
    """

    id: str
    kind: PlaceKind
    label: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """One arrow between two places, by their ids. `open`: a packet can leave along it today.

    For the drawing: `state` is more exact than `open` where more is known (masked, accepted, not decided), `inbound` is
    set for a link into the cluster, `weight` is that of the worst finding: 3 for critical, 2 for high, 1 for the rest.
    """

    source: str
    target: str
    open: bool = False
    label: str = ""
    state: str = field(default="", compare=False)
    inbound: bool = field(default=False, compare=False)
    weight: int = field(default=2, compare=False)


@dataclass(frozen=True, slots=True)
class Topology:
    """Places and the links between them; a link to a place that is not listed is not drawn."""

    nodes: tuple[NetworkPlace, ...] = ()
    edges: tuple[NetworkLink, ...] = ()

"""The network around a cluster, reduced to what one drawing holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PlaceKind(StrEnum):
    """What stands at one end of a link; decides the place's column and sign in the drawing."""

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
class Place:
    """One box. `id` is unique within a topology: an ARM id, or any text; `label` is what the box says."""

    id: str
    kind: PlaceKind
    label: str


@dataclass(frozen=True, slots=True)
class Link:
    """One arrow between two places, named by their ids. `open`: a packet can leave along it as things stand."""

    source: str
    target: str
    open: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """Places and the links between them; a link to a place that is not listed is not drawn."""

    nodes: tuple[Place, ...] = ()
    edges: tuple[Link, ...] = ()

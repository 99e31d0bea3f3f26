"""The path of a finding: hops in the order of a packet, each with its kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from hermetic.api.text import single_line
from hermetic.audit.model.topology import PlaceKind

ARROW = " -> "
LONGEST_LABEL = 512
"""An ARM id with its words fits. Text of an object, such as an annotation, can have 256 KiB."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One place on a path: its kind, and its text ("nat gateway nat-egress").

    The text is one line without an arrow and of bounded length, so that a value from an object can add no line to a
    report and no hop to a path.
    """

    kind: PlaceKind
    label: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", single_line(self.label, LONGEST_LABEL).replace("->", ">"))


Path = tuple[Hop, ...]

pod = partial(Hop, PlaceKind.POD)
node = partial(Hop, PlaceKind.NODE)
service = partial(Hop, PlaceKind.SERVICE)
machine = partial(Hop, PlaceKind.VM)
load_balancer = partial(Hop, PlaceKind.LOAD_BALANCER)
firewall = partial(Hop, PlaceKind.FIREWALL)
gateway = partial(Hop, PlaceKind.GATEWAY)
peer = partial(Hop, PlaceKind.PEER_VNET)
private_endpoint = partial(Hop, PlaceKind.PRIVATE_ENDPOINT)
registry = partial(Hop, PlaceKind.REGISTRY)
dns = partial(Hop, PlaceKind.DNS)
storage = partial(Hop, PlaceKind.STORAGE)

INTERNET, POD, NODE = Hop(PlaceKind.INTERNET, "internet"), pod("pod"), node("node")
NODE_SUBNETS = Hop(PlaceKind.SUBNET, "node subnets")
DEFAULT_OUTBOUND = Hop(PlaceKind.DEFAULT_OUTBOUND, "default outbound")
PUBLIC_IP = Hop(PlaceKind.PUBLIC_IP, "public ip")
LOAD_BALANCER, GATEWAY = load_balancer("load balancer"), gateway("gateway")
REGISTRY, STORAGE = registry("registry"), storage("storage")
ON_PREMISES = Hop(PlaceKind.ON_PREMISES, "on-prem")
SERVICE_ENDPOINT = Hop(PlaceKind.SERVICE_ENDPOINT, "service endpoint")
PRIVATE_ENDPOINT = private_endpoint("private endpoint")


def path_of(*hops: Hop | str) -> Path:
    """A path; a hop given as text alone has no kind."""
    return tuple(Hop(PlaceKind.OTHER, hop) if isinstance(hop, str) else hop for hop in hops)


def subnet(name: str) -> Hop:
    return Hop(PlaceKind.SUBNET, f"subnet {name}")


def vnet(name: str) -> Hop:
    """A virtual network, by its name."""
    return Hop(PlaceKind.VNET, f"vnet {name}")


def nic(name: str) -> Hop:
    """A network interface, by its name."""
    return Hop(PlaceKind.NIC, f"nic {name}")


def nat_gateway(name: str) -> Hop:
    return Hop(PlaceKind.NAT_GATEWAY, f"nat gateway {name}")


_OBJECTS = {
    "Pod": PlaceKind.POD,
    "Node": PlaceKind.NODE,
    "Service": PlaceKind.SERVICE,
    "Gateway": PlaceKind.GATEWAY,
    "StaticGatewayConfiguration": PlaceKind.GATEWAY,
}


def kubernetes(reference: str) -> Hop:
    """The hop of a Kubernetes object, from its reference: "v1/Service inference/llama"."""
    kind = reference.partition(" ")[0].rpartition("/")[2]
    return Hop(_OBJECTS.get(kind, PlaceKind.OTHER), reference)


def written(path: Path) -> str:
    """ "node subnet -> nat gateway -> internet": the form of reports, attestations and statuses."""
    return ARROW.join(hop.label for hop in path)


def read_path(text: str) -> Path:
    """Parse the text form, as any release wrote it; the kinds of its hops are not in the text."""
    return path_of(*text.split(ARROW))


def shown(path: Path) -> Path:
    """The path to draw: without hops that have no name."""
    return tuple(hop for hop in path if hop.label.strip())

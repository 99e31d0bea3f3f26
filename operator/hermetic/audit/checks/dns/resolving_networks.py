"""Networks whose DNS policies and rulesets apply beside the nodes' own: those of the network's DNS servers.

A server in a peered network (an inbound endpoint of a resolver, a forwarder) asks the platform's resolver from there,
so policies and rulesets linked there decide. The nodes' own network counts in any case: 168.63.129.16 answers every
pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address

from hermetic.audit.egress.prefixes import network as prefix_of
from hermetic.audit.estate.azure.vnet import Peering, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, Seen

AZURE_DNS = "168.63.129.16"


@dataclass(frozen=True, slots=True)
class Deciding:
    """Ids of peered networks with a DNS server of this one, servers that are in none, and the observations."""

    networks: tuple[str, ...]
    elsewhere: tuple[str, ...]
    looks: tuple[Observation, ...]


def deciding_networks(estate: Estate, network: Seen[VirtualNetwork]) -> Deciding:
    """The peered networks of the network's DNS servers."""
    options = network.value.dhcp_options if network.value is not None else None
    servers = [one for one in (options.dns_servers if options is not None else ()) if one.strip() != AZURE_DNS]
    if not servers:
        return Deciding((), (), (network,))
    peerings = estate.every(Peering, network.target)
    at_home = network.value.address_space.address_prefixes if network.value and network.value.address_space else ()
    found: dict[str, str] = {}
    elsewhere: list[str] = []
    for server in servers:
        homes = [] if _holds(at_home, server) else list(_homes(peerings.items, server))
        found |= {one.lower(): one for one in homes}
        if not homes and not _holds(at_home, server):
            elsewhere.append(server)
    return Deciding(tuple(found[key] for key in sorted(found)), tuple(elsewhere), (network, peerings))


def _homes(peerings: tuple[Peering, ...], server: str) -> Iterator[str]:
    for one in peerings:
        space = one.remote_address_space.address_prefixes if one.remote_address_space is not None else ()
        if one.connects and one.remote_virtual_network is not None and _holds(space, server):
            yield one.remote_virtual_network.id


def _holds(prefixes: tuple[str, ...] | list[str], address: str) -> bool:
    try:
        number = ip_address(address.strip())
    except ValueError:
        return False
    known = (prefix_of(one) for one in prefixes)
    return any(one is not None and one.version == number.version and number in one for one in known)

"""Whether packets of the nodes reach a place through the declared firewall, past the security groups of both ends.

The firewall keeps the source of a packet to a private address, or replaces it by its own (learn.microsoft.com/azure/
firewall/snat-private-range): the groups of the destination are asked for both. For a translated address (DNAT), rules
of the nodes see the firewall and not the destination.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hermetic.audit.cluster.resource_lookup import values_of
from hermetic.audit.egress.reach import Destination, Reach, Senders, most_open, reach_of, weakest
from hermetic.audit.estate.azure.managed_services import AzureFirewall
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.model.address_ranges import networks, overlap, space
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.behind_firewall import behind_firewall


def reach_by_firewall(
    estate: Estate, policy: Policy, destinations: Iterable[Destination]
) -> tuple[Reach, tuple[Observation, ...]]:
    """The most open reach to any of these through the declared firewall; shut where its rules name none of them."""
    behind = behind_firewall(estate, policy)
    firewall = estate.one(AzureFirewall, policy.firewall)
    if behind is None or firewall.value is None:
        return Reach.SHUT, ()
    homes = Senders(
        tuple((subnet_id, estate.one(Subnet, subnet_id)) for subnet_id in firewall.value.subnet_ids),
        by_their_rules=False,
    )
    observations: list[Observation] = [firewall, *behind.rules.observations]
    reaches = [Reach.SHUT]
    for destination in destinations:
        subnets = [estate.one(Subnet, subnet_id) for subnet_id in destination.subnet_ids]
        subnet_prefixes = [prefix for subnet in values_of(subnets) for prefix in subnet.prefixes]
        addresses = space(networks(destination.addresses or subnet_prefixes))
        if addresses and not overlap(addresses, behind.rules.destinations):
            continue
        let_in, of_destination = reach_of(estate, (destination,), homes)
        observations += of_destination
        if not addresses or overlap(addresses, behind.rules.translated):
            reaches.append(let_in)
            continue
        sent, of_nodes = reach_of(estate, (replace(destination, group_id="", obeys_its_subnet=False),))
        observations += of_nodes
        reaches.append(weakest(sent, let_in))
    return most_open(reaches), tuple(observations)

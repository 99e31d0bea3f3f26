"""DNS servers that are configured for machines: one that the policy does not list may itself be on the internet."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import scale_sets_of, whole_or_unknown
from hermetic.audit.egress.machine_egress import ways_out
from hermetic.audit.egress.machines import RelayMachine, machines_of
from hermetic.audit.egress.prefixes import network as prefix_of
from hermetic.audit.egress.resource_lookup import interfaces_in_the_networks, readable
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.vnet import NetworkInterface, NicFields, ScaleSet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Observation, Seen
from hermetic.audit.evaluation import Judgement, fails, passes, whatever_is_damaged
from hermetic.audit.hops import INTERNET, POD, path_of, written
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_network, throughout

AZURE_DNS = "168.63.129.16"


@check("vnet-dns-servers")
def vnet_dns_servers(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Servers of the network and of single interfaces are listed in the policy, and are not machines with a way out."""
    yield from _of_interfaces(estate, policy)

    def judge(network: Seen[VirtualNetwork]) -> Iterator[Judgement]:
        options = network.value.dhcp_options if network.value is not None else None
        named = options.dns_servers if options is not None else []
        yield from _judge(estate, policy, network.target, named, network)

    yield from each_network(estate, policy, judge)


def _of_interfaces(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Findings for interfaces with servers of their own; a Pass of the network covers all others."""
    nics, looks = interfaces_in_the_networks(estate, policy)
    broken: list[Observation] = []
    for nic, named in readable(nics, _named, broken):
        if named:
            yield from whatever_is_damaged(nic.id, _judge(estate, policy, nic.id, named, nic))
    sets = scale_sets_of(estate)
    for scale_set, named in readable(sets, _of_the_model, broken):
        if named:
            yield from whatever_is_damaged(scale_set.id, _judge(estate, policy, scale_set.id, named, scale_set))
    looks = (*looks, sets)
    every = throughout(estate, policy, NetworkInterface)
    yield from whole_or_unknown(estate.cluster, "servers of interfaces", *looks, *broken, every)


def _of_the_model(scale_set: ScaleSet) -> list[str]:
    """Servers that the next instances are given."""
    return [one for nic in scale_set.nics if nic.dns_settings is not None for one in nic.dns_settings.dns_servers]


def _named(nic: NicFields) -> list[str]:
    return nic.dns_settings.dns_servers if nic.dns_settings is not None else []


def _judge(estate: Estate, policy: Policy, resource: str, named: list[str], *looks: Observation) -> Iterator[Judgement]:
    custom = [one for one in named if _same(one) != AZURE_DNS]
    allowed = {_same(one) for one in policy.allowed_dns_servers}
    no_machines: Listing[RelayMachine] = Listing(estate.cluster)
    machines = machines_of(estate, policy) if custom else no_machines
    said = [f"{one} is not on the list" for one in custom if _same(one) not in allowed]
    leading = [(one, machine) for one in custom for machine in machines if _same(one) in map(_same, machine.addresses)]
    rests: list[Observation] = [*looks, machines]
    for server, machine in leading:
        ways, looked_at = ways_out(estate, policy, machine)
        rests += looked_at
        if ways:
            said.append(f"{server} is a machine with a way out of its own ({', '.join(map(written, ways))})")
    if said:
        path = path_of(POD, hops.dns(f"dns server {', '.join(custom)}"), INTERNET)
        yield fails(resource, "DnsServerNotAllowed", "; ".join(said), *rests, paths=(path,))
    elif custom:
        yield passes(resource, "DnsServersAllowed", f"{', '.join(custom)}: all on the list", *rests)
    else:
        yield passes(resource, "AzureDns", f"{name_of(resource)} has Azure's own resolver", *rests)


def _same(address: str) -> str:
    """The canonical form of an address."""
    prefix = prefix_of(address)
    return str(prefix.network_address) if prefix is not None else address.strip().lower()

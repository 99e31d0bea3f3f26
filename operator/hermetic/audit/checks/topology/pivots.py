"""Machines beside the nodes that nodes can reach and that have a way out of their own: possible relays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import ScopedSubnet, peerings_of, subnets_of, whole_or_unknown
from hermetic.audit.egress.address_ranges import networks
from hermetic.audit.egress.machines import Interface, RelayMachine, machines_of, ways_out
from hermetic.audit.egress.nsg_reachability import Trip, stops_all
from hermetic.audit.egress.nsg_rules import Direction
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, Seen
from hermetic.audit.evaluation import Judgement, cannot_say, fails, passes, whatever_is_damaged
from hermetic.audit.hops import INTERNET, NODE_SUBNETS, path_of, written
from hermetic.audit.policy import Policy


class Gate(Enum):
    """Whether packets of the nodes reach a machine."""

    OPEN = "open"
    SHUT = "shut"
    UNSEEN = "unseen"


@check("vm-pivot")
def vm_pivot(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Every machine in the networks and their peers that is not a node of the cluster."""
    machines = machines_of(estate, policy)
    for machine in machines:
        yield from whatever_is_damaged(machine.id, _judge(estate, policy, machine))
    if machines.items:
        yield from whole_or_unknown(estate.cluster, "machines in reach", machines)
    else:
        yield passes(estate.cluster, "NoMachine", "there is no machine in reach but the nodes", machines)


def _judge(estate: Estate, policy: Policy, machine: RelayMachine) -> Iterator[Judgement]:
    ways, looks = ways_out(estate, policy, machine)
    if not ways and all(look.problem is None for look in looks):
        yield passes(machine.id, "NoWayOut", "the machine has no way out of its own", *machine.seen, *looks)
        return
    gate, gates = _gate(estate, machine)
    if gate is Gate.SHUT:
        way = written(ways[0]) if ways else "one that was not seen"
        words = f"the machine may have a way out ({way}), and rules stop every packet of the nodes to it"
        yield passes(machine.id, "OutOfReach", words, *machine.seen, *gates)
    elif not ways:
        yield cannot_say(machine.id, "WaysNotSeen", "whether the machine has a way out was not seen", *looks)
    elif gate is Gate.UNSEEN:
        words = f"the machine has a way out ({written(ways[0])}); whether nodes come to it was not seen"
        yield cannot_say(machine.id, "ReachNotSeen", words, *gates)
    else:
        here = hops.machine(f"machine {name_of(machine.id)}")
        paths = [path_of(NODE_SUBNETS, here, *way, INTERNET) for way in ways]
        words = f"nodes come to a machine with a way out of its own: {', '.join(map(written, ways))}"
        yield fails(machine.id, "PivotInReach", words, *machine.seen, *looks, *gates, paths=paths)


def _gate(estate: Estate, machine: RelayMachine) -> tuple[Gate, tuple[Observation, ...]]:
    """The most open gate from any cluster subnet to any interface: a relay may receive on one and send on another."""
    gates = [_gate_of(estate, one) for one in machine.interfaces]
    return _most_open(gate for gate, _ in gates), tuple(look for _, looks in gates for look in looks)


def _gate_of(estate: Estate, interface: Interface) -> tuple[Gate, tuple[Observation, ...]]:
    homes = [estate.one(Subnet, one) for one in interface.subnet_ids]
    theirs = [_layer(estate, interface.group_id)] if interface.group_id else []
    # With several subnets, one that lets packets in suffices, so no single subnet's group is certain to apply.
    theirs += [_layer(estate, _group_of(one)) for one in homes if len(homes) == 1 and _group_of(one)]
    ours = [one for one in subnets_of(estate)[0] if not one.is_for_the_api_server_only]
    looks: list[Observation] = [*theirs, *homes, peerings_of(estate)]
    gates: set[Gate] = set()
    for subnet in ours:
        own = [_layer(estate, _group_of(subnet.seen))] if _group_of(subnet.seen) else []
        looks += [subnet.seen, *own]
        gates.add(_between(_trip(subnet, interface, homes), own, theirs, unseen=subnet.seen.value is None))
    return _most_open(gates), tuple(looks)


def _most_open(gates: Iterable[Gate]) -> Gate:
    """The most open of these; UNSEEN without any."""
    found = set(gates)
    return next((gate for gate in (Gate.OPEN, Gate.UNSEEN) if gate in found), Gate.SHUT if found else Gate.UNSEEN)


def _between(trip: Trip, own: list[Seen[SecurityGroup]], theirs: list[Seen[SecurityGroup]], *, unseen: bool) -> Gate:
    layers: list[tuple[Direction, Seen[SecurityGroup]]] = [
        *(("outbound", one) for one in own),
        *(("inbound", one) for one in theirs),
    ]
    if any(one.value is not None and stops_all(one.value.rules, direction, trip) for direction, one in layers):
        return Gate.SHUT
    if unseen or any(one.value is None for _, one in layers):
        return Gate.UNSEEN
    return Gate.OPEN


def _trip(subnet: ScopedSubnet, interface: Interface, homes: list[Seen[Subnet]]) -> Trip:
    home = [prefix for one in homes if one.value is not None for prefix in one.value.prefixes]
    sources = networks(subnet.seen.value.prefixes) if subnet.seen.value is not None else ()
    return Trip(sources, networks(interface.addresses or home))


def _group_of(subnet: Seen[Subnet]) -> str:
    group = subnet.value.network_security_group if subnet.value is not None else None
    return group.id if group is not None else ""


def _layer(estate: Estate, group_id: str) -> Seen[SecurityGroup]:
    return estate.one(SecurityGroup, group_id)

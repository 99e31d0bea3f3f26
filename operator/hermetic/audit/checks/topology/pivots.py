"""Machines beside the nodes that nodes can reach and that have an egress path of their own: possible relays."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import found_or_none
from hermetic.audit.egress.machines import RelayMachine, egress_paths, machines_of
from hermetic.audit.egress.reach import Reach, reach_of
from hermetic.audit.egress.relay_entries import backend_of, reach_by_others
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.hops import INTERNET, NODE_SUBNETS, path_of, written
from hermetic.audit.policy import Policy


@check("vm-pivot")
def vm_pivot(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every machine in the networks and their peers that is not a node of the cluster."""
    machines = machines_of(estate, policy)
    for machine in machines:
        yield from whatever_is_damaged(machine.id, _evaluate(estate, policy, machine))
    none = ("NoMachine", "there is no machine in reach but the nodes")
    yield from found_or_none(estate.cluster, machines, "machines in reach", none, machines)


def _evaluate(estate: Estate, policy: Policy, machine: RelayMachine) -> Iterator[CheckResult]:
    ways, observations = egress_paths(estate, policy, machine)
    if not ways and all(observation.problem is None for observation in observations):
        yield passes(machine.id, "NoWayOut", "the machine has no egress path of its own", *machine.seen, *observations)
        return
    reach, rests_on = reach_of(estate, machine.destinations)
    if reach is Reach.SHUT:
        backend, of_machine = backend_of(estate, machine)
        reach, by_others = reach_by_others(estate, policy, backend)
        rests_on += (*of_machine, *by_others)
    if reach is Reach.SHUT:
        way = written(ways[0]) if ways else "one that was not seen"
        words = f"the machine may have an egress path ({way}), and rules stop every packet of the nodes to it"
        yield passes(machine.id, "OutOfReach", words, *machine.seen, *rests_on)
    elif not ways:
        yield unknown(machine.id, "WaysNotSeen", "whether it has an egress path was not seen", *observations)
    elif reach is Reach.UNSEEN:
        words = f"the machine has an egress path ({written(ways[0])}); whether nodes come to it was not seen"
        yield unknown(machine.id, "ReachNotSeen", words, *rests_on)
    else:
        here = hops.machine(f"machine {name_of(machine.id)}")
        paths = [path_of(NODE_SUBNETS, here, *way, INTERNET) for way in ways]
        words = f"nodes come to a machine with an egress path of its own: {', '.join(map(written, ways))}"
        yield fails(machine.id, "PivotInReach", words, *machine.seen, *observations, *rests_on, paths=paths)

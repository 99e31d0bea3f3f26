"""Machines beside the nodes that nodes can reach and that have an egress path of their own: possible relays."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.egress.firewall_reach import reach_by_firewall
from hermetic.audit.egress.machines import RelayMachine, egress_paths, machines_of
from hermetic.audit.egress.reach import Reach, reach_of
from hermetic.audit.egress.relay_entries import backend_of, reach_by_others
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation.each_resource import found_or_none
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, NODE_SUBNETS, path_of, written
from hermetic.audit.policy.declarations import Policy


@check("vm-pivot")
def vm_pivot(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every machine in the networks and their peers that is not a node of the cluster."""
    machines = machines_of(estate, policy)
    for machine in machines:
        yield from whatever_is_damaged(machine.id, _evaluate(estate, policy, machine))
    none = ("NoMachine", "no machine is in reach but the nodes")
    yield from found_or_none(estate.cluster, machines, "machines in reach", none, machines)


def _evaluate(estate: Estate, policy: Policy, machine: RelayMachine) -> Iterator[CheckResult]:
    machine_paths, observations = egress_paths(estate, policy, machine)
    if not machine_paths and all(observation.problem is None for observation in observations):
        yield passes(
            machine.id, "NoWayOut", "the machine has no egress path of its own", *machine.observations, *observations
        )
        return
    reach, rests_on = reach_of(estate, machine.destinations)
    if reach is Reach.SHUT:
        reach, by_firewall = reach_by_firewall(estate, policy, machine.destinations)
        rests_on += by_firewall
    if reach is Reach.SHUT:
        backend, of_machine = backend_of(estate, machine)
        reach, by_others = reach_by_others(estate, policy, backend)
        rests_on += (*of_machine, *by_others)
    if reach is Reach.SHUT:
        first_path = written(machine_paths[0]) if machine_paths else "one that was not seen"
        message = f"the machine may have an egress path ({first_path}), and rules stop every packet of the nodes to it"
        yield passes(machine.id, "OutOfReach", message, *machine.observations, *rests_on)
    elif not machine_paths:
        yield unknown(machine.id, "WaysNotSeen", "the audit could not see whether it has an egress path", *observations)
    elif reach is Reach.UNSEEN:
        message = (
            f"the machine has an egress path ({written(machine_paths[0])}); the audit could not see whether nodes "
            "come to it"
        )
        yield unknown(machine.id, "ReachNotSeen", message, *rests_on)
    else:
        here = hops.machine(f"machine {name_of(machine.id)}")
        paths = [path_of(NODE_SUBNETS, here, *path, INTERNET) for path in machine_paths]
        message = f"nodes come to a machine with an egress path of its own: {', '.join(map(written, machine_paths))}"
        yield fails(machine.id, "PivotInReach", message, *machine.observations, *observations, *rests_on, paths=paths)

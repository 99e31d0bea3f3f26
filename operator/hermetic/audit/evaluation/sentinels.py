"""Interfaces that Azure reports effective rules and routes for: those of single virtual machines in cluster subnets.

Effective routes, effective rules and next hops are known to be available for no interface of a scale set. A machine
beside the nodes has the same routes and rules of the subnet, so its answers hold for them. A node that is a machine
of its own (node auto provisioning, pools of virtual machines) can be queried too, unless lockdown forbids it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from hermetic.audit.cluster.members import ScopedSubnet, node_group_of, subnets_of
from hermetic.audit.cluster.resource_lookup import interfaces_in_the_networks, readable
from hermetic.audit.estate.arm_ids import group_of, same_id
from hermetic.audit.estate.azure.vnet import NetworkInterface, Subnet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation, ObservedDocument, is_locked
from hermetic.audit.evaluation.each_resource import each_subnet
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, unknown
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.subnet_context import SubnetContext, surroundings

LOCKED = "is a node in the locked node resource group, about which no role can ask: the verdict rests on configuration"
NONE_THERE = "this subnet has no virtual machine of its own to be asked about: the verdict rests on configuration"


@dataclass(frozen=True, slots=True)
class Sentinels:
    """Interfaces by subnet id in lower case; `unseen` are interfaces named by the policy that could not be read."""

    by_subnet: Mapping[str, tuple[NetworkInterface, ...]]
    unseen: tuple[tuple[str, Observation], ...]
    observations: tuple[Observation, ...]


@derived
def sentinels_of(estate: Estate, policy: Policy) -> Sentinels:
    """The interfaces that the policy names; in a subnet where it names none, one machine for each security group."""
    ours = {scoped.id.lower() for scoped in subnets_of(estate)[0]}
    nodes = node_group_of(estate)
    named = [(nic_id, estate.one(NetworkInterface, nic_id)) for nic_id in policy.sentinel_nics]
    interfaces, observations = interfaces_in_the_networks(estate, policy)
    damaged: list[Observation] = []
    by_policy = _by_subnet(
        (observation.value for _, observation in named if observation.value is not None), ours, damaged
    )
    candidates = _by_subnet((nic for nic in interfaces if isinstance(nic, NetworkInterface)), ours, damaged)
    chosen = {
        subnet: tuple(by_policy.get(subnet) or _one_for_each_group(candidates.get(subnet, []), nodes))
        for subnet in sorted({*by_policy, *candidates})
    }
    unseen = tuple((arm_id, observation) for arm_id, observation in named if observation.value is None)
    return Sentinels(chosen, unseen, (*observations, *damaged))


def _by_subnet(
    interfaces: Iterable[NetworkInterface], ours: set[str], damaged: list[Observation]
) -> dict[str, list[NetworkInterface]]:
    nics_by_subnet: defaultdict[str, list[NetworkInterface]] = defaultdict(list)
    for nic, subnets in readable(interfaces, _machine_subnets, damaged):
        for subnet in ours.intersection(subnets):
            nics_by_subnet[subnet].append(nic)
    return nics_by_subnet


def _machine_subnets(nic: NetworkInterface) -> tuple[str, ...]:
    if nic.virtual_machine is None or nic.private_endpoint is not None:
        return ()
    return tuple(subnet_id.lower() for subnet_id in nic.subnet_ids)


def _one_for_each_group(interfaces: list[NetworkInterface], nodes: str) -> Iterator[NetworkInterface]:
    """Machines of one subnet differ only in their own security group, so one per group is enough; nodes come last."""
    first: dict[str, NetworkInterface] = {}
    for nic in sorted(interfaces, key=lambda nic: (same_id(group_of(nic.id), nodes), nic.id.lower())):
        group = nic.network_security_group
        first.setdefault(group.id.lower() if group is not None else "", nic)
    yield from first.values()


def unless_locked(
    estate: Estate, policy: Policy, nic: NetworkInterface, observation: Observation, result: CheckResult
) -> CheckResult:
    """`result` of a missing answer, or not applicable for a locked node that the policy does not name."""
    is_named = any(same_id(nic.id, nic_id) for nic_id in policy.sentinel_nics)
    if is_named or not is_locked(observation) or not same_id(group_of(nic.id), node_group_of(estate)):
        return result
    return does_not_apply(
        result.resource, "LockedNode", f"{nic.name} {LOCKED}", nic, ObservedDocument(observation.evidence)
    )


Answered = Callable[[SubnetContext, NetworkInterface], Iterable[CheckResult]]


def each_sentinel(estate: Estate, policy: Policy, evaluate: Answered) -> Iterator[CheckResult]:
    """Apply `evaluate` to the sentinels of every subnet; findings name the subnet."""
    sentinels = sentinels_of(estate, policy)

    def of_subnet(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
        around = surroundings(estate, scoped, subnet)
        nics = sentinels.by_subnet.get(scoped.id.lower(), ())
        for nic in nics:
            yield from evaluate(around, nic)
        if not nics:
            yield does_not_apply(scoped.id, "NoSentinel", NONE_THERE, scoped.observation, *sentinels.observations)

    yield from each_subnet(estate, policy, of_subnet)
    for arm_id, observation in sentinels.unseen:
        yield unknown(arm_id, "SentinelNotSeen", "the policy names it as a sentinel, and it was not seen", observation)

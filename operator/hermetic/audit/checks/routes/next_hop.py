"""Network Watcher's next hop for public addresses: a second source, which needs no route table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hermetic.audit.checks.family import check_each
from hermetic.audit.egress.methods import Methods, methods_of
from hermetic.audit.estate.arm_fields import folded
from hermetic.audit.estate.arm_ids import group_of, name_of, subscription_of
from hermetic.audit.estate.azure.effective import NetworkWatcher, NextHop
from hermetic.audit.estate.azure.vnet import NetworkInterface
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.evaluation.sentinels import each_sentinel
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, Path, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import declared_addresses
from hermetic.audit.rules.routes import NextHopKind, hop_of, next_hop
from hermetic.audit.rules.subnet_context import SubnetContext

# One in each half of the address space, so that a default route in two halves is found. Azure computes with them;
# nothing is sent there.
DESTINATIONS = ("8.8.8.8", "208.67.222.222")
SYSTEM_ROUTE = "system route"


@check_each("nexthop-spotcheck", each_sentinel)
def nexthop_spotcheck(
    estate: Estate, policy: Policy, around: SubnetContext, nic: NetworkInterface
) -> Iterator[CheckResult]:
    """The next hop of a packet to the internet, from the watcher of the sentinel's region."""
    watchers = estate.every(NetworkWatcher, f"/subscriptions/{subscription_of(nic.id)}")
    here = [watcher for watcher in watchers if folded(watcher.location) == folded(nic.location)]
    if not here:
        message = f"no network watcher in {nic.location or 'the region of the sentinel'}"
        yield does_not_apply(around.id, "NoWatcher", message, watchers)
    for watcher in here[:1]:
        for destination in DESTINATIONS:
            observation = estate.asked(NextHop, watcher.id, _packet(nic, destination))
            result = _result(estate, policy, around, destination, observation)
            yield replace(result, fill=_named(nic))


def _named(nic: NetworkInterface) -> dict[str, str]:
    """Values for the remedy's command, which repeats the query."""
    machine = nic.virtual_machine.id if nic.virtual_machine is not None else ""
    return {
        "SENTINEL_VM": name_of(machine),
        "SENTINEL_GROUP": name_of(group_of(machine)),
        "SENTINEL_ADDRESS": _address(nic),
    }


def _address(nic: NetworkInterface) -> str:
    return next(
        (
            configuration.private_ip_address
            for configuration in nic.ip_configurations
            if configuration.private_ip_address
        ),
        "",
    )


def _packet(nic: NetworkInterface, destination: str) -> dict[str, str]:
    return {
        "targetResourceId": nic.virtual_machine.id if nic.virtual_machine is not None else "",
        "targetNicResourceId": nic.id,
        "sourceIPAddress": _address(nic),
        "destinationIPAddress": destination,
    }


def _result(
    estate: Estate, policy: Policy, around: SubnetContext, destination: str, observation: Lookup[NextHop]
) -> CheckResult:
    if observation.value is None:
        return unknown(around.id, "NextHopNotSeen", f"the next hop to {destination} was not answered", observation)
    answer, hop = observation.value, hop_of(observation.value.next_hop_type)
    message = f"the next hop to {destination} is {answer.next_hop_type} {answer.next_hop_ip_address or ''}".strip()
    if hop is NextHopKind.DROPPED:
        return passes(around.id, "NoNextHop", message, observation)
    if hop in {NextHopKind.UNKNOWN, NextHopKind.STAYS}:
        return unknown(around.id, "HopUnknown", f"{message}; where that leads is not known", observation)
    if (answer.next_hop_type or "").lower() == "internet":
        return _to_internet(around, methods_of(estate, policy), answer, message, observation)
    if (answer.next_hop_type or "").lower() == "virtualappliance" and policy.profile == "filtered":
        return _to_appliance(estate, policy, around, message, observation)
    return fails(around.id, "LeadsOut", message, observation, paths=(_path(around, answer),))


def _to_appliance(
    estate: Estate, policy: Policy, around: SubnetContext, message: str, observation: Lookup[NextHop]
) -> CheckResult:
    """Pass for the declared firewall; Unknown where it could not be read."""
    addresses, observations = declared_addresses(estate, policy)
    answer = observation.value
    if answer is not None and answer.next_hop_ip_address in addresses:
        return passes(around.id, "DeclaredFirewall", f"{message}, the declared firewall", observation, *observations)
    if answer is None or any(observation.problem is not None for observation in observations):
        return unknown(
            around.id, "FirewallNotSeen", f"{message}; is it the declared firewall?", observation, *observations
        )
    return fails(around.id, "LeadsOut", message, observation, paths=(_path(around, answer),))


def _to_internet(
    around: SubnetContext, methods: Methods, answer: NextHop, message: str, observation: Observation
) -> CheckResult:
    """Azure's system route passes where no method carries it; a configured route fails, without a method as medium."""
    paths = (_path(around, answer),)
    if not around.is_private or methods.of(around.id):
        return fails(around.id, "LeadsOut", f"{message}, and something carries it", observation, paths=paths)
    if (answer.route_table_id or "").lower() == SYSTEM_ROUTE:
        note = "Azure's own route, and nothing carries it: private subnet, no outbound method"
        return passes(around.id, "SystemRoute", f"{message}: {note}", observation, *methods.observations)
    severity = Severity.MEDIUM if methods.are_all_seen else None
    return fails(around.id, "IdleRoute", f"{message}, by a route of ours", observation, paths=paths, severity=severity)


def _path(around: SubnetContext, answer: NextHop) -> Path:
    hop = next_hop(answer.next_hop_type, f"{answer.next_hop_type} {answer.next_hop_ip_address or ''}".strip())
    beyond = () if hop.label.lower() == "internet" else (INTERNET,)
    return path_of(hops.subnet(name_of(around.id)), hop, *beyond)

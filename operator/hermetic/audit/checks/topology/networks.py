"""Properties of a network and its subnets: sharing and flow logs."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster_scope import ScopedSubnet, each_subnet
from hermetic.audit.estate.azure.flow_logs import FlowLog
from hermetic.audit.estate.azure.vnet import Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Seen
from hermetic.audit.evaluation import Judgement, cannot_say, fails, passes
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_network


@check_each("subnet-sharing", each_subnet)
def subnet_sharing(_estate: Estate, _policy: Policy, scoped: ScopedSubnet, subnet: Subnet) -> Iterator[Judgement]:
    """Others can put machines into a shared subnet."""
    if subnet.sharing_scope:
        message = f"sharingScope is {subnet.sharing_scope}: machines of other subscriptions may sit beside the nodes"
        yield fails(scoped.id, "SubnetShared", message, scoped.seen)
    else:
        yield passes(scoped.id, "NotShared", "the subnet is not shared", scoped.seen)


@check_each("nsg-flowlogs", each_network)
def nsg_flowlogs(estate: Estate, _policy: Policy, network: Seen[VirtualNetwork]) -> Iterator[Judgement]:
    """Without a flow log, past outbound traffic cannot be investigated."""
    ids = [one.id for one in network.value.flow_logs] if network.value else []
    logs = [estate.one(FlowLog, one) for one in ids]
    running = [log for log in logs if log.value is not None and log.value.enabled]
    unread = [log for log in logs if log.value is None or log.value.enabled is None]
    if running:
        yield passes(network.target, "FlowLogOn", "a flow log is on", network, *running)
    elif unread:
        yield cannot_say(network.target, "FlowLogNotSeen", "the flow log does not say whether it is on", *unread)
    else:
        yield fails(network.target, "NoFlowLog", "no flow log of the network is on", network, *logs)

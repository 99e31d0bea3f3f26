"""Networks: their peerings, evaluated on both sides, sharing of subnets, and flow logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import ScopedSubnet
from hermetic.audit.cluster.virtual_hubs import Joined, hub_of
from hermetic.audit.estate.arm_ids import name_of, same_id
from hermetic.audit.estate.azure.diagnostics import FlowLog
from hermetic.audit.estate.azure.vnet import InhabitedNetwork, Peering, Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Lookup
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.evaluation.each_resource import each_network, each_or_none, each_subnet
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import GATEWAY, ON_PREMISES, Hop, Path, path_of
from hermetic.audit.policy.declarations import Policy

PERMISSION = f"{Peering.TYPE}/read"


def _each_peering(
    estate: Estate, policy: Policy, evaluate: Callable[[Lookup[VirtualNetwork], Peering], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    def of_network(network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
        def of_peering(peering: Peering) -> Iterator[CheckResult]:
            if peering.connects:
                yield from evaluate(network, peering)
            else:
                yield passes(peering.id, "NotConnected", f"the peering is {peering.peering_state}", peering)

        listing = _listed(estate, network.target)
        yield from each_or_none(network.target, listing, of_peering, "the network has no peering", network)

    yield from each_network(estate, policy, of_network)


@check_each("peering-any", _each_peering)
def peering_any(
    estate: Estate, policy: Policy, network: Lookup[VirtualNetwork], peering: Peering
) -> Iterator[CheckResult]:
    """A connected peering to a network, or by a hub, that the policy does not list."""
    remote, joined = _remote(peering), hub_of(estate, policy, peering)
    if joined is not None and policy.allows_peering(joined.hub.id, joined.connection.id):
        message = f"the policy allows the virtual hub {joined.hub.id}"
        yield passes(peering.id, "PeeringAllowed", message, peering, joined.connection)
    elif remote and policy.allows_peering(peering.id, remote):
        yield passes(peering.id, "PeeringAllowed", f"the policy allows the peering with {remote}", peering)
    elif (peering.peering_state or "").lower() == "connected":
        yield fails(
            peering.id,
            "PeeringNotAllowed",
            f"the network is joined with {remote or 'a network that the answer does not name'}",
            peering,
            paths=(path_of(hops.vnet(name_of(network.target)), _peer(peering)),),
        )
    else:
        yield unknown(peering.id, "StateUnknown", f"peering state {peering.peering_state!r} is not known", peering)


@check_each("peering-remote-gateway", _each_peering)
def peering_remote_gateway(
    estate: Estate, policy: Policy, network: Lookup[VirtualNetwork], peering: Peering
) -> Iterator[CheckResult]:
    """Using the peer's gateway adds every default route that the gateway has learned."""
    if (joined := hub_of(estate, policy, peering)) is not None:
        yield _of_the_hub(peering, joined)
        return
    path = path_of(hops.vnet(name_of(network.target)), _peer(peering), GATEWAY, ON_PREMISES)
    yield _off(peering, peering.use_remote_gateways, "useRemoteGateways", path)


@check_each("peering-gateway-transit", _each_peering)
def peering_gateway_transit(
    _estate: Estate, _policy: Policy, network: Lookup[VirtualNetwork], peering: Peering
) -> Iterator[CheckResult]:
    """Lets a peer use the gateway of the cluster's network."""
    path = path_of(_peer(peering), hops.vnet(name_of(network.target)), GATEWAY, ON_PREMISES)
    yield _off(peering, peering.allow_gateway_transit, "allowGatewayTransit", path)


@check_each("peering-forwarded", _each_peering)
def peering_forwarded(
    estate: Estate, policy: Policy, network: Lookup[VirtualNetwork], peering: Peering
) -> Iterator[CheckResult]:
    """Forwarded traffic, on our side (relays reach us) and on the remote side (our packets are forwarded on)."""
    if (joined := hub_of(estate, policy, peering)) is not None:
        yield _of_the_hub(peering, joined)
        return
    path = path_of(hops.vnet(name_of(network.target)), _peer(peering), hops.firewall("appliance"))
    yield _off(peering, peering.allow_forwarded_traffic, "allowForwardedTraffic", path)
    yield from _far_side(estate, network, peering, path)


def _of_the_hub(peering: Peering, joined: Joined) -> CheckResult:
    """The setting of a hub's peering: Azure sets it, a hub forwards by design, and what it routes is in its routes."""
    message = f"the peering is that of the virtual hub {joined.hub.name}, whose routes vwan-connection evaluates"
    return passes(peering.id, "OfAVirtualHub", message, peering, joined.connection)


def _far_side(estate: Estate, network: Lookup[VirtualNetwork], peering: Peering, path: Path) -> Iterator[CheckResult]:
    remote = _remote(peering)
    if not remote:
        yield unknown(peering.id, "RemoteNotNamed", "the answer does not name the remote network", peering)
        return
    listing = estate.every(Peering, remote)
    back = listing.where(lambda remote_peering: same_id(_remote(remote_peering), network.target))
    for remote_peering in back:
        yield _off(remote_peering, remote_peering.allow_forwarded_traffic, "allowForwardedTraffic", path)
    if not back.items:
        message = f"the far side in {remote} was not seen, and it must be there"
        yield unknown(peering.id, "FarSideNotSeen", message, listing)


@check_each("peering-subnet-scope", _each_peering)
def peering_subnet_scope(
    _estate: Estate, _policy: Policy, _network: Lookup[VirtualNetwork], peering: Peering
) -> Iterator[CheckResult]:
    """A peering of some subnets only: every other check treats it as one of whole networks."""
    named = (*peering.local_subnet_names, *peering.remote_subnet_names)
    if peering.peer_complete_vnets is False or named or peering.enable_only_ipv6_peering:
        scope = "IPv6 only" if peering.enable_only_ipv6_peering else f"subnets {', '.join(named) or 'not named'}"
        message = f"the peering joins parts of both networks ({scope}); every other check takes it for whole"
        yield fails(peering.id, "PartialPeering", message, peering)
    else:
        yield passes(peering.id, "WholeNetworks", "the peering joins whole networks", peering)


def _listed(estate: Estate, network: str) -> Listing[Peering]:
    """The network's peerings; incomplete where the network's own body names one that the list omits."""
    listing = estate.every(Peering, network)
    inhabited_network = estate.one(InhabitedNetwork, network)
    named = (inhabited_network.value.virtual_network_peerings or ()) if inhabited_network.value is not None else ()
    listed_ids = {peering.id.lower() for peering in listing}
    lost = next((peering.id for peering in named if peering.id.lower() not in listed_ids), None)
    if lost is None or listing.problem is not None:
        return listing
    problem = Problem(UnreadReason.FORBIDDEN, f"{lost}: the network names it, the list leaves it out", PERMISSION)
    return Listing(listing.target, listing.items, listing.evidence, problem)


def _off(peering: Peering, flag: bool | None, field: str, path: Path) -> CheckResult:
    if flag is None:
        return unknown(peering.id, "NotSaid", f"the answer does not contain {field}", peering)
    if flag:
        return fails(peering.id, f"{field[0].upper()}{field[1:]}", f"{field} is true", peering, paths=(path,))
    return passes(peering.id, "Off", f"{field} is false", peering)


def _remote(peering: Peering) -> str:
    return peering.remote_virtual_network.id if peering.remote_virtual_network is not None else ""


def _peer(peering: Peering) -> Hop:
    return hops.peer(f"peer vnet {name_of(_remote(peering)) or 'not named'}")


@check_each("subnet-sharing", each_subnet)
def subnet_sharing(_estate: Estate, _policy: Policy, scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
    """Others can put machines into a shared subnet."""
    if subnet.sharing_scope:
        message = f"sharingScope is {subnet.sharing_scope}: machines of other subscriptions may sit beside the nodes"
        yield fails(scoped.id, "SubnetShared", message, scoped.observation)
    else:
        yield passes(scoped.id, "NotShared", "the subnet is not shared", scoped.observation)


@check_each("nsg-flowlogs", each_network)
def nsg_flowlogs(estate: Estate, _policy: Policy, network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
    """Without a flow log, past outbound traffic cannot be investigated."""
    ids = [flow_log.id for flow_log in network.value.flow_logs] if network.value else []
    logs = [estate.one(FlowLog, log_id) for log_id in ids]
    running = [log for log in logs if log.value is not None and log.value.enabled]
    unread = [log for log in logs if log.value is None or log.value.enabled is None]
    if running:
        yield passes(network.target, "FlowLogOn", "a flow log is on", network, *running)
    elif unread:
        yield unknown(network.target, "FlowLogNotSeen", "the flow log does not show whether it is on", *unread)
    else:
        yield fails(network.target, "NoFlowLog", "no flow log of the network is on", network, *logs)

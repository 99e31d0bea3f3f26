"""Single network interfaces: hidden addresses, public addresses, forwarding; and public addresses that none has."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.checks.outbound.creation_dates import by_time
from hermetic.audit.cluster.members import instance_nics_of, network_ids_of, node_group_of, subnets_by_id, subnets_of
from hermetic.audit.cluster.resource_lookup import interfaces_in_the_networks
from hermetic.audit.egress.decision import internet_egress
from hermetic.audit.egress.default_outbound import default_outbound_of
from hermetic.audit.egress.masks import describe, masked, masks_of_nodes
from hermetic.audit.estate.arm_ids import group_of, is_below, name_of
from hermetic.audit.estate.azure.balancing import PublicAddress, PublicPrefix
from hermetic.audit.estate.azure.vnet import NicFields, ScaleSetNic
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.each_resource import found_or_none, whole_or_unknown
from hermetic.audit.evaluation.results import (
    CheckResult,
    does_not_apply,
    fails,
    passes,
    unknown,
    whatever_is_damaged,
    with_masks,
)
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import DEFAULT_OUTBOUND, INTERNET, PUBLIC_IP, Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy


@check("nic-default-outbound")
def nic_default_outbound(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A hidden address stays with its interface until the machine is deallocated, even if the subnet is now private."""
    interfaces, observations = interfaces_in_the_networks(estate, policy)
    ours = subnets_by_id(estate).keys()
    nodes = {nic.id.lower() for nic in instance_nics_of(estate)}
    for nic in interfaces:
        if nic.id.lower() in nodes or any(subnet_id.lower() in ours for subnet_id in nic.subnet_ids):
            yield from whatever_is_damaged(nic.id, _default_outbound(estate, policy, nic))
    yield from whole_or_unknown(estate.cluster, "the network interfaces of the cluster's subnets", *observations)
    if not interfaces:
        yield unknown(estate.cluster, "NoInterfaceSeen", "no network interface of a node was seen", *observations)


def _default_outbound(estate: Estate, policy: Policy, nic: NicFields) -> Iterator[CheckResult]:
    reported, observations = default_outbound_of(estate, nic)
    if reported is None and _has_no_machine(nic):
        yield does_not_apply(nic.id, "NoMachine", "no machine sends from this interface", nic)
    elif reported is False:
        yield passes(nic.id, "NoDefaultOutbound", "defaultOutboundConnectivityEnabled is false", *observations)
    elif reported is True:
        decision = internet_egress(estate, policy, nic, reported)
        yield fails(
            nic.id,
            "HiddenAddressKept",
            f"defaultOutboundConnectivityEnabled is true; {describe(decision.masks)}",
            *observations,
            paths=(path_of(hops.nic(name_of(nic.id)), DEFAULT_OUTBOUND, INTERNET),),
            masked=bool(decision.masks),
        )
    else:
        yield by_time(estate, policy, nic, observations, _mitigation(estate, nic))


def _has_no_machine(nic: NicFields) -> bool:
    """Whether it is a private endpoint's interface or unattached; a scale set's interface always has a machine."""
    return nic.private_endpoint is not None or (nic.virtual_machine is None and not isinstance(nic, ScaleSetNic))


def _mitigation(estate: Estate, nic: NicFields) -> str:
    ours = subnets_by_id(estate)
    descriptions = [
        masked(estate, scoped, scoped.observation.value)
        for subnet_id in nic.subnet_ids
        if (scoped := ours.get(subnet_id.lower())) is not None and scoped.observation.value is not None
    ]
    return "; ".join(dict.fromkeys(descriptions)) or "its subnet was not seen"


@check("nic-public-ip")
def nic_public_ip(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A public address on any interface: an egress path in a cluster subnet, a possible relay elsewhere."""
    interfaces, observations = interfaces_in_the_networks(estate, policy)
    ours = subnets_by_id(estate).keys()
    for nic in interfaces:
        yield from whatever_is_damaged(nic.id, _public_address(estate, nic, ours))
    yield from whole_or_unknown(estate.cluster, "the network interfaces of the cluster's networks", *observations)
    if not interfaces:
        yield unknown(estate.cluster, "NoInterfaceSeen", "no network interface was seen", *observations)


def _public_address(estate: Estate, nic: NicFields, ours: Collection[str]) -> Iterator[CheckResult]:
    public = [
        configuration.public_ip_address.id
        for configuration in nic.ip_configurations
        if configuration.public_ip_address is not None
    ]
    if not public:
        yield passes(nic.id, "NoPublicIp", "no address configuration has a public address", nic)
        return
    is_ours = any(subnet_id.lower() in ours for subnet_id in nic.subnet_ids)
    # masks of the cluster's subnets do not apply to a machine in another subnet
    masks = masks_of_nodes(estate) if all(subnet_id.lower() in ours for subnet_id in nic.subnet_ids) else ()
    message = f"public address {', '.join(sorted(public))} {'beside the nodes' if is_ours else 'in the same network'}"
    result = fails(
        nic.id,
        "PublicIp",
        message,
        nic,
        paths=(path_of(hops.nic(name_of(nic.id)), PUBLIC_IP, INTERNET),),
        severity=None if is_ours else Severity.HIGH,
        fill={
            "CONFIGURATION_NAME": [
                configuration.name
                for configuration in nic.ip_configurations
                if configuration.public_ip_address is not None
            ]
        },
    )
    yield with_masks(result, masks)


@check("nic-ip-forwarding")
def nic_ip_forwarding(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A machine that forwards packets can route for the nodes. Nodes are exempt: some network plug-ins need it."""
    interfaces, observations = interfaces_in_the_networks(estate, policy)
    nodes = {nic.id.lower() for nic in instance_nics_of(estate)}
    other_nics = [nic for nic in interfaces if nic.id.lower() not in nodes]
    for nic in other_nics:
        yield from whatever_is_damaged(nic.id, _forwarding(nic))
    none = ("NoOtherInterface", "no interface but those of nodes is in the network")
    yield from found_or_none(
        estate.cluster, other_nics, "the network interfaces of the cluster's networks", none, *observations
    )


def _forwarding(nic: NicFields) -> Iterator[CheckResult]:
    if nic.enable_ip_forwarding is True:
        yield fails(
            nic.id,
            "Forwards",
            "enableIPForwarding is true on an interface that is not a node's",
            nic,
            paths=(
                path_of(
                    Hop(PlaceKind.SUBNET, "node subnet"),
                    hops.machine(f"machine of {name_of(nic.id)}"),
                    "wherever it forwards",
                ),
            ),
        )
    else:
        yield passes(nic.id, "DoesNotForward", "enableIPForwarding is not true", nic)


@check("pip-and-prefix-inventory")
def pip_and_prefix_inventory(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """Every address in the node resource group; in the networks' groups idle addresses and all prefixes."""
    nodes = node_group_of(estate)
    groups = {
        group_id.lower(): group_id
        for group_id in (nodes, *(group_of(network_id) for network_id in network_ids_of(estate)))
        if group_id
    }
    observations: list[Observation] = [*subnets_of(estate)[1]]
    total = 0
    for _, group in sorted(groups.items()):
        addresses, prefixes = estate.every(PublicAddress, group), estate.every(PublicPrefix, group)
        observations += (addresses, prefixes)
        for address in addresses:
            yield from whatever_is_damaged(address.id, _address(address, nodes))
        for prefix in prefixes:
            yield from whatever_is_damaged(prefix.id, _prefix(prefix, nodes))
        total += len(addresses) + len(prefixes)
    none = ("NoPublicAddress", "no public address or prefix in the groups of the nodes")
    yield from found_or_none(estate.cluster, total, "public addresses and prefixes", none, *observations)


def _address(address: PublicAddress, nodes: str) -> Iterator[CheckResult]:
    shown = address.ip_address or "not allocated yet"
    holder = address.ip_configuration or address.nat_gateway
    if nodes and is_below(address.id, nodes):
        yield fails(address.id, "AddressInNodeGroup", f"a public address ({shown}) lies in the node group", address)
    elif holder is None:
        yield fails(address.id, "IdleAddress", f"a public address ({shown}) that is attached to nothing", address)
    else:
        yield passes(address.id, "InUse", f"it belongs to {holder.id}, which is evaluated by itself", address)


def _prefix(prefix: PublicPrefix, nodes: str) -> Iterator[CheckResult]:
    shown = prefix.ip_prefix or "not allocated yet"
    holder = prefix.load_balancer_frontend_ip_configuration or prefix.nat_gateway
    if holder is not None:
        yield fails(prefix.id, "PrefixInUse", f"the public prefix ({shown}) belongs to {holder.id}", prefix)
    elif nodes and is_below(prefix.id, nodes):
        yield fails(prefix.id, "PrefixInNodeGroup", f"a public prefix ({shown}) lies in the node group", prefix)
    else:
        yield fails(prefix.id, "IdlePrefix", f"a public prefix ({shown}) that is attached to nothing", prefix)

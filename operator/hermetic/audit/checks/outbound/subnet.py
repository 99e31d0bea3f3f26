"""Egress paths that a subnet or a network gives: default outbound access, NAT gateways, service gateways."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.members import ScopedSubnet, network_ids_of, subnets_of
from hermetic.audit.cluster.resource_lookup import everywhere, readable
from hermetic.audit.egress.masks import is_masked, masked, masks_of_nodes
from hermetic.audit.estate.arm_ids import name_of, same_id
from hermetic.audit.estate.azure.balancing import NatGateway, ServiceGateway
from hermetic.audit.estate.azure.vnet import Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.evaluation.each_resource import each_network, each_or_none, each_subnet, whole_or_unknown
from hermetic.audit.evaluation.results import (
    CheckResult,
    does_not_apply,
    fails,
    passes,
    whatever_is_damaged,
    with_masks,
)
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import DEFAULT_OUTBOUND, INTERNET, path_of
from hermetic.audit.policy.declarations import Policy

SERVES_THE_NETWORK = """\
Warning: connections of every subnet of the network to the internet end at once.
az network nat gateway update --ids NAT_GATEWAY_ID --remove sourceVirtualNetwork"""


@check_each("subnet-default-outbound", each_subnet)
def subnet_default_outbound(
    estate: Estate, _policy: Policy, scoped: ScopedSubnet, subnet: Subnet
) -> Iterator[CheckResult]:
    """Absent and null mean that Azure assigns hidden public addresses; only `false` turns it off."""
    if scoped.is_for_the_api_server_only:
        message = "delegated to the API server, and no node or pod has an address in it"
        yield does_not_apply(scoped.id, "ApiServerSubnet", message, scoped.observation, *subnets_of(estate)[1])
    elif subnet.default_outbound_access is False:
        yield passes(scoped.id, "PrivateSubnet", "defaultOutboundAccess is false", scoped.observation)
    else:
        setting = _shown(subnet.default_outbound_access)
        yield fails(
            scoped.id,
            "DefaultOutboundNotDisabled",
            f"defaultOutboundAccess is {setting}: machines get a hidden egress path; {masked(estate, scoped, subnet)}",
            scoped.observation,
            paths=(path_of(hops.subnet(subnet.name), DEFAULT_OUTBOUND, INTERNET),),
            masked=is_masked(estate, scoped, subnet),
        )


@check_each("subnet-nat-gateway", each_subnet)
def subnet_nat_gateway(estate: Estate, _policy: Policy, scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
    """A NAT gateway on the subnet is an egress path, even if it is masked today."""
    if subnet.nat_gateway is None:
        yield passes(scoped.id, "NoNatGateway", "no NAT gateway is attached", scoped.observation)
    else:
        gateway = subnet.nat_gateway.id
        yield fails(
            scoped.id,
            "NatGatewayAttached",
            f"NAT gateway {gateway} is attached; {masked(estate, scoped, subnet)}",
            scoped.observation,
            paths=(path_of(hops.subnet(subnet.name), hops.nat_gateway(name_of(gateway)), INTERNET),),
            masked=is_masked(estate, scoped, subnet),
        )


@check("subnet-service-gateway")
def subnet_service_gateway(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A service gateway on a subnet, or one of the subnet's network that no subnet references."""
    gateways = everywhere(estate, policy, ServiceGateway)

    def evaluate(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
        if subnet.service_gateway is None:
            yield passes(scoped.id, "NoServiceGateway", "no service gateway is attached", scoped.observation)
        else:
            gateway = subnet.service_gateway.id
            yield fails(
                scoped.id,
                "ServiceGatewayAttached",
                f"service gateway {gateway} is attached; {masked(estate, scoped, subnet)}",
                scoped.observation,
                paths=(
                    path_of(hops.subnet(subnet.name), hops.service(f"service gateway {name_of(gateway)}"), INTERNET),
                ),
                masked=is_masked(estate, scoped, subnet),
            )

    yield from each_subnet(estate, policy, evaluate)
    for gateway in gateways:
        yield from whatever_is_damaged(gateway.id, _of_network(estate, gateway))
    yield from whole_or_unknown(estate.cluster, "service gateways", gateways)


def _of_network(estate: Estate, gateway: ServiceGateway) -> Iterator[CheckResult]:
    network = gateway.virtual_network.id if gateway.virtual_network is not None else ""
    if any(same_id(network, network_id) for network_id in network_ids_of(estate)):
        result = fails(
            gateway.id,
            "ServiceGatewayOfNetwork",
            f"it belongs to the cluster's virtual network {network}",
            Lookup(gateway.id, gateway, gateway.evidence),
            paths=(path_of(hops.vnet(name_of(network)), hops.service(f"service gateway {gateway.name}"), INTERNET),),
            remedy="Warning: connections through it end at once.\naz resource delete --ids SERVICE_GATEWAY_ID",
        )
        yield with_masks(result, masks_of_nodes(estate))


def _shown(value: bool | None) -> str:
    return "absent or null, which means true" if value is None else str(value).lower()


@check("vnet-nat-gateway")
def vnet_nat_gateway(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """The network's default gateway, or one that names the network as its source; subnets show neither."""
    gateways = everywhere(estate, policy, NatGateway)
    damaged: list[Observation] = []
    sources = list(readable(gateways, lambda gateway: gateway.source_virtual_network, damaged))

    def evaluate(network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
        default = network.value.default_public_nat_gateway if network.value is not None else None
        serving_gateways = [
            (gateway.id, gateway) for gateway, source in sources if source and same_id(source.id, network.target)
        ]
        observations: tuple[Observation, ...] = (network, gateways, *damaged)
        ids = sorted(
            {
                gateway_id.lower(): gateway_id
                for gateway_id in (*([default.id] if default else []), *(i for i, _ in serving_gateways))
            }.values()
        )
        if not ids:
            yield passes(
                network.target, "NoNetworkNatGateway", "no NAT gateway serves the whole network", *observations
            )
        for gateway in ids:
            served = fails(
                network.target,
                "NetworkNatGateway",
                f"NAT gateway {gateway} serves every subnet of the network",
                network,
                *(nat_gateway for _, nat_gateway in serving_gateways),
                paths=(path_of(hops.vnet(name_of(network.target)), hops.nat_gateway(name_of(gateway)), INTERNET),),
                fill={"NAT_GATEWAY_ID": gateway},
            )
            yield with_masks(served, masks_of_nodes(estate))

    yield from each_network(estate, policy, evaluate)


@check("natgw-inventory")
def natgw_inventory(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Critical for a gateway that names a subnet or network of the cluster; informational for an idle one."""
    subnets, scope = subnets_of(estate)
    ours = {scoped.id.lower() for scoped in subnets}
    of_nodes = {scoped.id.lower() for scoped in subnets if not scoped.is_for_the_api_server_only}
    networks = {network_id.lower() for network_id in network_ids_of(estate)}

    def evaluate(gateway: NatGateway) -> Iterator[CheckResult]:
        served = [subnet.id for subnet in gateway.subnets or ()]
        source = gateway.source_virtual_network.id if gateway.source_virtual_network is not None else ""
        of_ours = sorted(subnet_id for subnet_id in served if subnet_id.lower() in ours)
        if of_ours or source.lower() in networks:
            served_hops = [
                *(hops.subnet(name_of(subnet_id)) for subnet_id in of_ours),
                *([hops.vnet(name_of(source))] if source else []),
            ]
            masks = masks_of_nodes(estate) if of_nodes.issuperset(subnet_id.lower() for subnet_id in of_ours) else ()
            result = fails(
                gateway.id,
                "ServesTheCluster",
                f"it serves {', '.join(hop.label for hop in served_hops)}",
                gateway,
                paths=(path_of(hop, hops.nat_gateway(gateway.name), INTERNET) for hop in served_hops),
                remedy="" if of_ours else SERVES_THE_NETWORK,
                fill={"SUBNET_ID": of_ours},
            )
            yield with_masks(result, masks)
        elif served or source:
            yield passes(
                gateway.id, "ServesOthers", "it serves other networks only", gateway, *scope, severity=Severity.INFO
            )
        else:
            yield fails(
                gateway.id,
                "OneAssociationAway",
                "it serves no subnet, and is one association away from a subnet of the cluster",
                gateway,
                severity=Severity.INFO,
                remedy="Where nothing needs it:\naz network nat gateway delete --ids NAT_GATEWAY_ID",
            )

    gateways = everywhere(estate, policy, NatGateway)
    yield from each_or_none(estate.cluster, gateways, evaluate, "no NAT gateway in our subscriptions", *scope)

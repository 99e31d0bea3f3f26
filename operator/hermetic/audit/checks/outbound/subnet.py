"""Ways out that a subnet itself gives."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster_scope import ScopedSubnet, each_subnet, network_ids_of, subnets_of, whole_or_unknown
from hermetic.audit.egress.masks import is_masked, masked, masks_of_nodes, with_masks
from hermetic.audit.egress.resource_lookup import everywhere
from hermetic.audit.estate.arm_ids import name_of, same_id
from hermetic.audit.estate.azure.balancing import ServiceGateway
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Seen
from hermetic.audit.evaluation import Judgement, does_not_apply, fails, passes, whatever_is_damaged
from hermetic.audit.hops import DEFAULT_OUTBOUND, INTERNET, path_of
from hermetic.audit.policy import Policy


@check_each("subnet-default-outbound", each_subnet)
def subnet_default_outbound(
    estate: Estate, _policy: Policy, scoped: ScopedSubnet, subnet: Subnet
) -> Iterator[Judgement]:
    """Absent and null mean that Azure assigns hidden public addresses; only `false` turns it off."""
    if scoped.is_for_the_api_server_only:
        words = "delegated to the API server, and no node or pod has an address in it"
        yield does_not_apply(scoped.id, "ApiServerSubnet", words, scoped.seen, *subnets_of(estate)[1])
    elif subnet.default_outbound_access is False:
        yield passes(scoped.id, "PrivateSubnet", "defaultOutboundAccess is false", scoped.seen)
    else:
        said = _shown(subnet.default_outbound_access)
        yield fails(
            scoped.id,
            "DefaultOutboundNotDisabled",
            f"defaultOutboundAccess is {said}: machines get a hidden way out; {masked(estate, scoped, subnet)}",
            scoped.seen,
            paths=(path_of(hops.subnet(subnet.name), DEFAULT_OUTBOUND, INTERNET),),
            masked=is_masked(estate, scoped, subnet),
        )


@check_each("subnet-nat-gateway", each_subnet)
def subnet_nat_gateway(estate: Estate, _policy: Policy, scoped: ScopedSubnet, subnet: Subnet) -> Iterator[Judgement]:
    """A NAT gateway on the subnet is a way out, even if it is masked today."""
    if subnet.nat_gateway is None:
        yield passes(scoped.id, "NoNatGateway", "no NAT gateway is attached", scoped.seen)
    else:
        gateway = subnet.nat_gateway.id
        yield fails(
            scoped.id,
            "NatGatewayAttached",
            f"NAT gateway {gateway} is attached; {masked(estate, scoped, subnet)}",
            scoped.seen,
            paths=(path_of(hops.subnet(subnet.name), hops.nat_gateway(name_of(gateway)), INTERNET),),
            masked=is_masked(estate, scoped, subnet),
        )


@check("subnet-service-gateway")
def subnet_service_gateway(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """A service gateway on a subnet, or one of the subnet's network that no subnet references."""
    gateways = everywhere(estate, policy, ServiceGateway)

    def judge(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[Judgement]:
        if subnet.service_gateway is None:
            yield passes(scoped.id, "NoServiceGateway", "no service gateway is attached", scoped.seen)
        else:
            gateway = subnet.service_gateway.id
            yield fails(
                scoped.id,
                "ServiceGatewayAttached",
                f"service gateway {gateway} is attached; {masked(estate, scoped, subnet)}",
                scoped.seen,
                paths=(
                    path_of(hops.subnet(subnet.name), hops.service(f"service gateway {name_of(gateway)}"), INTERNET),
                ),
                masked=is_masked(estate, scoped, subnet),
            )

    yield from each_subnet(estate, policy, judge)
    for gateway in gateways:
        yield from whatever_is_damaged(gateway.id, _of_network(estate, gateway))
    yield from whole_or_unknown(estate.cluster, "service gateways", gateways)


def _of_network(estate: Estate, gateway: ServiceGateway) -> Iterator[Judgement]:
    network = gateway.virtual_network.id if gateway.virtual_network is not None else ""
    if any(same_id(network, one) for one in network_ids_of(estate)):
        masks = masks_of_nodes(estate)
        yield fails(
            gateway.id,
            "ServiceGatewayOfNetwork",
            with_masks(f"it belongs to the cluster's virtual network {network}", masks),
            Seen(gateway.id, gateway, gateway.evidence),
            paths=(path_of(hops.vnet(name_of(network)), hops.service(f"service gateway {gateway.name}"), INTERNET),),
            remedy="Warning: connections through it end at once.\naz resource delete --ids SERVICE_GATEWAY_ID",
            masked=bool(masks),
        )


def _shown(value: bool | None) -> str:
    return "absent or null, which means true" if value is None else str(value).lower()

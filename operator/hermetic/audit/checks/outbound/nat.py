"""NAT gateways that serve a whole network, and those that are one association away."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.egress.inventory import everywhere, readable
from hermetic.audit.estate.arm_ids import name_of, same_id
from hermetic.audit.estate.azure.balancing import NatGateway
from hermetic.audit.estate.azure.vnet import VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.look import Look, Seen
from hermetic.audit.findings import Severity
from hermetic.audit.judging import Judgement, fails, passes
from hermetic.audit.policy import Policy
from hermetic.audit.reach import each_network, each_or_none
from hermetic.audit.scope import network_ids_of, subnets_of


def of_the_network(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """The network's default gateway, or one that names the network as its source: no subnet shows either."""
    gateways = everywhere(estate, policy, NatGateway)
    damaged: list[Look] = []
    sources = list(readable(gateways, lambda one: one.source_virtual_network, damaged))

    def judge(seen: Seen[VirtualNetwork]) -> Iterator[Judgement]:
        default = seen.value.default_public_nat_gateway if seen.value is not None else None
        found = [(gateway.id, gateway) for gateway, source in sources if source and same_id(source.id, seen.target)]
        looks: tuple[Look, ...] = (seen, gateways, *damaged)
        ids = sorted(
            {one.lower(): one for one in (*([default.id] if default else []), *(i for i, _ in found))}.values()
        )
        if not ids:
            yield passes(seen.target, "NoNetworkNatGateway", "no NAT gateway serves the whole network", *looks)
        for gateway in ids:
            yield fails(
                seen.target,
                "NetworkNatGateway",
                f"NAT gateway {gateway} serves every subnet of the network",
                seen,
                *(one for _, one in found),
                paths=(f"vnet {name_of(seen.target)} -> nat gateway {name_of(gateway)} -> internet",),
            )

    yield from each_network(estate, judge)


def inventory(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Critical when it serves a subnet of the cluster, whatever the subnet says; an idle one is inventory."""
    subnets, scope = subnets_of(estate)
    ours = {one.id.lower() for one in subnets}
    networks = {one.lower() for one in network_ids_of(estate)}

    def judge(gateway: NatGateway) -> Iterator[Judgement]:
        served = [one.id for one in gateway.subnets or ()]
        source = gateway.source_virtual_network.id if gateway.source_virtual_network is not None else ""
        of_ours = sorted(one for one in served if one.lower() in ours)
        if of_ours or source.lower() in networks:
            names = [*(f"subnet {name_of(one)}" for one in of_ours), *([f"vnet {name_of(source)}"] if source else [])]
            yield fails(
                gateway.id,
                "ServesTheCluster",
                f"it serves {', '.join(names)}",
                gateway,
                paths=(f"{one} -> nat gateway {gateway.name} -> internet" for one in names),
            )
        elif served or source:
            yield passes(
                gateway.id, "ServesOthers", "it serves other networks only", gateway, *scope, severity=Severity.INFO
            )
        else:
            yield fails(
                gateway.id,
                "OneAssociationAway",
                "it serves nobody, and is one association away from a subnet of the cluster",
                gateway,
                severity=Severity.INFO,
                remedy=f"Where nobody needs it: az network nat gateway delete --ids {gateway.id}",
            )

    gateways = everywhere(estate, policy, NatGateway)
    yield from each_or_none(estate.cluster, gateways, judge, "no NAT gateway in our subscriptions", *scope)

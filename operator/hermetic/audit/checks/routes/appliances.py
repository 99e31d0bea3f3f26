"""Managed routing appliances: effective routes do not show what happens behind one."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import peerings_of, subnets_of
from hermetic.audit.estate.arm_ids import parent_of
from hermetic.audit.estate.azure.routing import VirtualNetworkAppliance
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation.each_resource import each_or_none
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.reachable_networks import reached_network_ids, throughout


@check("vnra")
def vnra(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Any in the cluster's networks, or in a network peered with one."""
    networks = reached_network_ids(estate, policy)
    observations = (peerings_of(estate), *subnets_of(estate)[1])

    def evaluate(appliance: VirtualNetworkAppliance) -> Iterator[CheckResult]:
        if appliance.subnet is None:
            yield unknown(appliance.id, "SubnetUnknown", "it names no subnet", appliance)
        elif parent_of(appliance.subnet.id).lower() in networks:
            message = f"it forwards in {appliance.subnet.id}: effective routes of an interface do not show all it does"
            path = path_of(
                Hop(PlaceKind.SUBNET, "node subnet"),
                hops.firewall(f"routing appliance {appliance.name}"),
                "wherever it forwards",
            )
            yield fails(appliance.id, "RoutingAppliance", message, appliance, paths=(path,))
        else:
            yield passes(appliance.id, "Elsewhere", "it is in a network out of reach", appliance, *observations)

    listed = throughout(estate, policy, VirtualNetworkAppliance)
    yield from each_or_none(estate.cluster, listed, evaluate, "no managed routing appliance is there", *observations)

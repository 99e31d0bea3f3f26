"""Shared by the checks of security groups: subnets with their context, observations and paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermetic.audit import hops
from hermetic.audit.cluster_scope import ScopedSubnet, each_subnet, subnets_of
from hermetic.audit.egress.storage import storage_path
from hermetic.audit.egress.subnet_context import Layers, SubnetContext, surroundings
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation import Judgement, does_not_apply
from hermetic.audit.hops import INTERNET, Path, path_of
from hermetic.audit.policy import Policy


def each_surrounded(
    estate: Estate, policy: Policy, judge: Callable[[SubnetContext], Iterable[Judgement]]
) -> Iterator[Judgement]:
    """Apply `judge` to the context of every subnet of the cluster that a node or a pod sends from.

    A subnet of the API server alone needs no security group: AKS documents it without one.
    """

    def of_subnet(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[Judgement]:
        around = surroundings(estate, scoped, subnet)
        if around.is_for_the_api_server_only:
            words = "delegated to the API server, and no node or pod has an address in it"
            yield does_not_apply(around.id, "ApiServerSubnet", words, scoped.seen, *subnets_of(estate)[1])
        else:
            yield from judge(around)

    yield from each_subnet(estate, policy, of_subnet)


def looks_of(around: SubnetContext, *layers: Layers) -> tuple[Observation, ...]:
    """The observations that a judgement on combinations rests on."""
    groups = {one.target.lower(): one for combination in layers for one in combination.groups}
    return (around.subnet, *groups.values(), *around.looks)


def path(around: SubnetContext, layers: Layers) -> Path:
    """The path past these groups: to storage of others where it is open, otherwise to the internet."""
    groups = ", ".join(name_of(one.target) for one in layers.groups)
    through = (f"rules of {groups}",) if groups else ()
    return storage_path(around, layers) or path_of(hops.subnet(name_of(around.id)), *through, INTERNET)

"""What every check about security groups begins with: a subnet, its combinations of groups, the declared firewall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermetic.audit import hops
from hermetic.audit.cluster_scope import ScopedSubnet, each_subnet, subnets_of
from hermetic.audit.egress.firewall import declared_addresses, leads_to_the_firewall
from hermetic.audit.egress.routes import NextHopKind
from hermetic.audit.egress.storage import storage_path
from hermetic.audit.egress.subnet_context import Layers, Surroundings, surroundings
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Look
from hermetic.audit.evaluation import Judgement, does_not_apply
from hermetic.audit.hops import INTERNET, Path, path_of
from hermetic.audit.policy import Policy


def each_surrounded(estate: Estate, judge: Callable[[Surroundings], Iterable[Judgement]]) -> Iterator[Judgement]:
    """Judge every subnet of the cluster that a node or a pod sends from, with what is around it.

    A subnet that holds the API server alone needs no security group: AKS documents it without one.
    """

    def of_subnet(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[Judgement]:
        around = surroundings(estate, scoped, subnet)
        if around.is_for_the_api_server_only:
            words = "delegated to the API server, and no node or pod has an address in it"
            yield does_not_apply(around.id, "ApiServerSubnet", words, scoped.seen, *subnets_of(estate)[1])
        else:
            yield from judge(around)

    yield from each_subnet(estate, of_subnet)


def firewall_looks(estate: Estate, policy: Policy, around: Surroundings) -> tuple[Look, ...] | None:
    """Not None when every default route of the subnet leads to the declared firewall: it decides then, not the rules.

    The looks are what that rests on; where the firewall was not seen, they say so, and nothing follows.
    Raises FactDamaged for a route or a firewall that cannot be read.
    """
    addresses, looks = declared_addresses(estate, policy)
    defaults = [way for way in around.ways if way.is_default and way.hop is not NextHopKind.DROPPED]
    if not looks or around.table is None or not _are_all_routed(around):
        return None
    if any(look.problem is not None for look in looks):
        may_lead_there = all(way.hop is NextHopKind.FORWARDED for way in defaults)
    else:
        may_lead_there = all(leads_to_the_firewall(way, addresses) for way in defaults)
    return (around.table, *looks) if defaults and may_lead_there else None


def _are_all_routed(around: Surroundings) -> bool:
    """Whether a route of ours decides about each IP version in use; else Azure's own does."""
    versions = {way.prefix.version for way in around.ways if way.is_default and way.prefix is not None}
    return 4 in versions and (6 in versions or not around.ground.has_v6)


def looks_of(around: Surroundings, *layers: Layers) -> tuple[Look, ...]:
    """Everything that a verdict about combinations rests on."""
    groups = {one.target.lower(): one for combination in layers for one in combination.groups}
    return (around.subnet, *groups.values(), *around.looks)


def path(around: Surroundings, layers: Layers) -> Path:
    """The way that a hole opens as things stand: another's storage, or the internet when something carries it."""
    groups = ", ".join(name_of(one.target) for one in layers.groups)
    through = (f"rules of {groups}",) if groups else ()
    return storage_path(around, layers) or path_of(hops.subnet(name_of(around.id)), *through, INTERNET)

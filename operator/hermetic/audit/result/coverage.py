"""The places that an audit of Azure evaluated: the pools, their scale sets and images, and the subnets behind them.

The signed report lists them. In the cluster a ready node outside of the list has a network that no audit evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.audit.cluster.members import (
    API_SERVER,
    POD,
    cluster_of,
    node_classes_of,
    pools_of,
    scale_sets_of,
    subnets_of,
)
from hermetic.audit.estate.azure.aks import AgentPool
from hermetic.audit.estate.estate import Estate
from hermetic.errors import FactDamaged


@dataclass(frozen=True, slots=True)
class CoveredPool:
    """A pool of the cluster. `subnets` and `scale_sets` are ARM ids, `node_image` is "" where Azure names none."""

    name: str
    subnets: tuple[str, ...]
    scale_sets: tuple[str, ...] = ()
    node_image: str = ""


@dataclass(frozen=True, slots=True)
class CoveredSubnet:
    """A node subnet: its ARM id, which names its network, and its address prefixes."""

    id: str
    prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was evaluated. `provisioned` are the subnets of nodes that node auto provisioning makes (ARM ids)."""

    pools: tuple[CoveredPool, ...]
    subnets: tuple[CoveredSubnet, ...]
    provisioned: tuple[str, ...] = ()


def coverage_of(estate: Estate) -> Coverage | None:
    """The pools and node subnets of an estate; None where Azure was not asked or the cluster was not read."""
    if "azure" not in estate.sources or cluster_of(estate).value is None:
        return None
    try:
        pools = tuple(sorted((_pool(estate, pool) for pool in pools_of(estate)), key=lambda pool: pool.name))
        return Coverage(pools, tuple(_subnets(estate)), tuple(_provisioned(estate, pools)))
    except FactDamaged:
        return None


def _pool(estate: Estate, pool: AgentPool) -> CoveredPool:
    """A pool names its subnet; in a network that AKS manages only the scale set does."""
    scale_sets = [scale_set for scale_set in scale_sets_of(estate) if scale_set.pool.lower() == pool.name.lower()]
    named = [pool.vnet_subnet_id] if pool.vnet_subnet_id else []
    subnets = named or [subnet for scale_set in scale_sets for subnet in scale_set.subnet_ids]
    return CoveredPool(
        pool.name,
        tuple(dict.fromkeys(subnets)),
        tuple(sorted(scale_set.id for scale_set in scale_sets)),
        pool.node_image_version or "",
    )


def _subnets(estate: Estate) -> Iterator[CoveredSubnet]:
    """Those that nodes may be in and that were read."""
    for scoped in subnets_of(estate)[0]:
        if scoped.observation.value is not None and not scoped.roles <= {API_SERVER, POD}:
            yield CoveredSubnet(scoped.id, tuple(scoped.observation.value.prefixes))


def _provisioned(estate: Estate, pools: tuple[CoveredPool, ...]) -> Iterator[str]:
    """The subnets of provisioned nodes: those of node classes, and for a class without one that of the first pool.

    learn.microsoft.com/azure/aks/node-auto-provisioning-networking: the default is the subnet of the cluster.
    """
    cluster = cluster_of(estate).value
    profile = cluster.node_provisioning_profile if cluster is not None else None
    if profile is None or (profile.mode or "Manual").lower() == "manual":
        return
    first = next((pool.name for pool in pools_of(estate)), "")
    subnets = [subnet for pool in pools if pool.name == first for subnet in pool.subnets]
    subnets += [
        node_class.spec.vnet_subnet_id for node_class in node_classes_of(estate) if node_class.spec.vnet_subnet_id
    ]
    yield from dict.fromkeys(subnets)

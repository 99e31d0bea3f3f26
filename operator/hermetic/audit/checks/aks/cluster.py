"""Helpers for checks of the managed cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermetic.audit.checks.properties import Fact, PropertyIs
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation import Judgement, cannot_say


def of_cluster(estate: Estate, judge: Callable[[ManagedCluster], Iterable[Judgement]]) -> Iterator[Judgement]:
    """Apply `judge` to the cluster; Unknown where it could not be read."""
    seen = estate.one(ManagedCluster, estate.cluster)
    if seen.value is None:
        yield cannot_say(estate.cluster, "ClusterNotSeen", "the cluster could not be read", seen)
    else:
        yield from judge(seen.value)


def cluster_has(estate: Estate, rule: PropertyIs, fact: Callable[[ManagedCluster], Fact]) -> Iterator[Judgement]:
    """Judge one property of the cluster."""
    return of_cluster(estate, lambda cluster: (rule.judged(estate.cluster, cluster, fact(cluster)),))

"""What Network Manager applies to a network in a locked node resource group, as far as Resource Graph shows it.

The index has one row per network, which names the deployed snapshots. It lags, and omits what the caller may not
read: a row proves that something is applied, its absence proves nothing. So findings here are about the
configuration, and the network itself stays Unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermetic.audit.egress.resource_lookup import readable
from hermetic.audit.estate.azure.graph import AdminRulesInGraph, ConnectivityInGraph
from hermetic.audit.estate.azure.network_manager import AdminRuleCollection, HeldAdminRule
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation

_SNAPSHOT = re.compile(r"/snapshots/[^/]+/?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Applied:
    """Configurations applied to a network (ids without the snapshot), the rows that name them, unreadable rows."""

    configurations: tuple[str, ...]
    looks: tuple[Observation, ...]
    damaged: tuple[Observation, ...]


def applied_in_graph(estate: Estate, kind: type[ConnectivityInGraph | AdminRulesInGraph], network: str) -> Applied:
    """The configurations that the rows of this network name."""
    damaged: list[Observation] = []
    rows = list(readable(estate.every(kind, network), lambda row: row.applied, damaged))
    found = {_SNAPSHOT.sub("", one.id): None for _, applied in rows for one in applied}
    return Applied(tuple(found), tuple(row for row, _ in rows), tuple(damaged))


def rules_of(estate: Estate, configuration: str) -> tuple[tuple[HeldAdminRule, ...], tuple[Observation, ...]]:
    """The current admin rules of a configuration; those of the deployed snapshot may differ."""
    collections = estate.every(AdminRuleCollection, configuration)
    listings = [estate.every(HeldAdminRule, one.id) for one in collections]
    return tuple(rule for listing in listings for rule in listing), (collections, *listings)

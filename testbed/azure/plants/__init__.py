"""Every plant: at least one way to open each path that ARM can show, table by table."""

from __future__ import annotations

from testbed.azure.plants import (
    alerts,
    balancers,
    cluster,
    declared_firewall,
    decoys_of_deliveries,
    decoys_of_stores,
    deliveries,
    disks,
    endpoints,
    machines,
    names,
    networks,
    private_link,
    registry_machines,
    routes,
    rules,
    services,
    sinks,
    stores,
    subnets_and_addresses,
)
from testbed.azure.plants.plant import PLANTS, Expected, Plant

__all__ = ["PLANTS", "Expected", "Plant"]

# naming them fills PLANTS and DECOYS
TABLES = (
    subnets_and_addresses,
    balancers,
    routes,
    networks,
    declared_firewall,
    machines,
    services,
    rules,
    endpoints,
    private_link,
    disks,
    stores,
    registry_machines,
    decoys_of_stores,
    names,
    cluster,
    sinks,
    deliveries,
    alerts,
    decoys_of_deliveries,
)

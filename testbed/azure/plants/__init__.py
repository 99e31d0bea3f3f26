"""Every plant: at least one way to open each path that ARM can show, table by table."""

from __future__ import annotations

from testbed.azure.plants import (
    balancers,
    cluster,
    endpoints,
    machines,
    names,
    networks,
    routes,
    rules,
    stores,
    subnets_and_addresses,
)
from testbed.azure.plants.plant import PLANTS, Expected, Plant

__all__ = ["PLANTS", "Expected", "Plant"]

# naming them fills PLANTS
TABLES = (subnets_and_addresses, balancers, routes, networks, machines, rules, endpoints, stores, names, cluster)

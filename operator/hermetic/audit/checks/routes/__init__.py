"""Table B: routes, as they are written and as Azure says they work."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.routes import appliances, effective, next_hop, propagation, tables

CHECKS = family(
    __package__ or "",
    {
        "route-default-internet": tables.default_to_internet,
        "route-default-appliance": tables.default_to_appliance,
        "route-split-default": tables.split_default,
        "route-bgp-propagation": propagation.bgp_propagation,
        "route-table-missing": propagation.table_missing,
        "effective-routes": effective.effective_routes,
        "nexthop-spotcheck": next_hop.spot_check,
        "vnra": appliances.routing_appliances,
    },
)

"""Table C: networks, gateways and machines that are reachable from the cluster's virtual networks."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.topology import firewall, gateways, hubs, network_manager, peerings, pivots, services

CHECKS = family(__package__ or "", firewall, gateways, hubs, network_manager, peerings, pivots, services)

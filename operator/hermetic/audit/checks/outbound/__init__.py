"""Table A: outbound methods of subnets, network interfaces and load balancers."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.outbound import balancers, interfaces, managed_services, nodes, subnet

CHECKS = family(__package__ or "", interfaces, balancers, managed_services, subnet, nodes)

"""Table A: outbound methods of subnets, network interfaces and load balancers."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.outbound import addresses, balancers, interfaces, managed_services, nat, nodes, subnet

CHECKS = family(__package__ or "", addresses, balancers, interfaces, managed_services, nat, nodes, subnet)

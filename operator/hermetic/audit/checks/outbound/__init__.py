"""Table A: outbound methods of subnets, network interfaces and load balancers."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.outbound import subnet

CHECKS = family(
    __package__ or "",
    {
        "subnet-default-outbound": subnet.default_outbound,
        "subnet-nat-gateway": subnet.nat_gateway,
    },
)

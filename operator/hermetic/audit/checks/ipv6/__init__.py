"""Table D: IPv6."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.ipv6 import stack

CHECKS = family(
    __package__ or "",
    {
        "cluster-dual-stack": stack.dual_stack,
        "subnet-ipv6-prefix": stack.subnet_prefix,
        "nsg-v6": stack.engine_without_v6,
    },
)

"""Storage of the same region: reachable from a private subnet without any outbound method, any account of any tenant.

Azure documents it as a limit of private subnets. Only a security rule, or a default route to `None`, closes it.
"""

from __future__ import annotations

from hermetic.audit import hops
from hermetic.audit.egress.service_endpoints import is_storage
from hermetic.audit.egress.subnet_context import Layers, SubnetContext
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.hops import SERVICE_ENDPOINT, Path, path_of


def storage_path(around: SubnetContext, layers: Layers) -> Path:
    """The open path past these security groups to storage accounts of others; empty where there is none."""
    if any(is_storage(one.service) for one in around.subnet.service_endpoints):
        reached = "what its policy allows" if around.subnet.service_endpoint_policies else "storage of any account"
        return path_of(hops.subnet(name_of(around.id)), SERVICE_ENDPOINT, reached)
    if around.drops(4) or around.is_sealed(layers):
        return ()
    return path_of(hops.subnet(name_of(around.id)), hops.storage("same-region storage of any account"))

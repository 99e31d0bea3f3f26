"""The InfiniBand devices that the nodes of each GPU pool offer. Pure.

Names of the resources are those of the device plug-in's configuration. The names of the guides of Azure
(https://github.com/Azure/aks-rdma-infiniband: rdma/ib, rdma/shared_ib) and of NVIDIA's network operator are looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermetic.cli.check.facts import PreflightFacts
from hermetic.cli.check.gpu_nodes import Pool, pools
from hermetic.cli.check.rows import CheckRow, RowVerdict
from hermetic.sizing.catalogue import interconnects

CHECK = "interconnect"
_DEVICES = re.compile(r"rdma/.+|nvidia\.com/(mlnxnics|hostdev)|.+/[^/]*(infiniband|_ib|hca)[^/]*", re.IGNORECASE)
_FEATURE = "az feature show --namespace Microsoft.ContainerService --name AKSInfinibandSupport"


def interconnect(facts: PreflightFacts) -> Iterator[CheckRow]:
    """A row for each pool of a size with InfiniBand. None where the nodes cannot be read: `gpu-nodes` says it."""
    if not facts.nodes.problem:
        yield from (_devices(pool) for pool in pools(facts.nodes.items) if pool.size in interconnects())


def _devices(pool: Pool) -> CheckRow:
    """What the nodes offer; never a Pass, for no object shows whether they share one InfiniBand network."""
    numbers = {
        f"{number} {name}"
        for node in pool.nodes
        for name, number in (node["status"].get("allocatable") or {}).items()
        if _DEVICES.fullmatch(name) and number not in ("0", 0)
    }
    offered = f"nodes offer {' and '.join(sorted(numbers))}" if numbers else "no node offers an InfiniBand device"
    name = "NAME" if not numbers else sorted(numbers)[0].split(" ", 1)[1]
    return CheckRow(
        CHECK,
        RowVerdict.NOT_CHECKED,
        f"{pool}: {offered}; no object shows whether the nodes share one InfiniBand network",
        "only models with several spec.accelerator.nodes need it; nodes share one only if the subscription had the "
        "feature AKSInfinibandSupport before the pool was made",
        f"set spec.accelerator.interconnect to {{type: InfiniBand, resource: {name}, count: N}}"
        if numbers
        else "install drivers and a device plug-in for it, or let the models use Ethernet",
        (_FEATURE,),
    )

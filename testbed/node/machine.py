"""What the kubelet takes this machine for: an Azure size, so that requests meant for one find room.

The kubelet counts processors under /sys and memory in /proc/meminfo. In the node's own mount namespace both say what
the size has; processes in containers see the real machine, and there is no more computing power than before.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed.fleet import REGION, Size

KIB_PER_GIB = 1 << 20
NUMA_NODES = Path("/sys/devices/system/node")


def labels_of(size: Size) -> dict[str, str]:
    """As AKS labels a node of this size, and one label that no fake node has."""
    return {
        "agentpool": "real",
        "hermetic.test/real": "true",
        "kubernetes.azure.com/accelerator": size.vendor,
        "kubernetes.azure.com/agentpool": "real",
        "node.kubernetes.io/instance-type": size.name,
        "topology.kubernetes.io/region": REGION,
        "topology.kubernetes.io/zone": f"{REGION}-1",
    }


def pose_as(size: Size, folder: Path) -> None:
    """Covers the files that the kubelet reads; `folder` keeps what is laid over them."""
    numa = folder / "numa"
    for number, processors in enumerate(_numa_nodes(size.cpus)):
        for processor in processors:
            _write(
                numa / f"node{number}" / f"cpu{processor}" / "topology",
                {"core_id": processor, "physical_package_id": 0},
            )
    memory = re.sub(r"MemTotal: .*", f"MemTotal: {size.memory * KIB_PER_GIB} kB", Path("/proc/meminfo").read_text())
    _write(folder, {"meminfo": memory})
    if NUMA_NODES.exists():
        _cover(NUMA_NODES, numa)
    _cover(Path("/proc/meminfo"), folder / "meminfo")


def _numa_nodes(count: int) -> Iterator[list[int]]:
    """`count` processors in all, each one that exists: a kubelet hands the numbers on to cpusets.

    It adds up what the NUMA nodes list, so the same few processors are listed by as many nodes as it takes.
    """
    existing = sorted(os.sched_getaffinity(0))
    while count > 0:
        yield existing[:count]
        count -= len(existing)


def _cover(target: Path, source: Path) -> None:
    subprocess.run(["mount", "--bind", str(source), str(target)], check=True, capture_output=True)


def _write(folder: Path, files: Mapping[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(f"{content}\n")

"""The gate of image volumes: API server, kubelets and container runtimes that mount OCI images.

An API server before 1.35 accepts a pod with such a volume and removes the volume from it; a kubelet before 1.35 starts
the pod without it (the feature gate ImageVolume is on from 1.35:
https://kubernetes.io/docs/tasks/configure-pod-container/image-volumes/; pkg/kubelet/kubelet_pods.go, `makeMounts`). A
kubelet may be three minor releases older than its API server (https://kubernetes.io/releases/version-skew-policy/).
"""

from __future__ import annotations

import re

from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.spec_reasons import SpecReason
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.scheduling import eligible_nodes
from hermetic.plan.snapshot import ClusterSnapshot, NodeFacts

MINIMUM_KUBERNETES = (1, 35)
MINIMUM_CONTAINERD = (2, 1)
_FALLBACK = "bake the weights into the serving image (`weights.bakedImage`) or stage them on a share"


def image_volumes_are_supported(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """API server and nodes are new enough to mount an OCI image.

    The scheduler may choose any node that the spec allows: the kubelet of each must mount the volume. A runtime that
    does not is reported by the pod, and one node with a runtime that does is enough.
    """
    if spec.weights.image_volume is None:
        return HOLDS
    if snapshot.server_version < MINIMUM_KUBERNETES:
        release = ".".join(map(str, snapshot.server_version))
        return _blocks(f"needs Kubernetes 1.35 or later, this API server is {release}; {_FALLBACK}")
    nodes = eligible_nodes(spec, snapshot.nodes)
    outdated = [node for node in nodes if _release(node.kubelet_version) < MINIMUM_KUBERNETES]
    if outdated:
        return _blocks(
            f"needs kubelet 1.35 or later on every node that the model may use, {_pools(outdated)}: an older kubelet "
            "starts the pod without its weights; upgrade the pool, or name the sizes of newer pools in "
            f"`accelerator.instanceTypes`, or {_FALLBACK}"
        )
    runtimes = {node.runtime_version for node in nodes}
    if runtimes and not any(_mounts_images(runtime) for runtime in runtimes):
        return _blocks(f"needs containerd 2.1 or later, the GPU nodes run {', '.join(sorted(runtimes))}; {_FALLBACK}")
    return HOLDS


def _blocks(need: str) -> Blocks:
    message = f"`weights.imageVolume` {need}"
    return Blocks(SpecReason.IMAGE_VOLUME_UNSUPPORTED, message, ConditionType.WEIGHTS_VERIFIED)


def _pools(nodes: list[NodeFacts]) -> str:
    """The kubelets of these nodes by pool; the order of nodes in memory must not change the sentence."""
    pools = {(node.pool or node.name, node.kubelet_version or "no reported version") for node in nodes}
    return " and ".join(f"those of pool '{pool}' run {version}" for pool, version in sorted(pools))


def _release(version: str) -> tuple[int, int]:
    """Major and minor version of "v1.36.4" or "2.2.4"; (0, 0) where it cannot be read."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _mounts_images(runtime: str) -> bool:
    name, _, version = runtime.partition("://")
    return name == "cri-o" or (name == "containerd" and _release(version) >= MINIMUM_CONTAINERD)

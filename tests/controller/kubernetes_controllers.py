"""What Kubernetes does with the children of a model, change by change, in virtual time.

The changes and their order are those that the controllers of a Kubernetes 1.36 make: the volume controller binds and
annotates, the cloud controller adds a finalizer and then the address, the deployment controller numbers the revision
and counts pods, scheduler and kubelet report a pod in several steps.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

from tests.controller.running import NAMESPACE
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest

AWHILE = 0.01
Change = Callable[[Manifest], object]


async def play_controllers(cluster: ClusterInMemory, name: str, address: str) -> None:
    """Everything that happens to the children of one model until its pod is ready."""
    await asyncio.gather(
        _give_address(cluster, ("Service", NAMESPACE, name), address),
        _bind(cluster, name),
        _run_pod(cluster, ("Deployment", NAMESPACE, name)),
    )


async def _give_address(cluster: ClusterInMemory, service: Coordinates, address: str) -> None:
    await _existence(lambda: service in cluster.objects)
    await _change(cluster, service, 0.05, _metadata(finalizers=["service.kubernetes.io/load-balancer-cleanup"]))
    await _change(cluster, service, 2.0, _status(loadBalancer={"ingress": [{"ip": address, "ipMode": "VIP"}]}))


async def _bind(cluster: ClusterInMemory, name: str) -> None:
    prefix = f"{name}-weights-"

    def claim() -> Coordinates | None:
        claims = (at for at in cluster.objects if at[0] == "PersistentVolumeClaim" and at[2].startswith(prefix))
        return next(claims, None)

    await _existence(lambda: claim() is not None)
    at = claim()
    assert at is not None
    live = cluster.objects[at]
    volume = ("PersistentVolume", "", live["spec"]["volumeName"])
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    await _change(cluster, volume, 0.02, _metadata(finalizers=["kubernetes.io/pv-protection"]))
    await _change(
        cluster, volume, 0.02, lambda manifest: manifest["spec"]["claimRef"].update(uid=live["metadata"]["uid"])
    )
    await _change(cluster, volume, 0.01, _status(phase="Bound"))
    await _change(cluster, at, 0.02, lambda manifest: manifest["metadata"].setdefault("annotations", {}).update(bound))
    await _change(cluster, at, 0.01, _status(phase="Bound", accessModes=["ReadOnlyMany"]))


async def _run_pod(cluster: ClusterInMemory, deployment: Coordinates) -> None:
    await _existence(lambda: deployment in cluster.objects)
    revision = {"deployment.kubernetes.io/revision": "1"}
    await _change(cluster, deployment, 0.02, lambda manifest: manifest["metadata"]["annotations"].update(revision))
    counts: dict[str, Any] = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}
    await _change(cluster, deployment, 0.02, _status(**counts, conditions=_conditions(available="False")))
    pod = _put_pod(cluster, deployment)
    await _change(cluster, pod, 0.1, lambda manifest: manifest["spec"].update(nodeName="node-1"))
    await _change(cluster, pod, 0.1, _pod_status("Pending", ready="False"))
    await _change(cluster, pod, 1.5, _pod_status("Running", ready="False"))
    await _change(cluster, pod, 3.0, _pod_status("Running", ready="True"))
    counts = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    await _change(cluster, deployment, 0.05, _status(**counts, conditions=_conditions(available="True")))


async def _existence(exists: Callable[[], bool]) -> None:
    while not exists():  # noqa: ASYNC110 - in virtual time
        await asyncio.sleep(AWHILE)


async def _change(cluster: ClusterInMemory, at: Coordinates, after: float, change: Change) -> None:
    await asyncio.sleep(after)
    cluster.edit(at, change)


def _metadata(**fields: Any) -> Change:
    return lambda live: live["metadata"].update(fields)


def _status(**fields: Any) -> Change:
    return lambda live: live.update(status=fields)


def _conditions(*, available: str) -> list[dict[str, str]]:
    return [{"type": "Available", "status": available}, {"type": "Progressing", "status": "True"}]


def _put_pod(cluster: ClusterInMemory, deployment: Coordinates) -> Coordinates:
    template = copy.deepcopy(cluster.objects[deployment]["spec"]["template"])
    name = f"{deployment[2]}-6c9f7d5b8-x2x4z"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name.rpartition("-")[0], "uid": f"{name}-owner"}
    metadata = {**template["metadata"], "name": name, "namespace": NAMESPACE}
    metadata["ownerReferences"] = [{**owner, "controller": True}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    cluster.put({**pod, "status": {"phase": "Pending"}})
    return ("Pod", NAMESPACE, name)


def _pod_status(phase: str, *, ready: str) -> Change:
    def change(pod: Manifest) -> None:
        state = {"running": {}} if phase == "Running" else {"waiting": {"reason": "ContainerCreating"}}
        pod["status"] = {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}],
            "containerStatuses": [
                {"name": container["name"], "image": container["image"], "ready": ready == "True", "restartCount": 0,
                 "started": phase == "Running", "state": state}
                for container in pod["spec"]["containers"]
            ],
        }  # fmt: skip

    return change

"""What no operator can beat: the same children of the same models, created by a plain loop that reads nothing.

What the API server, its controllers, the scheduler and the nodes need for them is in every contestant's time.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.client import Pacing
from bench.cluster import Cluster, wait
from bench.workload import model
from hermetic.api.configuration import Configuration
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.kinds import BY_KIND, DEPLOYMENT, PERSISTENT_VOLUME_CLAIM, SERVICE
from hermetic.objects.children import PlatformSettings, render
from hermetic.objects.names import Owner
from hermetic.plan.preflight import accelerator_checks
from testbed.api import Api

CONNECTIONS = 20
ABSENT_OWNER = "00000000-0000-0000-0000-000000000000"
LAST = ("PersistentVolumeClaim", "Deployment")


def measure(cluster: Cluster, namespace: str, models: int, timeout: float) -> dict[str, float]:
    """Seconds until all children are written, and until every Deployment is available."""
    cluster.make_namespace(namespace)
    try:
        children = _children(namespace, models)
        began = time.monotonic()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda child: _create(cluster.api, namespace, child), children))
        written = time.monotonic() - began
        collection = DEPLOYMENT.path(namespace)
        wait("every Deployment", lambda: _available(cluster.api, collection) == models, timeout)
        return {"written_seconds": round(written, 2), "settled_seconds": round(time.monotonic() - began, 2)}
    finally:
        _remove_everything(cluster, namespace)


def measure_steadily(cluster: Cluster, namespace: str, models: int, per_second: float) -> list[float]:
    """Seconds from the turn of each model until its last child is written, one child after the other."""
    cluster.make_namespace(namespace)
    try:
        children = [_in_order(_children_of(namespace, number)) for number in range(models)]
        pacing = Pacing(per_second)

        def create_in_turn(number: int) -> float:
            pacing.wait_for_turn(number)
            began = time.monotonic()
            for child in children[number]:
                _create(cluster.api, namespace, child)
            return time.monotonic() - began

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            return list(pool.map(create_in_turn, range(models)))
    finally:
        _remove_everything(cluster, namespace)


def _children(namespace: str, models: int) -> list[dict[str, Any]]:
    """All children, in the order of the product: network policies first, workloads last."""
    return _in_order([child for number in range(models) for child in _children_of(namespace, number)])


def _in_order(children: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(children, key=lambda child: LAST.index(child["kind"]) + 1 if child["kind"] in LAST else 0)


def _children_of(namespace: str, number: int) -> list[dict[str, Any]]:
    """The children of one model; they have no owner."""
    manifest = model(number)
    owner = Owner(namespace, manifest["metadata"]["name"], f"{ABSENT_OWNER[:-4]}{number:04d}")
    spec, configuration = ModelDeploymentSpec.model_validate(manifest["spec"]), Configuration()
    children = render(owner, spec, PlatformSettings(accelerator_checks=accelerator_checks(spec, configuration)))
    return [{**child, "metadata": _without_owner(child["metadata"])} for child in children]


def _without_owner(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != "ownerReferences"}


def _remove_everything(cluster: Cluster, namespace: str) -> None:
    cluster.api.delete(DEPLOYMENT.path(namespace))
    cluster.api.delete(f"{SERVICE.path(namespace)}?labelSelector=app.kubernetes.io/managed-by=hermetic")
    cluster.api.delete(PERSISTENT_VOLUME_CLAIM.path(namespace))
    cluster.empty(namespace)


def _create(api: Api, namespace: str, child: dict[str, Any]) -> None:
    api.create(BY_KIND[child["kind"]].path(namespace), child)


def _available(api: Api, collection: str) -> int:
    deployments = api.get(collection)["items"]
    return sum(bool(live.get("status", {}).get("availableReplicas")) for live in deployments)

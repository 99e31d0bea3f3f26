"""The operator is killed at every write of a create, before and after the API server has it, and started again.

The world that results must be the one of the undisturbed run: no orphan, no duplicate, nothing left half done.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from testbed.api import Api
from testbed.fault_proxy import FaultProxy
from testbed.installation import OperatorProcess, wait_for
from testbed.kubectl import Kubectl
from tests.controlplane.operating import StartOperator
from tests.scenarios import Manifest, a_share_model, reporting

# six children and the first word about them
WRITES = 7
COLLECTIONS = {
    "deployments": "/apis/apps/v1/namespaces/{}/deployments",
    "services": "/api/v1/namespaces/{}/services",
    "serviceaccounts": "/api/v1/namespaces/{}/serviceaccounts",
    "networkpolicies": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "persistentvolumeclaims": "/api/v1/namespaces/{}/persistentvolumeclaims",
}
OURS = {"labelSelector": "app.kubernetes.io/managed-by=hermetic"}
ASSIGNED = (
    "clusterIP",
    "clusterIPs",
    "healthCheckNodePort",
    "nodePort",
    "volumeName",
    "claimRef",
    "claimName",
    "volumeHandle",
    "hermetic.dev/pod-template",
)


def world_of(api: Api, namespace: str) -> dict[str, Any]:
    """Every object that the operator made for the namespace, without what differs from run to run."""
    found = {
        plural: [_masked(item) for item in api.get(path.format(namespace), **OURS)["items"]]
        for plural, path in COLLECTIONS.items()
    }
    chosen = f"hermetic.dev/namespace={namespace}"
    volumes = api.get("/api/v1/persistentvolumes", labelSelector=chosen)["items"]
    return {**found, "persistentvolumes": [_masked(item) for item in volumes]}


def _masked(item: Manifest) -> Any:
    labels = {k: v for k, v in item["metadata"]["labels"].items() if k not in {"hermetic.dev/owner-uid"}}
    labels.pop("hermetic.dev/namespace", None)
    owners = [{"kind": one["kind"], "name": one["name"]} for one in item["metadata"].get("ownerReferences", [])]
    return {"labels": labels, "owners": owners, "spec": _without_assigned(item.get("spec"))}


def _without_assigned(value: Any) -> Any:
    """Without names and numbers that hold a uid or that the API server gives."""
    if isinstance(value, dict):
        return {key: _without_assigned(item) for key, item in value.items() if key not in ASSIGNED}
    return [_without_assigned(item) for item in value] if isinstance(value, list) else value


def is_complete(api: Api, namespace: str) -> bool:
    """Whether the status speaks of the present generation and every child is there."""
    live = api.get(f"/apis/hermetic.dev/v1alpha1/namespaces/{namespace}/modeldeployments/llama")
    seen = live.get("status", {}).get("observedGeneration") == live["metadata"]["generation"]
    found = world_of(api, namespace)
    return seen and all(len(items) == 1 for items in found.values())


@pytest.fixture
def undisturbed(start_operator: StartOperator, api: Api, kubectl: Kubectl, namespace: str) -> dict[str, Any]:
    """The world after a create that nothing disturbs; its operator and its deployment are gone again."""
    operator = start_operator()
    kubectl.within(namespace).apply(reporting(a_share_model()))
    wait_for("the undisturbed world", lambda: is_complete(api, namespace), operator)
    world = world_of(api, namespace)
    _remove(api, namespace)
    operator.stop()
    return world


def _remove(api: Api, namespace: str) -> None:
    api.delete(f"/apis/hermetic.dev/v1alpha1/namespaces/{namespace}/modeldeployments/llama")
    wait_for("the end of it all", lambda: not any(world_of(api, namespace).values()))


def _kill_at(proxy: FaultProxy, number: int, operator: OperatorProcess, *, after: bool) -> threading.Event:
    killed = threading.Event()

    def kill() -> None:
        operator.stop(signal.SIGKILL)
        killed.set()

    proxy.at_write(number, kill, after=after)
    return killed


@pytest.mark.timeout(900)
def test_a_kill_at_any_write_of_a_create_ends_in_the_undisturbed_world(
    undisturbed: dict[str, Any], start_operator: StartOperator, proxy: FaultProxy, api: Api, kubectl: Kubectl,
    namespace: str,
) -> None:  # fmt: skip
    operator = start_operator(server=proxy.server, wait=False)
    for number in range(1, WRITES + 1):
        for after in (False, True):
            operator.start()
            killed = _kill_at(proxy, number, operator, after=after)
            kubectl.within(namespace).apply(reporting(a_share_model()))
            assert killed.wait(30), f"write {number} never came"
            operator.start()
            wait_for(f"the world after a kill at write {number}", lambda: is_complete(api, namespace), operator)
            moment = "after" if after else "before"
            assert world_of(api, namespace) == undisturbed, f"killed {moment} write {number}"
            _remove(api, namespace)
            operator.stop()

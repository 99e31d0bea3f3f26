"""The admission policies: what not even the operator's own account, or a user with every right, gets past."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import operator_kubeconfig
from testbed.kubectl import Kubectl
from tests.scenarios import Manifest, a_share_model

VOLUMES = "/api/v1/persistentvolumes"
INTERNAL = "service.beta.kubernetes.io/azure-load-balancer-internal"


@pytest.fixture
def as_operator(installed: None, api: Api, cluster: Path, tmp_path: Path) -> Api:  # noqa: ARG001
    """The API server as the operator's ServiceAccount meets it."""
    return Api(operator_kubeconfig(api, cluster, tmp_path / "operator.kubeconfig"))


def a_volume(name: str) -> Manifest:
    """A volume exactly as the operator makes it."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/managed-by": "hermetic", "hermetic.dev/owner-uid": "u-1"},
        },
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadOnlyMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "mountOptions": ["ro"],
            "claimRef": {"namespace": "default", "name": "nobody"},
            "csi": {"driver": "file.csi.azure.com", "volumeHandle": name, "readOnly": True},
        },
    }


def without_label(volume: Manifest) -> None:
    del volume["metadata"]["labels"]["app.kubernetes.io/managed-by"]


def on_the_host(volume: Manifest) -> None:
    del volume["spec"]["csi"]
    volume["spec"]["hostPath"] = {"path": "/etc"}


def of_another_driver(volume: Manifest) -> None:
    volume["spec"]["csi"]["driver"] = "disk.csi.azure.com"


def writable(volume: Manifest) -> None:
    volume["spec"]["accessModes"] = ["ReadWriteMany"]


def mounted_writable(volume: Manifest) -> None:
    volume["spec"]["mountOptions"] = ["nconnect=4"]


def deleted_on_release(volume: Manifest) -> None:
    volume["spec"]["persistentVolumeReclaimPolicy"] = "Delete"


def for_anybody(volume: Manifest) -> None:
    del volume["spec"]["claimRef"]


def reading_a_secret(volume: Manifest) -> None:
    volume["spec"]["csi"]["nodeStageSecretRef"] = {"namespace": "kube-system", "name": "some"}


WIDER: tuple[tuple[Callable[[Manifest], None], str], ...] = (
    (without_label, "carry its own labels"),
    (on_the_host, "volumes of the drivers"),
    (of_another_driver, "volumes of the drivers"),
    (writable, "only read-only volumes"),
    (mounted_writable, "only read-only volumes"),
    (deleted_on_release, "kept on release"),
    (for_anybody, "bound to a claim beforehand"),
    (reading_a_secret, "read a Secret"),
)


def test_the_operator_may_make_the_volume_that_it_makes(as_operator: Api, api: Api, namespace: str) -> None:
    as_operator.apply(f"{VOLUMES}/{namespace}", a_volume(namespace), "hermetic")
    api.delete(f"{VOLUMES}/{namespace}")


@pytest.mark.parametrize(("widen", "why"), WIDER, ids=lambda value: getattr(value, "__name__", ""))
def test_the_operator_may_make_no_wider_volume(
    as_operator: Api, namespace: str, widen: Callable[[Manifest], None], why: str
) -> None:
    volume = copy.deepcopy(a_volume(namespace))
    widen(volume)
    with pytest.raises(ApiError, match=why) as refused:
        as_operator.apply(f"{VOLUMES}/{namespace}", volume, "hermetic")
    assert refused.value.status in {403, 422}


def test_the_operator_may_remove_no_volume_of_others(as_operator: Api, api: Api, namespace: str) -> None:
    volume = a_volume(namespace)
    without_label(volume)
    api.create(VOLUMES, volume)
    with pytest.raises(ApiError, match="carry its own labels"):
        as_operator.delete(f"{VOLUMES}/{namespace}")
    api.delete(f"{VOLUMES}/{namespace}")


@pytest.mark.parametrize("labels", [None, {"hermetic.dev/owner-uid": "another"}], ids=["unmarked", "of another"])
def test_the_operator_may_take_over_no_volume_of_others(
    as_operator: Api, api: Api, namespace: str, labels: dict[str, str] | None
) -> None:
    volume = a_volume(namespace)
    volume["metadata"]["labels"] = labels
    api.create(VOLUMES, volume)
    with pytest.raises(ApiError, match="take over no PersistentVolume of others"):
        as_operator.apply(f"{VOLUMES}/{namespace}", a_volume(namespace), "hermetic")
    api.delete(f"{VOLUMES}/{namespace}")


def test_the_operator_may_correct_its_own_volume(as_operator: Api, api: Api, namespace: str) -> None:
    as_operator.apply(f"{VOLUMES}/{namespace}", a_volume(namespace), "hermetic")
    api.merge(f"{VOLUMES}/{namespace}", {"metadata": {"labels": {"app.kubernetes.io/managed-by": "somebody"}}})
    as_operator.apply(f"{VOLUMES}/{namespace}", a_volume(namespace), "hermetic")
    api.delete(f"{VOLUMES}/{namespace}")


def test_nobody_but_the_operator_says_what_is_ready(
    kubectl: Kubectl,
    api: Api,
    cluster: Path,
    namespace: str,
    tmp_path: Path,
    installed: None,  # noqa: ARG001
) -> None:
    kubectl.within(namespace).apply(a_share_model())
    api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "editor"}})
    subject = {"kind": "ServiceAccount", "name": "editor", "namespace": namespace}
    role: dict[str, Any] = {
        "metadata": {"name": f"admin-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [subject],
    }
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", role)
    editor = Api(_kubeconfig_of(api, cluster, namespace, tmp_path))
    path = f"/apis/hermetic.dev/v1alpha1/namespaces/{namespace}/modeldeployments/llama"
    with pytest.raises(ApiError, match="only the operator may write the status"):
        editor.merge(f"{path}/status", {"status": {"replicas": 1}})
    editor.merge(path, {"metadata": {"labels": {"team": "a"}}})
    api.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/admin-{namespace}")


def _kubeconfig_of(api: Api, cluster: Path, namespace: str, tmp_path: Path) -> Path:
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/editor"
    return operator_kubeconfig(api, cluster, tmp_path / "editor.kubeconfig", tokens=f"{account}/token")


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"annotations": {INTERNAL: "false"}}},
        {"metadata": {"annotations": {INTERNAL: None}}},
        {"metadata": {"annotations": {INTERNAL: "True"}}},
        {"metadata": {"annotations": {"service.beta.kubernetes.io/azure-pip-name": "open"}}},
        {"spec": {"externalIPs": ["203.0.113.9"]}},
        {"spec": {"type": "NodePort"}},
    ],
    ids=["internal-false", "internal-gone", "internal-capital", "public-ip-name", "external-ips", "node-port"],
)
def test_nobody_opens_the_service_of_a_model(api: Api, namespace: str, installed: None, patch: Manifest) -> None:  # noqa: ARG001
    services = f"/api/v1/namespaces/{namespace}/services"
    service = {
        "metadata": {
            "name": "llama",
            "labels": {"app.kubernetes.io/managed-by": "hermetic"},
            "annotations": {INTERNAL: "true"},
        },
        "spec": {"type": "LoadBalancer", "ports": [{"port": 8000}], "selector": {"a": "b"}},
    }
    api.create(services, service)
    with pytest.raises(ApiError, match="the Service of a model"):
        api.merge(f"{services}/llama", patch)

"""The admission policies: what not even the operator's own account, or a user with every right, gets past."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from tests.scenarios import Manifest, a_share_model

VOLUMES = "/api/v1/persistentvolumes"
INTERNAL = "service.beta.kubernetes.io/azure-load-balancer-internal"


@pytest.fixture
def as_operator(installed: None, api: Api, cluster: Path, tmp_path: Path) -> Api:  # noqa: ARG001
    """The API server as the operator's ServiceAccount meets it."""
    return Api(operator_kubeconfig(api, cluster, tmp_path / "operator.kubeconfig"))


@pytest.fixture
def unique() -> str:
    """A test's own part of the names of volumes, which are of no namespace."""
    return secrets.token_hex(4)


def named(unique: str) -> str:
    """The name of a volume for a claim in the namespace `default`, unique to a test."""
    return f"hermetic-default-{unique}"


def a_volume(unique: str) -> Manifest:
    """A volume exactly as the operator makes it."""
    name = named(unique)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/managed-by": "hermetic",
                "hermetic.dev/owner-uid": "u-1",
                "hermetic.dev/namespace": "default",
            },
        },
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadOnlyMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "mountOptions": ["ro"],
            "claimRef": {"namespace": "default", "name": "nobody"},
            "csi": {
                "driver": "file.csi.azure.com",
                "volumeHandle": f"#contosomodels#models#{name}",
                "readOnly": True,
                "volumeAttributes": {
                    "protocol": "nfs",
                    "storageAccount": "contosomodels",
                    "shareName": "models",
                    "mountPermissions": "0",
                    "fsGroupChangePolicy": "None",
                    "encryptInTransit": "true",
                },
            },
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


def attributes(**more: str) -> Callable[[Manifest], None]:
    def spoil(volume: Manifest) -> None:
        volume["spec"]["csi"]["volumeAttributes"].update(more)

    return spoil


def options(*more: str) -> Callable[[Manifest], None]:
    def spoil(volume: Manifest) -> None:
        volume["spec"]["mountOptions"] = list(more)

    return spoil


def claimed_from(namespace: str) -> Callable[[Manifest], None]:
    def spoil(volume: Manifest) -> None:
        volume["spec"]["claimRef"]["namespace"] = namespace

    return spoil


def claimed_and_labelled(namespace: str) -> Callable[[Manifest], None]:
    def spoil(volume: Manifest) -> None:
        volume["spec"]["claimRef"]["namespace"] = namespace
        volume["metadata"]["labels"]["hermetic.dev/namespace"] = namespace

    return spoil


def without_attributes(volume: Manifest) -> None:
    del volume["spec"]["csi"]["volumeAttributes"]


def with_a_file_system(volume: Manifest) -> None:
    volume["spec"]["csi"]["fsType"] = "ext4"


def with_the_handle_of_another(volume: Manifest) -> None:
    volume["spec"]["csi"]["volumeHandle"] = "#contosomodels#models#hermetic-team-a-llama"


def of_nfs(**given: str) -> Callable[[Manifest], None]:
    def spoil(volume: Manifest) -> None:
        volume_attributes = {
            "server": "nas.contoso.internal",
            "share": "/export/models",
            "mountPermissions": "0",
            **given,
        }
        volume["spec"]["csi"] |= {"driver": "nfs.csi.k8s.io", "volumeAttributes": volume_attributes}

    return spoil


def of_nfs_with_attributes_of_azure(volume: Manifest) -> None:
    volume["spec"]["csi"]["driver"] = "nfs.csi.k8s.io"


ATTRIBUTES: dict[str, tuple[Callable[[Manifest], None], str]] = {
    "rw after ro": (options("ro", "rw"), "spec.mountOptions"),
    "a file of the machine": (options("ro", "turbo", "configfile=/etc/passwd"), "spec.mountOptions"),
    "several in one": (options("ro", "nconnect=4,rw"), "spec.mountOptions"),
    "a second line": (options("ro", "hard\nrw"), "spec.mountOptions"),
    "no nosuid": (options("ro", "suid", "dev"), "spec.mountOptions"),
    "smb": (attributes(protocol="smb"), "spec.csi"),
    "a Secret by name": (attributes(secretName="db", secretNamespace="kube-system"), "spec.csi"),
    "a disk": (attributes(diskName="a.vhd"), "spec.csi"),
    "a file system": (with_a_file_system, "spec.csi"),
    "a file system by attribute": (attributes(fsType="ext4"), "spec.csi"),
    "permissions": (attributes(mountPermissions="0777"), "spec.csi"),
    "an identity": (attributes(clientID="00000000-0000-0000-0000-000000000001"), "spec.csi"),
    "no attributes": (without_attributes, "spec.csi"),
    "another driver's attributes": (of_nfs_with_attributes_of_azure, "spec.csi"),
    "a folder that leads out": (attributes(folderName="a/../../payroll"), "spec.csi"),
    "a folder that begins with the parent folder": (attributes(folderName="../payroll"), "spec.csi"),
    "a folder that is the parent folder": (attributes(folderName=".."), "spec.csi"),
    "the parent folder for a shell": (attributes(folderName=".\\./payroll"), "spec.csi"),
    "a folder with two lines": (attributes(folderName="a\nb"), "spec.csi"),
    "a folder from the root": (attributes(folderName="/payroll"), "spec.csi"),
    "a folder that ends with a dot": (attributes(folderName="a./b"), "spec.csi"),
    "no folder": (attributes(folderName=""), "spec.csi"),
    "a share with a folder": (attributes(shareName="models/payroll"), "spec.csi"),
    "a share with a server": (attributes(shareName="models nas.evil.example"), "spec.csi"),
    "a share with a mark": (attributes(shareName="models#payroll"), "spec.csi"),
    "an account with a path": (attributes(storageAccount="evil.example/x?"), "spec.csi"),
    "a server with a path": (attributes(server="evil.example/x"), "spec.csi"),
    "an option as a server": (attributes(server="-o rw"), "spec.csi"),
    "no server": (attributes(server=""), "spec.csi"),
    "another switch of encryption": (attributes(encryptInTransit="true; x"), "spec.csi"),
    "ownership changed": (attributes(fsGroupChangePolicy="Always"), "spec.csi"),
    "a group with a path": (attributes(resourceGroup="a/b"), "spec.csi"),
    "an export that leads out": (of_nfs(share="/export/models/../payroll"), "spec.csi"),
    "an export without a root": (of_nfs(share="export"), "spec.csi"),
    "no export": (of_nfs(share=""), "spec.csi"),
    "an export with two lines": (of_nfs(share="/export\n/payroll"), "spec.csi"),
    "a file server with an option": (of_nfs(server="nas.example -o rw"), "spec.csi"),
    "the handle of another": (with_the_handle_of_another, "spec.csi.volumeHandle"),
    "a claim of the system": (claimed_from("kube-system"), "spec.claimRef"),
    "a claim of another namespace": (claimed_from("victim"), "spec.claimRef"),
    "a claim of the system, labelled": (claimed_and_labelled("kube-system"), "spec.claimRef"),
    "a claim of another namespace, labelled": (claimed_and_labelled("victim"), "spec.claimRef"),
}


@pytest.mark.parametrize("widened", ATTRIBUTES)
def test_the_operator_may_make_no_volume_with_other_attributes(as_operator: Api, unique: str, widened: str) -> None:
    widen, why = ATTRIBUTES[widened]
    volume = a_volume(unique)
    widen(volume)
    with pytest.raises(ApiError, match=why):
        as_operator.apply(f"{VOLUMES}/{named(unique)}", volume, "hermetic")


def test_the_operator_may_bind_its_volume_to_no_other_claim(as_operator: Api, api: Api, unique: str) -> None:
    as_operator.apply(f"{VOLUMES}/{named(unique)}", a_volume(unique), "hermetic")
    for other in ({"namespace": "default", "name": "other"}, {"namespace": "victim", "name": "nobody"}):
        with pytest.raises(ApiError, match=r"spec\.claimRef"):
            as_operator.merge(f"{VOLUMES}/{named(unique)}", {"spec": {"claimRef": other}})
    api.delete(f"{VOLUMES}/{named(unique)}")


@pytest.mark.parametrize(
    "change",
    [
        attributes(folderName="llama 3/fp8.v2", resourceGroup="rg-models_(weu)", encryptInTransit="false"),
        attributes(server="contosomodels.privatelink.file.core.windows.net"),
        attributes(server="10.1.2.3"),
        of_nfs(),
        of_nfs(share="/export/models/a b/c"),
    ],
)
def test_the_operator_may_make_volumes_with_every_value_of_a_spec(
    as_operator: Api, unique: str, change: Callable[[Manifest], None]
) -> None:
    volume = a_volume(unique)
    change(volume)
    as_operator.create(f"{VOLUMES}?dryRun=All", volume)


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


def test_the_operator_may_make_the_volume_that_it_makes(as_operator: Api, api: Api, unique: str) -> None:
    as_operator.apply(f"{VOLUMES}/{named(unique)}", a_volume(unique), "hermetic")
    api.delete(f"{VOLUMES}/{named(unique)}")


@pytest.mark.parametrize(("widen", "why"), WIDER, ids=lambda value: getattr(value, "__name__", ""))
def test_the_operator_may_make_no_wider_volume(
    as_operator: Api, unique: str, widen: Callable[[Manifest], None], why: str
) -> None:
    volume = copy.deepcopy(a_volume(unique))
    widen(volume)
    with pytest.raises(ApiError, match=why) as refused:
        as_operator.apply(f"{VOLUMES}/{named(unique)}", volume, "hermetic")
    assert refused.value.status in {403, 422}


def test_the_operator_may_remove_no_volume_of_others(as_operator: Api, api: Api, unique: str) -> None:
    volume = a_volume(unique)
    without_label(volume)
    api.create(VOLUMES, volume)
    with pytest.raises(ApiError, match="carry its own labels"):
        as_operator.delete(f"{VOLUMES}/{named(unique)}")
    api.delete(f"{VOLUMES}/{named(unique)}")


@pytest.mark.parametrize("labels", [None, {"hermetic.dev/owner-uid": "another"}], ids=["unmarked", "of another"])
def test_the_operator_may_take_over_no_volume_of_others(
    as_operator: Api, api: Api, unique: str, labels: dict[str, str] | None
) -> None:
    volume = a_volume(unique)
    volume["metadata"]["labels"] = labels
    api.create(VOLUMES, volume)
    with pytest.raises(ApiError, match="take over no PersistentVolume of others"):
        as_operator.apply(f"{VOLUMES}/{named(unique)}", a_volume(unique), "hermetic")
    api.delete(f"{VOLUMES}/{named(unique)}")


def test_the_operator_may_correct_its_own_volume(as_operator: Api, api: Api, unique: str) -> None:
    as_operator.apply(f"{VOLUMES}/{named(unique)}", a_volume(unique), "hermetic")
    api.merge(f"{VOLUMES}/{named(unique)}", {"metadata": {"labels": {"app.kubernetes.io/managed-by": "somebody"}}})
    as_operator.apply(f"{VOLUMES}/{named(unique)}", a_volume(unique), "hermetic")
    api.delete(f"{VOLUMES}/{named(unique)}")


def test_only_the_operator_writes_the_status(
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
def test_no_account_opens_the_service_of_a_model(api: Api, namespace: str, installed: None, patch: Manifest) -> None:  # noqa: ARG001
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


def test_the_api_server_finds_no_wrong_type_and_no_unknown_field_in_a_policy(installed: None, api: Api) -> None:  # noqa: ARG001
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

    def checked() -> list[Manifest] | None:
        policies_listed = api.get(policies, labelSelector="app.kubernetes.io/part-of=hermetic")["items"]
        done = [policy for policy in policies_listed if "typeChecking" in policy.get("status", {})]
        return policies_listed if len(done) == len(policies_listed) else None

    for policy in wait_for("the policies checked", checked):
        warnings = policy["status"]["typeChecking"].get("expressionWarnings", [])
        assert not warnings, (policy["metadata"]["name"], warnings)

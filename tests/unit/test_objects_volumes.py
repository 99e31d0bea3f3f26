"""A share as a PersistentVolume and the claim that only it can satisfy: CSI, read-only three times over, kept."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.weights import SOURCES
from tests.renderings import OWNER_UID, RENDERINGS
from tests.scenarios import a_baked_model, a_nim_model, a_share_model, an_image_volume_model, changed
from tests.snapshots import rendered, spec_of


def volume(**azure_files: Any) -> dict[str, Any]:
    files = {"account": "contosomodels", "share": "models", **azure_files}
    return rendered(a_share_model(weights={"azureFiles": files}))["PersistentVolume"]


def names(manifest: dict[str, Any]) -> tuple[str, str]:
    children = rendered(manifest)
    return children["PersistentVolume"]["metadata"]["name"], children["PersistentVolumeClaim"]["metadata"]["name"]


def test_volume_of_an_azure_files_share_is_exactly_this():
    children = rendered(a_share_model())
    name, claim = names(a_share_model())
    assert children["PersistentVolume"]["spec"] == {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadOnlyMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "inference", "name": claim},
        "mountOptions": ["ro", "nconnect=4", "noresvport", "actimeo=30"],
        "csi": {
            "driver": "file.csi.azure.com",
            "volumeHandle": f"#contosomodels#models#{name}",
            "readOnly": True,
            "volumeAttributes": {
                "protocol": "nfs",
                "storageAccount": "contosomodels",
                "shareName": "models",
                "folderName": "llama-3-1-8b/fp8",
                "mountPermissions": "0",
                "fsGroupChangePolicy": "None",
                "encryptInTransit": "true",
            },
        },
    }


def test_claim_is_bound_beforehand_to_that_volume_alone():
    name, claim = names(a_share_model())
    claim_manifest = rendered(a_share_model())["PersistentVolumeClaim"]
    assert claim_manifest["metadata"]["name"] == claim
    assert claim_manifest["spec"] == {
        "accessModes": ["ReadOnlyMany"],
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "volumeName": name,
        "resources": {"requests": {"storage": "1Gi"}},
    }


def test_pod_mounts_that_claim_read_only():
    _, claim = names(a_share_model())
    pod = rendered(a_share_model())["Deployment"]["spec"]["template"]["spec"]
    weights = next(v for v in pod["volumes"] if v["name"] == "weights")
    assert weights["persistentVolumeClaim"] == {"claimName": claim, "readOnly": True}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_is_rendered_somewhere(source):
    rendering_names = [
        name for name, manifest in RENDERINGS.items() if getattr(spec_of(manifest).weights, source) is not None
    ]
    assert rendering_names, f"tests/renderings.py has no shape with weights of {source}"


def test_share_without_a_storage_account_is_named_by_the_first_label_of_its_host():
    files = {"server": "fs1abc.z33.file.storage.azure.net", "share": "models"}
    csi = rendered(a_share_model(weights={"azureFiles": files}))["PersistentVolume"]["spec"]["csi"]
    assert csi["volumeAttributes"]["storageAccount"] == "fs1abc"
    assert csi["volumeAttributes"]["server"] == "fs1abc.z33.file.storage.azure.net"


def test_optional_attributes_appear_only_when_they_are_said():
    assert not volume()["spec"]["csi"]["volumeAttributes"].keys() & {"server", "folderName", "resourceGroup"}
    attributes = volume(server="a.file.core.windows.net", folder="f/g", resourceGroup="rg")["spec"]["csi"]
    assert attributes["volumeAttributes"]["server"] == "a.file.core.windows.net"
    assert attributes["volumeAttributes"]["folderName"] == "f/g"
    assert attributes["volumeAttributes"]["resourceGroup"] == "rg"
    assert attributes["volumeHandle"].startswith("rg#contosomodels#models#")


def test_plain_mounts_are_said_exactly_too():
    assert volume(encryptInTransit=False)["spec"]["csi"]["volumeAttributes"]["encryptInTransit"] == "false"


@pytest.mark.parametrize("options", [[], ["nconnect=16"], ["hard", "timeo=600"]], ids=str)
def test_ro_is_always_the_first_mount_option(options):
    assert volume(mountOptions=options)["spec"]["mountOptions"] == ["ro", *options]


def test_other_nfs_servers_go_through_their_own_driver_never_an_inline_volume():
    csi = rendered(RENDERINGS["nfs"])["PersistentVolume"]["spec"]["csi"]
    assert csi["driver"] == "nfs.csi.k8s.io"
    assert csi["volumeAttributes"] == {
        "server": "nfs.contoso.internal",
        "share": "/export/models/phi-4",
        "mountPermissions": "0",
    }


@pytest.mark.parametrize(
    "manifest",
    [a_baked_model(), an_image_volume_model(), RENDERINGS["claim"]],
    ids=["baked", "image volume", "claim of the platform team"],
)
def test_a_source_that_brings_its_own_gets_no_volume_of_ours(manifest):
    assert not rendered(manifest).keys() & {"PersistentVolume", "PersistentVolumeClaim"}


def test_volume_is_owned_by_label_and_uid_and_by_nothing_namespaced():
    metadata = volume()["metadata"]
    assert "ownerReferences" not in metadata
    assert "namespace" not in metadata
    assert "finalizers" not in metadata
    assert metadata["labels"]["hermetic.dev/owner-uid"] == OWNER_UID
    assert metadata["labels"]["hermetic.dev/namespace"] == "inference"
    assert metadata["labels"]["hermetic.dev/modeldeployment"] == "llama"


ANOTHER = {
    "account": {"account": "contosoother"},
    "share": {"share": "others"},
    "folder": {"folder": "llama-3-1-8b/bf16"},
    "server": {"server": "contosomodels.privatelink.file.core.windows.net"},
    "encryption": {"encryptInTransit": False},
    "mount options": {"mountOptions": ["nconnect=8"]},
}


@pytest.mark.parametrize("other", ANOTHER.values(), ids=list(ANOTHER))
def test_another_source_gets_another_volume_since_no_volume_can_be_changed(other):
    files = a_share_model()["spec"]["weights"]["azureFiles"]
    before, after = names(a_share_model()), names(a_share_model(weights={"azureFiles": {**files, **other}}))
    assert before[0] != after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize("other", [{"replicas": 3}, {"endpoint": {}}, {"drainSeconds": 0}], ids=str)
def test_the_same_source_keeps_its_volume(other):
    assert names(a_share_model()) == names(changed(a_share_model(), **other))


def test_two_folders_of_one_share_never_meet_in_one_staging_path():
    handles = {volume(folder=folder)["spec"]["csi"]["volumeHandle"] for folder in ("a", "b", "a/b")}
    assert len(handles) == 3


def test_engine_does_not_change_where_the_weights_are():
    files = a_share_model()["spec"]["weights"]
    assert names(a_share_model()) == names(changed(a_nim_model("llama"), weights=files))

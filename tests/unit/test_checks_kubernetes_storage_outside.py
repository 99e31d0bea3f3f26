"""Storage that lies outside, in a subscription that is not ours, or on the node."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.volumes import PersistentVolume, StorageClass, VolumeSnapshotClass
from hermetic.audit.model.findings import Verdict
from hermetic.audit.policy.declarations import Policy
from tests.kubernetes_estates import Manifest, container, manifest, pod, verdicts, with_one

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
OURS = "00000000-0000-0000-0000-000000000001"
PARTNER = "22222222-2222-2222-2222-222222222222"
POLICY = Policy(ownSubscriptions=(PARTNER,))


def verdict(changed: Manifest) -> Verdict:
    """The verdict about what was added, or about the cluster where nothing is said against it."""
    (only,) = verdicts("k8s-outside-storage", with_one(changed), policy=POLICY).values()
    return only


def of_class(provisioner: str, mount_options: list[str] | None = None, **parameters: str) -> Manifest:
    """A StorageClass with these parameters."""
    fields: dict[str, Any] = {"provisioner": provisioner, "parameters": parameters, "mountOptions": mount_options or []}
    return manifest(StorageClass, "made", **fields)


def volume(**spec: Any) -> Manifest:
    """A PersistentVolume."""
    return manifest(PersistentVolume, "weights", spec=spec)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (of_class("nfs.csi.k8s.io", server="203.0.113.7"), OPEN),
        (of_class("nfs.csi.k8s.io", Server="nfs.example.com"), OPEN),
        (of_class("nfs.csi.k8s.io", server="10.0.0.9"), FINE),
        (of_class("nfs.csi.k8s.io", server="nfs.storage.svc.cluster.local"), FINE),
        (of_class("smb.csi.k8s.io", source="//files.example.com/x"), OPEN),
        (of_class("smb.csi.k8s.io", source="//acct.file.core.windows.net/x"), FINE),
        (of_class("file.csi.azure.com", server="acct.privatelink.file.core.windows.net"), FINE),
        (of_class("file.csi.azure.com", storageEndpointSuffix="core.windows.net"), FINE),
        (of_class("file.csi.azure.com", storageEndpointSuffix="files.example.com"), OPEN),
        (of_class("file.csi.azure.com", subscriptionID=OURS), FINE),
        (of_class("file.csi.azure.com", subscriptionid=PARTNER), FINE),
        (of_class("disk.csi.azure.com", SubscriptionId="99999999-9999-9999-9999-999999999999"), OPEN),
        (of_class("disk.csi.azure.com", skuname="Premium_LRS", tags="a=b"), FINE),
        (of_class("s3.csi.aws.com"), OPEN),
        (of_class("x.csi.internal", endpoint="https://s3.example.com"), OPEN),
        (of_class("x.csi.internal", anything="https://s3.example.com"), OPEN),
        (of_class("x.csi.internal", mount_options=["url=https://s3.example.com"]), OPEN),
        (of_class("x.csi.internal", mount_options=["nconnect=4", "vers=4.1"]), FINE),
        (of_class("rook-ceph.rbd.csi.ceph.com", monitors="10.0.0.1:6789,203.0.113.7:6789"), OPEN),
        (manifest(VolumeSnapshotClass, "s", driver="disk.csi.azure.com", parameters={"incremental": "true"}), FINE),
        (manifest(VolumeSnapshotClass, "s", driver="x", parameters={"subscriptionID": PARTNER[::-1]}), OPEN),
        (volume(nfs={"server": "203.0.113.7"}), OPEN),
        (volume(nfs={"server": "acct.privatelink.file.core.windows.net"}), FINE),
        (volume(csi={"driver": "blob.csi.azure.com", "volumeAttributes": {"server": "x.example.com"}}), OPEN),
        (volume(csi={"driver": "file.csi.azure.com", "volumeAttributes": {"storageAccount": "acct"}}), FINE),
        (volume(iscsi={"targetPortal": "10.0.0.1:3260", "portals": ["203.0.113.7:3260"]}), OPEN),
        (volume(cephfs={"monitors": ["10.0.0.1:6789"]}), FINE),
        (volume(rbd={"monitors": ["rbd.example.com:6789"]}), OPEN),
        (volume(flexVolume={"driver": "azure/blobfuse"}), UNSEEN),
        (volume(hostPath={"path": "/"}), OPEN),
        (volume(hostPath={"path": "/mnt/models"}), FINE),
        (volume(local={"path": "/var/lib/kubelet"}), OPEN),
        (volume(local={"path": "/mnt/disks/ssd0"}), FINE),
        (volume(nfs="x"), UNSEEN),
    ],
)
def test_storage_is_open_where_its_server_lies_outside(changed: Manifest, expected: Verdict) -> None:
    assert verdict(changed) is expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (of_class("smb.csi.k8s.io", source="\\\\files.example.com\\x"), OPEN),
        (of_class("smb.csi.k8s.io", source="\\\\acct.file.core.windows.net\\x"), FINE),
        (of_class("x.csi.internal", source="nfs.example.com:/exports"), OPEN),
        (of_class("x.csi.internal", source="nfs.corp.internal:/exports/data"), FINE),
        (of_class("x.csi.internal", source="user@files.example.com:/exports"), OPEN),
        (of_class("x.csi.internal", source="2001:4860:4860::8888"), OPEN),
        (volume(nfs={"server": "134744072", "path": "/"}), OPEN),
        (volume(nfs={"server": "167772161", "path": "/"}), FINE),
        (volume(nfs={"server": "0x08080808", "path": "/"}), OPEN),
        (volume(iscsi={"targetPortal": "010.8.8.8:3260"}), OPEN),
        (volume(cephfs={"monitors": ["8.8.2056:6789"]}), OPEN),
        (volume(cephfs={"monitors": ["mon-a:6789", "mon-b"]}), FINE),
    ],
)
def test_a_server_is_read_in_every_form(changed: Manifest, expected: Verdict) -> None:
    assert verdict(changed) is expected


AZURE_FILES = {"driver": "file.csi.azure.com", "volumeAttributes": {"server": "acct.file.core.windows.net"}}
INSIDE = {"server": "nas.corp.internal", "share": "/x"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["ro", "ip=198.51.100.9"], OPEN),
        (["ro,ip=198.51.100.9"], OPEN),
        (["addr=files.example.com"], OPEN),
        (["IP=198.51.100.9"], OPEN),
        (["addr=2001:4860:4860::8888"], OPEN),
        (["mountaddr=198.51.100.9"], OPEN),
        (["mounthost=nfs.example.com"], OPEN),
        (["clientaddr=198.51.100.9"], OPEN),
        (["unc=\\\\files.example.com\\share"], OPEN),
        (["source=//files.example.com/share"], OPEN),
        (["ip=134744072"], OPEN),
        (["mon_addr=10.0.0.1:6789/198.51.100.9:6789"], OPEN),
        (["anything=198.51.100.9"], OPEN),
        (["ip=10.0.0.9", "mounthost=nas", "addr=fd00::1"], FINE),
        (["vers=4.1", "sec=krb5", "domain=corp.example.com", "rsize=1048576", "actimeo=30", "nosharesock"], FINE),
        (["dir_mode=0777", "file_mode=0777", "uid=0", "mfsymlinks", "cache=strict", "nconnect=4"], FINE),
        (["-o allow_other", "--file-cache-timeout-in-seconds=120", "--use-attr-cache=true"], FINE),
    ],
)
def test_a_mount_option_may_name_the_server(options: list[str], expected: Verdict) -> None:
    joined = ",".join(options)
    inline = {"name": "v", "csi": {**AZURE_FILES, "volumeAttributes": {"shareName": "x", "mountOptions": joined}}}
    legacy = {"volume.beta.kubernetes.io/mount-options": joined}
    storage_verdicts = [
        verdict(storage_object)
        for storage_object in (
            of_class("nfs.csi.k8s.io", mount_options=options, **INSIDE),
            of_class("nfs.csi.k8s.io", mountOptions=joined, **INSIDE),
            volume(csi=AZURE_FILES, mountOptions=options),
            volume(azureFile={"shareName": "x"}, mountOptions=options),
            manifest(PersistentVolume, "weights", annotations=legacy, spec={"csi": AZURE_FILES}),
            pod("web", spec={"volumes": [inline], "containers": [container()]}),
        )
    ]
    assert storage_verdicts == [expected] * len(storage_verdicts)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"nfs": {"server": "203.0.113.7"}}, OPEN),
        ({"nfs": {"server": "10.0.0.7"}}, FINE),
        ({"csi": {"driver": "s3.csi.aws.com"}}, OPEN),
        ({"csi": {"driver": "file.csi.azure.com", "volumeAttributes": {"server": "x.example.com"}}}, OPEN),
        ({"cephfs": {"monitors": ["203.0.113.7:6789"]}}, OPEN),
        ({"emptyDir": {}}, FINE),
    ],
)
def test_a_volume_of_the_pods_own_counts_as_well(source: Manifest, expected: Verdict) -> None:
    assert verdict(pod("web", spec={"volumes": [{"name": "v", **source}], "containers": [container()]})) is expected

"""Storage classes and volumes."""

from __future__ import annotations

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, api_object
from hermetic.audit.estate.kubernetes.volumes import HostPath, InlineShare, NetworkDisk
from hermetic.audit.estate.resource import Part


@api_object("storage.k8s.io/v1/storageclasses", "StorageClass", namespaced=False)
class StorageClass(KubernetesObject):
    provisioner: str | None = None
    parameters: FreeMap[str] | None = None
    mount_options: list[str] | None = None


class CsiVolume(Part):
    """A volume of a CSI driver. `volume_attributes` names share and account."""

    driver: str | None = None
    volume_handle: str | None = None
    read_only: bool | None = None
    volume_attributes: FreeMap[str] | None = None


class NfsVolume(Part):
    """A volume of the node's own NFS client."""

    server: str | None = None
    path: str | None = None
    read_only: bool | None = None


class AzureFileVolume(Part):
    read_only: bool | None = None


class AzureDiskVolume(Part):
    disk_uri: str | None = None


class VolumeSpec(Part):
    mount_options: list[str] | None = None
    csi: CsiVolume | None = None
    nfs: NfsVolume | None = None
    azure_file: AzureFileVolume | None = None
    azure_disk: AzureDiskVolume | None = None
    host_path: HostPath | None = None
    local: HostPath | None = None
    flex_volume: InlineShare | None = None
    iscsi: NetworkDisk | None = None
    cephfs: NetworkDisk | None = None
    rbd: NetworkDisk | None = None


@api_object("v1/persistentvolumes", "PersistentVolume", namespaced=False)
class PersistentVolume(KubernetesObject):
    spec: VolumeSpec = VolumeSpec()


@api_object("snapshot.storage.k8s.io/v1/volumesnapshotclasses", "VolumeSnapshotClass", namespaced=False)
class VolumeSnapshotClass(KubernetesObject):
    driver: str | None = None
    parameters: FreeMap[str] | None = None

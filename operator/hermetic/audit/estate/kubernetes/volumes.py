"""Volumes of pods, PersistentVolumes, and the classes that make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, api_object
from hermetic.audit.estate.resource import Part


class VolumeMount(Part):
    name: str = ""
    read_only: bool | None = None


class HostPath(Part):
    path: str = ""


class InlineShare(Part):
    """A share that the pod defines inline, without a PersistentVolume."""

    driver: str | None = None
    read_only: bool | None = None
    server: str | None = None
    volume_attributes: FreeMap[str] | None = None


class PodImageVolume(Part):
    reference: str | None = None


class GitRepo(Part):
    repository: str | None = None


class SecretVolume(Part):
    """Keys of a Secret as files; `name` where it is a source of a projected volume."""

    secret_name: str | None = None
    name: str | None = None


class ServiceAccountToken(Part):
    """A token of the pod's service account; without an audience, for the API server."""

    audience: str | None = None


class Source(Part):
    secret: SecretVolume | None = None
    service_account_token: ServiceAccountToken | None = None


class Projected(Part):
    """Several sources as one volume."""

    sources: list[Source] | None = None


class NetworkDisk(Part):
    """A network disk or file system of an in-tree driver."""

    target_portal: str | None = None
    portals: list[str] | None = None
    monitors: list[str] | None = None
    endpoints: str | None = None


class Volume(Part):
    """A volume of the pod; `nfs`, `azure_file` and `csi` are those without a PersistentVolume."""

    name: str = ""
    host_path: HostPath | None = None
    nfs: InlineShare | None = None
    azure_file: InlineShare | None = None
    csi: InlineShare | None = None
    image: PodImageVolume | None = None
    git_repo: GitRepo | None = None
    flex_volume: InlineShare | None = None
    iscsi: NetworkDisk | None = None
    cephfs: NetworkDisk | None = None
    rbd: NetworkDisk | None = None
    secret: SecretVolume | None = None
    projected: Projected | None = None


def without_plain_volumes(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A pod's spec without volumes and mounts that no check reads; Secrets and tokens matter in a model server only."""
    volumes = spec.get("volumes")
    if not isinstance(volumes, list):
        volumes = []
    if not _has_gpu(spec):
        volumes = [_without(volume, ("secret", "projected")) for volume in volumes]
    relevant = [volume for volume in volumes if not isinstance(volume, Mapping) or volume.keys() - {"name"}]
    names = {volume.get("name") for volume in relevant if isinstance(volume, Mapping)}
    reduced = {key: value for key, value in spec.items() if key != "volumes"} | (
        {"volumes": relevant} if relevant else {}
    )
    for sort in ("containers", "initContainers", "ephemeralContainers"):
        if isinstance(spec.get(sort), list):
            reduced[sort] = [_without_mounts(container, names) for container in spec[sort]]
    return reduced


def _has_gpu(spec: Mapping[str, Any]) -> bool:
    sorts = (spec.get(sort) for sort in ("containers", "initContainers", "ephemeralContainers"))
    some = (container for sort in sorts if isinstance(sort, list) for container in sort)
    return any(isinstance(container, Mapping) and container.get("resources") for container in some)


def _without(volume: Any, sources: tuple[str, ...]) -> Any:
    if not isinstance(volume, Mapping):
        return volume
    return {key: value for key, value in volume.items() if key not in sources}


def _without_mounts(container: Any, names: set[Any]) -> Any:
    mounts = container.get("volumeMounts") if isinstance(container, Mapping) else None
    if not isinstance(mounts, list):
        return container
    relevant = [mount for mount in mounts if not isinstance(mount, Mapping) or mount.get("name") in names]
    other_fields = {key: value for key, value in container.items() if key != "volumeMounts"}
    return {**other_fields, "volumeMounts": relevant} if relevant else other_fields


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

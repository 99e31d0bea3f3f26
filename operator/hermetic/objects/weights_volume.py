"""The share as a PersistentVolume and a pre-bound claim: always CSI, read-only, reclaim policy Retain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hermetic.api.weights import AzureFiles, Nfs
from hermetic.engines.adapters import Sources, mounted_folder
from hermetic.objects.names import MODEL_LABEL, NAMESPACE_LABEL, OWNER_UID_LABEL, Owner, labels, metadata, volume_names

AZURE_FILES_DRIVER = "file.csi.azure.com"
NFS_DRIVER = "nfs.csi.k8s.io"

# Nominal: a pre-bound claim provisions nothing, and a storage quota should not be charged for an existing share.
CAPACITY = "1Gi"


@dataclass(frozen=True, slots=True)
class Share:
    """A share in the parameters of its CSI driver."""

    driver: str
    handle: str
    attributes: dict[str, str]
    mount_options: tuple[str, ...]


def share_of(sources: Sources) -> Share | None:
    """The share that needs a PersistentVolume; None for every other source.

    Its folder is the deepest one that holds the model and its adapters: no pod of the namespace reads more of it.
    """
    weights = sources.weights
    if weights.azure_files is not None:
        return _azure_files(weights.azure_files, mounted_folder(sources))
    if weights.nfs is not None:
        return _nfs(weights.nfs, mounted_folder(sources))
    return None


def storage_account(share: AzureFiles) -> str:
    """The first element of the export: the account, or the first label of a FileShares host name."""
    if share.account is not None:
        return share.account
    assert share.server is not None  # noqa: S101 - guarded by the rule of AzureFiles
    return share.server.split(".", 1)[0]


def persistent_volume(owner: Owner, engine: str, share: Share) -> dict[str, Any]:
    """The share as a volume. Its owner is a label with a uid: a namespaced object cannot own a cluster-scoped one."""
    volume, claim = volume_names(owner, _identity(share))
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume,
            "labels": {
                **labels(owner, engine),
                MODEL_LABEL: owner.name,
                NAMESPACE_LABEL: owner.namespace,
                OWNER_UID_LABEL: owner.uid,
            },
        },
        "spec": _volume_spec(share, volume, owner.namespace, claim),
    }


def persistent_volume_claim(owner: Owner, engine: str, share: Share) -> dict[str, Any]:
    """The claim that is bound to this volume only."""
    volume, claim = volume_names(owner, _identity(share))
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(owner, engine, claim),
        "spec": _claim_spec(volume),
    }


def platform_volumes(namespace: str, name: str, share: Share) -> tuple[dict[str, Any], dict[str, Any]]:
    """Volume and claim for the platform team to create and keep: without owner and without Hermetic's labels.

    The names depend on the share, namespace and deployment alone: printing them again gives the same objects.
    """
    # Without a uid, 'b' of 'team-a' and 'a-b' of 'team' would have one volume name: no name contains a slash.
    volume, claim = volume_names(Owner(namespace, name, uid=f"{namespace}/{name}"), _identity(share))
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": _volume_spec(share, volume, namespace, claim),
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": namespace},
            "spec": _claim_spec(volume),
        },
    )


def _volume_spec(share: Share, volume: str, namespace: str, claim: str) -> dict[str, Any]:
    return {
        "capacity": {"storage": CAPACITY},
        "accessModes": ["ReadOnlyMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": claim,
        },
        # 'ro' is what makes the mount read-only; the volume's own flag does not.
        "mountOptions": ["ro", *share.mount_options],
        "csi": {
            "driver": share.driver,
            # One handle per volume: two folders of one share must not use the same staging path.
            "volumeHandle": f"{share.handle}#{volume}",
            "readOnly": True,
            "volumeAttributes": share.attributes,
        },
    }


def _claim_spec(volume: str) -> dict[str, Any]:
    return {
        "accessModes": ["ReadOnlyMany"],
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "volumeName": volume,
        "resources": {"requests": {"storage": CAPACITY}},
    }


def claim_name(owner: Owner, share: Share) -> str:
    """Name of the claim that the pods mount."""
    return volume_names(owner, _identity(share))[1]


def volume_name(owner: Owner, share: Share) -> str:
    """Name of the volume that the claim is bound to."""
    return volume_names(owner, _identity(share))[0]


def _identity(share: Share) -> dict[str, Any]:
    return {
        "driver": share.driver,
        "handle": share.handle,
        "attributes": share.attributes,
        "mountOptions": list(share.mount_options),
    }


def _azure_files(share: AzureFiles, folder: str) -> Share:
    account = storage_account(share)
    attributes = {
        "protocol": "nfs",
        "storageAccount": account,
        "shareName": share.share,
        # The driver's default is a chmod after the mount, which fails on a read-only or root-squashed share.
        "mountPermissions": "0",
        "fsGroupChangePolicy": "None",
        "encryptInTransit": "true" if share.encrypt_in_transit else "false",
    }
    optional = {"server": share.server, "folderName": folder or None, "resourceGroup": share.resource_group}
    return Share(
        driver=AZURE_FILES_DRIVER,
        handle=f"{share.resource_group or ''}#{account}#{share.share}",
        attributes={**attributes, **{key: value for key, value in optional.items() if value is not None}},
        mount_options=tuple(share.mount_options),
    )


def _nfs(share: Nfs, folder: str) -> Share:
    exported = f"{share.path}/{folder}" if folder else share.path
    return Share(
        driver=NFS_DRIVER,
        handle=f"{share.server}#{exported.lstrip('/')}",
        attributes={"server": share.server, "share": exported, "mountPermissions": "0"},
        mount_options=tuple(share.mount_options),
    )

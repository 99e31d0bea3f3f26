"""Storage that lies outside, or on the node itself."""

from __future__ import annotations

from testbed.kubernetes_plants.pieces import OUTSIDE, manifest, put, put_pod
from testbed.kubernetes_plants.plant import Manifest, Manifests, plant

STORAGE = "k8s-outside-storage"


def storage_class(manifests: Manifests, provisioner: str, parameters: Manifest) -> str:
    """The StorageClass way-out."""
    version = "storage.k8s.io/v1"
    return put(manifests, manifest(version, "StorageClass", "way-out", provisioner=provisioner, parameters=parameters))


def volume(manifests: Manifests, spec: Manifest) -> str:
    """The PersistentVolume way-out, mounted read-only."""
    return put(manifests, manifest("v1", "PersistentVolume", "way-out", spec={"mountOptions": ["ro"], **spec}))


@plant(STORAGE, "high", "csi-driver-nfs: driver parameters")
def class_of_a_server_outside(manifests: Manifests) -> str:
    """A class makes volumes on a public NFS server."""
    return storage_class(manifests, "nfs.csi.k8s.io", {"server": "203.0.113.7", "share": "/"})


@plant(STORAGE, "high", "csi-driver-smb: driver parameters")
def class_of_a_share_outside(manifests: Manifests) -> str:
    """A class makes volumes on a share outside."""
    return storage_class(manifests, "smb.csi.k8s.io", {"source": f"//{OUTSIDE}/share"})


@plant(STORAGE, "high", "azurefile-csi-driver: driver parameters")
def class_of_another_subscription(manifests: Manifests) -> str:
    """A class makes shares in a subscription that is not ours."""
    foreign = {"subscriptionID": "99999999-9999-9999-9999-999999999999"}
    return storage_class(manifests, "file.csi.azure.com", foreign)


@plant(STORAGE, "high", "Mountpoint for Amazon S3 CSI driver")
def volume_in_a_bucket(manifests: Manifests) -> str:
    """A volume is a bucket of another cloud."""
    return volume(manifests, {"csi": {"driver": "s3.csi.aws.com", "volumeHandle": "x"}})


@plant(STORAGE, "high", "blob-csi-driver: driver parameters")
def volume_of_a_server_outside(manifests: Manifests) -> str:
    """A volume of Azure's driver names a server outside."""
    attributes = {"protocol": "nfs", "server": OUTSIDE}
    return volume(manifests, {"csi": {"driver": "blob.csi.azure.com", "volumeAttributes": attributes}})


@plant(STORAGE, "high", "Kubernetes: Volumes, nfs")
def volume_of_a_public_nfs_server(manifests: Manifests) -> str:
    """A volume is mounted from a public NFS server."""
    return volume(manifests, {"nfs": {"server": "203.0.113.7", "path": "/"}})


@plant(STORAGE, "high", "Kubernetes: Volumes, iscsi")
def disk_outside(manifests: Manifests) -> str:
    """A volume is a disk at a public address."""
    return volume(manifests, {"iscsi": {"targetPortal": "203.0.113.7:3260", "iqn": "iqn.x"}})


@plant(STORAGE, "high", "Mountpoint for Amazon S3 CSI driver: mount options")
def endpoint_among_the_mount_options(manifests: Manifests) -> str:
    """A volume's mount options name an endpoint outside."""
    options = ["ro", f"endpoint-url=https://{OUTSIDE}"]
    return volume(manifests, {"csi": {"driver": "object.csi.internal"}, "mountOptions": options})


@plant(STORAGE, "high", "Kubernetes: Volumes, hostPath")
def volume_of_the_nodes_own_folder(manifests: Manifests) -> str:
    """A volume of the cluster is the node's /etc."""
    return volume(manifests, {"hostPath": {"path": "/etc"}})


@plant(STORAGE, "high", "Kubernetes: Volumes, local")
def volume_of_the_whole_node(manifests: Manifests) -> str:
    """A local volume of the cluster is the whole node."""
    return volume(manifests, {"local": {"path": "/./"}})


@plant(STORAGE, "high", "azuredisk-csi-driver: snapshot")
def snapshots_in_another_subscription(manifests: Manifests) -> str:
    """Snapshots are made in a subscription that is not ours."""
    fields: Manifest = {"parameters": {"subscriptionID": "99999999-9999-9999-9999-999999999999"}}
    version, kind = "snapshot.storage.k8s.io/v1", "VolumeSnapshotClass"
    return put(manifests, manifest(version, kind, "way-out", driver="disk.csi.azure.com", **fields))


@plant(STORAGE, "high", "Kubernetes: Volumes, nfs", also=("weights-share-writable",))
def share_of_the_pods_own_outside(manifests: Manifests) -> str:
    """A pod mounts a public NFS server by itself."""
    share = {"name": "share", "nfs": {"server": "203.0.113.7", "path": "/", "readOnly": True}}
    return put_pod(manifests, spec={"volumes": [share]})


@plant(STORAGE, "high", "Kubernetes: CSI ephemeral volumes")
def inline_volume_of_a_server_outside(manifests: Manifests) -> str:
    """A pod has a volume of a driver that it gives a server outside."""
    csi = {"driver": "files.csi.internal", "readOnly": True, "volumeAttributes": {"server": OUTSIDE}}
    return put_pod(manifests, spec={"volumes": [{"name": "share", "csi": csi}]})


@plant(STORAGE, "high", "Kubernetes: CSI ephemeral volumes")
def inline_volume_with_a_server_among_its_mount_options(manifests: Manifests) -> str:
    """A pod has a volume whose mount options name a server outside by a number."""
    csi = {"driver": "files.csi.internal", "readOnly": True, "volumeAttributes": {"mountOptions": "ro,addr=3405803783"}}
    return put_pod(manifests, spec={"volumes": [{"name": "share", "csi": csi}]})


@plant(STORAGE, "high", "Kubernetes: Volumes, iscsi")
def disk_of_the_pods_own_outside(manifests: Manifests) -> str:
    """A pod mounts a disk at a public address by itself."""
    disk = {"name": "disk", "iscsi": {"targetPortal": "203.0.113.7:3260", "iqn": "iqn.2001-04.com.example:x", "lun": 0}}
    return put_pod(manifests, spec={"volumes": [disk]})


@plant(STORAGE, "high", "Kubernetes: Volumes, nfs", also=("weights-share-writable",))
def share_at_an_octal_address(manifests: Manifests) -> str:
    """A pod mounts a server by numbers that programs read as octal: 8.8.8.8, or no address at all."""
    share = {"name": "share", "nfs": {"server": "10.010.010.010", "path": "/", "readOnly": True}}
    return put_pod(manifests, spec={"volumes": [share]})


@plant(STORAGE, "high", "Kubernetes: CSI ephemeral volumes")
def inline_volume_with_an_endpoint_outside(manifests: Manifests) -> str:
    """A pod has a volume of a driver whose attribute for the endpoint is not a common one."""
    csi = {"driver": "files.csi.internal", "readOnly": True, "volumeAttributes": {"nfsServer": OUTSIDE}}
    return put_pod(manifests, spec={"volumes": [{"name": "share", "csi": csi}]})

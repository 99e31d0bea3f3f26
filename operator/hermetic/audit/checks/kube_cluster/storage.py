"""Storage that opens a way out by itself, and shares that can be written to."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import VOLUMES
from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.storage import PersistentVolume, StorageClass
from hermetic.audit.estate.kubernetes.volumes import InlineShare, Volume
from hermetic.audit.evaluation import Judgement, cannot_say, fails
from hermetic.audit.hops import Hop, path_of
from hermetic.audit.kube_findings import counted, everywhere, objections, settled
from hermetic.audit.policy import Policy
from hermetic.audit.topology import PlaceKind
from hermetic.audit.workloads import pods_and_templates

AZURE_FILES = frozenset({"file.csi.azure.com", "kubernetes.io/azure-file"})
AZURE_BLOBS = "blob.csi.azure.com"  # adds the endpoint too, and is not known to omit it with privateEndpoint
SHARES = frozenset({"file.csi.azure.com", "nfs.csi.k8s.io", "blob.csi.azure.com", "smb.csi.k8s.io"})
ENDPOINT = "networkEndpointType"
PRIVATE = "privateEndpoint"


@check("csi-nfs-storageclass")
def csi_nfs_storageclass(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """An NFS class of Azure Files without a private endpoint adds a storage service endpoint to every subnet."""
    classes = everywhere(estate, StorageClass)

    def judge(storage_class: StorageClass) -> Iterator[Judgement]:
        parameters = {key.lower(): value for key, value in (storage_class.parameters or {}).items()}
        if storage_class.provisioner not in {*AZURE_FILES, AZURE_BLOBS} or not is_nfs(parameters):
            return
        endpoint = parameters.get(ENDPOINT.lower(), "")
        if endpoint == PRIVATE and storage_class.provisioner in AZURE_FILES:
            return
        if endpoint.lower() == PRIVATE.lower():
            message = f"{ENDPOINT} is {endpoint}; it is known to count for Azure Files, spelt {PRIVATE}, and not else"
            yield cannot_say(storage_class.id, "EndpointTypeUnclear", message, storage_class)
            return
        yield fails(
            storage_class.id,
            "NfsWithoutPrivateEndpoint",
            f"makes NFS shares without {ENDPOINT}: {PRIVATE}: the first one adds a service endpoint to every subnet",
            storage_class,
            paths=(
                path_of(
                    "claim",
                    "CSI controller",
                    Hop(PlaceKind.SERVICE_ENDPOINT, "service endpoint on every subnet"),
                    hops.storage("any storage account"),
                ),
            ),
        )

    fine = (
        f"{counted(len(classes), 'StorageClass', 'StorageClasses')}: none makes NFS shares without a private endpoint"
    )
    yield from settled(estate, objections(classes, judge), "NoOpenNfsClass", fine, classes)


@check("weights-share-writable")
def weights_share_writable(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Only the mount option `ro` makes a share read-only; access modes and the volume's `readOnly` do not."""
    volumes, pods = everywhere(estate, PersistentVolume), pods_and_templates(estate)

    def judge_volume(volume: PersistentVolume) -> Iterator[Judgement]:
        if _is_share(volume) and "ro" not in (volume.spec.mount_options or ()):
            message = "a share without the mount option `ro`: all who may mount it can leave data there for others"
            yield fails(volume.id, "ShareWritable", message, volume)

    def judge_pod(pod: Pod) -> Iterator[Judgement]:
        if pod.has_ended:
            return
        names = tuple(one.name for one in pod.spec.volumes or () if _is_writable_inline(pod, one))
        if names:
            yield fails(
                pod.workload,
                "ShareWritable",
                f"mounts a share it can write to: {', '.join(names)}",
                pod,
                blames=(VOLUMES,),
            )

    said = (*objections(volumes, judge_volume), *objections(pods, judge_pod))
    fine = f"{counted(len(volumes), 'PersistentVolume')}: every share among them is mounted read-only"
    yield from settled(estate, said, "SharesReadOnly", fine, volumes, pods)


def is_nfs(parameters: dict[str, str]) -> bool:
    """Whether a StorageClass with these parameters (in lower case) creates NFS shares."""
    kinds = (parameters.get("protocol"), parameters.get("fstype"), parameters.get("csi.storage.k8s.io/fstype"))
    return any((kind or "").lower() == "nfs" for kind in kinds)


def _is_share(volume: PersistentVolume) -> bool:
    spec = volume.spec
    by_driver = spec.csi is not None and spec.csi.driver in SHARES
    return by_driver or spec.nfs is not None or spec.azure_file is not None


def _is_writable_inline(pod: Pod, volume: Volume) -> bool:
    share = _inline_share(volume)
    if share is None or share.read_only:
        return False
    mounts = [one for container in pod.containers for one in container.volume_mounts or () if one.name == volume.name]
    return any(not mount.read_only for mount in mounts)


def _inline_share(volume: Volume) -> InlineShare | None:
    if volume.csi is not None and volume.csi.driver in SHARES:
        return volume.csi
    return volume.nfs or volume.azure_file

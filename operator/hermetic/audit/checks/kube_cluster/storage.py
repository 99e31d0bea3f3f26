"""Storage that opens an egress path by itself or lies outside, and shares that can be written to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from hermetic.api.field_managers import SPEC, VOLUMES
from hermetic.api.ip_ranges import is_address, leads_outside
from hermetic.audit.checks.family import check
from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.cluster.workloads import pods_and_templates
from hermetic.audit.estate.arm_ids import subscription_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.callers import names_an_address
from hermetic.audit.estate.kubernetes.host_paths import gives_the_node_away
from hermetic.audit.estate.kubernetes.kept_annotations import MOUNT_OPTIONS
from hermetic.audit.estate.kubernetes.names import host_outside, is_outside, outside
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.volumes import (
    InlineShare,
    NetworkDisk,
    PersistentVolume,
    StorageClass,
    Volume,
    VolumeSnapshotClass,
)
from hermetic.audit.evaluation.each_object import counted, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import POD, Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy

AZURE_FILES = frozenset({"file.csi.azure.com", "kubernetes.io/azure-file"})
AZURE_BLOBS = "blob.csi.azure.com"  # adds the endpoint too, and is not known to omit it with privateEndpoint
SHARES = frozenset({"file.csi.azure.com", "nfs.csi.k8s.io", "blob.csi.azure.com", "smb.csi.k8s.io"})
ENDPOINT = "networkEndpointType"
PRIVATE = "privateEndpoint"
# Drivers whose data is in a service on the internet, independently of their parameters.
OUTSIDE_DRIVERS = frozenset(
    {
        "blobfuse.csi.google.com",
        "ebs.csi.aws.com",
        "efs.csi.aws.com",
        "filestore.csi.storage.gke.io",
        "fsx.csi.aws.com",
        "gcsfuse.csi.storage.gke.io",
        "pd.csi.storage.gke.io",
        "ru.yandex.s3.csi",
        "s3.csi.aws.com",
        "s3.csi.scality.com",
        "csi-s3",
    }
)
# Parameters and attributes with a host without a scheme, in lower case, beside those that `names_an_address` knows.
SERVERS = frozenset(
    {"server", "share", "source", "storageendpoint", "endpoint", "monitors", "host", "address", "addresses", "portal"}
)
# Mount options with a host or an address: `ip`, `addr`, `unc`, `source` (mount.cifs(8), fs/smb/client/fs_context.c of
# Linux), `clientaddr`, `mountaddr`, `mounthost` (nfs(5), fs/nfs/fs_context.c), `mon_addr` (mount.ceph(8)).
_OF_A_SERVER = re.compile(r"(^ip|addr|address|host|servers?|unc|source|ur[il]|endpoint|monitors)$")
_BETWEEN = re.compile(r"[,;|\s]+")
_MOUNT_OPTIONS = "mountoptions"
_SUFFIX = "storageendpointsuffix"
_SUBSCRIPTION = "subscriptionid"


@check("csi-nfs-storageclass")
def csi_nfs_storageclass(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """An NFS class of Azure Files without a private endpoint adds a storage service endpoint to every subnet."""
    classes = everywhere(estate, StorageClass)

    def evaluate(storage_class: StorageClass) -> Iterator[CheckResult]:
        parameters = {key.lower(): value for key, value in (storage_class.parameters or {}).items()}
        if storage_class.provisioner not in {*AZURE_FILES, AZURE_BLOBS} or not is_nfs(parameters):
            return
        endpoint = parameters.get(ENDPOINT.lower(), "")
        if endpoint == PRIVATE and storage_class.provisioner in AZURE_FILES:
            return
        if endpoint.lower() == PRIVATE.lower():
            message = f"{ENDPOINT} is {endpoint}; it is known to have an effect for Azure Files alone, spelt {PRIVATE}"
            yield unknown(storage_class.id, "EndpointTypeUnclear", message, storage_class)
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
    yield from settled(estate, objections(classes, evaluate), "NoOpenNfsClass", fine, classes)


# mountOptions of a volume can be changed, and count from the next mount: kubernetes.io/docs/concepts/storage/
# persistent-volumes, mount options.
_READ_ONLY = """
Mount the volume read-only, and make the claim and the mount of each pod readOnly: true. Stage weights from outside.
Warning: pods that write to the volume fail at the next mount. The command replaces the mount options that are there.
kubectl patch persistentvolume NAME --type merge --patch '{"spec":{"mountOptions":["ro"]}}'
"""


@check("weights-share-writable")
def weights_share_writable(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """Only the mount option `ro` makes a share read-only; access modes and the volume's `readOnly` do not."""
    volumes, pods = everywhere(estate, PersistentVolume), pods_and_templates(estate)

    def evaluate_volume(volume: PersistentVolume) -> Iterator[CheckResult]:
        if _is_share(volume) and "ro" not in (volume.spec.mount_options or ()):
            message = "a share without the mount option `ro`: all who may mount it can leave data there for others"
            yield fails(volume.id, "ShareWritable", message, volume, remedy=_READ_ONLY)

    def evaluate_pod(pod: Pod) -> Iterator[CheckResult]:
        if pod.has_ended:
            return
        names = tuple(volume.name for volume in pod.spec.volumes or () if _is_writable_inline(pod, volume))
        if names:
            yield fails(
                pod.workload,
                "ShareWritable",
                f"mounts a share it can write to: {', '.join(names)}",
                pod,
                blames=(VOLUMES,),
            )

    results = (*objections(volumes, evaluate_volume), *objections(pods, evaluate_pod))
    fine = f"{counted(len(volumes), 'PersistentVolume')}: every share among them is mounted read-only"
    yield from settled(estate, results, "SharesReadOnly", fine, volumes, pods)


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
    mounts = [
        mount for container in pod.containers for mount in container.volume_mounts or () if mount.name == volume.name
    ]
    return any(not mount.read_only for mount in mounts)


def _inline_share(volume: Volume) -> InlineShare | None:
    if volume.csi is not None and volume.csi.driver in SHARES:
        return volume.csi
    return volume.nfs or volume.azure_file


@check("k8s-outside-storage")
def k8s_outside_storage(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """No class, volume or pod names a server outside, another cloud environment, or a folder of the node."""
    classes, volumes = everywhere(estate, StorageClass), everywhere(estate, PersistentVolume)
    snapshots, pods = everywhere(estate, VolumeSnapshotClass), pods_and_templates(estate)

    ours = (policy, subscription_of(estate.cluster))
    makers = (
        *objections(
            classes,
            lambda storage_class: _evaluate_class(
                storage_class, storage_class.provisioner or "", storage_class.mount_options or (), *ours
            ),
        ),
        *objections(
            snapshots, lambda snapshot_class: _evaluate_class(snapshot_class, snapshot_class.driver or "", (), *ours)
        ),
    )
    results = (*makers, *objections(volumes, _evaluate_volume), *objections(pods, _evaluate_pod))
    fine = f"{counted(len(volumes), 'PersistentVolume')} and their classes: none names a server outside"
    yield from settled(estate, results, "StorageInside", fine, classes, volumes, snapshots, pods)


_CLASS = """
Let the class name a server inside, or delete it: volumes that it made stay. A subscription that is yours: list it under
`ownSubscriptions` in the file given to --policy.
Warning: claims that name the class get no volume from then on.
kubectl delete KIND NAME
"""
_VOLUME = """
Make the volume again with a server inside, and let its claim name the new one.
Warning: pods that use the volume lose it, and with the reclaim policy Delete its data is deleted as well.
kubectl delete persistentvolume NAME
"""


def _evaluate_class(
    storage_class: StorageClass | VolumeSnapshotClass, driver: str, options: Iterable[str], policy: Policy, own: str
) -> Iterator[CheckResult]:
    parameters = storage_class.parameters or {}
    if destinations := _leads_to(driver, parameters, options):
        yield _fails(storage_class.id, destinations, storage_class, remedy=_CLASS)
    subscription = next((value for key, value in parameters.items() if key.lower() == _SUBSCRIPTION and value), "")
    if subscription and not policy.owns(subscription, own):
        message = f"makes what it makes in subscription {subscription}, which is not known as ours"
        path = path_of("claim", subscription)
        yield fails(storage_class.id, "SubscriptionForeign", message, storage_class, paths=(path,), remedy=_CLASS)


def _evaluate_volume(volume: PersistentVolume) -> Iterator[CheckResult]:
    if destinations := tuple(dict.fromkeys(_volume_leads_to(volume))):
        yield _fails(volume.id, destinations, volume, remedy=_VOLUME)
    for folder in (volume.spec.host_path, volume.spec.local):
        if folder is not None and gives_the_node_away(folder.path):
            yield fails(volume.id, "FolderOfTheNode", f"is the node's {folder.path}", volume, remedy=_VOLUME)
    if volume.spec.flex_volume is not None:
        message = f"is a FlexVolume of {volume.spec.flex_volume.driver}: whom that program calls is not read"
        yield unknown(volume.id, "FlexVolume", message, volume)


def _evaluate_pod(pod: Pod) -> Iterator[CheckResult]:
    destinations = tuple(
        dict.fromkeys(where for volume in pod.spec.volumes or () for where in _inline_leads_to(volume))
    )
    if destinations and not pod.has_ended:
        yield _fails(pod.workload, destinations, pod)


def _fails(
    resource: str,
    destinations: tuple[str, ...],
    observation: StorageClass | VolumeSnapshotClass | PersistentVolume | Pod,
    remedy: str = "",
) -> CheckResult:
    message = f"its data lies at {', '.join(destinations[:3])}"
    return fails(
        resource,
        "StorageOutside",
        message,
        observation,
        paths=(path_of(POD, "volume", destinations[0]),),
        remedy=remedy,
        blames=(VOLUMES, SPEC),
    )


def _leads_to(driver: str, attributes: Mapping[str, str], options: Iterable[str]) -> tuple[str, ...]:
    destinations = [f"{driver}, a service on the internet"] if driver in OUTSIDE_DRIVERS else []
    for key, value in attributes.items():
        destinations += outside(value)
        name = key.lower()
        if (name in SERVERS or names_an_address(name)) and "://" not in value:
            destinations += _servers(value)
        elif name.endswith(_MOUNT_OPTIONS):
            destinations += _servers_of_options((value,))
        elif name == _SUFFIX and is_outside(f"account.file.{value}") and is_outside(f"account.blob.{value}"):
            destinations.append(value)
    destinations += _servers_of_options(options)
    return tuple(dict.fromkeys(destinations))


def _servers_of_options(options: Iterable[str]) -> Iterator[str]:
    """Servers outside among mount options: the client connects to these, whatever the source of the volume says."""
    for option in (option for text in options for option in _BETWEEN.split(text)):
        yield from outside(option)
        key, _, value = option.partition("=")
        value = value.strip("'\"")
        if "://" not in value and _OF_A_SERVER.search(key.strip("-").lower()):
            yield from _servers(value.replace("/", ",") if key.startswith("mon") else value)
        elif leads_outside(value):
            yield value


def _servers(value: str) -> Iterator[str]:
    """Servers outside in a list of hosts, of shares (//host/share, \\\\host\\share) or of exports (host:/path)."""
    for entry in _BETWEEN.split(value.replace("\\", "/")):
        host = entry.removeprefix("//").partition("/")[0].rpartition("@")[2].removesuffix(":")
        if is_address(host):
            yield from (host,) if is_outside(host) else ()
        elif outside_host := host_outside(host.partition(":")[0] if host.count(":") == 1 else host):
            yield outside_host


def _volume_leads_to(volume: PersistentVolume) -> Iterator[str]:
    spec = volume.spec
    yield from _servers_of_options((*(spec.mount_options or ()), volume.annotations.get(MOUNT_OPTIONS, "")))
    if spec.csi is not None:
        yield from _leads_to(spec.csi.driver or "", spec.csi.volume_attributes or {}, ())
    elif spec.nfs is not None:
        yield from _leads_to("", {"server": spec.nfs.server or ""}, ())
    yield from _disks(spec.iscsi, spec.cephfs, spec.rbd)


def _inline_leads_to(volume: Volume) -> Iterator[str]:
    for share in (volume.csi, volume.nfs):
        if share is not None:
            yield from _share(share)
    yield from _disks(volume.iscsi, volume.cephfs, volume.rbd)


def _share(share: InlineShare) -> tuple[str, ...]:
    server = {"server": share.server} if share.server else {}
    return _leads_to(share.driver or "", {**(share.volume_attributes or {}), **server}, ())


def _disks(*disks: NetworkDisk | None) -> Iterator[str]:
    for disk in disks:
        if disk is not None:
            some = (disk.target_portal or "", *(disk.portals or ()), *(disk.monitors or ()))
            yield from (host for address in some for host in _servers(address))

"""Which Azure storage a volume uses, as far as the volume itself names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.volumes import CsiVolume, InlineShare, PersistentVolume

AZURE_DRIVERS = frozenset({"file.csi.azure.com", "blob.csi.azure.com"})
ACCOUNT_ATTRIBUTES = ("storageaccount", "storageaccountname")
AZURE_FILE_HOST = ".file."
AZURE_BLOB_HOSTS = (
    ".blob.core.windows.net",
    ".blob.core.usgovcloudapi.net",
    ".blob.core.chinacloudapi.cn",
    ".blob.storage.azure.net",
)


@dataclass(frozen=True, slots=True)
class VolumeStorage:
    """Where the data of a volume is; `name` names the volume, or the pod that defines it inline, for readers."""

    name: str
    driver: str
    handle: str
    attributes: Mapping[str, str]
    server: str
    by_the_old_driver: bool

    @property
    def is_in_azure(self) -> bool:
        """Whether it is a volume of an Azure driver, the in-tree driver included."""
        return self.by_the_old_driver or self.driver in AZURE_DRIVERS

    @property
    def accounts(self) -> tuple[str, ...]:
        """Names of accounts, or first labels of hosts, which are names of accounts or shares; in lower case.

        May be empty: the in-tree driver names only a secret that holds the account, and the CSI drivers may do so too.
        """
        attributes = {key.lower(): value for key, value in self.attributes.items()}
        account = _account(self.handle, attributes) if self.driver in AZURE_DRIVERS else ""
        hosts = (self.server, attributes.get("server"), _host_of_share(attributes.get("source")))
        return (*filter(None, (account,)), *(first_label(host) for host in hosts if host and _is_azures(host)))


def storage_of(volume: PersistentVolume) -> VolumeStorage:
    spec = volume.spec
    csi, nfs = spec.csi or CsiVolume(), spec.nfs
    return VolumeStorage(
        f"PersistentVolume {volume.metadata.name}",
        csi.driver or "",
        csi.volume_handle or "",
        csi.volume_attributes or {},
        (nfs.server if nfs is not None else None) or "",
        by_the_old_driver=spec.azure_file is not None,
    )


def storage_in(pod: Pod) -> Iterator[VolumeStorage]:
    """The storage of a pod's inline volumes."""
    for volume in pod.spec.volumes or ():
        csi, nfs = volume.csi or InlineShare(), volume.nfs
        if volume.csi is not None or nfs is not None or volume.azure_file is not None:
            yield VolumeStorage(
                f"volume {volume.name} of {pod.workload}",
                csi.driver or "",
                "",
                csi.volume_attributes or {},
                (nfs.server if nfs is not None else None) or "",
                by_the_old_driver=volume.azure_file is not None,
            )


def first_label(host: str | None) -> str:
    """The part of a host name before the first dot, in lower case."""
    return (host or "").lower().split(".")[0]


def _account(handle: str, attributes: Mapping[str, str]) -> str:
    """The account as the drivers find it: an attribute, or the second field of the handle, group#account#share#…"""
    named = next((attributes[key] for key in ACCOUNT_ATTRIBUTES if attributes.get(key)), "")
    fields = handle.split("#")
    return (named or (fields[1] if len(fields) >= 3 else "")).lower()


def _host_of_share(source: str | None) -> str:
    """The host of //host/share."""
    return (source or "").lstrip("/").partition("/")[0]


def _is_azures(host: str) -> bool:
    folded = host.lower().rstrip(".")
    return AZURE_FILE_HOST in folded or folded.endswith(AZURE_BLOB_HOSTS)

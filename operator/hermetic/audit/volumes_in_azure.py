"""Which storage of Azure a volume leads to, as far as the volume itself names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermetic.audit.estate.kubernetes.storage import CsiVolume, PersistentVolume

AZURE_DRIVERS = frozenset({"file.csi.azure.com", "blob.csi.azure.com"})
ACCOUNT_ATTRIBUTES = ("storageaccount", "storageaccountname")
AZURE_FILE_HOST = ".file."
AZURE_BLOB_HOSTS = (
    ".blob.core.windows.net",
    ".blob.core.usgovcloudapi.net",
    ".blob.core.chinacloudapi.cn",
    ".blob.storage.azure.net",
)


def is_in_azure(volume: PersistentVolume) -> bool:
    """Whether it is a volume of Azure's own drivers, the old one inside Kubernetes included."""
    csi = volume.spec.csi
    return volume.spec.azure_file is not None or (csi is not None and csi.driver in AZURE_DRIVERS)


def names_of(volume: PersistentVolume) -> Iterator[str]:
    """Names of accounts, or first labels of hosts, which are those of accounts and shares; in lower case.

    The old driver names only a secret that holds the account, and so may those of today.
    """
    csi, nfs = volume.spec.csi, volume.spec.nfs
    said = {key.lower(): value for key, value in ((csi.volume_attributes or {}) if csi is not None else {}).items()}
    if csi is not None and csi.driver in AZURE_DRIVERS:
        yield from _accounts(csi, said)
    hosts = (nfs.server if nfs is not None else None, said.get("server"), _host_of_share(said.get("source")))
    yield from (first_label(host) for host in hosts if host and _is_azures(host))


def first_label(host: str | None) -> str:
    """What stands before the first dot of a host's name, in lower case."""
    return (host or "").lower().split(".")[0]


def _accounts(csi: CsiVolume, said: Mapping[str, str]) -> Iterator[str]:
    """As the drivers look for it: an attribute, or the second field of the handle, group#account#share#…"""
    named = next((said[key] for key in ACCOUNT_ATTRIBUTES if said.get(key)), "")
    fields = (csi.volume_handle or "").split("#")
    account = named or (fields[1] if len(fields) >= 3 else "")
    if account:
        yield account.lower()


def _host_of_share(source: str | None) -> str:
    """The host of //host/share."""
    return (source or "").lstrip("/").partition("/")[0]


def _is_azures(host: str) -> bool:
    folded = host.lower().rstrip(".")
    return AZURE_FILE_HOST in folded or folded.endswith(AZURE_BLOB_HOSTS)

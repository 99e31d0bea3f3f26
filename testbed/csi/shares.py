"""Which local folder stands for which volume, and how a share can be made to fail.

A share is a folder of the backing folder, named as the export is:

    BACKING/<storage account>/<share>[/<folder>]      file.csi.azure.com, protocol nfs
    BACKING/<server>/<export path>[/<subDir>]         nfs.csi.k8s.io

Beside the share, `<share>.fault.json` breaks it while it exists:

    {"code": "UNAVAILABLE", "message": "..."}         every mount is answered so (gRPC code names)
    {"delaySeconds": 20}                              every mount takes that long
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

AZURE_FILES = "file.csi.azure.com"
NFS = "nfs.csi.k8s.io"


class BadVolumeError(Exception):
    """The volume's attributes do not name a share; the real driver would refuse them too."""


@dataclass(frozen=True)
class Export:
    """What `mount` is given: `source` as the real driver writes it, `share` and `folder` below the backing folder."""

    source: str
    share: PurePosixPath
    folder: PurePosixPath

    @property
    def path(self) -> PurePosixPath:
        return self.share / self.folder


@dataclass(frozen=True)
class Fault:
    code: str | None
    message: str
    delay_seconds: float


def export_of(driver: str, volume: str, attributes: Mapping[str, str]) -> Export:
    """The export that a volume names. Raises BadVolumeError."""
    return azure_export(volume, attributes) if driver == AZURE_FILES else nfs_export(attributes)


def azure_export(volume: str, attributes: Mapping[str, str]) -> Export:
    """Attributes win over the handle, which reads `resourceGroup#account#share`."""
    if attributes.get("protocol") != "nfs":
        raise BadVolumeError(f"volumeAttributes.protocol must be nfs here, not {attributes.get('protocol')!r}")
    parts = [*volume.split("#"), "", ""]
    account = attributes.get("storageAccount") or parts[1]
    share = attributes.get("shareName") or parts[2]
    if not account or not share:
        raise BadVolumeError(f"failed to get account name or share name from {volume}")
    server = attributes.get("server") or f"{account}.file.core.windows.net"
    folder = relative(attributes.get("folderName", ""))
    below = f"/{folder}" if folder.parts else ""
    return Export(f"{server}:/{account}/{share}{below}", relative(f"{account}/{share}"), folder)


def nfs_export(attributes: Mapping[str, str]) -> Export:
    server, share = attributes.get("server", ""), attributes.get("share", "")
    if not server or not share:
        raise BadVolumeError(f"{'server' if not server else 'share'} is a required parameter")
    folder = relative(attributes.get("subDir", ""))
    below = f"/{folder}" if folder.parts else ""
    return Export(f"{server}:{share.rstrip('/')}{below}", relative(f"{server}/{share}"), folder)


def relative(path: str) -> PurePosixPath:
    """A path that stays below the folder it is put under. Raises BadVolumeError when it would climb out."""
    parts = PurePosixPath("/" + path).parts[1:]
    if ".." in parts:
        raise BadVolumeError(f"{path!r} climbs out of the share")
    return PurePosixPath(*parts)


def fault_file(backing: Path, share: PurePosixPath) -> Path:
    return backing / share.parent / f"{share.name}.fault.json"


def fault_of(backing: Path, share: PurePosixPath) -> Fault | None:
    """The fault that is injected now, or None."""
    try:
        wanted = json.loads(fault_file(backing, share).read_text())
    except FileNotFoundError:
        return None
    return Fault(wanted.get("code"), wanted.get("message", "injected"), float(wanted.get("delaySeconds", 0)))

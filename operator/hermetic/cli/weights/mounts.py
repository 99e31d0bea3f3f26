"""Which share a folder of this host lies on: the mounted NFS export, as `spec.weights` names it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

_MOUNTS = Path("/proc/self/mountinfo")
_NFS = frozenset({"nfs", "nfs4", "aznfs"})
_AZURE = re.compile(r"(?P<account>[a-z0-9]{3,24})\.(?:privatelink\.)?file\.core\.(?P<cloud>[a-z.]+)")
_PUBLIC_CLOUD = "windows.net"
_LOOPBACK = re.compile(r"127\.[0-9.]+|localhost")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def share_of(folder: Path, mounts: str | None = None) -> dict[str, Any] | None:
    """The member of `spec.weights` for a folder, `azureFiles` or `nfs`; None where it lies on no NFS mount.

    `mounts`: the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
    """
    absolute_folder = os.path.abspath(folder)  # noqa: PTH100 - resolve() would follow links
    lines = _lines() if mounts is None else mounts.splitlines()
    mount: tuple[str, str] | None = None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kind) < 2:
            continue
        point = _unescaped(fields[4])
        is_above = absolute_folder == point or absolute_folder.startswith(f"{point.rstrip('/')}/")
        if is_above and (mount is None or len(point) >= len(mount[0])):
            source = f"{_unescaped(kind[1])}{'' if fields[3] == '/' else _unescaped(fields[3])}"
            mount = point, source if kind[0] in _NFS else ""
    if mount is None or ":/" not in mount[1]:
        return None
    server, _, export = mount[1].partition(":/")
    return _member(server, export.strip("/"), absolute_folder[len(mount[0].rstrip("/")) :].strip("/"))


def _member(server: str, export: str, folder: str) -> dict[str, Any]:
    matched = _AZURE.fullmatch(server)
    account, _, remainder = export.partition("/")
    share, _, above = remainder.partition("/")
    # A mount over TLS has stunnel on this host as its server; the export still begins with the storage account.
    if share and (matched or _LOOPBACK.fullmatch(server)):
        cloud = matched["cloud"] if matched else _PUBLIC_CLOUD
        named = {"server": f"{account}.file.core.{cloud}"} if cloud != _PUBLIC_CLOUD else {}
        return {"azureFiles": {"account": account, **named, "share": share, **_folder(above, folder)}}
    return {"nfs": {"server": server, "path": f"/{export}", **_folder("", folder)}}


def _folder(above: str, folder: str) -> dict[str, str]:
    path = "/".join(part for part in (above, folder) if part)
    return {"folder": path} if path else {}


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda matched: chr(int(matched[1], 8)), text)


def _lines() -> list[str]:
    try:
        return _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []

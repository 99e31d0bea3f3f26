"""Folders of the node that give it away: its settings, its secrets, its programs, and sockets of what rules it."""

from __future__ import annotations

import posixpath
from pathlib import PurePosixPath

_SYSTEM = tuple(
    PurePosixPath(path)
    for path in (
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/home",
        "/host",
        "/hostfs",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/opt",
        "/proc",
        "/root",
        "/rootfs",
        "/run",
        "/sbin",
        "/snap",
        "/sys",
        "/usr",
        "/var",
    )
)
# Below those, what holds data, certificates of public authorities or the time, and no secret and no program.
_PLAIN = tuple(
    PurePosixPath(path)
    for path in (
        "/dev/shm",  # noqa: S108 - a folder of the node, not of this process
        "/dev/infiniband",
        "/etc/localtime",
        "/etc/machine-id",
        "/etc/os-release",
        "/etc/pki/ca-trust",
        "/etc/pki/tls/certs",
        "/etc/ssl/certs",
        "/etc/timezone",
        "/usr/lib/os-release",
        "/usr/local/share/ca-certificates",
        "/usr/share/ca-certificates",
        "/usr/share/zoneinfo",
        "/var/log",
        "/var/tmp",  # noqa: S108
    )
)


def gives_the_node_away(path: str) -> bool:
    """Whether a folder of the node is, holds, or lies in one of the system's own."""
    if "\\" in path or path[1:2] == ":" or not path.startswith("/"):
        return True  # of Windows, or nothing that a node could mount
    # Two slashes at the start stay two in POSIX.
    here = PurePosixPath("/" + posixpath.normpath(path).lstrip("/"))
    if any(here.is_relative_to(plain) for plain in _PLAIN):
        return False
    return any(here.is_relative_to(folder) or folder.is_relative_to(here) for folder in _SYSTEM)

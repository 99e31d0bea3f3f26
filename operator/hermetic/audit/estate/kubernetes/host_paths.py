"""Host paths that give control of the node: its settings, secrets, programs, and sockets of its runtimes."""

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
# Below those, paths that hold data, public CA certificates or the time zone, and no secret and no program.
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
    """Whether a host path is, contains, or is below one of the node's system folders, except those of `_PLAIN`."""
    if "\\" in path or path[1:2] == ":" or not path.startswith("/"):
        return True  # a Windows path, or none that a Linux node can mount
    # POSIX keeps two leading slashes as two.
    here = PurePosixPath("/" + posixpath.normpath(path).lstrip("/"))
    if any(here.is_relative_to(plain) for plain in _PLAIN):
        return False
    return any(here.is_relative_to(folder) or folder.is_relative_to(here) for folder in _SYSTEM)

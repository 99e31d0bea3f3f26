"""Bind mounts that stand for NFS mounts, and what mount.nfs would have said to their options."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

# the options of nfs(5) and mount(8) that make sense for a share; a real mount refuses any other one
OPTIONS = re.compile(
    r"""ro|rw|hard|soft|softerr|intr|nointr|bg|fg|sync|async|noatime|nodiratime|relatime|atime|nodev|nosuid|noexec|_netdev
    |cto|nocto|ac|noac|resvport|noresvport|lock|nolock|sharecache|nosharecache|rdirplus|nordirplus|fsc|nofsc|tcp
    |(nconnect|max_connect|actimeo|acregmin|acregmax|acdirmin|acdirmax|rsize|wsize|timeo|retrans|retry|port|minorversion)=\d+
    |(vers|nfsvers)=[34](\.[0-2])?|proto=(tcp|tcp6|rdma)|sec=(sys|none|krb5|krb5i|krb5p)|lookupcache=(all|none|pos|positive)
    |local_lock=(all|flock|posix|none)|xprtsec=(none|tls|mtls)""",
    re.VERBOSE,
)


class MountError(Exception):
    """The message is what the real command would have printed."""


def options_are_known(options: list[str]) -> bool:
    """What mount.nfs asks first."""
    return all(OPTIONS.fullmatch(option) for option in options)


def bind(source: Path, target: Path, read_only: bool) -> None:
    """Mounts once; a second call finds it done. A bind mount made of a read-only one is read-only as well."""
    if is_mounted(target):
        return
    target.mkdir(parents=True, exist_ok=True)
    _mount("--bind", str(source), str(target))
    if read_only:
        _mount("-o", "remount,bind,ro", str(target))


def is_mounted(target: Path) -> bool:
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split()[4] == str(target) for line in mounts)


def is_read_only(target: Path) -> bool:
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return any("ro" in line.split()[5].split(",") for line in mounts if line.split()[4] == str(target))


def release(target: Path) -> None:
    """Unmounts and removes the folder; fine when neither is there."""
    while is_mounted(target):
        subprocess.run(["umount", str(target)], check=True)
    if target.is_dir():
        target.rmdir()


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MountError(done.stderr.strip())

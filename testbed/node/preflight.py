"""Why this machine cannot run a real node, found out before anything is started and within a second."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed.node.cgroups import missing_controllers
from testbed.packages import SEARCH, missing_packages, what_to_install

CAPABILITIES = {"NET_ADMIN": 12, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "MKNOD": 27}

# the same namespaces, links, mounts and tables that a node needs, gone again with the shell
TRIAL = """
set -e
ip link add bridge0 type bridge
ip link add left type veth peer name right
nft add table ip trial
mkdir -p "$0/lower" "$0/root"
mount -t tmpfs tmpfs "$0/root"
mkdir "$0/root/upper" "$0/root/work" "$0/root/merged"
mount -t overlay overlay -o "lowerdir=$0/lower,upperdir=$0/root/upper,workdir=$0/root/work" "$0/root/merged"
mkdir -p "$0/upper" "$0/work"
mount -t overlay overlay -o "lowerdir=$0/lower,upperdir=$0/upper,workdir=$0/work" "$0/lower"
"""


def reasons(folder: Path | None = None) -> list[str]:
    """Empty when the machine can run a node whose data lies under `folder` (default: the temporary folder)."""
    if os.geteuid() != 0:
        return ["a real node needs root"]
    problems = [f"capability {name} is missing" for name, bit in CAPABILITIES.items() if not _has_capability(bit)]
    problems += missing_controllers()
    if packages := missing_packages():
        problems.append(what_to_install(packages))
    return problems or _trial(folder)


def _has_capability(bit: int) -> bool:
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))
    return bool(int(effective, 16) >> bit & 1)


def _trial(folder: Path | None) -> list[str]:
    scratch = tempfile.mkdtemp(prefix="hermetic-preflight-", dir=folder)
    try:
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", TRIAL, scratch]
        environment = {**os.environ, "PATH": f"{os.environ['PATH']}:{SEARCH}"}
        trial = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if trial.returncode == 0:
        return []
    errors = trial.stderr.strip().replace("\n", "; ") or f"exit {trial.returncode}"
    return [f"namespaces, network links, nftables or overlay mounts do not work here: {errors}"]

"""The control group that everything of one node is in: made before it, removed after it.

A root of its own keeps two nodes on one machine from clearing away each other's pods. It is named after the process
that keeps the node, so that what a crash left behind can be distinguished from what is in use.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
PREFIX = "hermetic-node-"
NEEDED = {"cpu", "cpuset", "memory", "pids"}
NEEDED_V1 = NEEDED | {"cpuacct", "devices", "freezer"}
PATIENCE_SECONDS = 5.0


def root_of(keeper: int) -> str:
    """The cgroup path of the node that the process `keeper` keeps."""
    return f"/{PREFIX}{keeper}"


def is_unified() -> bool:
    """True for cgroup v2."""
    return (MOUNT / "cgroup.controllers").exists()


def missing_controllers() -> list[str]:
    """Reasons, in words, why pods could not be limited here."""
    if is_unified():
        available = set((MOUNT / "cgroup.controllers").read_text().split())
        missing = NEEDED - available
    else:
        missing = {name for name in NEEDED_V1 if not (MOUNT / name / "cgroup.procs").exists()}
    if missing:
        return [f"cgroup controllers are missing: {', '.join(sorted(missing))}"]
    writable = all(os.access(hierarchy / "cgroup.procs", os.W_OK) for hierarchy in _hierarchies())
    return [] if writable else ["the cgroup file system is read-only"]


def make(root: str) -> None:
    """Makes the root in every hierarchy, ready to be given limits."""
    if is_unified():
        _enable_controllers(MOUNT)
    for hierarchy in _hierarchies():
        (hierarchy / root[1:]).mkdir(exist_ok=True)
    if is_unified():
        _enable_controllers(MOUNT / root[1:])
        return
    for setting in ("cpuset.cpus", "cpuset.mems"):
        inherited = (MOUNT / "cpuset" / setting).read_text()
        (MOUNT / "cpuset" / root[1:] / setting).write_text(inherited)


def remove(root: str) -> None:
    """Removes the root and all below it; waits for processes that are still ending. Fine when it is not there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for folder in _folders(root):
        while folder.exists():
            try:
                folder.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def remove_abandoned() -> None:
    """Removes roots whose keeper is gone, which only happens when it was killed together with its node."""
    for hierarchy in _hierarchies():
        for root in hierarchy.glob(f"{PREFIX}*"):
            if not Path("/proc", root.name.removeprefix(PREFIX)).exists():
                with contextlib.suppress(OSError):
                    remove(f"/{root.name}")


def _folders(root: str) -> list[Path]:
    """Deepest first."""
    return [
        Path(folder) for hierarchy in _hierarchies() for folder, _, _ in os.walk(hierarchy / root[1:], topdown=False)
    ]


def _hierarchies() -> list[Path]:
    if is_unified():
        return [MOUNT]
    return [path for path in MOUNT.iterdir() if (path / "cgroup.procs").exists() and not path.is_symlink()]


def _enable_controllers(group: Path) -> None:
    enabled = (group / "cgroup.subtree_control").read_text().split()
    available = (group / "cgroup.controllers").read_text().split()
    wanted = [f"+{name}" for name in available if name in NEEDED and name not in enabled]
    if wanted:
        (group / "cgroup.subtree_control").write_text(" ".join(wanted))

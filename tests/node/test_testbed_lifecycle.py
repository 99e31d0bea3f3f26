"""A node that ends leaves the machine as it was, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.node.cgroups import MOUNT, root_of
from testbed.node.handle import running_node
from testbed.node.node_programs import REPOSITORY
from testbed.processes import wait_until
from tests.sampled_groups import TEST_BED_NODE

pytestmark = TEST_BED_NODE

SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")


def _settings() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text() for name in SETTINGS}


def _cgroups_of(keeper: int) -> list[Path]:
    name = root_of(keeper).lstrip("/")
    return [*MOUNT.glob(f"*/{name}"), *MOUNT.glob(name)]


def _processes_in(namespace: str) -> list[str]:
    """Every process of the machine that is in a pid namespace."""
    command_lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "ns/pid").readlink()) == namespace:
                command_lines.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return command_lines


def _mounts_of(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


@pytest.fixture
def before(node):  # noqa: ARG001 # it runs all the while
    """What the machine looks like while only the session's node runs."""
    return _settings(), Path("/var/lib/kubelet").exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_node_that_was_ended(before, start_pod, how):
    start_pod("neighbour").until("Ready")
    with running_node("--size", "Standard_NC24ads_A100_v4") as second:
        first_process = int(second.printed["pid"])
        namespace = str(Path(f"/proc/{first_process}/ns/pid").readlink())
        assert len(_processes_in(namespace)) > 10
        assert _settings() == before[0]
        keeper = _parent(_parent(first_process))
        assert _cgroups_of(keeper)
        os.kill(_parent(keeper), how)
        wait_until("end of every process", lambda: not _processes_in(namespace), ())
        wait_until("removal of the folder", lambda: not second.folder.exists(), ())
        wait_until("removal of the control groups", lambda: not _cgroups_of(keeper), ())

    assert (_settings(), Path("/var/lib/kubelet").exists()) == before
    assert _mounts_of(second.folder) == []


def test_two_nodes_on_one_machine_do_not_see_each_others_pods(start_pod):
    pod = start_pod("survivor").until("Ready")
    with running_node("--size", "Standard_NC24ads_A100_v4") as second:
        assert second.kubectl("get", "pods", "--all-namespaces", "--output=name").split() in ([], ["pod/canary"])

    assert pod.shell("echo still here") == "still here\n"
    assert pod.status()["containerStatuses"][0]["restartCount"] == 0


def test_a_machine_that_cannot_run_a_node_is_told_why_before_anything_starts():
    without = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    command = [*without, sys.executable, "-m", "testbed", "node", "--preflight"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert done.returncode == 77
    assert "CANNOT RUN: capability SYS_ADMIN is missing" in done.stderr

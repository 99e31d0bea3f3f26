"""Components are waited for by state, explain themselves when they die, and never outlive their parent."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from testbed.errors import ComponentError
from testbed.processes import Component, bound_to_us, free_port, wait_until
from tests.sampled_groups import TEST_BED

pytestmark = TEST_BED

REPOSITORY = Path(__file__).resolve().parents[2]


def component(tmp_path: Path, script: str) -> Component:
    return Component("little", ["sh", "-c", script], tmp_path / "little.log")


def test_death_while_waiting_is_reported_with_the_end_of_the_log(tmp_path: Path) -> None:
    dying = component(tmp_path, "echo what went wrong; exit 3")
    dying.start()

    with pytest.raises(ComponentError, match=r"little ended with 3 while waiting for spring\nwhat went wrong"):
        wait_until("spring", lambda: False, [dying])


def test_lateness_is_reported_with_every_log(tmp_path: Path) -> None:
    slow = component(tmp_path, "echo still at it; exec sleep 60")
    slow.start()
    wait_until("its first words", lambda: "still" in slow.tail(), [slow])

    with pytest.raises(ComponentError, match=r"no spring after 0 s\n--- little\nstill at it"):
        wait_until("spring", lambda: False, [slow], timeout=0.1)

    slow.stop()


def test_program_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    deaf = component(tmp_path, "trap '' TERM; echo ready; while :; do sleep 1; done")
    deaf.start()
    wait_until("its trap", lambda: "ready" in deaf.tail(), [deaf])

    deaf.stop(timeout=0.2)

    assert deaf.exit_code == -signal.SIGKILL


def test_restart_keeps_the_log_of_before(tmp_path: Path) -> None:
    twice = component(tmp_path, "echo started; exec sleep 60")
    for times in (1, 2):
        twice.start()
        wait_until("its words", lambda times=times: twice.tail().count("started") == times, [twice])
        twice.stop()


def test_program_dies_with_its_parent_even_when_that_is_killed(tmp_path: Path) -> None:
    code = f"""
import time; from pathlib import Path; from testbed.processes import Component
child = Component("child", ["sleep", "300"], Path({str(tmp_path)!r}) / "log"); child.start()
print(child.pid, flush=True); time.sleep(300)
"""
    with subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = Path("/proc") / parent.stdout.readline().decode().strip()
        assert child.exists()
        parent.kill()

    deadline = time.monotonic() + 10
    while child.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not child.exists()


def test_program_started_as_its_parent_dies_does_not_start(tmp_path: Path) -> None:
    # the command's parent is the shell below and not us: just what an orphan finds
    marker = tmp_path / "marker"
    orphan = shlex.join(bound_to_us(["touch", str(marker)]))

    subprocess.run(["sh", "-c", f"{orphan}; true"], check=True)

    assert not marker.exists()


def test_ports_are_free_and_not_given_twice() -> None:
    ports = [free_port() for _ in range(50)]

    assert len(set(ports)) == 50
    assert all(20000 <= port < 30000 for port in ports)


def test_ports_of_processes_that_run_side_by_side_are_never_the_same() -> None:
    """Between the choice of a port and its use another test worker must not choose it."""
    script = "from testbed.processes import free_port; print(*(free_port() for _ in range(120))); input()"
    running = [
        subprocess.Popen([sys.executable, "-c", script], stdin=PIPE, stdout=PIPE, text=True, cwd=REPOSITORY)
        for _ in range(8)
    ]
    try:
        ports = [
            port for process in running if process.stdout is not None for port in process.stdout.readline().split()
        ]
    finally:
        for process in running:
            process.communicate("\n")
    assert len(ports) == len(set(ports)) == 8 * 120

"""Child programs that never outlive us, write one log each, and are waited for by state."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from testbed.errors import ComponentError

POLL_SECONDS = 0.05
PATIENCE_VARIABLE = "HERMETIC_TEST_PATIENCE"
"""A factor for every time that is waited, on a machine that is so many times slower because others use it as well."""
# below the kernel's range for outgoing connections (32768 and up), so no connection takes a port between choice and use
FIRST_PORT, PORTS, STRETCH = 20000, 10000, 50


def bound_to_us(command: Sequence[str]) -> list[str]:
    """The command in a form that the kernel kills when the thread that starts it ends, whatever ends it."""
    # a parent that ends before the signal is arranged would never be noticed: hence the check of the parent
    unless_orphaned = f'[ "$PPID" = {os.getpid()} ] && exec "$0" "$@"'
    return ["setpriv", "--pdeathsig", "KILL", "sh", "-c", unless_orphaned, *command]


def reaping_orphans(work: Callable[[], int]) -> int:
    """Does the work in a child and returns its exit code; this process, the first of its pid namespace, reaps.

    When it ends, by itself or killed, the kernel ends everything in the namespace.
    """
    child = os.fork()
    if child == 0:
        # never back into the caller's frames: this is another process now
        os._exit(work())
    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            return os.waitstatus_to_exitcode(status)


class Component:
    """One program with its log file.

    It is killed by the kernel when the thread that started it ends: start components from a thread that lives
    as long as they should, the main thread as a rule.
    """

    def __init__(
        self, name: str, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = log
        self._command = list(map(str, command))
        self._environment = None if environment is None else {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the program; its log is appended to, so a restart keeps what came before."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                bound_to_us(self._command), env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs or before it was started."""
        return None if self._process is None else self._process.poll()

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout: float = 10.0) -> None:
        """Sends the signal and waits; what is still there after `timeout` seconds is killed."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def tail(self, lines: int = 40) -> str:
        """The end of the log; empty when there is none yet."""
        with contextlib.suppress(FileNotFoundError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""


def wait_until(what: str, ready: Callable[[], bool], components: Iterable[Component], timeout: float = 60.0) -> None:
    """Polls until `ready()`; raises ComponentError with log tails when a component died or the time is over."""
    watched = list(components)
    patience = float(os.environ.get(PATIENCE_VARIABLE) or 1)
    timeout *= patience
    deadline = time.monotonic() + timeout
    while not ready():
        for component in watched:
            if component.exit_code is not None:
                raise ComponentError(
                    f"{component.name} ended with {component.exit_code} while waiting for {what}\n{component.tail()}"
                )
        if time.monotonic() > deadline:
            tails = "\n".join(f"--- {component.name}\n{component.tail()}" for component in watched)
            raise ComponentError(f"no {what} after {timeout:.0f} s\n{tails}")
        time.sleep(POLL_SECONDS * patience)


def _candidates() -> Iterator[int]:
    """Ports of stretches that no other process gives out while this one runs."""
    stretches = range(FIRST_PORT, FIRST_PORT + PORTS, STRETCH)
    first = os.getpid() % len(stretches)
    for start in (*stretches[first:], *stretches[:first]):
        # an abstract name belongs to one socket of the network namespace, as a port does, and ends with its process
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0hermetic-testbed-ports-{start}")
        except OSError:
            claim.close()
            continue
        claim.detach()  # it is closed with the process
        yield from range(start, start + STRETCH)


_ports = _candidates()


def free_port(address: str = "127.0.0.1") -> int:
    """A TCP port that nothing listens on now, and that neither this process nor another has given out before."""
    for port in _ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
            return port
    raise ComponentError(f"no free port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1}")

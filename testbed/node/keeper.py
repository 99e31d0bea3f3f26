"""Owns the node's namespaces and outlives the process that asked for them, just long enough to leave nothing behind.

Its standard input is a pipe from that process. When the pipe ends, whether by SIGTERM, SIGKILL or a crash on the other
side, the node ends; then its control groups and, unless the caller named it, its folder are removed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from testbed.node import cgroups
from testbed.node.mounts_and_routes import CLIENT_NAMESPACE
from testbed.node.options import NodeOptions
from testbed.node.second_node import enter_second

PATIENCE_SECONDS = 3
NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")


def main(arguments: list[str]) -> int:
    """`keeper WANTED keep|remove`: whether the folder stays."""
    options = NodeOptions.from_json(arguments[0])
    try:
        with _control_group() as cgroup, socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            return _keep(options, cgroup, listener)
    finally:
        if arguments[1] == "remove":
            shutil.rmtree(options.folder, ignore_errors=True)


@contextmanager
def _control_group() -> Iterator[str]:
    cgroups.remove_abandoned()
    root = cgroups.root_of(os.getpid())
    cgroups.make(root)
    try:
        yield root
    finally:
        cgroups.remove(root)


def _keep(options: NodeOptions, cgroup: str, listener: socket.socket) -> int:
    inside = [sys.executable, "-m", "testbed.node.inside", options.to_json(), cgroup, str(listener.fileno())]
    node = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", *NAMESPACES, *inside],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, pass_fds=[listener.fileno()],
    )  # fmt: skip
    asked_to_end = threading.Event()
    threading.Thread(target=_end_with_owner, args=(node, asked_to_end), daemon=True).start()
    assert node.stdout is not None
    for line in node.stdout:
        described = json.loads(line)
        endpoints = _loopback_endpoints(node)
        if second := described.pop("secondProcess"):
            enter = [*endpoints["enter"], *enter_second(second.pop("pid"))]
            described["second"] = {**second, "enter": enter}
        print(json.dumps({**described, **endpoints}), flush=True)
    code = node.wait()
    return 0 if asked_to_end.is_set() else code


def _end_with_owner(node: subprocess.Popen[str], asked_to_end: threading.Event) -> None:
    os.read(sys.stdin.fileno(), 1)
    asked_to_end.set()
    # the first process takes everything in the namespace along, and only when all is gone does `unshare` end
    with suppress(FileNotFoundError, ProcessLookupError, IndexError, subprocess.TimeoutExpired):
        os.kill(_first_process(node), signal.SIGTERM)
        node.wait(PATIENCE_SECONDS)
    node.kill()


def _first_process(node: subprocess.Popen[str]) -> int:
    """As the machine numbers it: the child of `unshare`."""
    return int(Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().split()[0])


def _loopback_endpoints(node: subprocess.Popen[str]) -> dict[str, Any]:
    """Argument prefixes: `enter` runs a program on the node, `client` on a machine in the same virtual network."""
    enter = ["nsenter", f"--target={_first_process(node)}", "--net", "--mount", "--pid", "--wd=/"]
    client = [*enter, "--", "nsenter", f"--net=/run/netns/{CLIENT_NAMESPACE}"]
    return {"enter": [*enter, "--"], "client": [*client, "--"], "pid": _first_process(node)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

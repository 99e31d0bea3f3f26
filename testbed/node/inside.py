"""Process 1 of the node's pid namespace: its only child brings the node up and watches it."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

from testbed.errors import BedError
from testbed.node.forwarder import forward
from testbed.node.options import NodeOptions
from testbed.node.real_node import RealNode
from testbed.processes import reaping_orphans

WATCH_SECONDS = 0.5


def main(arguments: list[str]) -> int:
    """`inside WANTED CGROUP LISTENER`: WANTED as JSON, LISTENER the number of an inherited listening socket."""
    return reaping_orphans(lambda: _run(arguments))


def _run(arguments: list[str]) -> int:
    options, cgroup = NodeOptions.from_json(arguments[0]), arguments[1]
    node = RealNode(options, cgroup)
    try:
        node.start()
        with socket.socket(fileno=int(arguments[2])) as listener:
            _announce(node, listener)
            _watch(node)
    except BedError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1


def _announce(node: RealNode, listener: socket.socket) -> None:
    """Forwards from the machine's loopback, then writes to stdout that the node is usable."""
    outside = _kubeconfig_outside(node.plane.kubeconfig, node.options.folder, listener.getsockname()[1])
    forward(listener, int(node.plane.server.rsplit(":", 1)[1]))
    print(json.dumps({"kubeconfig": str(outside), **node.described()}), flush=True)


def _kubeconfig_outside(inside: Path, folder: Path, port: int) -> Path:
    config = json.loads(inside.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    outside = folder / "kubeconfig"
    outside.touch(mode=0o600)
    outside.write_text(json.dumps(config, indent=1))
    return outside


def _watch(node: RealNode) -> NoReturn:
    while True:
        node.raise_if_dead()
        time.sleep(WATCH_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

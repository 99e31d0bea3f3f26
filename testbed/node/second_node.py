"""The second node: namespaces inside those of the first, so that it ends with it; its links are laid by the first.

`python -m testbed.node.second_node OPTIONS CLUSTER` (both JSON) is the first process of its pid namespace. It writes a
line to stdout when its programs are started, and watches them from then on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.errors import BedError, ComponentError
from testbed.node import cgroups, config, mounts_and_routes
from testbed.node.addresses import FIRST, SECOND
from testbed.node.machine import pose_as
from testbed.node.node_programs import REPOSITORY, NodePrograms
from testbed.node.options import NodeOptions
from testbed.processes import reaping_orphans

NAMESPACES = ("--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")
WATCH_SECONDS = 0.5


class SecondNode:
    """What the first node knows of it: a process, and when its programs have started."""

    def __init__(self, options: NodeOptions, cgroup: str) -> None:
        self._options = options
        self._cgroup = f"{cgroup}/{SECOND.name}"
        self._process: subprocess.Popen[str] | None = None

    def start(self, cluster: config.Cluster) -> None:
        """Returns when its programs have started. `cluster` is as the first node knows it, but for the cgroup.

        Raises ComponentError.
        """
        options = self._options
        options.folder.mkdir()
        joined = config.Cluster(
            authority=cluster.authority,
            kubelet=_reached_from_second(cluster.kubelet, options.folder),
            proxy=_reached_from_second(cluster.proxy, options.folder),
            cgroup=self._cgroup,
        )
        arguments = [options.to_json(), json.dumps(asdict(joined), default=str)]
        inside = [sys.executable, "-m", "testbed.node.second_node", *arguments]
        enter_network = ["nsenter", f"--net=/run/netns/{mounts_and_routes.SECOND_NAMESPACE}"]
        with (options.folder / "second-node.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *enter_network, "unshare", *NAMESPACES, *inside],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            )  # fmt: skip
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise ComponentError(f"the second node did not start\n{self._tail()}")

    def described(self) -> dict[str, Any]:
        """Its name, its folder, and its first process as the first node numbers it."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return {"node": SECOND.name, "folder": str(self._options.folder), "pid": int(children[0])}

    def raise_if_dead(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            raise ComponentError(f"the second node ended\n{self._tail()}")

    def _tail(self) -> str:
        return "\n".join((self._options.folder / "second-node.log").read_text().splitlines()[-40:])


def enter_second(pid: int) -> list[str]:
    """The arguments, behind those that enter the first node, that run a program on the second."""
    return ["nsenter", f"--target={pid}", "--net", "--mount", "--pid", "--wd=/", "--"]


def _reached_from_second(kubeconfig: Path, folder: Path) -> Path:
    """The kubeconfig with the API server's address on the first node; its certificate names that as well."""
    document = json.loads(kubeconfig.read_text())
    cluster = document["clusters"][0]["cluster"]
    cluster["server"] = cluster["server"].replace("127.0.0.1", FIRST.address)
    path = folder / kubeconfig.name
    path.touch(mode=0o600)
    path.write_text(json.dumps(document))
    return path


def main(arguments: list[str]) -> int:
    """Starts everything; ends with the first program that does."""
    return reaping_orphans(lambda: _run(arguments))


def _run(arguments: list[str]) -> int:
    options, stated = NodeOptions.from_json(arguments[0]), json.loads(arguments[1])
    cluster = config.Cluster(
        authority=Path(stated["authority"]),
        kubelet=Path(stated["kubelet"]),
        proxy=Path(stated["proxy"]),
        cgroup=stated["cgroup"],
    )
    try:
        cgroups.make(cluster.cgroup)
        mounts_and_routes.lay_mounts(options.folder, inside_another=True)
        mounts_and_routes.forward_packets()
        pose_as(options.size, options.folder / "machine")
        node = NodePrograms(SECOND, options, options.folder.parent / options.csi_calls.name)
        node.start_containerd()
        node.import_images()
        node.start_kubelet(cluster)
        node.start_stand_ins()
        print("started", flush=True)
        while True:
            node.raise_if_dead()
            time.sleep(WATCH_SECONDS)
    except BedError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

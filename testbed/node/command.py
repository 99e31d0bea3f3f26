"""`python -m testbed node`: a real node with its control plane in the foreground, air-gapped by construction.

The first line on stdout is one JSON object, printed when a first pod has run:

    kubeconfig        for programs on this machine
    insideKubeconfig  for programs that run inside, by one of the two prefixes:
    enter, client     argument prefixes: on the node, and on a machine in the same virtual network
    node, version, times              the node's name, Kubernetes' version, seconds from start to each stage
    folder, shares, csiCalls, unhealthyGpus, auditLog (null without --audit-user)      to read and to change
    gpuStates         null without --gpu-driver: what the simulated driver shows of each GPU (testbed/simulated_nvml.py)
    kubectl, ctr, pid                 programs, and the node's first process as this machine numbers it
    second            with `--nodes 2`: node, enter and folder of the second node

SIGTERM and SIGINT end it; so does SIGKILL. Nothing is left behind. Exit 77: this machine cannot run a node.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from testbed.errors import CannotRunError
from testbed.fleet import SIZES
from testbed.node import preflight
from testbed.node.machine import labels_of
from testbed.node.node_programs import REPOSITORY
from testbed.node.options import DEFAULT_SIZE, NodeOptions
from testbed.packages import SEARCH
from testbed.programs import NODE_FAMILIES, programs

CANNOT_RUN = 77


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m testbed node", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preflight", action="store_true", help="only say whether this machine can run it")
    parser.add_argument("--folder", type=Path, help="an empty folder, kept (default: temporary)")
    parser.add_argument("--images", type=Path, action="append", default=[], help="an image tar, or a folder of them")
    parser.add_argument("--shares", type=Path, help="folder that backs the shares (default: in the folder)")
    parser.add_argument("--size", choices=SIZES, default=DEFAULT_SIZE, help="the Azure size the node takes itself for")
    parser.add_argument("--gpus", type=int, help="how many GPUs it advertises (default: those of the size)")
    parser.add_argument("--gpu-driver", action="store_true", help="containers with GPUs get a simulated NVIDIA driver")
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1, help="how many such nodes (default: 1)")
    parser.add_argument("--enforce-policies", action="store_true", help="NetworkPolicies hold between the nodes")
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="a further node label")
    parser.add_argument("--audit-user", action="append", metavar="USER", help="record this user's API requests")
    chosen = parser.parse_args(arguments)
    if chosen.folder is not None:
        chosen.folder.mkdir(parents=True, exist_ok=True)
        if any(chosen.folder.iterdir()):
            parser.error(f"{chosen.folder} is not empty")
    try:
        check(chosen.folder)
        if chosen.preflight:
            print("ok")
            return 0
        programs(*NODE_FAMILIES)
    except CannotRunError as error:
        print(f"CANNOT RUN: {error}", file=sys.stderr)
        return CANNOT_RUN
    return run(_wanted(chosen), keep_folder=chosen.folder is not None)


def check(folder: Path | None = None) -> None:
    """Raises CannotRunError with every reason at once."""
    if found := preflight.reasons(folder):
        raise CannotRunError("; ".join(found))


def run(options: NodeOptions, *, keep_folder: bool) -> int:
    """Hands the node to a keeper and waits. The keeper notices how we end by the pipe between us."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "testbed.node.keeper", options.to_json(), "keep" if keep_folder else "remove"],
        stdin=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PATH": f"{os.environ['PATH']}:{SEARCH}"},
    )  # fmt: skip
    pipe = keeper.stdin
    assert pipe is not None
    for asked_to_end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked_to_end, lambda _number, _frame: pipe.close())
    return keeper.wait()


def _wanted(chosen: argparse.Namespace) -> NodeOptions:
    folder = Path(tempfile.mkdtemp(prefix="hermetic-node-")) if chosen.folder is None else chosen.folder.resolve()
    shares = folder / "shares" if chosen.shares is None else chosen.shares.resolve()
    shares.mkdir(parents=True, exist_ok=True)
    return NodeOptions(
        folder=folder,
        shares=shares,
        images=tuple(tar for image in chosen.images for tar in _tars(image.resolve())),
        size_name=chosen.size,
        gpus=SIZES[chosen.size].gpus if chosen.gpus is None else chosen.gpus,
        labels={**labels_of(SIZES[chosen.size]), **dict(label.split("=", 1) for label in chosen.label)},
        audit_users=None if chosen.audit_user is None else tuple(chosen.audit_user),
        gpu_driver=chosen.gpu_driver,
        nodes=chosen.nodes,
        enforces_policies=chosen.enforce_policies,
    )


def _tars(path: Path) -> list[Path]:
    return sorted(path.glob("*.tar")) if path.is_dir() else [path]

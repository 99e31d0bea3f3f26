"""A running node as tests and the demo use it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.csi.shares import fault_file
from testbed.errors import BedError
from testbed.json_lines import json_lines
from testbed.kubectl import Kubectl
from testbed.node import command
from testbed.node.node_programs import REPOSITORY
from testbed.programs import NODE_FAMILIES, programs
from testbed.simulated_nvml import NEXT_STATE

STOP_SECONDS = 60
CALL_SECONDS = 60.0
IMPORT_SECONDS = 300.0


@dataclass(frozen=True)
class RunningNode:
    """`printed` is the JSON object that `python -m testbed node` printed; its fields are explained there."""

    printed: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.printed["node"])

    @property
    def kubeconfig(self) -> Path:
        return Path(self.printed["kubeconfig"])

    @property
    def folder(self) -> Path:
        return Path(self.printed["folder"])

    @property
    def shares(self) -> Path:
        return Path(self.printed["shares"])

    @property
    def kubectl(self) -> Kubectl:
        """As administrator, from this machine."""
        return Kubectl(Path(self.printed["kubectl"]), self.kubeconfig)

    def inside(self, *arguments: str, timeout: float = CALL_SECONDS) -> subprocess.CompletedProcess[str]:
        """Runs a program on the node, where pods, Services and load balancers have addresses."""
        return _ran([*self.printed["enter"], *arguments], timeout)

    def inside_second(self, *arguments: str, timeout: float = CALL_SECONDS) -> subprocess.CompletedProcess[str]:
        """Runs a program on the second node."""
        return _ran([*self.printed["second"]["enter"], *arguments], timeout)

    def from_client(self, *arguments: str, timeout: float = CALL_SECONDS) -> subprocess.CompletedProcess[str]:
        """Runs a program on the machine of the virtual network that is outside the cluster."""
        return _ran([*self.printed["client"], *arguments], timeout)

    def import_images(self, archive: Path, *options: str) -> None:
        """Gives the node, or both nodes, further images while they run."""
        ctr = (self.printed["ctr"], "--namespace=k8s.io", "images", "import", *options, str(archive.resolve()))
        for run in (self.inside, self.inside_second)[: 2 if "second" in self.printed else 1]:
            done = run(*ctr, timeout=IMPORT_SECONDS)
            if done.returncode != 0:
                raise BedError(f"{archive} could not be imported: {done.stderr.strip()}")

    def csi_calls(self) -> list[dict[str, Any]]:
        """Every call that the CSI plug-ins got so far, oldest first."""
        log = Path(self.printed["csiCalls"])
        return json_lines(log) if log.exists() else []

    @contextmanager
    def broken_share(self, share: str, **fault: Any) -> Iterator[None]:
        """`account/share` fails while the block runs; see testbed.csi.shares for what a fault can say."""
        file = fault_file(self.shares, PurePosixPath(share))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(fault))
        try:
            yield
        finally:
            file.unlink()

    @contextmanager
    def unhealthy_gpu(self, device: str = "GPU-0") -> Iterator[None]:
        marker = Path(self.printed["unhealthyGpus"], device)
        marker.touch()
        try:
            yield
        finally:
            marker.unlink()

    @contextmanager
    def faulty_gpu(self, **state: Any) -> Iterator[None]:
        """The next GPU that a container gets is in this state until the block ends; needs --gpu-driver.

        The keys are those of `testbed.simulated_nvml.HEALTHY`: `rows=(0, 1, 1, 0)` is a pending row remap.
        """
        folder = Path(self.printed["gpuStates"])
        written = folder / "next.json.tmp"
        written.write_text(json.dumps(state))
        written.rename(folder / NEXT_STATE)
        try:
            yield
        finally:
            for file in folder.glob("*.json"):
                file.unlink()

    def log_files(self) -> list[Path]:
        """One per program: those of the node, then those of the control plane."""
        parts = ("*.log", "second/*.log", "controlplane/*.log")
        return [log for part in parts for log in sorted(self.folder.glob(part))]


@contextmanager
def running_node(*options: str) -> Iterator[RunningNode]:
    """Starts `python -m testbed node OPTIONS` and ends it. Raises CannotRunError, or BedError when it fails."""
    command.check()
    programs(*NODE_FAMILIES)
    # a test run that is killed takes its node along
    start = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "testbed", "node", *options]
    process = subprocess.Popen(start, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        try:
            first_line = process.stdout.readline()
            if not first_line:
                raise BedError(f"the node ended with {process.wait(STOP_SECONDS)} before it was usable")
            yield RunningNode(json.loads(first_line))
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def _ran(call: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(call, capture_output=True, text=True, check=False, timeout=timeout)

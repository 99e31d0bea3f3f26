"""One pod of the real engine: the rendered container, in a sandbox like that of a restricted pod.

What differs from a cluster: a CPU instead of a GPU, and so `VLLM_CPU_KVCACHE_SPACE`; no seccomp filter and no cgroup.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.processes import bound_to_us
from testbed.real_engine.network import POD, PodNetwork

SANDBOX = Path(__file__).resolve().parent / "sandbox.sh"
PATH = "/opt/venv/bin:/opt/bin:/usr/local/bin:/usr/bin:/bin"
SECRET = "secret-token-123"


@dataclass(frozen=True)
class Pod:
    """A started container; `log` and `words` are files that grow."""

    process: subprocess.Popen[bytes]
    log: Path
    words: Path

    def stop(self) -> None:
        """SIGTERM to the first process of the container, as the kubelet sends it."""
        self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """A signal to that process, if it still runs. Ending what started it would not end it: it changed its user."""
        above = self.process.pid
        for child in Path(f"/proc/{above}/task/{above}/children").read_text().split():
            os.kill(int(child), number)

    def ended(self, within: float) -> int:
        """The exit code, once the container has ended."""
        return self.process.wait(within)


@dataclass(frozen=True)
class Machine:
    """What pods run on: the environment with the engine, and their network."""

    environment: Path
    network: PodNetwork


@dataclass(frozen=True)
class Mounts:
    """What a container sees. `home` is the emptyDir of its caches: None for an empty one that ends with it."""

    weights: Path
    tls: Path | None = None
    home: Path | None = None


def emptydir(folder: Path) -> Path:
    """A new folder that every user may write to, as the kubelet makes an emptyDir."""
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def initialize(deployment: Mapping[str, Any], where: Machine, mounts: Mounts) -> list[str]:
    """Runs the init containers that have a command, one after another as rendered; returns their names.

    The others run an image of the operator's, which is not here. Raises AssertionError with what a failed one printed.
    """
    template, ran = deployment["spec"]["template"]["spec"], []
    for container in template.get("initContainers", ()):
        if command := container.get("command"):
            with _started(template, where, mounts, [f"PATH={PATH}", *command]) as started:
                code = started.ended(within=300)
                assert code == 0, (container["name"], code, started.log.read_text(errors="replace"))
            ran.append(container["name"])
    return ran


@contextlib.contextmanager
def pod(deployment: Mapping[str, Any], where: Machine, mounts: Mounts, *, more: Sequence[str] = ()) -> Iterator[Pod]:
    """Runs the container of a rendered Deployment with `more` arguments; it is killed when the context ends."""
    template = deployment["spec"]["template"]["spec"]
    (container,) = template["containers"]
    environment = [f"{name}={value}" for name, value in variables(container).items()]
    with _started(template, where, mounts, [*environment, *container["command"], *container["args"], *more]) as started:
        yield started


@contextlib.contextmanager
def _started(template: Mapping[str, Any], where: Machine, mounts: Mounts, command: Sequence[str]) -> Iterator[Pod]:
    user = template["securityContext"]
    with tempfile.TemporaryDirectory(prefix="hermetic-pod-") as folder:
        root, log, termination_log = Path(folder) / "root", Path(folder) / "log", Path(folder) / "termination-log"
        root.mkdir()
        termination_log.touch()
        termination_log.chmod(0o666)
        sandbox = [
            "ip", "netns", "exec", where.network.name, "unshare", "--mount", "--pid", "--ipc", "--uts", "--fork",
            "--kill-child", "sh", str(SANDBOX), str(root), str(where.environment), sys.base_prefix,
            str(mounts.weights), str(termination_log), str(mounts.tls or ""), str(mounts.home or ""), *command,
        ]  # fmt: skip
        ids = {"USER_ID": str(user["runAsUser"]), "GROUP_ID": str(user["runAsGroup"])}
        with log.open("wb") as output:
            process = subprocess.Popen(
                bound_to_us(sandbox), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **ids}
            )
        started = Pod(process, log, termination_log)
        try:
            yield started
        finally:
            if process.poll() is None:
                started.signal(signal.SIGKILL)
            process.wait()


def variables(container: Mapping[str, Any]) -> dict[str, str]:
    """The rendered environment, what the kubelet fills in filled in, and what a CPU needs."""
    filled = {"fieldRef": POD, "secretKeyRef": SECRET}
    named = {
        one["name"]: one["value"] if "value" in one else filled[next(iter(one["valueFrom"]))]
        for one in container["env"]
    }
    return {**named, "PATH": PATH, "HOSTNAME": "pod", "VLLM_CPU_KVCACHE_SPACE": "1"}

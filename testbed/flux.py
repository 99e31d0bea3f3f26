"""Flux as programs of this machine: source-, kustomize- and helm-controller beside a control plane.

    kubectl("apply", "--server-side", "--filename=-", stdin=components(kubectl, "contoso.azurecr.io/fluxcd"))
    with Flux(kubeconfig, folder, {"kustomize-controller": ["--concurrent=20"]}):
        ...

They act with the rights of the kubeconfig, as those of `flux install` do with theirs (cluster-admin). What kwok plays
of the Deployments of `components()` runs no program.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.kubectl import Kubectl
from testbed.processes import Component, free_port, wait_until
from testbed.programs import module_folder, programs

NAMESPACE = "flux-system"
CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller")
# Every program has a port of its own, and what waits for a minute elsewhere is looked at again within seconds.
FLAGS = (
    "--watch-all-namespaces", "--enable-leader-election=false", "--log-encoding=console", "--events-addr=",
    "--metrics-addr=0", "--interval-jitter-percentage=0", "--min-retry-delay=200ms", "--max-retry-delay=2s",
    "--requeue-dependency=500ms",
)  # fmt: skip


class Flux:
    """The three controllers against one control plane."""

    def __init__(self, kubeconfig: Path, folder: Path, flags: Mapping[str, Sequence[str]]) -> None:
        """`flags` of each controller, by its name, beside those that it needs to run here."""
        self._folder = folder
        self._health = {name: f"127.0.0.1:{free_port()}" for name in CONTROLLERS}
        self._files = f"127.0.0.1:{free_port()}"
        environment = {
            "KUBECONFIG": str(kubeconfig), "RUNTIME_NAMESPACE": NAMESPACE,
            "HOME": str(folder), "TMPDIR": str(folder), "TUF_ROOT": str(folder / "sigstore"),
        }  # fmt: skip
        built = programs("flux")
        self.components = [
            Component(
                name, [built[name], *self._flags(name), *flags.get(name, ())], folder / f"{name}.log", environment
            )
            for name in CONTROLLERS
        ]

    def __enter__(self) -> Self:
        (self._folder / "artifacts").mkdir()
        for component in self.components:
            component.start()
        wait_until("Flux", self._ready, self.components)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for component in self.components:
            # a health check that runs would hold a graceful end up for as long as it may last
            component.stop(signal.SIGKILL)

    def _flags(self, name: str) -> list[str]:
        flags = [*FLAGS, f"--health-addr={self._health[name]}"]
        if name != "source-controller":
            return flags
        storage = f"--storage-path={self._folder / 'artifacts'}"
        return [*flags, storage, f"--storage-addr={self._files}", f"--storage-adv-addr={self._files}"]

    def _ready(self) -> bool:
        # source-controller serves its files only once it runs
        answers = [_status(host, "/readyz") == 200 for host in self._health.values()]
        return all(answers) and _status(self._files, "/") is not None


def _status(host: str, path: str) -> int | None:
    connection = http.client.HTTPConnection(host, timeout=5)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return None


def components(kubectl: Kubectl, registry: str) -> str:
    """CRDs, roles, Deployments and namespace as `flux install --export --registry=REGISTRY` prints them.

    Made of the kustomizations in the Go modules, as the manifests of `flux install` are.
    """
    with tempfile.TemporaryDirectory() as folder:
        parts = [module(name) / "config" / part for name in CONTROLLERS for part in ("crd", "rbac", "manager")]
        whole = {
            "namespace": NAMESPACE,
            "resources": ["namespace.json", *(os.path.relpath(part, Path(folder).resolve()) for part in parts)],
            "images": [{"name": f"fluxcd/{name}", "newName": f"{registry}/{name}"} for name in CONTROLLERS],
        }
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        Path(folder, "namespace.json").write_text(json.dumps(space))
        Path(folder, "kustomization.yaml").write_text(json.dumps(whole))
        return kubectl("kustomize", folder)


def module(name: str) -> Path:
    """The folder of a controller's Go module."""
    return module_folder("flux", f"github.com/fluxcd/{name}")

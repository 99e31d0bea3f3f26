"""Flux as programs of this machine: source-, kustomize- and helm-controller beside a control plane.

    kubectl("apply", "--server-side", "--filename=-", stdin=components(kubectl, "contoso.azurecr.io/fluxcd"))
    with Flux(kubeconfig, folder, {"kustomize-controller": ["--concurrent=20"]}):
        ...

They act with the rights of the kubeconfig, as those of `flux install` do (cluster-admin). What kwok simulates
of the Deployments of `components()` runs no program.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from testbed.kubectl import Kubectl
from testbed.processes import Component, free_port, wait_until
from testbed.programs import module_folder, programs

NAMESPACE = "flux-system"
FLUX_VERSION = "v2.9.5"
CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller")
# Every program has a port of its own, and what waits for a minute elsewhere is checked again within seconds.
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

    def __exit__(self, *_: object) -> None:
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
    """What `flux install --export --components=... --registry=REGISTRY --network-policy=false` prints, in other order.

    Made as the flux command makes it (github.com/fluxcd/flux2, pkg/manifestgen/install): of its own kustomizations,
    with the manifests of the controllers from their modules, not from their releases. Compared with the command
    itself, v2.9.5, on 2026-11-23: every object was equal. It cannot be built from its module alone, which lacks the
    manifests that it embeds.
    """
    parts = module_folder("github.com/fluxcd/flux2/v2", "flux-manifests") / "manifests"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for controller in CONTROLLERS:
            _put_base(parts / "bases" / controller, folder / controller)
        roles = {
            "namespace": NAMESPACE,
            "nameSuffix": f"-{NAMESPACE}",
            "resources": [_from(folder / "roles", parts / "rbac")],
        }
        files = {
            "roles/kustomization.yaml": roles,
            "namespace.yaml": _NAMESPACE,
            "labels.yaml": _LABELS,
            "kustomization.yaml": {
                "namespace": NAMESPACE,
                "transformers": ["labels.yaml"],
                "resources": ["namespace.yaml", "roles", *CONTROLLERS],
                "patches": [
                    {"target": {"kind": "Deployment"}, "patch": json.dumps(_ON_LINUX)},
                    *map(_arguments, CONTROLLERS),
                ],
                "images": [
                    {"name": f"fluxcd/{controller}", "newName": f"{registry}/{controller}"}
                    for controller in CONTROLLERS
                ],
            },
        }
        (folder / "roles").mkdir()
        for file, content in files.items():
            (folder / file).write_text(json.dumps(content))
        return kubectl("kustomize", str(folder))


_NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": NAMESPACE,
        "labels": {
            "pod-security.kubernetes.io/warn": "restricted",
            "pod-security.kubernetes.io/warn-version": "latest",
        },
    },
}
_LABELS = {
    "apiVersion": "builtin",
    "kind": "LabelTransformer",
    "metadata": {"name": "labels"},
    "labels": {
        "app.kubernetes.io/instance": NAMESPACE,
        "app.kubernetes.io/version": FLUX_VERSION,
        "app.kubernetes.io/part-of": "flux",
    },
    "fieldSpecs": [
        {"path": "metadata/labels", "create": True},
        {"kind": "Deployment", "path": "spec/template/metadata/labels", "create": True},
    ],
}
_ON_LINUX = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "all"},
    "spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}}},
}


def _put_base(base: Path, folder: Path) -> None:
    """A controller's kustomization, which fetches its CRDs and its Deployment: here they come from its module."""
    shutil.copytree(base, folder, copy_function=shutil.copyfile)
    config, file = module(base.name) / "config", folder / "kustomization.yaml"
    made_of = {"crds": _from(folder, config / "crd"), "deployment": _from(folder, config / "manager")}
    file.write_text(re.sub(r"https://\S+\.(crds|deployment)\.yaml", lambda match: made_of[match[1]], file.read_text()))


def _arguments(controller: str) -> dict[str, object]:
    """The flags that `flux install` sets itself, by their place."""
    flags = {0: "--events-addr=", 1: "--watch-all-namespaces=true", 2: "--log-level=info"}
    if controller == "source-controller":
        flags[6] = "--storage-adv-addr=source-controller.$(RUNTIME_NAMESPACE).svc.cluster.local."
    pointer = "/spec/template/spec/containers/0/args"
    patch = [{"op": "replace", "path": f"{pointer}/{number}", "value": flag} for number, flag in flags.items()]
    return {"target": {"kind": "Deployment", "name": controller}, "patch": json.dumps(patch)}


def _from(folder: Path, target: Path) -> str:
    return os.path.relpath(target, folder)


def module(name: str) -> Path:
    """The folder of a controller's Go module."""
    return module_folder(f"github.com/fluxcd/{name}")

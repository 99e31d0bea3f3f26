"""The programs of one node, in namespaces that are its own already: containerd, kubelet, kube-proxy and stand-ins."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from testbed.errors import ComponentError
from testbed.images.oci import write_archive
from testbed.images.recipes import pause_image
from testbed.node import config
from testbed.node.addresses import NodeIdentity
from testbed.node.options import NodeOptions
from testbed.packages import SEARCH
from testbed.processes import Component, wait_until
from testbed.programs import NODE_FAMILIES, programs

REPOSITORY = Path(__file__).resolve().parents[2]


class NodePrograms:
    """Started in this order: `start_containerd`, `import_images`, `start_kubelet`, `start_stand_ins`."""

    def __init__(self, identity: NodeIdentity, options: NodeOptions, csi_calls: Path) -> None:
        self.identity = identity
        self._options = options
        self._folder = options.folder
        self._csi_calls = csi_calls
        self._programs = programs(*NODE_FAMILIES)
        self._components: dict[str, Component] = {}

    @property
    def components(self) -> list[Component]:
        return list(self._components.values())

    def raise_if_dead(self) -> None:
        for component in self._components.values():
            if component.exit_code is not None:
                raise ComponentError(f"{component.name} ended with {component.exit_code}\n{component.tail()}")

    def start(self, name: str, *command: str | Path) -> None:
        """One program, with a log of its name in the folder."""
        environment = {"PATH": f"{self._programs['containerd'].parent}:{SEARCH}", "PYTHONPATH": str(REPOSITORY)}
        component = Component(name, command, self._folder / f"{name}.log", environment)
        self._components[name] = component
        component.start()

    def start_python(self, name: str, module: str, *arguments: str | Path) -> None:
        self.start(name, sys.executable, "-m", module, *arguments)

    def text(self, name: str, content: str) -> Path:
        """A file of the folder with this content."""
        path = self._folder / name
        path.write_text(content)
        return path

    def start_containerd(self) -> None:
        cni = self._folder / "cni"
        cni.mkdir()
        (cni / "10-pods.conflist").write_text(json.dumps(config.cni(self.identity)))
        settings = self.text("containerd.toml", config.containerd(cni))
        self.start("containerd", self._programs["containerd"], "--config", settings)

    def import_images(self) -> None:
        """The pause image first: without it no pod has a sandbox."""
        pause = self._folder / "pause.tar"
        write_archive(pause, [pause_image()])
        wait_until("containerd", self._containerd_answers, self.components)
        for archive in (pause, *self._options.images):
            command = [str(self._programs["ctr"]), "--namespace=k8s.io", "images", "import", str(archive)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ComponentError(f"{archive} could not be imported: {done.stderr.strip()}")

    def _containerd_answers(self) -> bool:
        return subprocess.run([self._programs["ctr"], "version"], capture_output=True, check=False).returncode == 0

    def start_kubelet(self, cluster: config.Cluster) -> None:
        """The kubelet, and kube-proxy beside it."""
        identity = self.identity
        self.start(
            "kubelet", self._programs["kubelet"],
            f"--config={self.text('kubelet.yaml', json.dumps(config.kubelet(identity, cluster)))}",
            f"--kubeconfig={cluster.kubelet}", f"--hostname-override={identity.name}",
            f"--node-ip={identity.address}", "--v=2",
        )  # fmt: skip
        proxy = self.text("kube-proxy.yaml", json.dumps(config.kube_proxy(identity, cluster)))
        self.start("kube-proxy", self._programs["kube-proxy"], f"--config={proxy}")

    def start_stand_ins(self) -> None:
        """The CSI drivers, and the device plug-in where the node has GPUs."""
        options = self._options
        self.start_python(
            "csi", "testbed.csi",
            f"--node={self.identity.name}", f"--shares={options.shares}", f"--calls={self._csi_calls}",
        )  # fmt: skip
        if options.gpus:
            self.start_python(
                "device-plugin", "testbed.device_plugin", options.size.resource, str(options.gpus),
                f"--unhealthy={options.unhealthy_gpus}",
                *([f"--driver={options.gpu_states}"] if options.gpu_driver else []),
            )  # fmt: skip

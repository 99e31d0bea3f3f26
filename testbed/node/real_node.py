"""One real node and its control plane, brought up in order inside namespaces that `keeper` has made."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from testbed.api import Api, Json
from testbed.controlplane import ControlPlane, Settings
from testbed.csi.shares import AZURE_FILES, NFS
from testbed.errors import ApiError, ComponentError
from testbed.images.oci import write_archive
from testbed.images.recipes import pause_image
from testbed.node import config, mounts_and_routes
from testbed.node.addresses import LOAD_BALANCER_NETWORK, NODE, NODE_ADDRESS
from testbed.node.canary import run_canary
from testbed.node.machine import pose_as
from testbed.node.options import NodeOptions
from testbed.packages import SEARCH
from testbed.processes import Component, wait_until
from testbed.programs import NODE_FAMILIES, programs

REPOSITORY = Path(__file__).resolve().parents[2]
READY_SECONDS = 120

# as the real drivers install them; without the object Kubernetes waits for an attach step that never comes
CSI_DRIVERS: dict[str, Json] = {
    AZURE_FILES: {
        "attachRequired": False,
        "podInfoOnMount": True,
        "volumeLifecycleModes": ["Persistent", "Ephemeral"],
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
    },
    NFS: {"attachRequired": False, "volumeLifecycleModes": ["Persistent"], "fsGroupPolicy": "File"},
}


class RealNode:
    """`start()` returns when a first pod has run; nothing is ever stopped, the namespace ends all at once."""

    def __init__(self, options: NodeOptions, cgroup: str) -> None:
        self.options = options
        self._folder = options.folder
        self._cgroup = cgroup
        self._programs = programs(*NODE_FAMILIES)
        self._components: dict[str, Component] = {}
        self._started = time.monotonic()
        self._times: dict[str, float] = {}
        self.plane = ControlPlane(
            Settings(
                bind_address="0.0.0.0",
                advertise_address=NODE_ADDRESS,
                endpoint_reconciler="lease",
                admission_plugins=("NodeRestriction",),
                calls_kubelets=True,
                audit_users=options.audit_users,
            ),
            options.folder / "controlplane",
        )

    def start(self) -> None:
        """Raises ComponentError with the log tails of what did not come up."""
        mounts_and_routes.lay_mounts(self._folder)
        mounts_and_routes.lay_network()
        pose_as(self.options.size, self._folder / "machine")
        self._start_containerd()
        with ThreadPoolExecutor(1) as beside:
            imported = beside.submit(self._import_images)
            self.plane.start()
            self._note("control plane")
            self._start_node_programs()
            self._finish_import(imported)
        self._wait_until_ready()
        run_canary(self._api, self.components)
        self._note("first pod")

    def described(self) -> dict[str, Any]:
        """What is printed about the running node."""
        return {
            "insideKubeconfig": str(self.plane.kubeconfig),
            "node": NODE,
            "version": self.plane.version,
            "folder": str(self._folder),
            "shares": str(self.options.shares),
            "csiCalls": str(self.options.csi_calls),
            "unhealthyGpus": str(self.options.unhealthy_gpus),
            "gpuStates": str(self.options.gpu_states) if self.options.gpu_driver else None,
            "auditLog": None if self.options.audit_users is None else str(self.plane.audit_log),
            "kubectl": str(self.plane.kubectl),
            "ctr": str(self._programs["ctr"]),
            "times": self._times,
        }

    @property
    def components(self) -> list[Component]:
        return [*self._components.values(), *self.plane.components]

    def raise_if_dead(self) -> None:
        self.plane.raise_if_dead()
        for component in self._components.values():
            if component.exit_code is not None:
                raise ComponentError(f"{component.name} ended with {component.exit_code}\n{component.tail()}")

    # ------------------------------------------------------------------ how it comes up

    def _start(self, name: str, *command: str | Path) -> None:
        environment = {"PATH": f"{self._programs['containerd'].parent}:{SEARCH}", "PYTHONPATH": str(REPOSITORY)}
        component = Component(name, command, self._folder / f"{name}.log", environment)
        self._components[name] = component
        component.start()

    def _start_python(self, name: str, module: str, *arguments: str | Path) -> None:
        self._start(name, sys.executable, "-m", module, *arguments)

    def _start_containerd(self) -> None:
        cni = self._folder / "cni"
        cni.mkdir()
        (cni / "10-pods.conflist").write_text(json.dumps(config.cni()))
        self._start(
            "containerd",
            self._programs["containerd"],
            "--config",
            self._text("containerd.toml", config.containerd(cni)),
        )

    def _import_images(self) -> None:
        """The pause image first: without it no pod has a sandbox."""
        pause = self._folder / "pause.tar"
        write_archive(pause, [pause_image()])
        wait_until("containerd", self._containerd_answers, self._components.values())
        for archive in (pause, *self.options.images):
            command = [str(self._programs["ctr"]), "--namespace=k8s.io", "images", "import", str(archive)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ComponentError(f"{archive} could not be imported: {done.stderr.strip()}")

    def _containerd_answers(self) -> bool:
        return subprocess.run([self._programs["ctr"], "version"], capture_output=True, check=False).returncode == 0

    def _finish_import(self, imported: Future[None]) -> None:
        imported.result()
        self._note("images")

    def _start_node_programs(self) -> None:
        self._api = Api(self.plane.kubeconfig)
        cluster = config.Cluster(
            authority=self.plane.authority_file,
            kubelet=self.plane.kubeconfig_for(f"system:node:{NODE}", "system:nodes"),
            proxy=self.plane.kubeconfig_for("system:kube-proxy"),
            admin=self.plane.kubeconfig,
            cgroup=self._cgroup,
        )
        self._start(
            "kubelet", self._programs["kubelet"],
            f"--config={self._text('kubelet.yaml', json.dumps(config.kubelet(cluster)))}",
            f"--kubeconfig={cluster.kubelet}", f"--hostname-override={NODE}", f"--node-ip={NODE_ADDRESS}", "--v=2",
        )  # fmt: skip
        proxy = self._text("kube-proxy.yaml", json.dumps(config.kube_proxy(cluster)))
        self._start("kube-proxy", self._programs["kube-proxy"], f"--config={proxy}")
        corefile = config.coredns(cluster)
        self._start("coredns", self._programs["coredns"], "-conf", self._text("Corefile", corefile))
        # It runs from the file; tests and users find it in the cluster where a cluster keeps it.
        published = {"metadata": {"name": "coredns"}, "data": {"Corefile": corefile}}
        self._api.create("/api/v1/namespaces/kube-system/configmaps", published)
        self._start_stand_ins()

    def _start_stand_ins(self) -> None:
        for name, spec in CSI_DRIVERS.items():
            driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}
            self._api.create("/apis/storage.k8s.io/v1/csidrivers", driver)
        self._start_python(
            "csi",
            "testbed.csi",
            f"--node={NODE}",
            f"--shares={self.options.shares}",
            f"--calls={self.options.csi_calls}",
        )
        self._start_python(
            "cloud-provider", "testbed", "cloud-provider",
            f"--kubeconfig={self.plane.kubeconfig}", f"--private-range={LOAD_BALANCER_NETWORK}",
        )  # fmt: skip
        if self.options.gpus:
            self._start_python(
                "device-plugin", "testbed.device_plugin", self.options.size.resource, str(self.options.gpus),
                f"--unhealthy={self.options.unhealthy_gpus}",
                *([f"--driver={self.options.gpu_states}"] if self.options.gpu_driver else []),
            )  # fmt: skip

    def _text(self, name: str, content: str) -> Path:
        path = self._folder / name
        path.write_text(content)
        return path

    # ------------------------------------------------------------------ when it is up

    def _wait_until_ready(self) -> None:
        wait_until("Ready node", self._is_ready, self.components, READY_SECONDS)
        self._note("node Ready")
        self._api.merge(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": dict(self.options.labels)}})
        wait_until("registered CSI drivers", self._drivers_registered, self.components)
        wait_until("advertised GPUs", self._gpus_advertised, self.components)
        self._note("stand-ins")

    def _is_ready(self) -> bool:
        try:
            status = self._api.get(f"/api/v1/nodes/{NODE}")["status"]
        except ApiError:
            return False
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))

    def _drivers_registered(self) -> bool:
        spec = self._api.get(f"/apis/storage.k8s.io/v1/csinodes/{NODE}")["spec"]
        return {driver["name"] for driver in spec.get("drivers") or []} >= CSI_DRIVERS.keys()

    def _gpus_advertised(self) -> bool:
        allocatable = self._api.get(f"/api/v1/nodes/{NODE}")["status"]["allocatable"]
        return int(allocatable.get(self.options.size.resource, 0)) == self.options.gpus

    def _note(self, event: str) -> None:
        self._times[event] = round(time.monotonic() - self._started, 2)

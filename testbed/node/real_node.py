"""The real node, its control plane, and the second node if there is one, in namespaces that `keeper` has made."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from testbed.api import Api, Json
from testbed.controlplane import ControlPlane, Settings
from testbed.csi.shares import AZURE_FILES, NFS
from testbed.errors import ApiError
from testbed.node import config, mounts_and_routes
from testbed.node.addresses import FIRST, LOAD_BALANCER_NETWORK, NODE_ADDRESS, SECOND, NodeIdentity
from testbed.node.canary import run_canary
from testbed.node.machine import pose_as
from testbed.node.node_programs import NodePrograms
from testbed.node.options import NodeOptions
from testbed.node.second_node import SecondNode
from testbed.processes import Component, wait_until
from testbed.programs import NODE_FAMILIES, programs

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
    """`start()` returns when a first pod has run on each node; nothing is ever stopped: the namespace ends at once."""

    def __init__(self, options: NodeOptions, cgroup: str) -> None:
        self.options = options
        self._folder = options.folder
        self._cgroup = cgroup
        self._first = NodePrograms(FIRST, options, options.csi_calls)
        self._second = SecondNode(options.of_second_node(), cgroup) if options.nodes == 2 else None
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
        mounts_and_routes.lay_network(self.options.nodes)
        pose_as(self.options.size, self._folder / "machine")
        self._first.start_containerd()
        with ThreadPoolExecutor(1) as beside:
            imported = beside.submit(self._first.import_images)
            self.plane.start()
            self._note("control plane")
            self._api = Api(self.plane.kubeconfig)
            self._start_second_node()
            self._start_node_programs()
            self._finish_import(imported)
        self._wait_until_ready()
        for identity in self._identities:
            run_canary(self._api, identity.name, self.components)
        self._note("first pod")

    def described(self) -> dict[str, Any]:
        """What is printed about the running node."""
        return {
            "insideKubeconfig": str(self.plane.kubeconfig),
            "node": FIRST.name,
            "version": self.plane.version,
            "folder": str(self._folder),
            "shares": str(self.options.shares),
            "csiCalls": str(self.options.csi_calls),
            "unhealthyGpus": str(self.options.unhealthy_gpus),
            "gpuStates": str(self.options.gpu_states) if self.options.gpu_driver else None,
            "auditLog": None if self.options.audit_users is None else str(self.plane.audit_log),
            "kubectl": str(self.plane.kubectl),
            "ctr": str(programs(*NODE_FAMILIES)["ctr"]),
            "times": self._times,
            "secondProcess": None if self._second is None else self._second.described(),
        }

    @property
    def components(self) -> list[Component]:
        return [*self._first.components, *self.plane.components]

    @property
    def _identities(self) -> tuple[NodeIdentity, ...]:
        return (FIRST, SECOND)[: self.options.nodes]

    def raise_if_dead(self) -> None:
        self.plane.raise_if_dead()
        self._first.raise_if_dead()
        if self._second is not None:
            self._second.raise_if_dead()

    # ------------------------------------------------------------------ how it comes up

    def _finish_import(self, imported: Future[None]) -> None:
        imported.result()
        self._note("images")

    def _cluster(self, identity: NodeIdentity) -> config.Cluster:
        return config.Cluster(
            authority=self.plane.authority_file,
            kubelet=self.plane.kubeconfig_for(f"system:node:{identity.name}", "system:nodes"),
            proxy=self.plane.kubeconfig_for("system:kube-proxy"),
            cgroup=self._cgroup,
        )

    def _start_second_node(self) -> None:
        """Before any pod runs on the first: what is mounted there would be mounted in the second's namespace too."""
        if self._second is not None:
            self._second.start(self._cluster(SECOND))
            self._note("second node")

    def _start_node_programs(self) -> None:
        node = self._first
        node.start_kubelet(self._cluster(FIRST))
        corefile = config.coredns(self.plane.kubeconfig)
        node.start("coredns", programs(*NODE_FAMILIES)["coredns"], "-conf", node.text("Corefile", corefile))
        # It runs from the file; tests and users find it in the cluster where a cluster keeps it.
        published = {"metadata": {"name": "coredns"}, "data": {"Corefile": corefile}}
        self._api.create("/api/v1/namespaces/kube-system/configmaps", published)
        for name, spec in CSI_DRIVERS.items():
            driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}
            self._api.create("/apis/storage.k8s.io/v1/csidrivers", driver)
        node.start_stand_ins()
        node.start_python(
            "cloud-provider", "testbed", "cloud-provider",
            f"--kubeconfig={self.plane.kubeconfig}", f"--private-range={LOAD_BALANCER_NETWORK}",
        )  # fmt: skip
        if self.options.nodes == 2:
            node.start_python("balancer", "testbed.node.balancer", f"--kubeconfig={self.plane.kubeconfig}")
        if self.options.enforces_policies:
            second = f"--also-in=/run/netns/{mounts_and_routes.SECOND_NAMESPACE}"
            namespaces = (second,) if self.options.nodes == 2 else ()
            node.start_python("policies", "testbed.node.policies", f"--kubeconfig={self.plane.kubeconfig}", *namespaces)

    # ------------------------------------------------------------------ when it is up

    def _wait_until_ready(self) -> None:
        wait_until("Ready nodes", self._are_ready, self.components, READY_SECONDS)
        self._note("node Ready")
        for identity in self._identities:
            self._api.merge(f"/api/v1/nodes/{identity.name}", {"metadata": {"labels": dict(self.options.labels)}})
        wait_until("registered CSI drivers", self._drivers_registered, self.components)
        wait_until("advertised GPUs", self._gpus_advertised, self.components)
        self._note("stand-ins")

    def _are_ready(self) -> bool:
        return all(self._is_ready(identity.name) for identity in self._identities)

    def _is_ready(self, name: str) -> bool:
        try:
            status = self._api.get(f"/api/v1/nodes/{name}")["status"]
        except ApiError:
            return False
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))

    def _drivers_registered(self) -> bool:
        specs = [self._api.get(f"/apis/storage.k8s.io/v1/csinodes/{node.name}")["spec"] for node in self._identities]
        return all({driver["name"] for driver in spec.get("drivers") or []} >= CSI_DRIVERS.keys() for spec in specs)

    def _gpus_advertised(self) -> bool:
        nodes = [self._api.get(f"/api/v1/nodes/{node.name}")["status"]["allocatable"] for node in self._identities]
        return all(int(node.get(self.options.size.resource, 0)) == self.options.gpus for node in nodes)

    def _note(self, event: str) -> None:
        self._times[event] = round(time.monotonic() - self._started, 2)

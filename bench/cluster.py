"""The cluster that every figure of one run is taken on, and how it is emptied between two of them.

CRDs and RBAC are installed from the manifests. The admission policies are not: one of them lets only Hermetic
write a ModelDeployment's status, and both operators shall meet the same API server.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bench.traffic import Trail
from bench.workload import API, make_room
from testbed import cloud_provider
from testbed.api import Api
from testbed.controlplane import ControlPlane, Settings
from testbed.errors import ApiError
from testbed.installation import ACCOUNT, REPOSITORY
from testbed.kubectl import Kubectl
from testbed.served import wait_until_served

PEER = "system:serviceaccount:bench-peer:peer"
USER = "bench"
PRIVATE_RANGE = "10.64.0.0/16"
CHILD_LABEL = "app.kubernetes.io/managed-by=hermetic"


class Cluster:
    """A control plane, fake GPU nodes for `models` models, and the stand-in that gives load balancers addresses."""

    def __init__(self, models: int) -> None:
        self._models = models
        self._parts = ExitStack()

    def __enter__(self) -> Self:
        with self._parts:
            self._start()
            self._parts = self._parts.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def _start(self) -> None:
        self.folder = Path(self._parts.enter_context(tempfile.TemporaryDirectory(prefix="hermetic-bench-")))
        settings = Settings(audit_users=(ACCOUNT, PEER, USER))
        self.plane = self._parts.enter_context(ControlPlane(settings, self.folder / "controlplane"))
        self.api = Api(self.plane.kubeconfig)
        self.trail = Trail(self.plane.audit_log)
        self.user_kubeconfig = self.plane.kubeconfig_for(USER, "system:masters")
        self._install()
        make_room(self.api, self._models)
        provider = cloud_provider.component(
            self.plane.kubeconfig, self.folder / "cloud-provider.log", f"--private-range={PRIVATE_RANGE}"
        )
        provider.start()
        self._parts.callback(provider.stop)

    def _install(self) -> None:
        kubectl = Kubectl(self.plane.kubectl, self.plane.kubeconfig)
        for folder in (REPOSITORY / "crds", REPOSITORY / "manifests" / "rbac"):
            kubectl("apply", "--server-side", "--kustomize", str(folder))
        kubectl("apply", "--server-side", "--filename", str(Path(__file__).parent / "peer" / "rbac.yaml"))
        kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/modeldeployments.hermetic.dev")
        wait_until_served(self.api, f"{API}/modeldeployments")

    def make_namespace(self, name: str) -> None:
        """A namespace that pods can be made in."""
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait(f"the default account of {name}", lambda: self._exists(account), 30)

    def empty(self, namespace: str) -> None:
        """Remove every model of a namespace with all that was made for it, and wait. No operator may run."""
        self._drop_finalizers(namespace)
        self.api.delete(f"{API}/namespaces/{namespace}/modeldeployments")
        for kind in ("pods", "services", "persistentvolumeclaims"):
            self._wait_for_the_end_of(f"namespaces/{namespace}/{kind}")
        self.api.delete(f"/api/v1/persistentvolumes?labelSelector={CHILD_LABEL}")
        self._wait_for_the_end_of("persistentvolumes")

    def _drop_finalizers(self, namespace: str) -> None:
        """The peer marks its parents, and will not be there to let them go."""
        path = f"{API}/namespaces/{namespace}/modeldeployments"
        for live in self.api.get(path)["items"]:
            if live["metadata"].get("finalizers"):
                self.api.merge(f"{path}/{live['metadata']['name']}", {"metadata": {"finalizers": None}})

    def _wait_for_the_end_of(self, collection: str) -> None:
        wait(f"the end of {collection}", lambda: not self.api.get(f"/api/v1/{collection}?limit=1")["items"], 300)

    def _exists(self, path: str) -> bool:
        try:
            self.api.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True


def wait(subject: str, holds: Callable[[], bool], timeout: float, every: float = 0.2) -> None:
    """Poll until it holds; TimeoutError names what never did."""
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:.0f} s for {subject}")
        time.sleep(every)

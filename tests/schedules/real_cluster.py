"""The cluster of schedules on a real API server: the operators that run on it, and namespaces to compare with."""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError, BedError
from testbed.fault_proxy import FaultProxy
from testbed.installation import CONFIGURATION, OperatorProcess, install, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from testbed.processes import wait_until
from tests.controlplane.end_state import is_gone
from tests.scenarios import Manifest, a_baked_model, a_share_model, changed, reporting

MODELS_IN = "/apis/hermetic.dev/v1alpha1/namespaces/{}/modeldeployments"
SHARES = ("llama-3-1-8b/fp8", "llama-3-1-8b/bf16")
DRAINS = (5, 30)
PATIENCE_SECONDS = 300.0  # of people, and of the cluster: a machine that others use as well is slow
REFUSED_LABEL = "hermetic.test/refused"

Wanted = tuple[str, str]
"""What is applied in a namespace in the end: drain seconds of `phi` and folder of `llama`, "" where it is not there."""


def manifests_of(requested: Wanted) -> list[Manifest]:
    # No pods: their pace is not the operator's, and everything that is written is written without them too.
    drain, folder = requested
    models = [changed(reporting(a_baked_model(replicas=0)), drainSeconds=int(drain))] if drain else []
    weights = {"azureFiles": {"account": "contosomodels", "share": "models", "folder": folder}}
    return models + ([changed(reporting(a_share_model(replicas=0)), weights=weights)] if folder else [])


@dataclass
class RealCluster:
    """The cluster, the proxy, and the operators that run now."""

    plane: ControlPlane
    proxy: FaultProxy
    api: Api
    kubectl: Kubectl
    folder: Path
    operators: list[OperatorProcess] = field(default_factory=list)
    references: dict[Wanted, str] = field(default_factory=dict)
    faults_injected: Counter[str] = field(default_factory=Counter)
    collected_late: dict[str, tuple[str, ...]] = field(default_factory=dict)
    made: int = 0

    def start_operator(self) -> None:
        """One more: as long as another leads, it waits for the Lease."""
        self.made += 1
        name = f"operator-{self.made}"
        kubeconfig = operator_kubeconfig(
            self.api, self.plane.kubeconfig, self.folder / f"{name}.kubeconfig", self.proxy.server
        )
        process = OperatorProcess(self.folder, kubeconfig, dict(CONFIGURATION), name)
        process.component.start()
        self.operators.append(process)

    def restart_ended(self) -> None:
        """What a kubelet does: an operator that lost its Lease ends, and is started again."""
        for operator in self.operators:
            if operator.component.exit_code is not None:
                self.faults_injected["operator restarted after its end"] += 1
                operator.component.start()

    def reference(self, requested: Wanted) -> str:
        """The namespace in which this was applied and nothing went wrong."""
        return self.references[requested]


@contextlib.contextmanager
def opened(plane: ControlPlane, folder: Path) -> Iterator[RealCluster]:
    """An installed operator behind a proxy, and one undisturbed namespace for everything that may be wanted."""
    api, kubectl = Api(plane.kubeconfig), Kubectl(plane.kubectl, plane.kubeconfig)
    install(kubectl)
    kubectl.apply(*_refusing())
    with FaultProxy(plane) as proxy:
        cluster = RealCluster(plane, proxy, api, kubectl, folder)
        cluster.start_operator()
        try:
            for drain in ("", *map(str, DRAINS)):
                for share in ("", *SHARES):
                    _refer(cluster, (drain, share))
            yield cluster
        finally:
            for operator in cluster.operators:
                operator.stop(signal.SIGKILL)


def _refer(cluster: RealCluster, requested: Wanted) -> None:
    namespace = f"plain-{len(cluster.references)}"
    cluster.references[requested] = namespace
    made_namespace(cluster.api, namespace)
    if manifests := manifests_of(requested):
        cluster.kubectl.within(namespace).apply(*manifests)
        settled = partial(_is_settled, cluster.api, namespace, len(manifests))
        wait_for(f"reference {requested}", settled, timeout=PATIENCE_SECONDS)


def _is_settled(api: Api, namespace: str, count: int) -> bool:
    models = api.get(MODELS_IN.format(namespace))["items"]
    reasons = [
        {condition["type"]: condition["reason"] for condition in item.get("status", {}).get("conditions", ())}.get(
            "Ready"
        )
        for item in models
    ]
    return reasons == ["ScaledToZero"] * count


def _refusing() -> list[Manifest]:
    """An admission policy that refuses the operator's children in namespaces with the label."""
    rules = [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
        for resource in ("deployments", "services", "serviceaccounts", "networkpolicies")
    ]
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "refused-by-schedules"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "false", "message": "not today"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "refused-by-schedules"},
        "spec": {
            "policyName": "refused-by-schedules",
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {REFUSED_LABEL: "yes"}}},
        },
    }
    return [policy, binding]


def insistently(act: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Do it until it is done: the API server may be away, and a namespace may be on its way out."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            act()
        except (OSError, BedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def made_namespace(api: Api, name: str) -> None:
    def make() -> None:
        try:
            api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        except ApiError as error:
            if error.status != 409:
                raise
        api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")

    insistently(make)


def gone_namespace(api: Api, name: str) -> None:
    def gone() -> bool:
        try:
            return is_gone(api, f"/api/v1/namespaces/{name}")
        except (OSError, ApiError):
            return False

    wait_until(f"end of namespace {name}", gone, (), PATIENCE_SECONDS)

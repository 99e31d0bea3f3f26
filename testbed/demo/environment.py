"""The cluster of the demo: with a real node where this machine can run one, else with nodes that kwok simulates."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed import cloud_provider, probe_simulator
from testbed.aks_defaults import create_aks_defaults
from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.demo.estate import HERMETIC, Estate, configuration, overlay, stage_weights
from testbed.demo.evidence import JumpBox
from testbed.demo.narration import show
from testbed.errors import CannotRunError
from testbed.fleet import Pool, add_nodes
from testbed.gateway.on_node import ALLOWED, node_gateway
from testbed.installation import OperatorProcess, install, operator_kubeconfig
from testbed.kubectl import Kubectl
from testbed.node.command import check
from testbed.node.handle import RunningNode, running_node


@dataclass
class DemoEnvironment:
    """A cluster with Hermetic on it; `node` is None where kwok simulates the nodes and no container runs."""

    kubectl: Kubectl
    api: Api
    estate: Estate
    node: RunningNode | None
    jump_box: JumpBox
    stand_ins: list[str] = field(default_factory=list)

    @property
    def probe_image(self) -> str:
        """The operator's own image: it has python3."""
        return self.estate.operator_image

    def from_client(self, *arguments: str, timeout: float = 60.0) -> str:
        """Run a program on the machine of the virtual network that is outside the cluster."""
        assert self.node is not None
        done = self.node.from_client(*arguments, timeout=timeout)
        if done.returncode != 0:
            raise CannotRunError(f"{arguments[0]}: {done.stderr.strip()}")
        return done.stdout


@contextmanager
def demo_environment(folder: Path) -> Iterator[DemoEnvironment]:
    """A cluster with a real node if this machine can run one, else with simulated nodes, and prints why."""
    with ExitStack() as stack:
        try:
            yield _with_a_real_node(folder, stack)
        except _NoRealNode as reason:
            show(f"no real node on this machine ({reason}): kwok simulates the nodes, up to 'scheduled and Ready'")
            yield _with_simulated_nodes(folder, stack)


POOL_LABELS = {
    "agentpool": "gpu",
    "kubernetes.azure.com/agentpool": "gpu",
    "kubernetes.azure.com/network-subnet": "snet-gpu",
}
"""The pool and subnet of the GPU nodes in `testbed.azure.baseline.sealed_estate`, which the jump box audits."""


class _NoRealNode(Exception):
    pass


def _with_a_real_node(folder: Path, stack: ExitStack) -> DemoEnvironment:
    shares = folder / "shares"
    stage_weights(shares)
    try:
        check()
    except CannotRunError as reason:
        raise _NoRealNode(str(reason)) from reason
    with ThreadPoolExecutor(1) as beside:
        show("starting etcd, kube-apiserver, scheduler, containerd, kubelet, kube-proxy, CoreDNS")
        show("making images meanwhile: operator, vLLM, SGLang and NIM stand-ins, baked model, model volume")
        making = beside.submit(Estate.prepare, folder)
        node = stack.enter_context(
            running_node("--shares", str(shares), "--gpus", "8", "--gpu-driver", *_pool_options())
        )
        estate = making.result()
    show("importing the images")
    node.import_images(estate.archive)
    kubectl = node.kubectl
    show("a Gateway of the Gateway API's own CRDs, with the real Envoy behind an internal load balancer")
    stack.enter_context(node_gateway(node, folder))
    show("installing Hermetic: kubectl apply -k overlay/ (CRDs, RBAC, policies, operator by digest), hermetic rbac")
    kubectl("apply", "--server-side", "--kustomize", str(overlay(estate, folder / "install", gateways=ALLOWED)))
    _limit_the_operator(kubectl, folder / "install/manifests/operator/config.yaml")
    jump_box = _jump_box(folder, node.kubeconfig, stack)
    show("the audit of the simulated Azure begins on the jump box; its result is shown below")
    jump_box.begin()
    kubectl("--namespace", "hermetic-system", "rollout", "status", "deployment/hermetic-operator", "--timeout=90s")
    return DemoEnvironment(kubectl, Api(node.kubeconfig), estate, node, jump_box, STAND_INS_REAL)


def _limit_the_operator(kubectl: Kubectl, config: Path) -> None:
    """Apply what docs/install.md applies after kustomize: the ConfigMap `hermetic-allowed` and its policies."""
    command = [HERMETIC, "rbac", "--config", str(config)]
    manifests = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=manifests)


def _with_simulated_nodes(folder: Path, stack: ExitStack) -> DemoEnvironment:
    show("starting etcd, kube-apiserver, controller-manager, scheduler, kwok")
    plane = stack.enter_context(ControlPlane())
    kubectl, api = Kubectl(plane.kubectl, plane.kubeconfig), Api(plane.kubeconfig)
    add_nodes(api, Pool("gpu", "Standard_NC96ads_A100_v4", labels=POOL_LABELS), 2)
    for stand_in in (
        cloud_provider.component(plane.kubeconfig, folder / "cloud-provider.log"),
        probe_simulator.component(plane.kubeconfig, folder / "probe-simulator.log"),
    ):
        stand_in.start()
        stack.callback(stand_in.stop)
    create_aks_defaults(api)
    show("installing Hermetic: CRDs, RBAC, policies; the operator runs as a process with its ServiceAccount's token")
    install(kubectl)
    estate = Estate.prepare(folder)
    account = operator_kubeconfig(api, plane.kubeconfig, folder / "operator.kubeconfig")
    operator = OperatorProcess(folder, account, configuration(estate))
    operator.start()
    stack.callback(operator.stop)
    jump_box = _jump_box(folder, plane.kubeconfig, stack)
    return DemoEnvironment(kubectl, api, estate, None, jump_box, STAND_INS_SIMULATED)


def _pool_options() -> Iterator[str]:
    """The options that put the real node into the pool of the audited estate."""
    for name, value in POOL_LABELS.items():
        yield from ("--label", f"{name}={value}")


def _jump_box(folder: Path, kubeconfig: Path, stack: ExitStack) -> JumpBox:
    jump_box = JumpBox(folder, HERMETIC, kubeconfig)
    stack.enter_context(jump_box.arm)
    return jump_box


STAND_INS_REAL = [
    "GPUs: a device plug-in that offers devices which are not there, and a driver library that shows them",
    "Azure Files: a CSI plug-in on the kubelet's socket that mounts local folders",
    "Azure load balancer: a controller that assigns by the same annotations; kube-proxy really answers",
    "the controller of the Gateway: a stand-in that sets the documented conditions; Envoy is the real one",
    "vLLM, SGLang and NIM: one server that takes the same arguments and gives canned answers",
    "Azure: its management endpoint, by a server with an estate in memory; the audit of it is real",
]
STAND_INS_SIMULATED = [
    "nodes and pods: kwok (no container runs, so nothing can be asked)",
    "the probe's packets: nothing is sent, its pods are given the answers of a sealed machine",
    "Azure load balancer: a controller that assigns by the same annotations; nothing answers at the addresses",
    STAND_INS_REAL[-1],
]

"""The ways of docs/install.md to a Ready model on a real API server, and the life of a release with the real helm.

Each has an API server of its own: helm adopts nothing that others applied. kwok simulates the operator's pod,
which runs no program: beside it the operator runs as a process, with the ServiceAccount of the installation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import Api
from testbed.controlplane import ControlPlane, Settings
from testbed.errors import CannotRunError
from testbed.fleet import Pool, add_nodes
from testbed.installation import CONFIGURATION, REPOSITORY, OperatorProcess, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from testbed.policies_in_force import wait_for_policies
from testbed.programs import programs
from tests.install_page import commands, manifest
from tests.scenarios import a_baked_model, reporting

SYSTEM = "hermetic-system"
OLDER, NEWER = ("sha256:" + digit * 64 for digit in "12")
VALUES = manifest("With Helm").replace("sha256:DIGEST", OLDER)
CONFIG = {"registries": CONFIGURATION["registries"], "isolation": {"minimumEnforcement": "Off"}}
MODEL = "/apis/apps/v1/namespaces/inference/deployments/phi"


@dataclass(frozen=True)
class Cluster:
    """An API server of this file's own, and helm with its administrator's rights."""

    plane: ControlPlane
    kubectl: Kubectl
    api: Api
    folder: Path

    def run(self, verb: str, **values: Any) -> None:
        """The command of docs/install.md with this verb, as it is there."""
        (command,) = (line for line in commands("With Helm") if line.startswith(verb))
        (self.folder / "values.yaml").write_text(yaml.safe_dump({**yaml.safe_load(VALUES), **values}))
        program, *arguments = [str(self.folder / word) if word == "values.yaml" else word for word in command.split()]
        path = programs("helm", "kubernetes")[program]
        environment = {"KUBECONFIG": str(self.plane.kubeconfig), "HOME": str(self.folder)}
        done = subprocess.run(
            [path, *arguments], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def until_ready(self) -> None:
        """Wait until the model serves; its endpoint is inside the cluster, where no load balancer is needed."""
        self.kubectl.within("inference")("wait", "mdep/phi", "--for=condition=Ready", "--timeout=60s")

    def operator_pod(self) -> dict[str, Any]:
        deployment = self.api.get(f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/hermetic-operator")
        spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
        return spec


@pytest.fixture
def cluster_of_its_own(tmp_path_factory) -> Iterator[Cluster]:
    try:
        programs("helm")
        plane = ControlPlane(Settings())
        plane.start()
    except CannotRunError as reason:
        pytest.skip(str(reason))
    try:
        kubectl = Kubectl(programs("kubernetes")["kubectl"], plane.kubeconfig)
        api = Api(plane.kubeconfig)
        add_nodes(api, Pool("system", "Standard_D16s_v5", taints=()))
        add_nodes(api, Pool("gpu"))
        yield Cluster(plane, kubectl, api, tmp_path_factory.mktemp("helm"))
    finally:
        plane.stop()


@pytest.mark.sampled(1, of="Helm and Kustomize")
def test_a_release_is_installed_upgraded_rolled_back_and_taken_away(cluster_of_its_own, tmp_path):
    own_cluster = cluster_of_its_own
    own_cluster.run("kubectl apply")
    publish_the_api_server(own_cluster)
    own_cluster.run("helm install")
    wait_for_policies(own_cluster.kubectl)
    assert own_cluster.operator_pod()["containers"][0]["image"].endswith(OLDER)
    assert (
        addresses_that_the_operator_may_call(own_cluster) == addresses_of_the_api_server(own_cluster) != (set(), set())
    )
    own_cluster.kubectl("create", "namespace", "inference")
    with running_operator(own_cluster, tmp_path / "first") as operator:
        own_cluster.kubectl.within("inference").apply(a_model())
        wait_for("the model's Deployment", lambda: own_cluster.api.get(MODEL), operator)
        pods = wait_for("its pod", lambda: names_of_pods(own_cluster), operator)
        before = own_cluster.api.get(MODEL)
        own_cluster.until_ready()

    own_cluster.run(
        "helm upgrade", image={**yaml.safe_load(VALUES)["image"], "digest": NEWER}, config={**CONFIG, "workers": 4}
    )
    assert own_cluster.operator_pod()["containers"][0]["image"].endswith(NEWER)
    with running_operator(own_cluster, tmp_path / "second"):
        own_cluster.kubectl.within("inference")("wait", "mdep/phi", "--for=condition=ImagesPinned", "--timeout=30s")
        after = own_cluster.api.get(MODEL)
        assert after["spec"]["template"] == before["spec"]["template"]
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        assert names_of_pods(own_cluster) == pods

    own_cluster.run("helm rollback")
    assert own_cluster.operator_pod()["containers"][0]["image"].endswith(OLDER)

    own_cluster.run("helm uninstall")
    assert own_cluster.api.get("/apis/hermetic.dev/v1alpha1/namespaces/inference/modeldeployments/phi")["spec"]
    assert names_of_pods(own_cluster) == pods
    left = own_cluster.kubectl("get", "clusterroles,validatingadmissionpolicies", "--output=name").split()
    assert [name for name in left if "/hermetic-" in name] == []

    own_cluster.run("helm install")
    assert names_of_pods(own_cluster) == pods


@pytest.mark.sampled(1, of="Helm and Kustomize")
def test_the_commands_of_kustomize_reach_a_ready_model(cluster_of_its_own, tmp_path):
    own_cluster, home = cluster_of_its_own, tmp_path / "overlay"
    for folder in ("manifests", "crds"):
        shutil.copytree(REPOSITORY / folder, home / folder)
    (home / "kustomization.yaml").write_text(manifest("With kustomize").replace("sha256:DIGEST", OLDER))
    (home / "manifests/operator/config.yaml").write_text(yaml.safe_dump(CONFIG))
    (tmp_path / "kubectl").symlink_to(programs("kubernetes")["kubectl"])
    (tmp_path / "hermetic").write_text(f'#!/bin/sh\nexec {sys.executable} -m hermetic "$@"\n')
    (tmp_path / "hermetic").chmod(0o755)
    path = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "KUBECONFIG": str(own_cluster.plane.kubeconfig),
        "HOME": str(tmp_path),
    }
    shell = ["bash", "-eu", "-o", "pipefail", "-c", "\n".join(commands("With kustomize"))]
    subprocess.run(shell, cwd=home, env={**os.environ, **path}, check=True)
    wait_for_policies(own_cluster.kubectl)
    assert own_cluster.operator_pod()["containers"][0]["image"].endswith(OLDER)
    own_cluster.kubectl("create", "namespace", "inference")
    with running_operator(own_cluster, tmp_path / "operator"):
        own_cluster.kubectl.within("inference").apply(a_model())
        own_cluster.until_ready()


def publish_the_api_server(cluster: Cluster) -> None:
    """Write the EndpointSlice that an API server keeps of itself; that of the test bed keeps none.

    Source: kubernetes.io, command line tools reference, kube-apiserver, --endpoint-reconciler-type.
    """
    published = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.224.0.4"]}, {"addresses": ["10.224.0.5"]}],
        "ports": [{"name": "https", "port": 443, "protocol": "TCP"}],
    }
    cluster.api.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", published)


def addresses_of_the_api_server(cluster: Cluster) -> tuple[set[str], set[int]]:
    """Ranges of its addresses, and its ports, as it publishes them itself."""
    endpoint_slice = cluster.api.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
    addresses = {address for endpoint in endpoint_slice["endpoints"] for address in endpoint["addresses"]}
    return {f"{address}/{128 if ':' in address else 32}" for address in addresses}, {
        p["port"] for p in endpoint_slice["ports"]
    }


def addresses_that_the_operator_may_call(cluster: Cluster) -> tuple[set[str], set[int]]:
    """Ranges and ports of the only rule of the chart's NetworkPolicy."""
    network_policy = cluster.api.get(
        f"/apis/networking.k8s.io/v1/namespaces/{SYSTEM}/networkpolicies/hermetic-operator"
    )
    (rule,) = network_policy["spec"]["egress"]
    return {peer["ipBlock"]["cidr"] for peer in rule["to"]}, {port["port"] for port in rule["ports"]}


def a_model() -> dict[str, Any]:
    return reporting(a_baked_model(endpoint={}))


def names_of_pods(cluster: Cluster) -> set[str]:
    pods = cluster.api.get("/api/v1/namespaces/inference/pods")["items"]
    return {pod["metadata"]["uid"] for pod in pods}


@contextmanager
def running_operator(cluster: Cluster, folder: Path) -> Iterator[OperatorProcess]:
    """The operator as the release's ServiceAccount, ready: pods of this cluster run no program."""
    folder.mkdir()
    kubeconfig = operator_kubeconfig(cluster.api, cluster.plane.kubeconfig, folder / "operator.kubeconfig")
    process = OperatorProcess(folder, kubeconfig, CONFIG)
    process.start()
    try:
        yield process
    finally:
        process.stop()

"""Fixtures for models that are really served: the operator runs as a pod, engines are the stand-in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.demo.estate import Estate, overlay
from testbed.images.model import stage_model
from testbed.installation import wait_for
from testbed.kubectl import Kubectl, Manifest
from testbed.node.handle import RunningNode
from tests.scenarios import a_share_model, changed, reporting

SMALL = {"cpu": "100m", "memory": "256Mi", "sharedMemory": "64Mi", "scratch": "256Mi"}


@pytest.fixture(scope="session")
def estate(node: RunningNode, tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Every image of the samples, given to the node while it runs."""
    prepared = Estate.prepare(tmp_path_factory.mktemp("estate"))
    node.import_images(prepared.archive)
    return prepared


@pytest.fixture(scope="session")
def hermetic(estate: Estate, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The operator installed from manifests/ and running as a pod of the node; returns kubectl in its namespace."""
    return install_operator(estate, kubectl, tmp_path_factory.mktemp("install"))


def install_operator(estate: Estate, kubectl: Kubectl, folder: Path) -> Kubectl:
    """Install it with an overlay in the folder, and wait until it runs."""
    # Most models of the tests pin no weights; those that do are verified.
    ours = overlay(
        estate,
        folder,
        isolation={"minimumEnforcement": "Report"},
        integrity={"minimumPolicy": "Off"},
    )
    kubectl("apply", "--server-side", "--kustomize", str(ours))
    operator = kubectl.within("hermetic-system")
    operator("rollout", "status", "deployment/hermetic-operator", "--timeout=50s")
    return operator


@dataclass(frozen=True)
class Model:
    """One ModelDeployment of a test."""

    name: str
    namespace: str
    api: Api
    kubectl: Kubectl
    node: RunningNode

    def manifest(self) -> dict[str, Any]:
        """The live object."""
        path = f"/apis/hermetic.dev/v1alpha1/namespaces/{self.namespace}/modeldeployments/{self.name}"
        return self.api.get(path)

    def condition(self, kind: str = "Ready") -> dict[str, Any]:
        """One condition, {} before it is there."""
        conditions = self.manifest().get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def until_reason(self, reason: str, timeout: float = 120.0) -> dict[str, Any]:
        """Wait until Ready carries this reason at the present generation; "Serving" with or without enforcement."""
        reasons = {reason, "ServingNotEnforced"} if reason == "Serving" else {reason}

        def reached() -> dict[str, Any] | None:
            ready, generation = self.condition(), self.manifest()["metadata"]["generation"]
            hit = ready.get("reason") in reasons and ready.get("observedGeneration") == generation
            return ready if hit else None

        condition: dict[str, Any] = wait_for(f"{reason} of {self.name}", reached, timeout=timeout)
        return condition

    def pod(self) -> dict[str, Any]:
        """The one pod that is not on its way out, waited for: a pod comes after what asks for it."""
        chosen = f"--selector=hermetic.dev/modeldeployment={self.name}"

        def alone() -> dict[str, Any] | None:
            pods = self.kubectl.json("get", "pods", chosen)["items"]
            staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
            return staying[0] if len(staying) == 1 else None

        return dict(wait_for(f"one pod of {self.name}", alone))

    def shell(self, script: str) -> str:
        """Run a shell script in the engine's container; both outputs, whatever the exit status."""
        name = self.pod()["metadata"]["name"]
        return self.kubectl("exec", name, "--container=engine", "--", "sh", "-c", f"({script}) 2>&1 || true")

    def url(self) -> str:
        """The endpoint's URL without /v1."""
        return str(self.manifest()["status"]["endpoint"]["url"]).removesuffix("/v1")

    def ask(self, path: str, *options: str) -> Any:
        """GET a path (or POST with `-d`) from the client machine; retried while kube-proxy learns the address."""
        curl = ("curl", "-sS", "--max-time", "10", "--retry", "15", "--retry-delay", "1", "--retry-connrefused")
        done = self.node.from_client(*curl, *options, f"{self.url()}{path}")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def deploy(
    hermetic: Kubectl,  # noqa: ARG001
    estate: Estate,
    node: RunningNode,
    kubectl: Kubectl,
    api: Api,
    namespace: str,
) -> Iterator[Callable[..., Model]]:
    """`deploy(manifest)`: apply it with small resources, images that exist here and a folder of the test's own.

    The namespace enforces Pod Security 'restricted'.
    """
    ours = kubectl.within(namespace)
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")

    def apply(manifest: Manifest, **spec: Any) -> Model:
        spec = {"resources": SMALL, "drainSeconds": 5, **spec}
        placed = estate.with_digests(reporting(changed(manifest, **spec)))
        files = placed["spec"]["weights"].get("azureFiles")
        if files is not None:
            files["folder"] = f"{namespace}/{files['folder']}"
        ours.apply(placed)
        return Model(manifest["metadata"]["name"], namespace, api, ours, node)

    yield apply
    ours("delete", "modeldeployments", "--all", "--wait=false")


@pytest.fixture
def weights(node: RunningNode, namespace: str) -> Path:
    """Where `a_share_model()` of this test finds its weights; staged by `stage_model(weights)`."""
    return node.shares / "contosomodels" / "models" / namespace / "llama-3-1-8b" / "fp8"


@pytest.fixture
def share_model(deploy: Callable[..., Model], weights: Path) -> Callable[..., Model]:
    """`share_model()`: the shortest useful deployment, its weights staged."""

    def apply(**spec: Any) -> Model:
        stage_model(weights)
        return deploy(a_share_model(), **spec)

    return apply

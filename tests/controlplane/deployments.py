"""Fixtures and words for tests that follow ModelDeployments: one operator per module, for every namespace."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.errors import ApiError
from testbed.fleet import Pool, add_nodes, remove_nodes
from testbed.installation import CONFIGURATION, OperatorProcess, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from tests.namespaces import empty_namespace, make_namespace
from tests.renderings import SHARES
from tests.scenarios import VLLM_IMAGE, Manifest, changed

MODELS = "/apis/hermetic.dev/v1alpha1/namespaces/{}/modeldeployments"
FAILING_IMAGE = VLLM_IMAGE.replace("vllm-openai", "failure-{}")


@dataclass(frozen=True)
class Deployments:
    """The ModelDeployments of one namespace: applied as a user would, waited for by what their status says."""

    api: Api
    kubectl: Kubectl
    namespace: str
    operator: OperatorProcess

    @property
    def collection(self) -> str:
        return MODELS.format(self.namespace)

    def apply(self, *manifests: Manifest) -> None:
        """Server-side apply of ModelDeployments as kubectl does it, without a process for each."""
        for manifest in manifests:
            applied(self.api, self.collection, manifest)

    def get(self, name: str) -> Manifest:
        return self.api.get(f"{self.collection}/{name}")

    def change(self, name: str, **spec: Any) -> None:
        """Merge-patch fields of the spec, as another user would."""
        self.api.merge(f"{self.collection}/{name}", {"spec": spec})

    def condition(self, name: str, kind: str = "Ready") -> dict[str, Any]:
        conditions = self.get(name).get("status", {}).get("conditions") or []
        return next((condition for condition in conditions if condition["type"] == kind), {})

    def until(self, name: str, reason: str, kind: str = "Ready", timeout: float = 60.0) -> dict[str, Any]:
        """Wait until the condition gives this reason for the present generation; returns it.

        "Serving" stands for a deployment that serves, whether its proof of isolation is enforced or not.
        """
        reasons = {reason, "ServingNotEnforced"} if reason == "Serving" else {reason}

        def condition_of_the_generation() -> dict[str, Any] | None:
            condition, generation = self.condition(name, kind), self.get(name)["metadata"]["generation"]
            return (
                condition
                if condition.get("reason") in reasons and condition.get("observedGeneration") == generation
                else None
            )

        condition: dict[str, Any] = self.wait(f"{kind} of {name} says {reason}", condition_of_the_generation, timeout)
        return condition

    def wait(self, what: str, poll: Callable[[], Any], timeout: float = 60.0) -> Any:
        return wait_for(what, poll, self.operator, timeout)

    def child(self, group: str, plural: str, name: str) -> Manifest | None:
        """The live child, or None: `child("apps/v1", "deployments", "llama")`."""
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        try:
            return self.api.get(f"{root}/namespaces/{self.namespace}/{plural}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def workload(self, name: str) -> Manifest | None:
        return self.child("apps/v1", "deployments", name)

    def pods(self, name: str) -> list[Manifest]:
        selector = f"hermetic.dev/modeldeployment={name}"
        pods: list[Manifest] = self.api.get(f"/api/v1/namespaces/{self.namespace}/pods", labelSelector=selector)[
            "items"
        ]
        return pods

    def events(self, name: str) -> list[Manifest]:
        """The Events of the operator about this deployment."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        events = self.api.get(path)["items"]
        return [event for event in events if event.get("regarding", {}).get("kind") == "ModelDeployment"
                and event["regarding"]["name"] == name]  # fmt: skip


def applied(api: Api, collection: str, manifest: Manifest) -> None:
    """Apply it under the manager of Kubectl.apply, strict about unknown fields and without taking any from others."""
    path = f"{collection}/{manifest['metadata']['name']}"
    api.apply(path, manifest, "tests", force="false", fieldValidation="Strict")


@contextlib.contextmanager
def module_namespace(api: Api, name: str, **labels: str) -> Iterator[str]:
    """A namespace for all tests of a module; the fixture `namespace` is for one test."""
    full = f"t-{name}-{secrets.token_hex(3)}"
    make_namespace(api, full, **labels)
    yield full
    empty_namespace(api, full)


def failing(manifest: Manifest, mode: str) -> Manifest:
    """The same vLLM deployment with an image for which kwok simulates this failure mode."""
    vllm = {**manifest["spec"]["engine"]["vllm"], "image": FAILING_IMAGE.format(mode)}
    return changed(manifest, engine={"vllm": vllm})


@pytest.fixture(scope="module")
def hermetic(
    installed: None,  # noqa: ARG001
    api: Api,
    cluster: Path,
    tmp_path_factory: pytest.TempPathFactory,
    component_logs: dict[str, Path],
) -> Iterator[OperatorProcess]:
    """The operator as its ServiceAccount, for every namespace, as long as the tests of one module run."""
    folder = tmp_path_factory.mktemp("hermetic")
    kubeconfig = operator_kubeconfig(api, cluster, folder / "operator.kubeconfig")
    process = OperatorProcess(folder, kubeconfig, {**CONFIGURATION, "shares": SHARES}, "hermetic")
    component_logs["hermetic"] = process.component.log
    process.start()
    yield process
    process.stop()
    del component_logs["hermetic"]


@pytest.fixture
def deployments(hermetic: OperatorProcess, api: Api, kubectl: Kubectl, namespace: str) -> Deployments:
    """This test's namespace, watched by the module's operator."""
    return Deployments(api, kubectl, namespace, hermetic)


@pytest.fixture(scope="module")
def gpu_nodes(api: Api) -> Iterator[None]:
    """Twenty nodes of one GPU each, as long as the tests of one module run."""
    names = add_nodes(api, Pool(f"gpu{secrets.token_hex(2)}"), 20)
    yield
    remove_nodes(api, names)


@pytest.fixture
def served(deployments: Deployments, gpu_nodes: None) -> Deployments:  # noqa: ARG001
    """This test's namespace, in a cluster with GPUs to spare."""
    return deployments


def admitted(home: Deployments) -> bool:
    """Whether the API server would let a pod of the namespace's one model in now."""
    (workload,) = home.api.get(f"/apis/apps/v1/namespaces/{home.namespace}/replicasets")["items"]
    pod = {"metadata": {"name": "dry", "labels": workload["spec"]["template"]["metadata"]["labels"]}}
    try:
        home.api.create(
            f"/api/v1/namespaces/{home.namespace}/pods?dryRun=All",
            {**pod, "spec": workload["spec"]["template"]["spec"]},
        )
    except ApiError as error:
        if "hermetic-pod-gate" not in str(error):
            raise
        return False
    return True

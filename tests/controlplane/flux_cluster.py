"""A cluster into which everything comes by Flux: the recipe of manifests/flux, from a registry of this machine.

The controllers are the real ones, as programs beside a control plane of their own. Of the recipe the test changes the
placeholders, where the registry is and how to log in to it, and the intervals of its checks. kwok simulates the
operator's pod, which runs no program: beside it the operator runs as a process, with the ServiceAccount of the release.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic import __version__
from hermetic.api.configuration import Configuration
from hermetic.cli.installation import Installation
from shipping.chart import CHART
from testbed import cloud_provider, probe_simulator
from testbed.aks_defaults import create_aks_defaults
from testbed.api import Api
from testbed.controlplane import ControlPlane, Settings
from testbed.errors import CannotRunError, ComponentError
from testbed.fleet import Pool, add_nodes
from testbed.flux import Flux, components
from testbed.installation import REPOSITORY, OperatorProcess, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from testbed.policies_in_force import wait_for_policies
from testbed.programs import programs
from testbed.registry import Registry
from tests.controlplane.deployments import Deployments
from tests.controlplane.sealed_cluster import SealedCluster
from tests.scenarios import Manifest

RECIPE = REPOSITORY / "manifests" / "flux"
PLACEHOLDER = re.compile(r"\b[A-Z]+_[A-Z_]+\b")
FILLED_IN = {
    "CHART_DIGEST": "c" * 64,
    "OPERATOR_DIGEST": "1" * 64,
    "SOURCE_CONTROLLER_DIGEST": "2" * 64,
    "KUSTOMIZE_CONTROLLER_DIGEST": "3" * 64,
    "HELM_CONTROLLER_DIGEST": "4" * 64,
    "API_SERVER_CIDR": "10.1.0.200/32",
    "REGISTRY_CIDR": "10.13.75.4/32",
    "KUBELET_CLIENT_ID": "11111111-1111-4111-8111-111111111111",
}
OBJECTS = "/apis/{}/namespaces/flux-system/{}/{}"
KUSTOMIZATIONS = "kustomize.toolkit.fluxcd.io/v1", "kustomizations"
RELEASES = "helm.toolkit.fluxcd.io/v2", "helmreleases"
REQUESTED = "reconcile.fluxcd.io/requestedAt"


def recipe(path: str, **filled_in: str) -> str:
    """A file of the recipe with values in place of its placeholders."""
    values = {**FILLED_IN, "AZURE_CLIENT_ID": "AZURE_CLIENT_ID", **filled_in}
    return PLACEHOLDER.sub(lambda match: values[match[0]], (RECIPE / path).read_text(encoding="utf-8"))


def documents(text: str) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(text) if document]


@dataclass
class FluxCluster:
    """One cluster, the registry that it is fed from, and what is in the artifact now."""

    sealed: SealedCluster
    registry: Registry
    artifact: dict[str, list[Manifest]] = field(default_factory=dict)
    asked: int = 0

    @property
    def api(self) -> Api:
        return self.sealed.api

    # ------------------------------------------------------------------ what a person does

    def push(self, **folders: list[Manifest]) -> str:
        """Push the artifact with these folders anew; returns its digest."""
        self.artifact.update(folders)
        files = {f"{name}/all.yaml": yaml.safe_dump_all(manifests) for name, manifests in self.artifact.items()}
        return self.registry.push_manifests("flux/inference", "production", files)

    def request(self, name: str, kind: tuple[str, str] = KUSTOMIZATIONS) -> str:
        """Ask for a reconcile now, as `flux reconcile` does; returns what `lastHandledReconcileAt` will be."""
        self.asked += 1
        request_time = str(self.asked)
        self.api.merge(OBJECTS.format(*kind, name), {"metadata": {"annotations": {REQUESTED: request_time}}})
        return request_time

    # ------------------------------------------------------------------ what is seen

    def get(self, name: str, kind: tuple[str, str] = KUSTOMIZATIONS) -> Manifest:
        return self.api.get(OBJECTS.format(*kind, name))

    def ready(self, name: str, kind: tuple[str, str] = KUSTOMIZATIONS) -> dict[str, Any]:
        """The condition Ready of the present generation; empty before."""
        live = self.get(name, kind)
        conditions = live.get("status", {}).get("conditions") or ()
        ready = next((condition for condition in conditions if condition["type"] == "Ready"), {})
        return ready if ready.get("observedGeneration") == live["metadata"]["generation"] else {}

    def until_ready(self, name: str, digest: str, timeout: float = 60.0) -> None:
        """Wait until this revision is applied and everything in it is healthy."""

        def is_ready() -> bool:
            applied = self.get(name).get("status", {}).get("lastAppliedRevision", "")
            return applied.endswith(digest) and self.ready(name).get("status") == "True"

        self.wait(f"Kustomization {name} ready with {digest}", is_ready, timeout)

    def until_not_ready(self, name: str, reason: str, *, saying: str = "") -> str:
        """Wait until Ready is False for this reason and in these words; returns the message."""

        def is_not() -> str | None:
            ready = self.ready(name)
            fits = (ready.get("status"), ready.get("reason")) == ("False", reason) and saying in ready["message"]
            return str(ready["message"]) if fits else None

        message: str = self.wait(f"Kustomization {name} not ready: {reason} {saying}", is_not)
        return message

    def until_handled(self, name: str, kind: tuple[str, str] = KUSTOMIZATIONS) -> None:
        """Ask for a reconcile and wait until it ended well."""
        request_time = self.request(name, kind)

        def is_handled() -> bool:
            handled = self.get(name, kind)["status"].get("lastHandledReconcileAt") == request_time
            return handled and self.ready(name, kind).get("status") == "True"

        self.wait(f"{name} reconciled once more", is_handled)

    def wait(self, what: str, poll: Any, timeout: float = 60.0) -> Any:
        try:
            return wait_for(what, poll, self.sealed.operator, timeout)
        except ComponentError as late:
            conditions = {name: self.ready(name) for name in ("hermetic", "hermetic-audit", "models")}
            raise AssertionError(f"no {what}: {json.dumps(conditions, indent=1)}") from late

    @property
    def models(self) -> Deployments:
        """The namespace of the models."""
        return Deployments(self.api, self.sealed.kubectl, "inference", self.sealed.operator)


def near(manifests: Iterable[Manifest], registry: str) -> Iterator[Manifest]:
    """The manifests with sources on this machine, and with intervals of seconds."""
    for manifest in manifests:
        spec = manifest.get("spec", {})
        if manifest["kind"] == "OCIRepository":
            del spec["provider"], spec["secretRef"]
            spec |= {"url": spec["url"].replace("contoso.azurecr.io", registry), "insecure": True, "interval": "1s"}
        if manifest["kind"] == "Kustomization":
            spec["retryInterval"] = "2s"
        yield manifest


def operator_folder(registry: str, **filled_in: str) -> list[Manifest]:
    """The artifact's folder operator/."""
    names = yaml.safe_load((RECIPE / "operator/kustomization.yaml").read_text())["resources"]
    manifests = [document for name in names for document in documents(recipe(f"operator/{name}", **filled_in))]
    return list(near(manifests, registry))


def push_chart(registry: Registry, folder: Path) -> str:
    """Package the chart and push it, by the real helm; returns the digest that it prints, without `sha256:`."""
    _helm(folder, "package", str(CHART), "--destination", str(folder))
    package = folder / f"hermetic-{__version__}.tgz"
    output = _helm(folder, "push", str(package), f"oci://{registry.host}/charts", "--plain-http")
    return re.findall(r"sha256:([0-9a-f]{64})", output)[0]


def _helm(folder: Path, *arguments: str) -> str:
    environment = {"HOME": str(folder)}
    done = subprocess.run(
        [programs("helm")["helm"], *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def with_aks_defaults(api: Api) -> list[str]:
    """Nodes and what AKS brings; returns the names of the nodes."""
    nodes = [*add_nodes(api, Pool("system", "Standard_D16s_v5", taints=())), *add_nodes(api, Pool("gpu"), 4)]
    create_aks_defaults(api)
    return nodes


def controllers(kubectl: Kubectl, folder: Path) -> tuple[list[Manifest], list[Manifest]]:
    """The components of Flux as they come, and as the recipe's overlay makes them."""
    plain = components(kubectl, "contoso.azurecr.io/fluxcd")
    overlay = folder / "controllers"
    overlay.mkdir()
    (overlay / "gotk-components.yaml").write_text(plain)
    for name in ("kustomization.yaml", "network-policies.yaml"):
        (overlay / name).write_text(recipe(f"controllers/{name}"))
    return documents(plain), documents(kubectl("kustomize", str(overlay)))


def added_flags(plain: list[Manifest], ours: list[Manifest]) -> dict[str, list[str]]:
    """The flags that the overlay adds, by controller: those that run here get them too."""
    before, after = arguments(plain), arguments(ours)
    return {name: [flag for flag in after[name] if flag not in before[name]] for name in after}


def arguments(manifests: list[Manifest]) -> dict[str, list[str]]:
    """Of every Deployment."""
    deployments = {manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == "Deployment"}
    return {
        name: deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        for name, deployment in deployments.items()
    }


@contextlib.contextmanager
def started(folder: Path, logs: dict[str, Path]) -> Iterator[tuple[ControlPlane, Registry, list[str]]]:
    """Control plane, stand-ins, registry and Flux, with the nodes' names; nothing of Hermetic is there yet."""
    with ControlPlane(Settings(audit_users=())) as plane, Registry(folder) as registry, contextlib.ExitStack() as ends:
        nodes = with_aks_defaults(Api(plane.kubeconfig))
        kubectl = Kubectl(programs("kubernetes")["kubectl"], plane.kubeconfig)
        plain, ours = controllers(kubectl, folder)
        kubectl.apply(*ours)
        crds = [f"crd/{crd['metadata']['name']}" for crd in ours if crd["kind"] == "CustomResourceDefinition"]
        kubectl("wait", "--for=condition=Established", "--timeout=30s", *crds)
        flux = ends.enter_context(Flux(plane.kubeconfig, folder, added_flags(plain, ours)))
        players = [
            cloud_provider.component(plane.kubeconfig, folder / "cloud-provider.log"),
            probe_simulator.component(plane.kubeconfig, folder / "probe-simulator.log"),
        ]
        for player in players:
            player.start()
            ends.callback(player.stop)
        named = {
            f"flux-{component.name}": component.log for component in (registry.component, *flux.components, *players)
        }
        logs.update(named)
        yield plane, registry, nodes
        for name in named:
            del logs[name]


@contextlib.contextmanager
def fluxed_cluster(folder: Path, logs: dict[str, Path]) -> Iterator[FluxCluster]:
    """The recipe applied, up to the operator: it came by HelmRelease, and its process runs. No evidence, no model."""
    with started(folder, logs) as (plane, registry, nodes), contextlib.ExitStack() as ends:
        api, kubectl = Api(plane.kubeconfig), Kubectl(programs("kubernetes")["kubectl"], plane.kubeconfig)
        release = operator_folder(registry.host, CHART_DIGEST=push_chart(registry, folder))
        configuration = next(manifest for manifest in release if manifest["kind"] == "HelmRelease")["spec"]["values"][
            "config"
        ]
        operator = OperatorProcess(folder, folder / "operator.kubeconfig", configuration, "flux-operator")
        installation = Installation(Configuration.model_validate(configuration))
        fluxed = FluxCluster(SealedCluster(plane, api, kubectl, operator, nodes, installation), registry)
        digest = fluxed.push(operator=release, audit=[fluxed.sealed.audit()])
        kubectl.apply(*near(entry(kubectl), registry.host))
        fluxed.until_ready("hermetic", digest)
        wait_for_policies(kubectl)
        operator_kubeconfig(api, plane.kubeconfig, folder / "operator.kubeconfig")
        logs["flux-operator"] = operator.component.log
        ends.callback(logs.pop, "flux-operator")
        ends.callback(operator.stop)
        operator.start()
        yield fluxed


def entry(kubectl: Kubectl) -> list[Manifest]:
    """What is applied by hand: manifests/flux/cluster."""
    return documents(kubectl("kustomize", str(RECIPE / "cluster")))


@pytest.fixture(scope="module")
def fluxed(tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]) -> Iterator[FluxCluster]:
    """The cluster of a module."""
    try:
        programs("flux", "registry")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    with fluxed_cluster(tmp_path_factory.mktemp("flux"), component_logs) as cluster:
        yield cluster


__all__ = ["FluxCluster", "fluxed"]

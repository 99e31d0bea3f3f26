"""Two clusters with a model, and their API servers by a stolen token of the operator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.cli.installation import Installation
from hermetic.kinds import BY_KIND, JOB
from hermetic.objects.children import render
from hermetic.objects.names import Owner
from testbed.api import Api
from testbed.controlplane import ControlPlane, Settings
from testbed.errors import ApiError
from testbed.installation import CONFIGURATION, install, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl, KubectlError
from testbed.programs import programs
from tests.controlplane.deployments import module_namespace
from tests.controlplane.test_operator_account_policies import engine, pod
from tests.kubernetes_models import OF_KUBERNETES
from tests.renderings import GROUP_RENDERINGS, RENDERINGS
from tests.scenarios import DIGEST, Manifest, a_share_model
from tests.snapshots import rendered as rendered_children
from tests.snapshots import spec_of

EVIL = f"evil.example/x@sha256:{DIGEST}"
KINDS = {kind.kind: kind.path("{home}") for kind in (*OF_KUBERNETES, JOB)}
OPERATORS = "/apis/apps/v1/namespaces/hermetic-system/deployments"
HERMETIC = "/apis/hermetic.dev/v1alpha1"
DRY = "?dryRun=All"
ADMIN = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
BY_RIGHTS_OR_POLICY = re.compile(r"User \S+ cannot |ValidatingAdmissionPolicy 'hermetic-")
ATTACKER = {"kind": "ServiceAccount", "name": "hermetic-operator", "namespace": "hermetic-system"}


@dataclass(frozen=True)
class Stolen:
    """A cluster, and its API server by the stolen token: `home` has models, `victim` has none."""

    account: Api
    admin: Api
    kubectl: Kubectl
    home: str
    victim: str
    owner: Owner
    by_namespace: bool

    def at(self, path: str) -> str:
        """The path with the namespaces of this cluster."""
        return path.format(home=self.home, victim=self.victim)

    def child(self, kind: str) -> Manifest:
        """A child of the model that is there, as it is rendered."""
        return next(child for child in render(self.owner, the_spec()) if child["kind"] == kind)


Attack = Callable[[Stolen], object]


def the_spec() -> Any:
    return spec_of(RENDERINGS["everything-said"])


@pytest.fixture(scope="module", params=["everywhere", "by namespace"])
def stolen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stolen]:
    """Installed as `manifests/default` does it, and as `hermetic rbac --config` does."""
    folder = tmp_path_factory.mktemp("stolen")
    if request.param == "everywhere":
        request.getfixturevalue("installed")
        admin, cluster = request.getfixturevalue("api"), request.getfixturevalue("cluster")
        with module_namespace(admin, "home") as home, module_namespace(admin, "victim") as victim:
            yield _with_a_model(admin, cluster, folder, home, victim, by_namespace=False)
        admin.delete(f"{OPERATORS}/hermetic-operator")
        return
    with ControlPlane(Settings()) as plane:
        admin, kubectl = Api(plane.kubeconfig), Kubectl(programs("kubernetes")["kubectl"], plane.kubeconfig)
        configuration = {**CONFIGURATION, "watchNamespaces": ["home"]}
        install(kubectl, Installation(Configuration.model_validate(configuration)))
        kubectl("create", "namespace", "victim")
        yield _with_a_model(admin, plane.kubeconfig, folder, "home", "victim", by_namespace=True)


def _with_a_model(admin: Api, cluster: Path, folder: Path, home: str, victim: str, *, by_namespace: bool) -> Stolen:
    """A model whose children are there, and the same children made by another account, without an owner."""
    kubeconfig = operator_kubeconfig(admin, cluster, folder / "kubeconfig")
    model = admin.create(f"{HERMETIC}/namespaces/{home}/modeldeployments", RENDERINGS["everything-said"])
    owner = Owner(home, model["metadata"]["name"], model["metadata"]["uid"])
    kubectl = Kubectl(programs("kubernetes")["kubectl"], kubeconfig)
    stolen = Stolen(Api(kubeconfig), admin, kubectl, home, victim, owner, by_namespace)
    for child in render(owner, the_spec()):
        _put(admin, BY_KIND[child["kind"]].path(home), child)
        if "ownerReferences" in child["metadata"]:
            _put_as_theirs(admin, home, child)
    group = GROUP_RENDERINGS["group"]
    _put_as_theirs(
        admin, home, next(child for child in render(owner, spec_of(group)) if child["kind"] == "StatefulSet")
    )
    # A model with a fixed number of pods has no autoscaler.
    _put_as_theirs(admin, home, rendered_children(RENDERINGS["autoscaled"])["HorizontalPodAutoscaler"])
    admin.create(OPERATORS, {**named("hermetic-operator"), "spec": {**A_WORKLOAD, "replicas": 0}})
    attack = create(KINDS["Deployment"], rendered("Deployment", lambda manifest: manifest["metadata"].pop("labels")))
    wait_for("the policies in force", lambda: refusal(stolen, attack))
    event = create("/apis/events.k8s.io/v1/namespaces/{home}/events", an_event("Pod", "v1"))
    wait_for("the policy of Events in force", lambda: refusal(stolen, event))
    return stolen


def _put_as_theirs(admin: Api, home: str, child: Manifest) -> None:
    metadata = {key: value for key, value in child["metadata"].items() if key in {"labels", "annotations"}}
    _put(admin, BY_KIND[child["kind"]].path(home), {**child, "metadata": {**metadata, "name": "theirs"}})


def _put(admin: Api, path: str, manifest: Manifest) -> None:
    if manifest["kind"] in ("Deployment", "StatefulSet"):
        manifest["spec"]["replicas"] = 0
    if manifest["kind"] == "Service":
        manifest = {**manifest, "metadata": {**manifest["metadata"], "finalizers": ["example.com/cleanup"]}}
    admin.create(path, manifest)


def refusal(stolen: Stolen, attack: Attack) -> str:
    """Why this is refused, or "" where it is not."""
    try:
        attack(stolen)
    except ApiError as error:
        if error.status not in {403, 422}:
            raise
        return str(error)
    except KubectlError as error:
        if "forbidden" not in str(error).lower():
            raise
        return str(error)
    return ""


# ---------------------------------------------------------------------- what is sent


def get(path: str) -> Attack:
    return lambda stolen: stolen.account.get(stolen.at(path))


def create(path: str, body: Manifest | Callable[[Stolen], Manifest]) -> Attack:
    def send(stolen: Stolen) -> object:
        return stolen.account.create(stolen.at(path) + DRY, body(stolen) if callable(body) else body)

    return send


def patch(path: str, body: Manifest) -> Attack:
    return lambda stolen: stolen.account.merge(stolen.at(path) + DRY, body)


def delete(path: str) -> Attack:
    return lambda stolen: stolen.account.delete(stolen.at(path) + DRY)


def run(*arguments: str) -> Attack:
    return lambda stolen: stolen.kubectl(*arguments)


def rendered(kind: str, spoil: Callable[[Manifest], object]) -> Callable[[Stolen], Manifest]:
    """A child under another name, spoilt: a name that is there would be a conflict."""

    def build(stolen: Stolen) -> Manifest:
        child = stolen.child(kind)
        spoil(child)
        return child

    return build


def change(kind: str, body: Manifest) -> Attack:
    """Of the child that is there."""
    return lambda stolen: stolen.account.merge(f"{live(stolen, kind)}{DRY}", body)


def live(stolen: Stolen, kind: str) -> str:
    return f"{stolen.at(KINDS[kind])}/{stolen.child(kind)['metadata']['name']}"


def in_pod(**fields: object) -> Attack:
    return change("Deployment", {"spec": {"template": {"spec": fields}}})


def with_engine(**fields: object) -> Attack:
    def send(stolen: Stolen) -> object:
        child = stolen.child("Deployment")
        engine(child).update(fields)
        spec = {"template": {"spec": {"containers": pod(child)["containers"]}}}
        return stolen.account.merge(f"{live(stolen, 'Deployment')}{DRY}", {"spec": spec})

    return send


def with_volume(**source: object) -> Attack:
    def send(stolen: Stolen) -> object:
        volumes = [*pod(stolen.child("Deployment"))["volumes"], {"name": "x", **source}]
        spec = {"template": {"spec": {"volumes": volumes}}}
        return stolen.account.merge(f"{live(stolen, 'Deployment')}{DRY}", {"spec": spec})

    return send


def volume(spoil: Callable[[Stolen, Manifest], object]) -> Attack:
    """A new volume of the model, spoilt."""

    def send(stolen: Stolen) -> object:
        children = render(stolen.owner, spec_of(a_share_model()))
        volume: Manifest = next(child for child in children if child["kind"] == "PersistentVolume")
        spoil(stolen, volume)
        return stolen.account.create(KINDS["PersistentVolume"] + DRY, volume)

    return send


def claimed_by(namespace: str) -> Callable[[Stolen, Manifest], object]:
    def spoil(stolen: Stolen, volume: Manifest) -> None:
        named = stolen.at(namespace)
        name = f"hermetic-{named}-x"
        volume["metadata"]["name"] = name
        volume["metadata"]["labels"]["hermetic.dev/namespace"] = named
        volume["spec"]["claimRef"]["namespace"] = named
        volume["spec"]["csi"]["volumeHandle"] = f"x#{name}"

    return spoil


A_POD = {"containers": [{"name": "x", "image": EVIL}]}
A_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": A_POD}
A_WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": A_TEMPLATE}


def named(name: str, **fields: object) -> Manifest:
    return {"metadata": {"name": name}, **fields}


def an_event(kind: str, version: str) -> Callable[[Stolen], Manifest]:
    def build(stolen: Stolen) -> Manifest:
        return {
            "metadata": {"name": "x"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "hermetic.dev/operator",
            "reportingInstance": "x",
            "action": "x",
            "reason": "x",
            "type": "Warning",
            "regarding": {"kind": kind, "apiVersion": version, "name": "x", "namespace": stolen.home},
        }

    return build

"""Only objects/workloads/ knows which kind of object runs the pods of a model, and how its controller reports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hermetic
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.kube.projections import lean_pod
from hermetic.objects.workloads import registry
from hermetic.objects.workloads.deployment import DeploymentWorkload
from hermetic.objects.workloads.workload_kind import Workload
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import status
from hermetic.plan.writes import Plan
from tests.planning import planned, running
from tests.scenarios import Manifest, a_baked_model, changed
from tests.snapshots import NOW, addressed, conditions, evidence, spec_of

PACKAGE = Path(hermetic.__file__).parent
SEAM = "objects/workloads/"
ROOMS = ("objects", "plan", "kube", "controller", "cli")
OF_THE_OPERATOR = ("cli/check/", "cli/images/")
"""These read the Deployment of the operator itself, which is no workload of a model."""
KIND_TEXT = re.compile(
    r"\b(Deployments?|ReplicaSets?|StatefulSets?|NewReplicaSetAvailable|ReplicaFailure|ProgressDeadlineExceeded"
    r"|(available|updated|ready)Replicas)\b"
)
KIND_NAMES = frozenset({"DEPLOYMENT"})
TWO_REPLICAS = changed(a_baked_model(), replicas=2)


class PairWorkload(DeploymentWorkload):
    """A kind whose replicas have two pods each; its controller counts pods."""

    def pods_per_replica(self, _: ModelDeploymentSpec, /) -> int:
        return 2

    def observe(self, live: Mapping[str, Any] | None, /) -> Workload:
        workload = super().observe(live)
        return replace(
            workload, existing_replicas=workload.existing_pods // 2, serving_replicas=workload.serving_pods // 2
        )


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model runs as pairs of pods."""
    monkeypatch.setattr(registry, "WORKLOADS", (PairWorkload(),))


def with_pods(snapshot: ClusterSnapshot, phases: tuple[str, ...]) -> ClusterSnapshot:
    return replace(snapshot, pods=tuple(a_member(snapshot, number, phase) for number, phase in enumerate(phases)))


def a_member(snapshot: ClusterSnapshot, number: int, phase: str) -> Manifest:
    """A pod of the live template, as the store keeps it."""
    template, name = snapshot.workload.template, f"{snapshot.owner.name}-5d9c-{number}"
    controller = {"kind": "ReplicaSet", "name": f"{snapshot.owner.name}-5d9c", "controller": True}
    metadata = {"name": name, "uid": name, "labels": template["metadata"]["labels"], "ownerReferences": [controller]}
    return lean_pod({"metadata": metadata, "spec": template["spec"], "status": {"phase": phase}})


def names_of_kinds(source: str) -> Iterator[str]:
    """Texts and names in a module that depend on the kind; docstrings and comments are prose."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings and KIND_TEXT.search(text):
                yield f"{node.lineno}: {text!r}"
            case ast.alias(name=name) | ast.Attribute(attr=name) if name in KIND_NAMES:
                yield f"{node.lineno}: {name}"


def modules_outside() -> Iterator[Path]:
    for path in sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith((SEAM, *OF_THE_OPERATOR)):
            yield path


def test_no_module_outside_the_seam_names_the_kind_of_a_workload() -> None:
    modules = list(modules_outside())
    assert len(modules) > 200
    named = [
        f"{module.relative_to(PACKAGE)}:{name}"
        for module in modules
        for name in names_of_kinds(module.read_text(encoding="utf-8"))
    ]
    assert named == [], "ask the WorkloadKind (objects/workloads/workload_kind.py) instead"


@pytest.mark.parametrize(
    "source",
    [
        'is_ours = reference["kind"] == "ReplicaSet"',
        "from hermetic.kinds import DEPLOYMENT",
        "live = snapshot.child(kinds.DEPLOYMENT)",
        'message = f"the Deployment {name} does not exist"',
        'ready = status.get("availableReplicas")',
        'complete = conditions["Progressing", "NewReplicaSetAvailable"]',
    ],
)
def test_module_that_asks_for_the_kind_is_reported(source: str) -> None:
    assert list(names_of_kinds(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""Makes a Deployment."""',
        'def build() -> None:\n    """Builds a ReplicaSet."""',
        'kind = "ModelDeployment"',
        "from hermetic.kinds import MODEL_DEPLOYMENT",
    ],
)
def test_prose_and_the_api_of_hermetic_are_not_reported(source: str) -> None:
    assert list(names_of_kinds(source)) == []


def test_seam_itself_is_reported() -> None:
    source = (PACKAGE / SEAM / "deployment.py").read_text(encoding="utf-8")
    assert len(list(names_of_kinds(source))) > 5


@pytest.mark.usefixtures("pairs")
@pytest.mark.parametrize(
    ("serving_pods", "ready", "pods"), [(4, "True", "4/4"), (3, "False", "3/4"), (2, "False", "2/4")]
)
def test_status_counts_replicas_and_pods_apart(serving_pods: int, ready: str, pods: str) -> None:
    snapshot = addressed(running(TWO_REPLICAS, serving_pods), "10.0.0.7")
    computed = status(spec_of(TWO_REPLICAS), snapshot, Plan(), (), NOW)
    assert conditions(computed)["Ready"]["status"] == ready
    assert conditions(computed)["Available"]["message"] == f"{serving_pods // 2} of 2 replicas serve"
    assert computed["replicas"] == serving_pods // 2
    assert computed["serving"]["pods"] == pods


@pytest.mark.usefixtures("pairs")
@pytest.mark.parametrize(("started", "replicas"), [(3, 1), (2, 1), (1, 0)])
def test_closed_gate_keeps_the_replicas_of_which_all_pods_have_started(started: int, replicas: int) -> None:
    snapshot = running(TWO_REPLICAS, 4, evidence=evidence("Fail"))
    live = dict(snapshot.workload.live or {})
    live["status"] = {**live["status"], "availableReplicas": 0}
    snapshot = replace(snapshot, children={**snapshot.children, ("Deployment", snapshot.owner.name): live})
    snapshot = with_pods(snapshot, ("Running",) * started + ("Pending",) * (4 - started))
    applied = [change.manifest for change in planned(TWO_REPLICAS, snapshot).apply]
    (workload,) = (manifest for manifest in applied if manifest["kind"] == "Deployment")
    assert workload["spec"]["replicas"] == replicas

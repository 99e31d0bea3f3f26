"""Snapshots to plan from, as the operator would have taken them, and what becomes of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.api.modeldeployment import ModelDeployment, ModelDeploymentSpec
from hermetic.objects.accelerator_checks import AcceleratorChecks
from hermetic.objects.children import PlatformSettings, render
from hermetic.objects.names import Owner
from hermetic.objects.weights_verifier import Verifier
from hermetic.plan.preflight import accelerator_checks
from hermetic.plan.snapshot import ChildKey, ClusterSnapshot, IsolationEvidence, NodeFacts
from hermetic.plan.writes import Plan
from testbed.installation import CONFIGURATION
from tests.renderings import OWNER_UID, SHARES
from tests.scenarios import Manifest

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
OWNER = Owner("inference", "llama", OWNER_UID)
POLICY = Configuration.model_validate({**CONFIGURATION, "shares": SHARES})
EVERY_SOURCE = frozenset({"azure", "kubernetes", "probe"})


def spec_of(manifest: Manifest) -> ModelDeploymentSpec:
    """The spec of a manifest that a user could apply; raises ValidationError for any other."""
    return ModelDeployment.model_validate(manifest).spec


def owner_of(manifest: Manifest, namespace: str = "inference") -> Owner:
    return Owner(namespace, manifest["metadata"]["name"], OWNER_UID)


def rendered(manifest: Manifest) -> dict[str, Manifest]:
    """What a manifest is made of, by kind; with the checks of GPUs where it names them."""
    spec = spec_of(manifest)
    platform = PlatformSettings(accelerator_checks=_checks_of(spec))
    return {child["kind"]: child for child in render(owner_of(manifest), spec, platform)}


def _checks_of(spec: ModelDeploymentSpec) -> AcceleratorChecks | None:
    """Those that the spec names; a default adds none to what runs already."""
    return accelerator_checks(spec, POLICY) if spec.accelerator.preflight is not None else None


def evidence(verdict: Any = "Pass", *, age: timedelta = timedelta(hours=1), **fields: Any) -> IsolationEvidence:
    """Complete evidence, observed `age` before NOW and good for a day; `fields` replaces parts of it."""
    observed = NOW - age
    complete = {
        "observed_at": observed,
        "expires_at": observed + timedelta(days=1),
        "sources": EVERY_SOURCE,
        "confirmed_at": NOW,
    }
    return IsolationEvidence(verdict, **{**complete, **fields})


def a_snapshot(owner: Owner = OWNER, **seen: Any) -> ClusterSnapshot:
    """An empty cluster with proven isolation, in which this deployment was just created; `seen` replaces parts."""
    return ClusterSnapshot(**{"owner": owner, "generation": 1, "policy": POLICY, "evidence": evidence(), **seen})


def carried_out(snapshot: ClusterSnapshot, plan: Plan) -> ClusterSnapshot:
    """The snapshot once the API server has taken every write of the plan."""
    children = dict(snapshot.children)
    for change in plan.apply:
        key = (change.manifest["kind"], change.manifest["metadata"]["name"])
        children[key] = living(change.manifest, children.get(key))
    for deletion in plan.delete:
        del children[(deletion.kind.kind, deletion.name)]
    return replace(snapshot, children=children)


def living(manifest: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> Manifest:
    """The live object after an apply: what was said, with what the API server adds to it."""
    live: Manifest = copy.deepcopy(dict(manifest))
    metadata = (before or {}).get("metadata", {})
    live["metadata"]["uid"] = metadata.get("uid", f"uid-of-{live['kind']}-{live['metadata']['name']}")
    live["metadata"]["resourceVersion"] = str(int(metadata.get("resourceVersion", "100")) + 1)
    live["metadata"]["generation"] = metadata.get("generation", 0) + 1
    if before is not None and "status" in before:
        live["status"] = copy.deepcopy(before["status"])
    return live


def children_of(manifest: Manifest, verifier: Verifier | None = None) -> dict[ChildKey, Manifest]:
    """Every child, alive and as it should be."""
    spec = spec_of(manifest)
    verified = verifier if spec.weights.is_mounted else None
    platform = PlatformSettings(verified, accelerator_checks=_checks_of(spec))
    return {(c["kind"], c["metadata"]["name"]): living(c) for c in render(owner_of(manifest), spec, platform)}


def serving(snapshot: ClusterSnapshot, pods: int, /, **status: Any) -> ClusterSnapshot:
    """The same snapshot, in which so many pods of the present template serve."""
    counts = {"replicas": pods, "updatedReplicas": pods, "availableReplicas": pods}
    return reporting_of(snapshot, "Deployment", {"observedGeneration": 99, **counts, **status})


def addressed(snapshot: ClusterSnapshot, *addresses: str) -> ClusterSnapshot:
    """The same snapshot, in which the load balancer has given these addresses."""
    return reporting_of(snapshot, "Service", {"loadBalancer": {"ingress": [{"ip": address} for address in addresses]}})


def reporting_of(snapshot: ClusterSnapshot, kind: str, status: Mapping[str, Any]) -> ClusterSnapshot:
    """The same snapshot, in which the child of this kind has this status."""
    key = (kind, snapshot.owner.name)
    changed = {**snapshot.children[key], "status": dict(status)}
    return replace(snapshot, children={**snapshot.children, key: changed})


def an_a100_node(name: str = "gpu-0", *, gpus: int = 1, pool: str = "gpu", **fields: Any) -> NodeFacts:
    node_fields = {
        "instance_type": "Standard_NC24ads_A100_v4",
        "runtime_version": "containerd://2.2.4",
        "kubelet_version": "v1.36.4",
    }
    return NodeFacts(name=name, pool=pool, **{**node_fields, "gpus": {"nvidia.com/gpu": gpus}, **fields})


def conditions(status: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The conditions of a status by type."""
    return {condition["type"]: condition for condition in status["conditions"]}

"""What Hermetic renders passes Hermetic's own checks: every sample and every shape, as it would stand in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.api.modeldeployment import ModelDeployment
from hermetic.audit.model.findings import Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.run import evaluate
from hermetic.collect.probe.job import ProbedNode, ProbePods, probe_job
from hermetic.objects.accelerator_checks import CHECKER, AcceleratorChecks
from hermetic.objects.children import NO_SETTINGS, PlatformSettings, render
from hermetic.objects.names import Owner
from hermetic.objects.weights_verifier import Verifier
from tests.kubernetes_estates import NODE, POLICY, REGISTRY, estate, owned, sealed_cluster
from tests.renderings import OWNER_UID, RENDERINGS

SAMPLES = Path(__file__).parents[2] / "manifests" / "samples"
HERMETIC = "hermetic.dev/v1alpha1"


def samples() -> dict[str, Any]:
    """Every ModelDeployment among the samples, but for the one that is there to be refused."""
    documents_by_file = {}
    for file in sorted(SAMPLES.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document["kind"] == "ModelDeployment" and file.name != "refused.yaml":
                documents_by_file[file.name] = document
    return documents_by_file


def pod_of(workload: dict[str, Any], owner: str, version: str) -> dict[str, Any]:
    """The pod that a controller makes of a workload's template."""
    template, metadata = workload["spec"]["template"], workload["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template["metadata"],
            "name": f"{metadata['name']}-x",
            "namespace": metadata["namespace"],
            "ownerReferences": owned(owner, metadata["name"], version),
        },
        "spec": {**template["spec"], "nodeName": NODE},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.1.2.3"}]},
    }


SHAPES = {**samples(), **RENDERINGS}


def as_it_would_stand(document: dict[str, Any], settings: PlatformSettings = NO_SETTINGS) -> list[dict[str, Any]]:
    """What is rendered, with the pod that a Deployment makes and the address that a cloud gives."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace", "inference")
    spec = ModelDeployment.model_validate(document).spec
    manifests = []
    for manifest in render(Owner(namespace, metadata["name"], OWNER_UID), spec, settings):
        manifests.append(manifest)
        if manifest["kind"] == "Deployment":
            pod = pod_of(manifest, "ReplicaSet", "apps/v1")
            pod["metadata"]["labels"] = {**pod["metadata"]["labels"], "pod-template-hash": "7d"}
            manifests.append(pod)
        if manifest["kind"] == "Service" and manifest["spec"]["type"] == "LoadBalancer":
            manifest["status"] = {"loadBalancer": {"ingress": [{"ip": "10.13.76.40"}]}}
    return manifests


def registries(document: dict[str, Any]) -> Policy:
    """A policy that approves the registry of the engine's image."""
    engine = document["spec"]["engine"]
    image = next(iter(engine.values()))["image"]
    return Policy(allowedRegistries=(image.partition("/")[0],))


@pytest.mark.parametrize("name", SHAPES)
def test_a_cluster_with_this_deployment_passes_every_check(name: str) -> None:
    other_manifests = [
        item for item in sealed_cluster() if item["kind"] != "NetworkPolicy" and item["metadata"]["name"] != "app-1"
    ]
    cluster = [*other_manifests, *as_it_would_stand(SHAPES[name])]
    findings = evaluate(estate(cluster), registries(SHAPES[name]))
    assert [finding for finding in findings if finding.verdict is not Verdict.PASS] == []
    assert len(findings) >= 23


@pytest.mark.parametrize("name", SHAPES)
def test_a_cluster_whose_pods_check_their_gpus_and_weights_passes_every_check(name: str) -> None:
    """As the operator renders by default: a container that has the GPUs is subject to the checks of a model server."""
    registry = registries(SHAPES[name])
    verifier = Verifier(f"{registry.allowed_registries[0]}/hermetic@sha256:{'0' * 64}", "Require")
    settings = PlatformSettings(verifier, accelerator_checks=AcceleratorChecks("Require"))
    manifests = as_it_would_stand(SHAPES[name], settings)
    init_containers = [
        container["name"] for item in manifests if item["kind"] == "Pod" for container in item["spec"]["initContainers"]
    ]
    assert CHECKER in init_containers
    foreign = [
        item for item in sealed_cluster() if item["kind"] != "NetworkPolicy" and item["metadata"]["name"] != "app-1"
    ]
    findings = evaluate(estate([*foreign, *manifests]), registry)
    assert [finding for finding in findings if finding.verdict is not Verdict.PASS] == []


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_without_its_network_policy_does_not(name: str) -> None:
    other_manifests = [
        item for item in sealed_cluster() if item["kind"] != "NetworkPolicy" and item["metadata"]["name"] != "app-1"
    ]
    cluster = [*other_manifests, *(item for item in as_it_would_stand(SHAPES[name]) if item["kind"] != "NetworkPolicy")]
    findings = evaluate(estate(cluster), registries(SHAPES[name]))
    assert {finding.check for finding in findings if finding.verdict is Verdict.FAIL} == {"k8s-default-deny-egress"}


@pytest.mark.parametrize("namespace", ["hermetic-system", "hermetic-probe"])
@pytest.mark.parametrize("host_network", [True, False])
def test_the_probe_passes_wherever_it_runs_by_default(namespace: str, host_network: bool) -> None:
    pods = ProbePods(namespace=namespace, image=f"{REGISTRY}/hermetic@sha256:{'0' * 64}")
    job = probe_job(pods, ProbedNode("gpu", "nodes", NODE), "round1", host_network=host_network)
    findings = evaluate(estate([*sealed_cluster(), pod_of(job, "Job", "batch/v1")]), POLICY)
    assert [finding for finding in findings if finding.verdict is not Verdict.PASS] == []


@pytest.mark.parametrize("host_network", [True, False])
def test_the_probe_passes_elsewhere_only_where_the_policy_says_so(host_network: bool) -> None:
    pods = ProbePods(namespace="probes", image=f"{REGISTRY}/hermetic@sha256:{'0' * 64}")
    job = probe_job(pods, ProbedNode("gpu", "nodes", NODE), "round1", host_network=host_network)
    observed_estate = estate([*sealed_cluster(), pod_of(job, "Job", "batch/v1")])
    unknown = {finding.check for finding in evaluate(observed_estate, POLICY) if finding.verdict is not Verdict.PASS}
    assert unknown == {"k8s-hostnetwork" if host_network else "k8s-default-deny-egress"}
    assert all(
        finding.verdict is Verdict.PASS for finding in evaluate(observed_estate, POLICY.with_hermetic_in("probes"))
    )


def test_the_operator_passes_once_its_image_has_a_registry() -> None:
    deployment = yaml.safe_load((SAMPLES.parent / "operator" / "deployment.yaml").read_text())
    operator = pod_of(deployment, "ReplicaSet", "apps/v1")
    operator["spec"]["containers"][0]["image"] = f"{REGISTRY}/hermetic@sha256:{'0' * 64}"
    findings = evaluate(estate([*sealed_cluster(), operator]), POLICY)
    assert [finding for finding in findings if finding.verdict is not Verdict.PASS] == []

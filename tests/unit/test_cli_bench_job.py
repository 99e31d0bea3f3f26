"""The Job of `hermetic bench`: its pod, its network, its time, and what the audit says of it."""

from __future__ import annotations

import pytest
from kubernetes import client

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.model.findings import Verdict
from hermetic.cli.bench.job import DEADLINE_SECONDS, LIMIT_SECONDS
from hermetic.cli.bench.planned import plan_benchmark
from hermetic.objects.names import MODEL_LABEL
from tests.golden import benchmarks
from tests.golden.benchmarks import LOAD, admitting, file_of, live, objects_of, planned
from tests.kubernetes_estates import NODE, findings, sealed_cluster
from tests.kubernetes_models import MODELS
from tests.pod_security import violations
from tests.scenarios import Manifest, a_baked_model, a_share_model

NAMESPACE = "inference"
every_shape = pytest.mark.parametrize("name", benchmarks.SHAPES)


@every_shape
def test_job_of_a_benchmark_is_what_was_agreed_to(name: str) -> None:
    assert benchmarks.as_text(name) == file_of(name).read_text(), "read it, then run: python -m tests.golden.update"


@every_shape
def test_job_of_a_benchmark_is_restricted_and_adds_no_image_right_or_device(name: str) -> None:
    benchmark = planned(name)
    job, policy = objects_of(benchmark)
    client.V1Job.model_validate(job)
    MODELS["NetworkPolicy"].model_validate(policy)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert violations(pod) == []
    assert container["image"] == benchmark.engine["image"]
    assert not pod["automountServiceAccountToken"]
    assert "serviceAccountName" not in pod
    assert not [key for key in container["resources"]["limits"] if "/" in key]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]


@every_shape
def test_pod_of_a_benchmark_is_no_pod_of_the_model(name: str) -> None:
    """With the label it would get requests of the model's clients, and admission policies refuse it."""
    job, _ = objects_of(planned(name))
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert MODEL_LABEL not in labels
    assert "app.kubernetes.io/managed-by" not in {**labels, **job["metadata"]["labels"]}


@every_shape
def test_network_of_a_benchmark_is_its_model_alone(name: str) -> None:
    benchmark = planned(name)
    job, policy = objects_of(benchmark)
    (egress,) = policy["spec"]["egress"]
    (peer,) = egress["to"]
    assert peer == {"podSelector": {"matchLabels": {MODEL_LABEL: benchmark.pod.owner.name}}}
    assert [port["port"] for port in egress["ports"]] == [benchmark.pod.spec.endpoint.port]
    assert (policy["spec"]["ingress"], policy["spec"]["policyTypes"]) == ([], ["Ingress", "Egress"])
    pod = job["spec"]["template"]["spec"]
    assert pod["dnsConfig"] == {"nameservers": ["127.0.0.1"]}, "it is told the address, and asks no name server"
    assert "10.0.171.24" in " ".join(pod["containers"][0]["args"])


def test_weights_are_mounted_read_only_as_the_engine_mounts_them() -> None:
    benchmark = planned("share")
    (container,) = objects_of(benchmark)[0]["spec"]["template"]["spec"]["containers"]
    (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == "weights"]
    assert mount in benchmark.engine["volumeMounts"]
    assert mount["readOnly"]


def test_a_benchmark_has_ninety_seconds_and_its_job_a_deadline() -> None:
    job, _ = objects_of(planned("share"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert LIMIT_SECONDS <= 90
    assert container["args"][0] == str(LIMIT_SECONDS)
    assert job["spec"]["activeDeadlineSeconds"] == DEADLINE_SECONDS
    assert job["spec"]["backoffLimit"] == 0


def test_settings_of_the_tokenizer_are_those_of_the_server() -> None:
    image = a_share_model()["spec"]["engine"]["vllm"]["image"]
    arguments = ["--tokenizer-mode", "mistral", "--trust-remote-code"]
    weights = a_baked_model()["spec"]["weights"]
    engine = {"vllm": {"image": image, "version": "0.33.0", "extraArgs": arguments}}
    command = plan_benchmark(live(admitting(a_share_model(engine=engine, weights=weights))), LOAD, {}).pod.command
    assert command[command.index("--tokenizer-mode") + 1] == "mistral"
    assert "--trust-remote-code" in command


@every_shape
def test_a_benchmark_that_runs_causes_no_finding_of_the_audit(name: str) -> None:
    """A finding would close the gate of every model of the cluster while the Job runs."""
    job, policy = objects_of(planned(name))
    template = job["spec"]["template"]
    job_label = {"batch.kubernetes.io/job-name": job["metadata"]["name"]}
    labels = {**template["metadata"]["labels"], **job_label}
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "controller": True}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": NAMESPACE, "labels": labels, "ownerReferences": owners},
        "spec": {**template["spec"], "nodeName": NODE, "dnsPolicy": "None"},
        "status": {"phase": "Running"},
    }
    before = sealed_cluster()
    during = [*before, dict(job), dict(policy), pod]
    checks = [check.page.id for check in CHECKS if check.needs <= frozenset({"kube"})]
    assert {check: worst(check, during) for check in checks} == {check: worst(check, before) for check in checks}


def worst(check: str, manifests: list[Manifest]) -> set[str]:
    return {finding.verdict for finding in findings(check, manifests)} & {Verdict.FAIL, Verdict.UNKNOWN}

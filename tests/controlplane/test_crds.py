"""A real API server takes the CRDs without a word, serves them, and kubectl shows what it should."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.kubectl import Kubectl, KubectlError
from testbed.processes import wait_until
from tests.corpus.manifests import DIGEST, vllm_on_azure_files
from tests.corpus.verdicts import CRD_COLLECTION, CRDS, Answer, Judge

GROUP = "/apis/hermetic.dev/v1alpha1"
FILES = sorted(CRDS.glob("*.hermetic.dev.yaml"))
NOW = "2026-11-21T12:00:00Z"


@pytest.fixture(scope="module")
def judge(cluster: Path, kubectl: Kubectl) -> Iterator[Judge]:
    with Judge(cluster) as server:
        server.install_crds()
        wait_until("kubectl explain", lambda: all(_knows(kubectl, kind) for kind in ("mdep", "eaudit", "eattest")), ())
        yield server


def _knows(kubectl: Kubectl, kind: str) -> bool:
    try:
        return bool(kubectl("explain", kind))
    except KubectlError:
        return False


@pytest.fixture
def deployment(judge: Judge, namespace: str) -> str:
    """Path of a new ModelDeployment."""
    collection = f"{GROUP}/namespaces/{namespace}/modeldeployments"
    created = judge.ask("POST", collection, vllm_on_azure_files())
    assert created.accepted, created.message
    return f"{collection}/{created.body['metadata']['name']}"


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    stamps = {"lastTransitionTime": NOW, "observedGeneration": 1}
    return {"type": kind, "status": status, "reason": reason, "message": message, **stamps}


def write_status(judge: Judge, path: str, status: dict[str, Any], manager: str = "hermetic-status") -> Answer:
    name = path.rsplit("/", 1)[1]
    body = {"apiVersion": "hermetic.dev/v1alpha1", "kind": "ModelDeployment", "metadata": {"name": name}}
    query = f"/status?fieldManager={manager}&fieldValidation=Strict"
    return judge.ask("PATCH", path + query, {**body, "status": status}, content="application/apply-patch+yaml")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_new_crd_is_accepted_with_no_warning_and_within_the_cost_of_rules(judge: Judge, path: Path) -> None:
    answer = judge.ask("POST", f"{CRD_COLLECTION}?dryRun=All&fieldValidation=Strict", in_a_new_group(path))
    assert answer.accepted, answer.message
    assert answer.warnings == ()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rules_leave_room_for_servers_that_weigh_them_differently(judge: Judge, path: Path) -> None:
    manifest = in_a_new_group(path)
    # Before 1.34 the API server weighs `x-kubernetes-int-or-string` as if it had no maxLength.
    times = 4 if judge.minor_version >= 34 else 2
    repeat_rules(manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"], times=times)
    answer = judge.ask("POST", f"{CRD_COLLECTION}?dryRun=All", manifest)
    assert answer.accepted, answer.message


def in_a_new_group(path: Path) -> dict[str, Any]:
    """The CRD under another group: rules that are there already would not be weighed again."""
    manifest: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    manifest["spec"]["group"] = "new.hermetic.dev"
    manifest["metadata"]["name"] = f"{manifest['spec']['names']['plural']}.new.hermetic.dev"
    return manifest


def repeat_rules(schema: dict[str, Any], times: int) -> None:
    if "x-kubernetes-validations" in schema:
        schema["x-kubernetes-validations"] = schema["x-kubernetes-validations"] * times
    for part in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if part is not None:
            repeat_rules(part, times)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_crds_are_served_under_all_their_names(judge: Judge, path: Path) -> None:
    served = judge.ask("GET", f"{CRD_COLLECTION}/{path.stem}").body
    conditions = {crd_condition["type"]: crd_condition["status"] for crd_condition in served["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert served["status"]["acceptedNames"] == served["spec"]["names"]


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("mdep.spec.weights", "exactly one source"),
        ("mdep.spec.weights.azureFiles", "Default: the whole share"),
        ("mdep.spec.engine.vllm.version", "vLLM release inside the image"),
        ("mdep.spec.isolation.enforcement", "Enforce: no pod is created without fresh evidence"),
        ("mdep.status.observedGeneration", "-1 until it was first seen"),
        ("eaudit.spec.trustedKeys", "Public keys whose attestations count"),
        ("eattest.spec.envelope", "DSSE"),
    ],
)
def test_kubectl_explains_fields(judge: Judge, kubectl: Kubectl, field: str, says: str) -> None:  # noqa: ARG001
    assert says in " ".join(kubectl("explain", field).split())


def test_an_object_is_unseen_until_the_operator_writes_its_status(judge: Judge, deployment: str) -> None:
    assert judge.ask("GET", deployment).body["status"] == {"observedGeneration": -1}


def test_a_status_that_a_user_types_is_not_taken(judge: Judge, namespace: str) -> None:
    ready = {"observedGeneration": 1, "conditions": [condition("Ready", "True", "Serving")]}
    typed = {**vllm_on_azure_files(), "status": ready}
    created = judge.ask("POST", f"{GROUP}/namespaces/{namespace}/modeldeployments", typed)
    assert created.body["status"] == {"observedGeneration": -1}


def test_writing_status_moves_neither_spec_nor_generation(judge: Judge, deployment: str) -> None:
    before = judge.ask("GET", deployment).body
    written = write_status(judge, deployment, {"observedGeneration": 1, "replicas": 1})
    assert written.accepted, written.message
    assert written.warnings == ()
    assert written.body["spec"] == before["spec"]
    assert written.body["metadata"]["generation"] == before["metadata"]["generation"] == 1


def test_conditions_of_two_writers_stand_side_by_side(judge: Judge, deployment: str) -> None:
    write_status(judge, deployment, {"observedGeneration": 1, "conditions": [condition("Ready", "True", "Serving")]})
    other = write_status(judge, deployment, {"conditions": [condition("Suspended", "True", "Asked")]}, manager="other")
    assert [audit_condition["type"] for audit_condition in other.body["status"]["conditions"]] == ["Ready", "Suspended"]


def test_a_condition_without_a_reason_is_refused(judge: Judge, deployment: str) -> None:
    answer = write_status(judge, deployment, {"conditions": [condition("Ready", "True", "")]})
    assert answer.status == 422
    assert "status.conditions[0].reason" in answer.message


def test_kubectl_scales_and_autoscalers_can_read(judge: Judge, kubectl: Kubectl, deployment: str) -> None:
    namespace = deployment.split("/")[5]
    write_status(judge, deployment, {"observedGeneration": 1, "replicas": 2, "selector": "app=llama"})
    kubectl.within(namespace)("scale", "mdep/llama-3-1-8b", "--replicas=3")
    scale = judge.ask("GET", f"{deployment}/scale").body
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "app=llama"}
    assert judge.ask("GET", deployment).body["spec"]["replicas"] == 3


def test_scaling_out_of_bounds_is_refused(kubectl: Kubectl, deployment: str) -> None:
    with pytest.raises(KubectlError, match="should be less than or equal to 256"):
        kubectl.within(deployment.split("/")[5])("scale", "mdep/llama-3-1-8b", "--replicas=257")


def test_kubectl_get_shows_engine_readiness_and_endpoint(judge: Judge, kubectl: Kubectl, deployment: str) -> None:
    namespace = deployment.split("/")[5]
    status = {
        "observedGeneration": 1,
        "replicas": 1,
        "endpoint": {"url": "http://10.13.76.40:8000/v1", "address": "10.13.76.40"},
        "plan": {
            "engine": "vLLM",
            "tensorParallelSize": 1,
            "startupBudgetSeconds": 1200,
            "memory": {
                "instanceType": "Standard_NC24ads_A100_v4",
                "neededBytesPerGpu": 36_870_000_000,
                "availableBytesPerGpu": 78_140_000_000,
                "answer": "Fits",
            },
            "load": {"leastSeconds": 7, "boundBy": "the network of the node"},
        },
        "serving": {"pods": "1/1", "url": "http://10.13.76.40:8000/v1"},
        "conditions": [
            condition("Ready", "True", "Serving", "1 of 1 pods serve."),
            condition("IsolationVerified", "Unknown", "NoEvidence"),
            condition("WeightsVerified", "True", "Verified"),
        ],
    }
    assert write_status(judge, deployment, status).accepted
    head, row = kubectl.within(namespace)("get", "mdep").splitlines()
    assert head.split() == ["NAME", "ENGINE", "READY", "SERVING", "REASON", "ENDPOINT", "GPUS", "AGE"]
    assert row.split()[:7] == ["llama-3-1-8b", "vLLM", "True", "1/1", "Serving", "http://10.13.76.40:8000/v1", "1"]
    assert len(row) <= 100
    head, row = kubectl.within(namespace)("get", "mdep", "--output=wide").splitlines()
    assert head.split()[8:] == ["MODEL", "PHASE", "REPLICAS", "ISOLATION", "WEIGHTS", "IMAGE", "MESSAGE"]
    image = vllm_on_azure_files()["spec"]["engine"]["vllm"]["image"]
    model = "meta/llama-3.1-8b-instruct"
    assert row.split(maxsplit=13)[8:] == [model, "1", "Unknown", "True", image, "1 of 1 pods serve."]


@pytest.mark.parametrize("category", ["all", "hermetic"])
def test_deployments_are_in_their_categories(kubectl: Kubectl, deployment: str, category: str) -> None:
    namespace = deployment.split("/")[5]
    assert "modeldeployment.hermetic.dev/llama-3-1-8b" in kubectl.within(namespace)("get", category, "--output=name")


CLUSTER = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/"
    "Microsoft.ContainerService/managedClusters/aks-gpu"
)
PUBLIC_KEY = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n"


def audit(name: str = "cluster", **spec: Any) -> dict[str, Any]:
    keys = [{"name": "platform-2026", "publicKey": PUBLIC_KEY}]
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "EgressAudit",
        "metadata": {"name": name},
        "spec": {"cluster": CLUSTER, "trustedKeys": keys, **spec},
    }


def attestation(payload: str) -> dict[str, Any]:
    envelope = {
        "payloadType": "application/vnd.in-toto+json",
        "payload": payload,
        "signatures": [{"keyid": "platform-2026", "sig": "MEUCIQ=="}],
    }
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "EgressAttestation",
        "metadata": {"name": "2026-11-21"},
        "spec": {"envelope": envelope},
    }


def test_an_audit_starts_unseen_with_its_defaults(judge: Judge) -> None:
    created = judge.ask("POST", f"{GROUP}/egressaudits?dryRun=All&fieldValidation=Strict", audit())
    assert created.accepted, created.message
    assert created.body["status"] == {"observedGeneration": -1}
    assert created.body["spec"]["profile"] == "Sealed"
    assert created.body["spec"]["maxEvidenceAgeSeconds"] == 86400


@pytest.mark.parametrize(
    ("wrong", "path", "says"),
    [
        (audit(name="other"), "metadata.name", "'other': must be 'cluster': there is one EgressAudit per cluster"),
        (audit(cluster="aks-gpu"), "spec.cluster", "must be the ARM id of the AKS cluster"),
        (
            audit(trustedKeys=[{"name": "a", "publicKey": PUBLIC_KEY.replace("PUBLIC", "PRIVATE")}]),
            "spec.trustedKeys[0].publicKey",
            "must be a PEM public key",
        ),
        (
            audit(exceptions=[{"check": "x", "resource": "*", "reason": "because I said so", "owner": "me"}]),
            "spec.exceptions[0].expires",
            "Required value",
        ),
        (
            audit(probe={"image": f"r.io/x@{DIGEST}", "intervalSeconds": 1}),
            "spec.probe.intervalSeconds",
            "should be greater than or equal to 300",
        ),
    ],
    ids=["name", "cluster", "private key", "exception without end", "probe every second"],
)
def test_audits_that_prove_nothing_are_refused(judge: Judge, wrong: dict[str, Any], path: str, says: str) -> None:
    answer = judge.ask("POST", f"{GROUP}/egressaudits?dryRun=All&fieldValidation=Strict", wrong)
    assert answer.status == 422
    assert says in answer.messages_about(path), answer.message


def test_the_audited_cluster_cannot_be_exchanged(judge: Judge) -> None:
    path = f"{GROUP}/egressaudits/cluster"
    created = judge.ask("POST", f"{GROUP}/egressaudits", audit())
    try:
        other = judge.ask("GET", path).body
        other["spec"]["cluster"] += "-other"
        answer = judge.ask("PUT", f"{path}?dryRun=All", other)
        assert "`cluster` is immutable" in answer.messages_about("spec.cluster"), answer.message
    finally:
        if created.accepted:
            judge.ask("DELETE", path)


def test_evidence_of_the_largest_size_is_kept_and_never_changed(judge: Judge) -> None:
    path = f"{GROUP}/egressattestations/2026-11-21"
    try:
        created = judge.ask("POST", f"{GROUP}/egressattestations", attestation("a" * 900_000))
        assert created.accepted, created.message
        forged = attestation("b" * 900_000)
        forged["metadata"]["resourceVersion"] = created.body["metadata"]["resourceVersion"]
        answer = judge.ask("PUT", path, forged)
        assert answer.status in {403, 422}
        assert "`spec` is immutable: apply a new EgressAttestation instead" in answer.messages_about("spec")
    finally:
        judge.ask("DELETE", path)

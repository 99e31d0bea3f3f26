"""`hermetic status` on a real API server: what blocks, what mends it, and what an account with few rights sees."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import Api
from testbed.installation import OperatorProcess, wait_for
from testbed.kubectl import Kubectl
from tests.commandline import Ran, hermetic_process
from tests.controlplane.sealed_cluster import CLUSTER, SealedCluster, sealed, sealed_module
from tests.scenarios import a_baked_model, a_share_model, changed, reporting

__all__ = ["sealed", "sealed_module"]

pytestmark = pytest.mark.sampled(4, of="hermetic status on a real API server")

DEPLOYMENTS = "/apis/hermetic.dev/v1alpha1/namespaces/{}/modeldeployments/{}"


def ready_with(api: Api, namespace: str, name: str, reason: str, operator: OperatorProcess) -> None:
    def has_reason() -> bool:
        model_status = api.get(DEPLOYMENTS.format(namespace, name)).get("status", {})
        return any(c["type"] == "Ready" and c["reason"] == reason for c in model_status.get("conditions", ()))

    wait_for(f"{name} {reason}", has_reason, operator)


def status(cluster: Path, *arguments: str) -> Ran:
    return hermetic_process("status", *arguments, "--kubeconfig", cluster)


def deployments(ran: Ran) -> list[dict[str, Any]]:
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["schema"] == "hermetic.dev/status/v1"
    return document["deployments"]


@pytest.mark.usefixtures("installed")
def test_what_blocks_is_told_with_the_commands_that_mend_it(
    operator: OperatorProcess, kubectl: Kubectl, api: Api, cluster: Path, namespace: str
) -> None:
    kubectl.within(namespace).apply(a_share_model(), changed(a_baked_model(), isolation={"enforcement": "Off"}))
    ready_with(api, namespace, "llama", "IsolationEvidenceMissing", operator)
    ready_with(api, namespace, "phi", "Unschedulable", operator)

    run = status(cluster, "llama", "-n", namespace)
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[0] == "llama  vLLM 0.32.0  1 x nvidia.com/gpu  weights from contosomodels/models/llama-3-1-8b/fp8"
    blamed = next(position for position, line in enumerate(lines) if line.startswith("  isolation verified  unknown"))
    assert lines[blamed].endswith("<- blocks new pods")
    assert "fix: apply an EgressAudit named 'cluster' that names this cluster" in lines[blamed + 1]
    assert lines[blamed + 2] == "    hermetic audit --azure CLUSTER_ARM_ID --sign KEY --attestation attestation.yaml"

    both = status(cluster, "-n", namespace)
    assert [line.split()[:2] for line in both.out.splitlines()[1:3]] == [[namespace, "llama"], [namespace, "phi"]]
    assert f"Unschedulable: {namespace}/phi" in both.out
    assert "needs 1 nvidia.com/gpu on one node" in both.out

    by_name = {deployment["name"]: deployment for deployment in deployments(status(cluster, "-A", "-o", "json"))}
    assert by_name["llama"]["blocks"] == "blocks new pods"
    assert by_name["llama"]["pods"] == []
    (pod,) = by_name["phi"]["pods"]
    assert pod["state"] == "Unschedulable"
    assert by_name["phi"]["commands"] == [f"kubectl describe pod {pod['name']} --namespace {namespace}"]


def test_the_look_that_is_missing_is_named_with_the_command_for_this_cluster(sealed: SealedCluster) -> None:
    home, kubeconfig = sealed.namespace(), sealed.plane.kubeconfig
    sealed.apply_audit(probe=None)
    home.apply(a_share_model())
    sealed.until("Unknown", "AttestationMissing")
    home.wait("told", lambda: home.condition("llama").get("message", "").startswith("no EgressAttestation"))

    (deployment,) = deployments(status(kubeconfig, "llama", "-n", home.namespace, "-o", "json"))
    assert deployment["reason"] == "IsolationEvidenceMissing"
    assert deployment["commands"][0] == f"hermetic audit --azure {CLUSTER} --sign KEY --attestation attestation.yaml"
    table = status(kubeconfig, "-n", home.namespace).out
    assert "verdict on the cluster: Unknown" in table
    assert "attestation: AttestationMissing: no EgressAttestation is there" in table
    assert "probe: ProbeNotConfigured" in table


def test_evidence_has_an_age_and_what_is_too_old_is_stale(sealed: SealedCluster) -> None:
    home, kubeconfig = sealed.namespace(), sealed.plane.kubeconfig
    sealed.open_gate()
    home.apply(a_baked_model())
    home.until("phi", "Serving")
    serving = json.loads(status(kubeconfig, "-n", home.namespace, "-o", "json").out)
    assert (serving["isolation"]["verdict"], serving["isolation"]["commands"]) == ("Pass", [])
    assert serving["isolation"]["attestationObservedAt"] == serving["deployments"][0]["evidenceObservedAt"]
    assert "expires in 23 h" in status(kubeconfig, "-n", home.namespace).out

    sealed.attest(age=timedelta(hours=26), lasts=timedelta(hours=72))
    home.until("phi", "IsolationEvidenceStale")
    (deployment,) = deployments(status(kubeconfig, "phi", "-n", home.namespace, "-o", "json"))
    assert deployment["commands"][0].startswith("hermetic audit --azure /subscriptions/")
    shown = status(kubeconfig, "phi", "-n", home.namespace).out
    assert "isolation verified  STALE    the evidence expired at" in shown
    assert "<- blocks new pods; the one that runs keeps serving" in shown
    assert "attestation: IsolationEvidenceStale: the evidence expired at" in shown


@pytest.mark.usefixtures("installed")
def test_without_an_operator_nothing_is_taken_for_seen(kubectl: Kubectl, cluster: Path, namespace: str) -> None:
    kubectl.within(namespace).apply(reporting(a_share_model()))
    (deployment,) = deployments(status(cluster, "-n", namespace, "-o", "json"))
    assert (deployment["ready"], deployment["reason"]) == ("Unknown", "NotSeenYet")
    assert deployment["commands"] == ["kubectl get pods --namespace hermetic-system"]


@pytest.mark.usefixtures("installed")
def test_a_name_that_is_not_there_is_not_reachable(cluster: Path, namespace: str) -> None:
    ran = status(cluster, "nobody", "-n", namespace)
    assert (ran.code, ran.out) == (4, "")
    assert ran.errors == [f"error: HRM-KUB-404: ModelDeployment 'nobody' does not exist in namespace '{namespace}'"]


@pytest.mark.usefixtures("installed")
def test_a_mistyped_name_is_told_with_the_one_that_was_meant(kubectl: Kubectl, cluster: Path, namespace: str) -> None:
    kubectl.within(namespace).apply(reporting(a_share_model()))
    ran = status(cluster, "lama", "-n", namespace)
    assert ran.code == 4
    assert ran.errors[0].endswith("; did you mean 'llama'?")


@pytest.mark.usefixtures("installed")
def test_an_empty_namespace_is_no_failure(cluster: Path, namespace: str) -> None:
    ran = status(cluster, "-n", namespace)
    expected = f"# no ModelDeployment in namespace '{namespace}'; 'hermetic status -A' shows every namespace\n"
    assert (ran.code, ran.out, ran.err) == (0, "", expected)


@pytest.mark.usefixtures("installed")
def test_the_namespace_of_the_context_is_the_default(
    kubectl: Kubectl, cluster: Path, namespace: str, tmp_path: Path
) -> None:
    kubectl.within(namespace).apply(a_share_model())
    config = yaml.safe_load(cluster.read_text())
    config["contexts"].append({"name": "here", "context": {**config["contexts"][0]["context"], "namespace": namespace}})
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    ran = status(tmp_path / "kubeconfig", "--context", "here", "-o", "json")
    assert [deployment["namespace"] for deployment in deployments(ran)] == [namespace]
    assert status(tmp_path / "kubeconfig", "--context", "nowhere").code == 2


@pytest.mark.usefixtures("installed")
def test_who_may_see_the_deployments_only_sees_them_and_is_told_of_the_rest(
    kubectl: Kubectl, api: Api, cluster: Path, namespace: str, tmp_path: Path
) -> None:
    kubectl.within(namespace).apply(a_share_model())
    reader = an_account(api, cluster, namespace, tmp_path / "reader", ["modeldeployments"])
    ran = status(reader, "-n", namespace, "-o", "json")
    assert [deployment["name"] for deployment in deployments(ran)] == ["llama"]
    assert [line.split(" cannot be seen: ")[0] for line in ran.err.splitlines()] == ["# pods", "# egressaudits"]


@pytest.mark.usefixtures("installed")
def test_who_may_see_nothing_is_told_so_and_it_is_no_verdict(
    api: Api, cluster: Path, namespace: str, tmp_path: Path
) -> None:
    stranger = an_account(api, cluster, namespace, tmp_path / "stranger", [])
    ran = status(stranger, "-n", namespace)
    assert (ran.code, ran.out) == (4, "")
    assert "error: HRM-KUB-403: modeldeployments.hermetic.dev is forbidden" in ran.errors[0]


def an_account(api: Api, cluster: Path, namespace: str, path: Path, resources: list[str]) -> Path:
    """A kubeconfig of a new ServiceAccount that may list these resources of hermetic.dev in its namespace."""
    name, rbac = path.name, f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.create(accounts, {"metadata": {"name": name}})
    rules = [{"apiGroups": ["hermetic.dev"], "resources": resources, "verbs": ["list"]}] if resources else []
    api.create(f"{rbac}/roles", {"metadata": {"name": name}, "rules": rules})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    api.create(f"{rbac}/rolebindings", binding)
    token = api.create(f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    config = yaml.safe_load(cluster.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path.write_text(yaml.safe_dump(config))
    return path

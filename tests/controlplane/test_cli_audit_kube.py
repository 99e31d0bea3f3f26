"""`hermetic audit --kube` and `--probe` against a real API server: what they call the cluster, and what they may do."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import Api
from testbed.errors import ApiError
from testbed.fleet import Pool
from testbed.kubectl import Kubectl
from testbed.processes import wait_until
from tests.attestations import an_ed25519_key, pem_of, public_pem_of
from tests.audits_by_command import a_stand_in, environment_for, findings_of, report_in
from tests.commandline import PROGRAM, Ran, hermetic_process
from tests.scenarios import CLUSTER, an_egress_audit
from tests.unit.test_cli_audit_docs import block

AUDITS = "/apis/hermetic.dev/v1alpha1/egressaudits"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
JOBS = "/apis/batch/v1/namespaces/hermetic-probe/jobs"
IMAGE = "contoso.azurecr.io/hermetic/hermetic@sha256:" + "4" * 64

pytestmark = [pytest.mark.usefixtures("installed"), pytest.mark.sampled(6, of="hermetic audit of a real API server")]


@pytest.fixture
def declared(kubectl: Kubectl, api: Api) -> Iterator[Callable[..., None]]:
    """`declared(probe={...})`: the EgressAudit of the cluster, gone after the test."""
    yield lambda **spec: kubectl.apply(an_egress_audit(**spec))
    try:
        api.delete(f"{AUDITS}/cluster")
    except ApiError as error:
        if error.status != 404:
            raise


def audit(cluster: Path, *arguments: str | Path) -> Ran:
    return hermetic_process("audit", *arguments, "--kubeconfig", cluster)


def test_a_planted_egress_path_is_1_and_the_cluster_has_no_name_of_its_own(
    cluster: Path, api: Api, namespace: str
) -> None:
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    api.create(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "out"}, "spec": spec})
    ran = audit(cluster, "--kube", "-o", "json")
    report = report_in(ran.out)
    assert (ran.code, report["sources"], set(report["notAsked"])) == (1, ["kube"], {"azure", "probe"})
    assert report["cluster"] == "the cluster of the kubeconfig"
    assert findings_of(ran, "k8s-public-lb")[f"v1/service {namespace}/out"]["verdict"] == "Fail"


def test_the_egress_audit_gives_the_cluster_its_name_and_a_replay_keeps_it(
    cluster: Path, declared: Callable[..., None], tmp_path: Path
) -> None:
    declared()
    ran = audit(cluster, "--kube", "-o", "json", "--save-snapshot", tmp_path / "estate.json")
    assert report_in(ran.out)["cluster"] == CLUSTER
    again = hermetic_process("audit", "--snapshot", tmp_path / "estate.json", "-o", "json", "--kube")
    assert (again.code, again.out) == (ran.code, ran.out)


def test_azure_and_the_cluster_in_one_audit_signed_for_both(
    cluster: Path, declared: Callable[..., None], tmp_path: Path
) -> None:
    key = an_ed25519_key()
    (tmp_path / "platform.key").write_text(pem_of(key.key))
    (tmp_path / "platform.pub").write_text(public_pem_of(key.key))
    with a_stand_in() as arm:
        declared(cluster=arm.estate.cluster)
        signing = ("--sign", tmp_path / "platform.key", "--attestation", tmp_path / "attestation.yaml")
        ran = audit_of(arm, cluster, "--kube", "-o", "json", *signing)
    report = report_in(ran.out)
    assert (report["sources"], set(report["notAsked"])) == (["azure", "kube"], {"probe"})
    assert (report["cluster"], "aks-nap" in {finding["check"] for finding in report["findings"]}) == (
        arm.estate.cluster,
        True,
    )
    assert "not tied to an API server" not in ran.err
    shown = hermetic_process(
        "attest", "verify", tmp_path / "attestation.yaml", "--public-key", tmp_path / "platform.pub"
    )
    assert shown.code == 0


def audit_of(arm: Any, cluster: Path, *arguments: str | Path) -> Ran:
    named = ("--azure", arm.estate.cluster, "--arm-endpoint", arm.url, "--kubeconfig", cluster)
    return hermetic_process("audit", *named, *arguments, environ=environment_for(arm))


@pytest.mark.parametrize("also", ["--kube", "--probe", "--sign"])
def test_a_kubeconfig_of_another_cluster_is_2(
    cluster: Path, declared: Callable[..., None], tmp_path: Path, also: str
) -> None:
    declared()
    (tmp_path / "platform.key").write_text(pem_of(an_ed25519_key().key))
    signing = (tmp_path / "platform.key", "--attestation", tmp_path / "a.yaml") if also == "--sign" else ()
    with a_stand_in() as arm:
        ran = audit_of(arm, cluster, also, *signing)
        assert arm.requests == []
    assert (ran.code, ran.out, len(ran.errors)) == (2, "", 1)
    assert f"its EgressAudit is about {CLUSTER}, not {arm.estate.cluster}" in ran.errors[0]


def test_who_may_read_nothing_is_3_and_told_what_is_missing(
    cluster: Path, api: Api, namespace: str, tmp_path: Path
) -> None:
    stranger = an_account(api, cluster, namespace, tmp_path / "stranger")
    ran = audit(stranger, "--kube", "-o", "json")
    report = report_in(ran.out)
    assert ran.code == 3
    # What the API server serves is open to every account: kinds that are not there are shown absent by it.
    passed = {finding["check"] for finding in report["findings"] if finding["verdict"] == "Pass"}
    assert passed <= {"k8s-unread-kinds", "k8s-other-ways", "k8s-mesh-egress"}
    assert "services" in findings_of(ran, "k8s-public-lb")[report["cluster"].lower()]["message"]


def test_the_role_in_the_manual_is_enough(cluster: Path, api: Api, namespace: str, tmp_path: Path) -> None:
    auditor = an_account(api, cluster, namespace, tmp_path / "auditor")
    role = yaml.safe_load(block("apiVersion: rbac.authorization.k8s.io/v1"))
    name = role["metadata"]["name"]
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "auditor", "namespace": namespace}],
    }
    api.create(f"{RBAC}/clusterroles", role)
    api.create(f"{RBAC}/clusterrolebindings", binding)
    try:
        findings = report_in(audit(auditor, "--kube", "-o", "json").out)["findings"]
    finally:
        api.delete(f"{RBAC}/clusterrolebindings/{name}")
        api.delete(f"{RBAC}/clusterroles/{name}")
    assert findings
    assert [finding for finding in findings if finding["reason"] == "Forbidden"] == []


def test_an_api_server_that_is_not_there_is_4(cluster: Path, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    ran = audit(tmp_path / "kubeconfig", "--kube")
    assert (ran.code, ran.out, len(ran.errors)) == (4, "", 1)


def test_a_probe_that_is_not_declared_says_what_to_add(cluster: Path, declared: Callable[..., None]) -> None:
    for _ in range(2):  # without an EgressAudit, and with one that has no probe
        ran = audit(cluster, "--probe")
        assert (ran.code, ran.out) == (2, "")
        assert "no EgressAudit that names one (spec.probe.image)" in ran.errors[0]
        assert "--probe-image IMAGE@sha256:" in ran.fixes[0]
        declared()


def test_a_probe_runs_as_the_egress_audit_declares_it(
    cluster: Path, api: Api, declared: Callable[..., None], fleet: Callable[..., list[str]]
) -> None:
    """No kubelet answers here, so it is interrupted once its Jobs are there."""
    fleet(Pool("gpu", "Standard_NC24ads_A100_v4"))
    declared(probe={"image": IMAGE, "targets": {"canary": "canary.contoso.example"}})
    command = [*PROGRAM, "audit", "--probe", "--kubeconfig", str(cluster)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until("Jobs of the probe", lambda: len(api.get(JOBS)["items"]) >= 2, ())
        containers = [job["spec"]["template"]["spec"]["containers"][0] for job in api.get(JOBS)["items"]]
        assert {container["image"] for container in containers} == {IMAGE}
        assert all("canary.contoso.example" in container["env"][0]["value"] for container in containers)
    finally:
        program.send_signal(signal.SIGINT)
        out, output = program.communicate(timeout=60)
        for job in api.get(JOBS)["items"]:
            api.delete(f"{JOBS}/{job['metadata']['name']}?propagationPolicy=Background")
    assert (program.returncode, out) == (130, "")
    assert f"# audit: probing from pods of {IMAGE} in hermetic-probe" in output


def an_account(api: Api, cluster: Path, namespace: str, path: Path) -> Path:
    """A kubeconfig of a new ServiceAccount without any right."""
    accounts, name = f"/api/v1/namespaces/{namespace}/serviceaccounts", path.name
    api.create(accounts, {"metadata": {"name": name}})
    token = api.create(f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    config = yaml.safe_load(cluster.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path.write_text(yaml.safe_dump(config))
    return path

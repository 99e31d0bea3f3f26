"""The proof end to end: a real operator with its own rights, real signatures, a real API server.

Stood in for are the machines, and what their probe pods say.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from testbed.audit import requests
from testbed.installation import ACCOUNT
from testbed.probe_simulator import EGRESS
from tests.attestations import OTHER_CLUSTER
from tests.controlplane.deployments import Deployments
from tests.controlplane.kstatus import kstatus
from tests.controlplane.open_reports import CLUSTER_REPORTS, open_reports_served
from tests.controlplane.sealed_cluster import ATTESTATIONS, AUDIT, SealedCluster, a_finding, sealed, sealed_module
from tests.scenarios import a_baked_model, a_share_model

__all__ = ["sealed", "sealed_module"]

pytestmark = pytest.mark.sampled(6, of="EgressAudits on a real API server")

NAT = a_finding(
    "Fail", "natgw-inventory", message="a NAT gateway is attached", paths=["node subnet -> nat gateway -> internet"]
)


def a_model(name: str = "llama", **spec: Any) -> dict[str, Any]:
    return a_baked_model(name, **{"endpoint": {}, **spec})


@pytest.fixture
def open_gate(sealed: SealedCluster) -> Iterator[Deployments]:
    """A model that serves behind an open gate."""
    sealed.open_gate()
    home = sealed.namespace()
    home.apply(a_model())
    home.until("llama", "Serving")
    yield home
    sealed.api.delete(f"/api/v1/namespaces/{home.namespace}")


def uids(home: Deployments, name: str = "llama") -> set[str]:
    return {pod["metadata"]["uid"] for pod in home.pods(name)}


def public_service(home: Deployments) -> str:
    """Somebody else publishes something; returns its path."""
    collection = f"/api/v1/namespaces/{home.namespace}/services"
    spec = {"type": "LoadBalancer", "selector": {"app": "shop"}, "ports": [{"port": 443}]}
    home.api.create(collection, {"metadata": {"name": "shop"}, "spec": spec})
    return f"{collection}/shop"


def metric(sealed: SealedCluster, verdict: str) -> float:
    (count,) = re.findall(
        rf'^hermetic_isolation_verdict{{verdict="{verdict}"}} (\S+)$', sealed.operator.metrics(), re.M
    )
    return float(count)


# ---------------------------------------------------------------------- opening


def test_from_nothing_to_serving_each_missing_look_is_named_and_then_brought(sealed: SealedCluster) -> None:
    home = sealed.namespace()
    home.apply(a_share_model(endpoint={}))
    assert "no evidence" in home.until("llama", "IsolationEvidenceMissing")["message"]

    sealed.apply_audit(probe=None)
    condition = sealed.until("Unknown", "AttestationMissing")
    assert "hermetic audit --azure /subscriptions/" in condition["message"]
    home.wait("told so", lambda: "hermetic audit --azure" in home.condition("llama")["message"])
    assert home.condition("llama")["reason"] == "IsolationEvidenceMissing"

    sealed.attest()
    sealed.until("Unknown", "ProbeNotConfigured")
    assert home.workload("llama") is None

    sealed.apply_audit()
    condition = sealed.until("Pass")
    assert condition["counts"]["unknown"] == condition["counts"]["excepted"] == 0, "no exception is needed"
    home.until("llama", "Serving")
    assert kstatus(sealed.api.get(AUDIT)) == "Current"
    sealed.api.delete(f"/api/v1/namespaces/{home.namespace}")


def test_a_probe_that_meets_an_open_machine_closes_and_a_later_round_opens(sealed: SealedCluster) -> None:
    node = f"/api/v1/nodes/{sealed.nodes[0]}"
    sealed.api.merge(node, {"metadata": {"annotations": {EGRESS: "open"}}})
    try:
        sealed.apply_audit()
        sealed.attest()
        condition = sealed.until("Fail", "IsolationBroken")
        assert "probe-internet" in condition["message"]
        assert f"node {sealed.nodes[0]}" in condition["message"]
    finally:
        sealed.api.merge(node, {"metadata": {"annotations": {EGRESS: None}}})
    sealed.attest()  # asks for another round, half a minute after the last one
    sealed.until("Pass", timeout=180)


# ---------------------------------------------------------------------- closing over what runs


def test_a_foreign_public_load_balancer_closes_within_seconds_and_ends_no_pod(
    sealed: SealedCluster, open_gate: Deployments
) -> None:
    before = uids(open_gate)
    sealed.wait("the metric", lambda: metric(sealed, "Pass") == 1.0)
    path = public_service(open_gate)
    condition = sealed.until("Fail", "IsolationBroken", timeout=10)
    assert f"Service {open_gate.namespace}/shop" in condition["message"]
    sealed.wait("the metric, which follows the status", lambda: metric(sealed, "Fail") == 1.0)

    ready = open_gate.until("llama", "IsolationBroken")
    assert ready["message"].endswith("the pods that run keep serving")
    assert kstatus(open_gate.get("llama")) == kstatus(sealed.api.get(AUDIT)) == "Failed"
    assert open_gate.condition("llama", "Stalled")["status"] == "True"
    open_gate.apply(a_model("newcomer"))
    open_gate.until("newcomer", "IsolationBroken")
    assert open_gate.workload("newcomer") is None
    assert uids(open_gate) == before
    sealed.wait("warned", lambda: any(event["type"] == "Warning" for event in sealed.events("IsolationBroken")))
    events = open_gate.wait(
        "the Event of the model",
        lambda: [event["type"] for event in open_gate.events("llama") if event["reason"] == "IsolationBroken"],
    )
    assert events == ["Warning"]

    sealed.api.delete(path)
    sealed.until("Pass")
    open_gate.until("llama", "Serving")
    open_gate.until("newcomer", "Serving")
    assert uids(open_gate) == before


def test_an_attestation_that_found_an_egress_path_closes_and_the_next_one_opens(
    sealed: SealedCluster, open_gate: Deployments
) -> None:
    before = uids(open_gate)
    sealed.attest(NAT, says={"verdict": "Fail"})
    condition = sealed.until("Fail", "IsolationBroken")
    assert condition["message"].startswith("node subnet -> nat gateway -> internet: a NAT gateway is attached")
    assert "nat gateway" in open_gate.until("llama", "IsolationBroken")["message"]
    sealed.attest()
    sealed.until("Pass")
    open_gate.until("llama", "Serving")
    assert uids(open_gate) == before


def test_an_attestation_that_could_not_see_closes(sealed: SealedCluster, open_gate: Deployments) -> None:
    blind = a_finding("Unknown", "peering-any", message="403: Microsoft.Network/virtualNetworks/read is missing")
    sealed.attest(blind, says={"verdict": "Unknown"})
    sealed.until("Unknown", "IsolationUnknown")
    assert "virtualNetworks/read is missing" in open_gate.until("llama", "IsolationUnknown")["message"]
    assert open_gate.pods("llama")


def test_evidence_that_expires_while_a_model_runs_is_announced_and_then_closes(
    sealed: SealedCluster, open_gate: Deployments
) -> None:
    before = uids(open_gate)
    sealed.attest(lasts=timedelta(seconds=16))
    for reason in ("EvidenceAging", "EvidenceExpiring"):
        sealed.wait(reason, lambda r=reason: sealed.condition("EvidenceFresh").get("reason") == r, 30)
        assert sealed.status["verdict"] == "Pass"
    condition = sealed.until("Unknown", "IsolationEvidenceStale")
    ready = open_gate.until("llama", "IsolationEvidenceStale")
    assert ready["message"].startswith(condition["message"])
    assert uids(open_gate) == before
    open_gate.apply(a_model("newcomer"))
    open_gate.until("newcomer", "IsolationEvidenceStale")
    for reason in ("EvidenceAging", "EvidenceExpiring", "IsolationEvidenceStale"):
        events = sealed.wait(f"event {reason}", lambda r=reason: sealed.events(r))
        assert [event["type"] for event in events] == ["Warning"]
    sealed.attest()
    open_gate.until("newcomer", "Serving")


# ---------------------------------------------------------------------- attestations that do not count


def test_an_older_attestation_of_this_cluster_is_refused_once_a_newer_one_was_accepted(sealed: SealedCluster) -> None:
    older = sealed.attestation(age=timedelta(hours=2))
    sealed.open_gate()
    for attestation in sealed.api.get(ATTESTATIONS)["items"]:
        sealed.api.delete(f"{ATTESTATIONS}/{attestation['metadata']['name']}")
    sealed.kubectl.apply(older)
    condition = sealed.until("Unknown", "AttestationRefused")
    assert "is refused: Replayed:" in condition["message"]


@pytest.mark.parametrize(
    ("about", "refusal"),
    [
        ({"cluster": OTHER_CLUSTER}, "OtherCluster"),
        ({"ca": "sha256:" + "ca" * 32}, "OtherCluster"),
        ({"uid": "3f1c2d4e-0000-4000-8000-00000000beef"}, "OtherCluster"),
        ({"uid": None}, "ScopeIncomplete"),
    ],
    ids=["ARM id", "CA", "rebuilt", "unscoped"],
)
def test_an_attestation_of_another_cluster_is_refused(
    sealed: SealedCluster, about: dict[str, Any], refusal: str
) -> None:
    sealed.apply_audit()
    sealed.attest(**about)
    condition = sealed.until("Unknown", "AttestationRefused")
    assert f"is refused: {refusal}:" in condition["message"]


# ---------------------------------------------------------------------- rest, restart, interference


def test_evidence_of_the_profile_filtered_counts_only_where_filtered_is_asked_for(sealed: SealedCluster) -> None:
    sealed.apply_audit()
    sealed.attest(says={"profile": "filtered"})
    condition = sealed.until("Unknown", "AttestationRefused")
    assert "evaluated with the profile 'filtered', and 'sealed' is required" in condition["message"]

    sealed.apply_audit(profile="Filtered")
    sealed.until("Pass")
    sealed.apply_audit()
    sealed.until("Unknown", "AttestationRefused")


def test_a_restart_writes_nothing_to_the_audit_and_to_deployments(
    sealed: SealedCluster, open_gate: Deployments
) -> None:
    sealed.at_rest()
    log = sealed.plane.audit_log
    sealed.operator.stop()
    # What the operator wrote until it ended is no write of the restart.
    before = {
        path: sealed.api.get(path)["metadata"]["resourceVersion"] for path in (AUDIT, f"{open_gate.collection}/llama")
    }
    offset = log.stat().st_size
    sealed.operator.start()
    sealed.wait("judged", lambda: "hermetic_isolation_verdict{" in sealed.operator.metrics())
    assert metric(sealed, "Pass") == 1.0, sealed.status["message"]
    writes = [request for request in requests(log, offset) if request.user == ACCOUNT and request.is_write]
    about_us = [request for request in writes if request.namespace in ("", "hermetic-probe", open_gate.namespace)]
    assert about_us == [], "namespaces of other tests may still be on their way out"
    assert before == {path: sealed.api.get(path)["metadata"]["resourceVersion"] for path in before}


def test_what_an_administrator_writes_into_the_status_is_put_right(
    sealed: SealedCluster, open_gate: Deployments
) -> None:
    public_service(open_gate)
    # The load balancer's address comes after the Service, and is a finding of its own.
    has_address = {"k8s-public-lb", "k8s-lb-status-ip"}
    sealed.wait(
        "both findings", lambda: {finding["check"] for finding in sealed.status.get("findings", [])} >= has_address
    )
    truth = sealed.until("Fail")
    sealed.api.merge(f"{AUDIT}/status", {"status": {"verdict": "Pass", "message": "all is well", "conditions": []}})
    sealed.wait("put right", lambda: sealed.status.get("verdict") == "Fail" and sealed.condition())
    assert {**sealed.status, "conditions": 0, "evidence": 0} == {**truth, "conditions": 0, "evidence": 0}
    open_gate.until("llama", "IsolationBroken")


def test_a_verdict_about_an_earlier_generation_does_not_count(sealed: SealedCluster, open_gate: Deployments) -> None:
    """Other trusted keys or exceptions make another question of it."""
    sealed.operator.stop()
    sealed.apply_audit(trustedKeys=[])
    sealed.operator.start()
    condition = sealed.until("Unknown", "AttestationRefused")
    assert "UnknownKey" in condition["message"]
    open_gate.until("llama", "IsolationEvidenceMissing")


def test_an_audit_that_is_deleted_closes_the_gate(sealed: SealedCluster, open_gate: Deployments) -> None:
    before = uids(open_gate)
    sealed.api.delete(AUDIT)
    open_gate.until("llama", "IsolationEvidenceMissing")
    assert uids(open_gate) == before
    sealed.wait("no verdict", lambda: {metric(sealed, verdict) for verdict in ("Pass", "Fail", "Unknown")} == {0.0})


def test_a_right_that_is_lost_is_unknown_and_named(sealed: SealedCluster, open_gate: Deployments) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/hermetic-operator"
    cluster_role = sealed.api.get(role)
    rules = [rule for rule in cluster_role["rules"] if "endpointslices" not in rule["resources"]]
    sealed.api.merge(role, {"rules": rules})
    sealed.operator.stop()
    sealed.operator.start()
    try:
        condition = sealed.until("Unknown", "IsolationUnknown", timeout=90)
        assert "list endpointslices.discovery.k8s.io" in condition["message"]
        unknown = {finding["check"] for finding in condition["findings"] if finding["verdict"] == "Unknown"}
        assert unknown == {"k8s-endpoints-external", "k8s-gateway-routes"}, "exactly the checks that need it"
        open_gate.until("llama", "IsolationUnknown")
    finally:
        sealed.api.merge(role, {"rules": cluster_role["rules"]})
        sealed.operator.stop()
        sealed.operator.start()
    sealed.until("Pass")
    open_gate.until("llama", "Serving")


def test_the_probe_s_namespace_that_is_not_there_is_said(sealed: SealedCluster) -> None:
    binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/hermetic-probe/rolebindings/hermetic-operator-probe"
    role_binding = sealed.api.get(binding)
    sealed.api.delete(binding)
    try:
        sealed.apply_audit()
        sealed.attest()
        condition = sealed.until("Unknown", "ProbeIncomplete")
        assert "the Job was refused: jobs.batch" in json.dumps(condition)
    finally:
        restored = {
            "metadata": {"name": role_binding["metadata"]["name"]},
            "roleRef": role_binding["roleRef"],
            "subjects": role_binding["subjects"],
        }
        sealed.api.create(binding.rpartition("/")[0], restored)
    sealed.attest()
    sealed.until("Pass", timeout=90)


# ---------------------------------------------------------------------- what it costs the API server

READ_BY_BOTH = (
    "nodes", "services", "endpointslices", "ingresses", "networkpolicies", "persistentvolumes", "deployments",
)  # fmt: skip
OPEN_WATCHES = re.compile(r'^apiserver_longrunning_requests\{.*resource="(\w+)".*verb="WATCH".*\} (\d+)$', re.M)


def test_what_the_audit_and_the_operator_both_read_is_watched_once(sealed: SealedCluster) -> None:
    """By the API server's own count; pods are watched by labels, and then as a whole in place of two selections."""
    sealed.operator.stop()
    before = open_watches(sealed)
    sealed.operator.start()
    alone = dict.fromkeys(READ_BY_BOTH, 1) | {"pods": 2}
    sealed.wait("the watches of the operator", lambda: more_than(before, open_watches(sealed)) == alone)
    sealed.open_gate()
    once = dict.fromkeys((*READ_BY_BOTH, "pods"), 1)
    sealed.wait("one watch for both", lambda: more_than(before, open_watches(sealed)) == once)


def open_watches(sealed: SealedCluster) -> Counter[str]:
    watches: Counter[str] = Counter()
    for resource, number in OPEN_WATCHES.findall(sealed.api.text("/metrics")):
        watches[resource] += int(number)
    return watches


def more_than(before: Counter[str], watches: Counter[str]) -> dict[str, int]:
    return {resource: watches[resource] - before[resource] for resource in (*READ_BY_BOTH, "pods")}


# ---------------------------------------------------------------------- for others


def test_a_cluster_report_is_written_where_the_kind_is_known_and_goes_with_the_audit(sealed: SealedCluster) -> None:
    sealed.open_gate()
    assert "ClusterReport" not in json.dumps([line.get("wrote") for line in sealed.operator.log_lines()])
    with open_reports_served(sealed.api, sealed.kubectl):
        sealed.attest(NAT, says={"verdict": "Fail"})
        report = sealed.wait("report", lambda: reports(sealed))[0]
        assert report["summary"]["fail"] == 1
        assert report["metadata"]["ownerReferences"][0]["name"] == "cluster"
        sealed.forget()
        sealed.wait("report gone", lambda: not reports(sealed))


def reports(sealed: SealedCluster) -> list[dict[str, Any]]:
    """Every ClusterReport."""
    return list(sealed.api.get(CLUSTER_REPORTS)["items"])

"""The gate on a real API server, behind real evidence: closed it makes no pod and ends none.

What closes and opens the proof itself is test_egress_audit.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from testbed.installation import CONFIGURATION, OperatorProcess
from testbed.probe_simulator import EGRESS
from tests.controlplane.deployments import Deployments
from tests.controlplane.kstatus import contradictions, kstatus, newest, revisions
from tests.controlplane.sealed_cluster import ATTESTATIONS, SealedCluster, a_finding, sealed, sealed_module
from tests.kubernetes_models import OF_KUBERNETES
from tests.renderings import SHARES
from tests.scenarios import a_baked_model, a_share_model, changed, reporting

__all__ = ["sealed", "sealed_module"]

pytestmark = pytest.mark.sampled(4, of="the isolation gate on a real API server")

OPEN = a_finding(
    "Fail", "natgw-inventory", message="a NAT gateway is attached", paths=["node subnet -> nat gateway -> internet"]
)
BLIND = a_finding("Unknown", "peering-any", message="a peering could not be read")


@pytest.fixture
def home(sealed: SealedCluster) -> Iterator[Deployments]:
    """A namespace of the sealed cluster, in which there is no evidence yet."""
    namespace = sealed.namespace()
    yield namespace
    sealed.api.delete(f"/api/v1/namespaces/{namespace.namespace}")


@pytest.fixture
def serving(sealed: SealedCluster, home: Deployments) -> Deployments:
    """A model of two pods that serves behind an open gate."""
    sealed.open_gate()
    home.apply(a_model(replicas=2, drainSeconds=5))
    home.until("llama", "Serving")
    return home


def closes(sealed: SealedCluster) -> None:
    """The next audit finds an egress path."""
    sealed.attest(OPEN, says={"verdict": "Fail"})


def a_model(name: str = "llama", **spec: Any) -> dict[str, Any]:
    return a_baked_model(name, **{"endpoint": {}, **spec})


def children(home: Deployments) -> list[str]:
    """Everything of ours in the namespace, and its volumes."""
    ours = {"labelSelector": "app.kubernetes.io/managed-by=hermetic"}
    children_names = []
    for kind in OF_KUBERNETES:
        if kind.namespaced:
            listed = home.api.get(kind.path(home.namespace), **ours)["items"]
            children_names += [f"{kind.plural}/{child['metadata']['name']}" for child in listed]
    volumes = home.api.get("/api/v1/persistentvolumes", **ours)["items"]
    mine = {"hermetic.dev/namespace": home.namespace}.items()
    return children_names + [v["metadata"]["name"] for v in volumes if mine <= v["metadata"]["labels"].items()]


def uids(home: Deployments) -> set[str]:
    return {pod["metadata"]["uid"] for pod in home.pods("llama")}


def grace(home: Deployments) -> int:
    live = home.workload("llama")
    assert live is not None
    seconds: int = live["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    return seconds


def replicas(home: Deployments) -> int:
    live = home.workload("llama")
    assert live is not None
    count: int = live["spec"]["replicas"]
    return count


# ---------------------------------------------------------------------- closed from the beginning


def test_without_evidence_nothing_at_all_is_created_and_it_says_why(home: Deployments):
    home.apply(a_share_model())

    ready = home.until("llama", "IsolationEvidenceMissing")

    assert children(home) == []
    assert "EgressAudit named 'cluster'" in ready["message"]
    isolation = home.condition("llama", "IsolationVerified")
    assert (isolation["status"], isolation["message"]) == ("Unknown", ready["message"])
    assert kstatus(home.get("llama")) == "Failed"


UNPROVEN: dict[str, tuple[Callable[[SealedCluster], object], str]] = {
    "no attestation": (lambda _: None, "IsolationEvidenceMissing"),
    "an auditor that could not see": (lambda s: s.attest(BLIND, says={"verdict": "Unknown"}), "IsolationUnknown"),
    "too old": (lambda s: s.attest(age=timedelta(hours=30), lasts=timedelta(hours=72)), "IsolationEvidenceStale"),
    "of another cluster": (lambda s: s.attest(ca="sha256:" + "ca" * 32), "IsolationEvidenceMissing"),
    "an egress path": (closes, "IsolationBroken"),
}


def test_nothing_is_created_for_any_evidence_that_proves_nothing_and_pass_lets_it_through(
    sealed: SealedCluster, home: Deployments
):
    home.apply(a_share_model(endpoint={}))
    sealed.apply_audit()
    for case, (brought, reason) in UNPROVEN.items():
        brought(sealed)
        home.until("llama", reason)
        assert children(home) == [], case

    sealed.attest()
    home.until("llama", "Serving")
    assert len(children(home)) == 6


def test_a_probe_that_has_not_ended_is_waited_for(sealed: SealedCluster, home: Deployments):
    for node in sealed.nodes:
        sealed.api.merge(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {EGRESS: "silent"}}})
    try:
        sealed.apply_audit()
        sealed.attest()
        sealed.until("Unknown", "ProbePending")
        home.apply(a_model())
        home.until("llama", "IsolationEvidencePending")
        assert kstatus(home.get("llama")) == "InProgress", "a verdict may still come by itself"
        assert home.workload("llama") is None
    finally:
        for node in sealed.nodes:
            sealed.api.merge(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {EGRESS: None}}})
    home.until("llama", "Serving")


def test_report_starts_and_says_what_is_open_and_off_does_not_look(sealed: SealedCluster, home: Deployments):
    sealed.apply_audit()
    closes(sealed)
    home.apply(reporting(a_model("report")), changed(a_model("off"), isolation={"enforcement": "Off"}))
    for name, status, reason in (("report", "False", "IsolationBroken"), ("off", "Unknown", "IsolationNotEnforced")):
        home.until(name, "Serving")
        assert home.until(name, reason, "IsolationVerified")["status"] == status


# ---------------------------------------------------------------------- closing over what runs


def test_fail_ends_no_pod_and_starts_none_and_pass_catches_up(sealed: SealedCluster, serving: Deployments):
    before, since = uids(serving), newest(serving.api, serving.collection)

    closes(sealed)
    ready = serving.until("llama", "IsolationBroken")
    assert ready["message"].startswith("node subnet -> nat gateway -> internet")
    assert ready["message"].endswith("; the pods that run keep serving")
    assert kstatus(serving.get("llama")) == "Failed"
    assert serving.condition("llama", "Available")["status"] == "True"

    serving.change("llama", drainSeconds=9)
    condition = serving.until("llama", "IsolationBroken")
    assert "the change of the pods waits for it" in condition["message"]
    assert (grace(serving), uids(serving)) == (55, before)

    serving.change("llama", drainSeconds=5, replicas=4)
    serving.until("llama", "IsolationBroken")
    assert (replicas(serving), uids(serving)) == (2, before)

    serving.change("llama", replicas=1)
    serving.until("llama", "IsolationBroken")
    assert replicas(serving) == 1
    serving.wait("one pod less", lambda: len(serving.pods("llama")) == 1)
    assert uids(serving) < before

    serving.change("llama", replicas=3, drainSeconds=9)
    serving.until("llama", "IsolationBroken")
    sealed.attest()
    serving.until("llama", "Serving")
    assert (grace(serving), replicas(serving)) == (59, 3)
    assert not uids(serving) & before
    revisions_seen = revisions(serving.api, serving.collection, since, "llama")
    assert [line for revision in revisions_seen for line in contradictions(revision)] == []


def test_a_template_that_others_change_behind_a_closed_gate_is_corrected_at_once_and_starts_nothing(
    sealed: SealedCluster, serving: Deployments
):
    """By a member of system:masters, whom no policy keeps from it; `pods` are let in by nobody."""
    before, right = uids(serving), template(serving)
    closes(sealed)
    serving.until("llama", "IsolationBroken")
    more = {"name": "more", "image": right["spec"]["containers"][0]["image"]}
    path = f"/apis/apps/v1/namespaces/{serving.namespace}/deployments/llama"
    changed_by_others = {"containers": [*right["spec"]["containers"], more]}
    serving.api.merge(path, {"spec": {"template": {"spec": changed_by_others}}})

    serving.wait("the right template", lambda: template(serving) == right)
    serving.wait("what runs is what was there", lambda: uids(serving) <= before)
    assert replicas(serving) <= 2
    assert serving.condition("llama")["reason"] == "IsolationBroken"

    sealed.attest()
    serving.until("llama", "Serving")
    assert (template(serving), replicas(serving)) == (right, 2)


def template(home: Deployments) -> dict[str, Any]:
    live = home.workload("llama")
    assert live is not None
    pod_template: dict[str, Any] = live["spec"]["template"]
    return pod_template


def test_workload_that_is_deleted_behind_a_closed_gate_does_not_come_back_until_it_opens(
    sealed: SealedCluster, serving: Deployments
):
    sealed.attest(BLIND, says={"verdict": "Unknown"})
    serving.until("llama", "IsolationUnknown")

    serving.kubectl.within(serving.namespace)("delete", "deployment", "llama", "--wait=false")

    serving.wait("told", lambda: serving.condition("llama", "Available").get("reason") == "WorkloadNotCreated")
    assert serving.workload("llama") is None
    sealed.attest()
    serving.until("llama", "Serving")


def test_evidence_that_is_taken_away_closes_and_scales_nothing_up(sealed: SealedCluster, serving: Deployments):
    before = uids(serving)
    for attestation in sealed.api.get(ATTESTATIONS)["items"]:
        sealed.api.delete(f"{ATTESTATIONS}/{attestation['metadata']['name']}")
    serving.until("llama", "IsolationEvidenceMissing")
    serving.change("llama", replicas=3)
    serving.until("llama", "IsolationEvidenceMissing")
    assert (replicas(serving), uids(serving)) == (2, before)


# ---------------------------------------------------------------------- time


def test_a_deployment_may_ask_for_fresher_evidence_than_others(sealed: SealedCluster, home: Deployments):
    sealed.apply_audit()
    sealed.attest(age=timedelta(seconds=400))
    fresher = changed(a_model("fresher"), isolation={"maxEvidenceAgeSeconds": 300})
    home.apply(a_model("patient"), fresher)

    home.until("patient", "Serving")
    ready = home.until("fresher", "IsolationEvidenceStale")
    assert "is the oldest allowed" in ready["message"]
    assert home.workload("fresher") is None


def test_evidence_gets_too_old_for_one_deployment_by_itself(sealed: SealedCluster, home: Deployments):
    """Nothing happens in the cluster at that moment: the operator has to follow the clock."""
    sealed.apply_audit()
    sealed.attest(age=timedelta(seconds=285))
    home.apply(changed(a_model(), isolation={"maxEvidenceAgeSeconds": 300}))
    home.until("llama", "Serving")
    before = uids(home)
    home.until("llama", "IsolationEvidenceStale", timeout=30)
    assert sealed.status["verdict"] == "Pass"
    assert uids(home) == before


def test_no_deployment_may_accept_older_evidence_than_the_operator_s_configuration(
    sealed: SealedCluster, home: Deployments
):
    sealed.apply_audit()
    sealed.attest(age=timedelta(seconds=400))
    home.apply(changed(a_model("before"), isolation={"maxEvidenceAgeSeconds": 604800}))
    home.until("before", "Serving")
    sealed.operator.stop()
    folder, kubeconfig = sealed.operator.folder, sealed.operator.kubeconfig
    configuration = {**CONFIGURATION, "shares": SHARES, "maxEvidenceAgeSeconds": 300}
    strict = OperatorProcess(folder, kubeconfig, configuration, "strict")
    strict.start()
    try:
        judged = replace(home, operator=strict)
        judged.apply(changed(a_model("lenient"), isolation={"maxEvidenceAgeSeconds": 604800}))
        judged.until("lenient", "IsolationEvidenceStale")
        judged.until("before", "IsolationEvidenceStale")
        assert judged.workload("lenient") is None
        assert judged.pods("before")
    finally:
        strict.stop()
        sealed.operator.start()
    home.until("lenient", "Serving")


@pytest.mark.parametrize("requested", ["Off", "Report"])
def test_a_tenant_cannot_switch_the_gate_off(sealed: SealedCluster, home: Deployments, requested: str):
    """The configuration that ships: less than Enforce is raised to it, and the message says by what."""
    sealed.apply_audit()
    sealed.operator.stop()
    folder, kubeconfig = sealed.operator.folder, sealed.operator.kubeconfig
    configuration = {key: value for key, value in CONFIGURATION.items() if key != "isolation"} | {"shares": SHARES}
    shipped = OperatorProcess(folder, kubeconfig, configuration, "shipped")
    shipped.start()
    try:
        judged = replace(home, operator=shipped)
        judged.apply(changed(a_model(), isolation={"enforcement": requested}))
        ready = judged.until("llama", "EnforcementRaised")
        assert ready["status"] == "False"
        assert f"`isolation.enforcement` {requested} is raised to Enforce" in ready["message"]
        assert judged.workload("llama") is None
        assert judged.pods("llama") == []
    finally:
        shipped.stop()
        sealed.operator.start()

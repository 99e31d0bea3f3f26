"""The gate on a real API server: closed it makes no pod and ends none; the evidence is made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import OperatorProcess
from tests.controlplane.deployments import Deployments
from tests.controlplane.kstatus import contradictions, kstatus, newest, revisions
from tests.controlplane.operating import StartOperator
from tests.scenarios import a_baked_model, a_share_model, a_verdict, an_egress_audit, changed, reporting

AUDITS = "/apis/hermetic.dev/v1alpha1/egressaudits"
AUDIT = f"{AUDITS}/cluster"
CHILDREN = (
    ("v1", "serviceaccounts"),
    ("v1", "services"),
    ("v1", "persistentvolumeclaims"),
    ("apps/v1", "deployments"),
    ("networking.k8s.io/v1", "networkpolicies"),
    ("policy/v1", "poddisruptionbudgets"),
)


@dataclass(frozen=True)
class Audit:
    """The one EgressAudit of the cluster; the administrator writes its status in the auditor's place."""

    api: Api

    @property
    def generation(self) -> int:
        found: int = self.api.get(AUDIT)["metadata"]["generation"]
        return found

    def says(self, verdict: str, *, age: timedelta = timedelta(), **status: Any) -> None:
        """Judge the present generation; `evidence=` replaces parts of the evidence."""
        evidence = status.pop("evidence", {})
        whole = a_verdict(verdict, self.generation, age=age, **status)
        for source, fields in evidence.items():
            whole["evidence"][source] = None if fields is None else {**whole["evidence"][source], **fields}
        self.api.merge(f"{AUDIT}/status", {"status": whole})


@pytest.fixture
def audit(installed: None, api: Api) -> Iterator[Audit]:  # noqa: ARG001
    """An EgressAudit that has not been judged yet."""
    api.create(AUDITS, an_egress_audit())
    yield Audit(api)
    try:
        api.delete(AUDIT)
    except ApiError as error:
        if error.status != 404:
            raise


def a_model(name: str = "llama", **spec: Any) -> dict[str, Any]:
    return a_baked_model(name, **{"endpoint": {}, **spec})


def children(deployments: Deployments) -> list[str]:
    """Everything of ours in the namespace, and its volumes."""
    ours = {"labelSelector": "app.kubernetes.io/managed-by=hermetic"}
    found = []
    for group, plural in CHILDREN:
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        listed = deployments.api.get(f"{root}/namespaces/{deployments.namespace}/{plural}", **ours)["items"]
        found += [f"{plural}/{child['metadata']['name']}" for child in listed]
    volumes = deployments.api.get("/api/v1/persistentvolumes", **ours)["items"]
    mine = {"hermetic.dev/namespace": deployments.namespace}.items()
    return found + [v["metadata"]["name"] for v in volumes if mine <= v["metadata"]["labels"].items()]


def uids(deployments: Deployments) -> set[str]:
    return {pod["metadata"]["uid"] for pod in deployments.pods("llama")}


def grace(deployments: Deployments) -> int:
    live = deployments.workload("llama")
    assert live is not None
    seconds: int = live["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    return seconds


def replicas(deployments: Deployments) -> int:
    live = deployments.workload("llama")
    assert live is not None
    count: int = live["spec"]["replicas"]
    return count


@pytest.fixture
def serving(served: Deployments, audit: Audit) -> Deployments:
    """A model of two pods that serves behind an open gate."""
    audit.says("Pass")
    served.apply(a_model(replicas=2, drainSeconds=5))
    served.until("llama", "Serving")
    return served


# ---------------------------------------------------------------------- closed from the beginning


def test_without_evidence_nothing_at_all_is_created_and_it_says_why(served: Deployments):
    served.apply(a_share_model())

    ready = served.until("llama", "IsolationEvidenceMissing")

    assert children(served) == []
    assert "EgressAudit named 'cluster'" in ready["message"]
    isolation = served.condition("llama", "IsolationVerified")
    assert (isolation["status"], isolation["message"]) == ("Unknown", ready["message"])
    assert kstatus(served.get("llama")) == "Failed"


UNPROVEN = {
    "Unknown verdict": ("Unknown", {}, "IsolationUnknown"),
    "no probe": ("Pass", {"evidence": {"probe": None}}, "IsolationEvidenceMissing"),
    "no look inside": ("Pass", {"evidence": {"kubernetes": None}}, "IsolationEvidenceMissing"),
    "no attestation": ("Pass", {"evidence": {"azure": None}}, "IsolationEvidenceMissing"),
    "old": ("Pass", {"age": timedelta(hours=30)}, "IsolationEvidenceStale"),
    "from tomorrow": ("Pass", {"age": -timedelta(hours=30)}, "IsolationUnknown"),
    "a way out": ("Fail", {"message": "node subnet -> NAT gateway -> internet"}, "IsolationBroken"),
}


def test_nothing_is_created_for_any_evidence_that_proves_nothing_and_pass_lets_it_through(
    served: Deployments, audit: Audit
):
    served.apply(a_share_model(endpoint={}))
    served.until("llama", "IsolationEvidencePending")
    assert kstatus(served.get("llama")) == "InProgress", "a verdict may still come by itself"
    for verdict, fields, reason in UNPROVEN.values():
        audit.says(verdict, **fields)
        served.until("llama", reason)
        assert children(served) == [], reason

    audit.says("Pass")
    served.until("llama", "Serving")
    assert len(children(served)) == 6


def test_report_starts_and_says_what_is_open_and_off_does_not_look(served: Deployments, audit: Audit):
    audit.says("Fail", message="a way out")
    served.apply(reporting(a_model("report")), changed(a_model("off"), isolation={"enforcement": "Off"}))
    for name, isolation in (("report", ("False", "IsolationBroken")), ("off", ("Unknown", "IsolationNotEnforced"))):
        served.until(name, "Serving")
        found = served.condition(name, "IsolationVerified")
        assert (found["status"], found["reason"]) == isolation


# ---------------------------------------------------------------------- closing over what runs


def test_fail_ends_no_pod_and_starts_none_and_pass_catches_up(serving: Deployments, audit: Audit):
    before, since = uids(serving), newest(serving.api, serving.collection)

    audit.says("Fail", message="node subnet -> public address -> internet")
    ready = serving.until("llama", "IsolationBroken")
    assert ready["message"] == "node subnet -> public address -> internet; the pods that run keep serving"
    assert kstatus(serving.get("llama")) == "Failed"
    assert serving.condition("llama", "Available")["status"] == "True"

    serving.change("llama", drainSeconds=9)
    held = serving.until("llama", "IsolationBroken")
    assert "the change of the pods waits for it" in held["message"]
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
    audit.says("Pass")
    serving.until("llama", "Serving")
    assert (grace(serving), replicas(serving)) == (59, 3)
    assert not uids(serving) & before
    seen = revisions(serving.api, serving.collection, since, "llama")
    assert [line for one in seen for line in contradictions(one)] == []


def test_workload_that_somebody_deletes_behind_a_closed_gate_does_not_come_back_until_it_opens(
    serving: Deployments, audit: Audit
):
    audit.says("Unknown", message="a peering could not be read")
    serving.until("llama", "IsolationUnknown")

    serving.kubectl.within(serving.namespace)("delete", "deployment", "llama", "--wait=false")

    serving.wait("told", lambda: serving.condition("llama", "Available").get("reason") == "WorkloadNotCreated")
    assert serving.workload("llama") is None
    audit.says("Pass")
    serving.until("llama", "Serving")


def test_audit_that_is_deleted_closes_the_gate(serving: Deployments):
    before = uids(serving)
    serving.api.delete(AUDIT)
    serving.until("llama", "IsolationEvidenceMissing")
    assert uids(serving) == before


# ---------------------------------------------------------------------- time


def test_evidence_that_expires_closes_the_gate_by_itself(serving: Deployments, audit: Audit):
    """Nothing happens in the cluster at that moment: the operator has to look at the clock."""
    before = uids(serving)
    end = datetime.now(UTC) + timedelta(seconds=4)
    stamp = end.strftime("%Y-%m-%dT%H:%M:%SZ")
    audit.says("Pass", evidence={"azure": {"expiresAt": stamp}})
    assert serving.condition("llama")["status"] == "True"

    ready = serving.until("llama", "IsolationEvidenceStale", timeout=20)

    assert ready["message"].startswith(f"the evidence expired at {stamp}")
    assert datetime.now(UTC) >= end.replace(microsecond=0)
    assert uids(serving) == before
    serving.change("llama", replicas=3)
    serving.until("llama", "IsolationEvidenceStale")
    assert replicas(serving) == 2
    audit.says("Pass")
    serving.until("llama", "Serving")


def test_verdict_about_an_earlier_generation_of_the_audit_does_not_count(serving: Deployments, audit: Audit):
    """Other trusted keys or exceptions make another question of it."""
    audit.api.merge(AUDIT, {"spec": {"profile": "Filtered"}})
    assert audit.generation == 2

    serving.until("llama", "IsolationEvidencePending")
    serving.apply(a_model("another"))
    serving.until("another", "IsolationEvidencePending")
    assert serving.workload("another") is None

    audit.says("Pass")
    serving.until("llama", "Serving")
    serving.until("another", "Serving")


def test_a_deployment_may_ask_for_fresher_evidence_than_others(served: Deployments, audit: Audit):
    audit.says("Pass", age=timedelta(seconds=400))
    fresher = changed(a_model("fresher"), isolation={"maxEvidenceAgeSeconds": 300})
    served.apply(a_model("patient"), fresher)

    served.until("patient", "Serving")
    ready = served.until("fresher", "IsolationEvidenceStale")
    assert "is the oldest allowed" in ready["message"]
    assert served.workload("fresher") is None


def test_no_deployment_may_accept_older_evidence_than_the_operator_s_configuration(
    served: Deployments, hermetic: OperatorProcess, start_operator: StartOperator, audit: Audit
):
    audit.says("Pass", age=timedelta(seconds=400))
    served.apply(changed(a_model("before"), isolation={"maxEvidenceAgeSeconds": 604800}))
    served.until("before", "Serving")
    hermetic.stop()
    strict = start_operator(maxEvidenceAgeSeconds=300)
    try:
        judged = replace(served, operator=strict)
        judged.apply(changed(a_model("lenient"), isolation={"maxEvidenceAgeSeconds": 604800}))
        judged.until("lenient", "IsolationEvidenceStale")
        judged.until("before", "IsolationEvidenceStale")
        assert judged.workload("lenient") is None
        assert judged.pods("before")
    finally:
        strict.stop()
        hermetic.start()
    served.until("lenient", "Serving")

"""Pods that have not started when the gate closes: the Deployment is applied so that its controller removes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hermetic.kube.projections import lean_pod
from hermetic.objects.names import TEMPLATE_LABEL
from hermetic.objects.workloads.workload_kind import HOLD
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import status
from hermetic.plan.tampering.drift import intent
from hermetic.plan.waiting_pods import has_started
from hermetic.plan.writes import Plan
from tests.planning import planned, running
from tests.scenarios import Manifest, a_baked_model, changed, reporting
from tests.snapshots import NOW, carried_out, conditions, evidence, spec_of

FAIL = evidence("Fail")
ENGINE_WAITS: dict[str, Any] = {"name": "engine", "state": {"waiting": {"reason": "PodInitializing"}}}
WAITS: dict[str, dict[str, Any]] = {
    "no node": {"phase": "Pending"},
    "pulling": {"phase": "Pending", "containerStatuses": [ENGINE_WAITS]},
    "verifying weights": {
        "phase": "Pending",
        "initContainerStatuses": [{"name": "verify-weights", "state": {"running": {}}}],
        "containerStatuses": [ENGINE_WAITS],
    },
    "a sidecar of others runs": {
        "phase": "Pending",
        "containerStatuses": [{"name": "proxy", "state": {"running": {}}}, ENGINE_WAITS],
    },
    "no status yet": {},
}
STARTED: dict[str, dict[str, Any]] = {
    "running": {"phase": "Running"},
    "engine runs, its sidecar is pulled": {
        "phase": "Pending",
        "containerStatuses": [{"name": "engine", "state": {"running": {}}}],
    },
    "restarts in place": {
        "phase": "Running",
        "containerStatuses": [{"name": "engine", "restartCount": 3, "state": {"waiting": {}}}],
    },
    "init containers run again after the node started anew": {
        "phase": "Pending",
        "containerStatuses": [{**ENGINE_WAITS, "lastState": {"terminated": {"exitCode": 255}}}],
    },
}


def a_pod(snapshot: ClusterSnapshot, number: int, state: dict[str, Any], replica_set: str = "5d9c") -> Manifest:
    """A pod of the live Deployment, as the store keeps it."""
    template = snapshot.workload.template
    name = f"{snapshot.owner.name}-{replica_set}-{number}"
    owners = [{"kind": "ReplicaSet", "name": f"{snapshot.owner.name}-{replica_set}", "controller": True}]
    metadata = {"name": name, "uid": name, "labels": template["metadata"]["labels"], "ownerReferences": owners}
    return lean_pod({"metadata": metadata, "spec": template["spec"], "status": state})


def a_model(**spec: Any) -> Manifest:
    return a_baked_model("llama", **{"replicas": 3, **spec})


def with_pods(*states: dict[str, Any], manifest: Manifest | None = None, **observations: Any) -> ClusterSnapshot:
    """Three replicas are asked for; pods in these states exist."""
    serving = sum(state.get("phase") == "Running" for state in states)
    snapshot = running(manifest or a_model(), serving, **{"evidence": FAIL, **observations})
    return replace(snapshot, pods=tuple(a_pod(snapshot, number, state) for number, state in enumerate(states)))


def deployments(decided: Plan) -> list[dict[str, Any]]:
    return [dict(change.manifest) for change in decided.apply if change.manifest["kind"] == "Deployment"]


@pytest.mark.parametrize("state", STARTED.values(), ids=list(STARTED))
def test_pod_whose_engine_has_started_once_counts_as_started_and_stays(state):
    snapshot = with_pods(*[state] * 3)
    assert all(has_started(pod) for pod in snapshot.pods)
    assert deployments(planned(a_model(), snapshot)) == []


@pytest.mark.parametrize("started", [0, 1, 2])
@pytest.mark.parametrize("state", WAITS.values(), ids=list(WAITS))
@pytest.mark.parametrize("gate_evidence", [FAIL, evidence("Unknown"), None], ids=["Fail", "Unknown", "no evidence"])
def test_closed_gate_leaves_the_started_pods_and_asks_for_no_other(gate_evidence, state, started):
    snapshot = with_pods(*[STARTED["running"]] * started, *[state] * (3 - started), evidence=gate_evidence)
    decided = planned(a_model(), snapshot)
    assert [deployment["spec"]["replicas"] for deployment in deployments(decided)] == [started]
    assert deployments(decided)[0]["spec"]["template"] == snapshot.workload.template
    after = replace(carried_out(snapshot, decided), pods=snapshot.pods[:started])
    assert deployments(planned(a_model(), after)) == []
    opened = planned(a_model(), replace(after, evidence=evidence(confirmed_at=NOW)))
    assert [deployment["spec"]["replicas"] for deployment in deployments(opened)] == [3]


def test_rolling_update_changes_to_a_template_that_starts_nothing_and_keeps_what_is_available():
    snapshot = with_pods(STARTED["running"], STARTED["running"])
    new = a_pod(snapshot, 9, WAITS["pulling"], replica_set="77ff")
    (waiting_deployment,) = deployments(planned(a_model(), replace(snapshot, pods=(*snapshot.pods, new))))
    assert waiting_deployment["spec"]["replicas"] == 2
    assert waiting_deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert waiting_deployment["spec"]["template"]["spec"]["schedulerName"] == HOLD
    assert waiting_deployment["spec"]["template"]["metadata"]["labels"][TEMPLATE_LABEL] == HOLD


def test_rolling_update_that_is_held_is_left_alone_until_the_gate_opens():
    snapshot = with_pods(STARTED["running"], STARTED["running"])
    new = a_pod(snapshot, 9, WAITS["pulling"], replica_set="77ff")
    rolling = replace(snapshot, pods=(*snapshot.pods, new))
    waiting_snapshot = carried_out(rolling, planned(a_model(), rolling))
    of_the_hold = a_pod(waiting_snapshot, 10, WAITS["no node"], replica_set="88aa")
    older = ({**pod, "metadata": {**pod["metadata"], "labels": {TEMPLATE_LABEL: "0"}}} for pod in snapshot.pods)
    waiting_snapshot = replace(waiting_snapshot, pods=(*older, of_the_hold))
    assert deployments(planned(a_model(), waiting_snapshot)) == []
    (opened,) = deployments(planned(a_model(), replace(waiting_snapshot, evidence=evidence(confirmed_at=NOW))))
    assert (opened["spec"]["replicas"], "schedulerName" in opened["spec"]["template"]["spec"]) == (3, False)


def test_change_that_waits_for_the_gate_does_not_keep_pods_of_the_earlier_template_waiting():
    snapshot = with_pods(STARTED["running"], WAITS["pulling"])
    decided = planned(a_model(drainSeconds=9), snapshot)
    (applied,) = deployments(decided)
    assert (applied["spec"]["replicas"], decided.held) == (1, True)
    assert applied["spec"]["template"] == snapshot.workload.template


def test_spec_that_another_gate_blocks_has_its_waiting_pods_removed_too():
    vllm = a_model()["spec"]["engine"]["vllm"]
    foreign = changed(a_model(), engine={"vllm": {**vllm, "image": "elsewhere.example/vllm@sha256:" + "a" * 64}})
    snapshot = with_pods(STARTED["running"], WAITS["verifying weights"])
    (applied,) = deployments(planned(foreign, snapshot))
    assert applied["spec"]["replicas"] == 1
    proven = replace(snapshot, evidence=evidence(confirmed_at=NOW))
    assert deployments(planned(foreign, proven)) == []


def test_autoscaler_that_asks_for_more_or_fewer_pods_meanwhile_starts_none_and_keeps_what_it_asks_for():
    snapshot = with_pods(STARTED["running"], STARTED["running"], WAITS["no node"])
    for replicas, expected in ((9, 2), (2, 2), (1, 1), (0, 0)):
        (applied,) = deployments(planned(a_model(replicas=replicas), snapshot))
        assert applied["spec"]["replicas"] == expected


def test_waiting_pods_stay_where_the_gate_is_reported_only_or_more_pods_exist_than_are_read():
    snapshot = with_pods(STARTED["running"], WAITS["pulling"], manifest=reporting(a_model()))
    assert deployments(planned(reporting(a_model()), snapshot)) == []
    assert deployments(planned(a_model(), replace(with_pods(WAITS["pulling"]), pods_truncated=True))) == []


def test_drift_back_off_does_not_delay_the_removal_of_pods_that_wait():
    snapshot = with_pods(STARTED["running"], WAITS["pulling"])
    (applied,) = deployments(planned(a_model(), snapshot))
    backed_off = {("Deployment", snapshot.owner.name): frozenset({intent(applied)})}
    assert deployments(planned(a_model(), replace(snapshot, backed_off=backed_off))) == [applied]


def test_status_says_how_many_pods_wait_for_the_proof():
    snapshot = with_pods(STARTED["running"], WAITS["pulling"], WAITS["no node"])
    decided = planned(a_model(), snapshot)
    ready = conditions(status(spec_of(a_model()), snapshot, decided, (), NOW))["Ready"]
    assert ready["reason"] == "IsolationBroken"
    assert ready["message"].endswith("; 2 of 3 pods have not started and start by themselves when isolation is proven")

"""An autoscaled model: its HorizontalPodAutoscaler, who writes `replicas`, and what the status says of it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.kube.store import Store
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import status
from tests.commandline import hermetic
from tests.planning import edited, planned, running, written
from tests.scenarios import Manifest, a_nim_model, a_share_model, an_sglang_model, changed
from tests.snapshots import NOW, a_snapshot, carried_out, conditions, evidence, living, rendered, spec_of

BOUNDS = {"minReplicas": 2, "maxReplicas": 4}
SCALER = "HorizontalPodAutoscaler"


def a_model(replicas: int = 1, **spec: Any) -> Manifest:
    """As the API server stores it: with the default of `replicas`, or what the autoscaler wrote."""
    return a_share_model(autoscaling=BOUNDS, replicas=replicas, **spec)


@pytest.mark.parametrize(("stored", "pods"), [(1, 2), (2, 2), (3, 3), (4, 4), (9, 4), (0, 0)], ids=str)
def test_number_of_pods_is_what_the_autoscaler_wrote_within_its_bounds(stored: int, pods: int) -> None:
    assert rendered(a_model(stored))["Deployment"]["spec"]["replicas"] == pods


def test_autoscaler_scales_the_model_and_waits_half_an_hour_before_it_removes_a_pod() -> None:
    spec = rendered(a_model())[SCALER]["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "hermetic.dev/v1alpha1", "kind": "ModelDeployment", "name": "llama"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 4)
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 1800
    assert spec["behavior"]["scaleDown"]["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 300}]


@pytest.mark.parametrize(
    ("manifest", "metric"),
    [
        (a_share_model(), "vllm:num_requests_waiting"),
        (an_sglang_model(), "sglang:num_queue_reqs"),
        (a_nim_model(), "vllm:num_requests_waiting"),
        (
            changed(a_nim_model(), engine={"nim": {**a_nim_model()["spec"]["engine"]["nim"], "line": "1.15"}}),
            "num_requests_waiting",
        ),
    ],
    ids=["vllm", "sglang", "nim of line 2", "nim of line 1"],
)
def test_metric_is_the_queue_of_the_engine(manifest: Manifest, metric: str) -> None:
    (source,) = rendered(changed(manifest, autoscaling=BOUNDS))[SCALER]["spec"]["metrics"]
    assert source == {
        "type": "Pods",
        "pods": {"metric": {"name": metric}, "target": {"type": "AverageValue", "averageValue": "5"}},
    }


def test_sglang_serves_metrics_once_it_is_autoscaled() -> None:
    def arguments(manifest: Manifest) -> list[str]:
        (engine,) = rendered(manifest)["Deployment"]["spec"]["template"]["spec"]["containers"]
        return list(engine["args"])

    assert "--enable-metrics" in arguments(an_sglang_model(autoscaling=BOUNDS))
    assert "--enable-metrics" not in arguments(an_sglang_model())


def test_budget_is_there_before_the_autoscaler_adds_the_second_pod() -> None:
    assert "PodDisruptionBudget" in rendered(a_share_model(autoscaling={"maxReplicas": 2}))
    assert "PodDisruptionBudget" not in rendered(a_share_model(autoscaling={"maxReplicas": 1}))


def test_number_that_the_autoscaler_wrote_is_written_to_the_deployment_alone() -> None:
    assert written(planned(a_model(3), running(a_model(2), 2))) == [("Deployment", "changed")]


def test_autoscaler_goes_with_the_field_and_the_number_of_pods_stays() -> None:
    decided = planned(a_share_model(replicas=3), running(a_model(3), 3))
    assert [(gone.kind.kind, gone.name) for gone in decided.delete] == [(SCALER, "llama")]
    assert decided.apply == ()


def test_autoscaler_of_another_target_is_corrected() -> None:
    def redirect(live: Manifest) -> None:
        live["spec"]["scaleTargetRef"]["name"] = "other"

    assert written(planned(a_model(2), edited(running(a_model(2), 2), SCALER, redirect))) == [(SCALER, "drifted")]


def test_queue_at_every_bound_is_not_taken_for_drift() -> None:
    manifest = a_model(2)
    manifest["spec"]["autoscaling"] = {**BOUNDS, "queuedRequests": 999}
    assert planned(manifest, running(manifest, 2)).apply == ()


# ---------------------------------------------------------------------- behind a closed gate


def behind_a_closed_gate(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return replace(snapshot, evidence=evidence("Fail", message="an egress path"))


def test_autoscaler_adds_no_pod_behind_a_closed_gate() -> None:
    decided = planned(a_model(4), behind_a_closed_gate(running(a_model(2), 2)))
    assert written(decided) == []


def test_autoscaler_removes_pods_behind_a_closed_gate() -> None:
    decided = planned(a_model(2), behind_a_closed_gate(running(a_model(4), 4)))
    assert [(change.manifest["kind"], change.manifest["spec"]["replicas"]) for change in decided.apply] == [
        ("Deployment", 2)
    ]


# ---------------------------------------------------------------------- the condition

READ = {
    "type": "ScalingActive", "status": "True", "reason": "ValidMetricFound",
    "message": "the HPA was able to successfully calculate a replica count from pods metric vllm:num_requests_waiting",
}  # fmt: skip
ABLE = {
    "type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale",
    "message": "recommended size matches current size",
}  # fmt: skip


def not_active(reason: str, message: str) -> dict[str, str]:
    return {"type": "ScalingActive", "status": "False", "reason": reason, "message": message}


# As the controller words them: kubernetes, pkg/controller/podautoscaler/horizontal.go and metrics/client.go.
NO_API = not_active(
    "FailedGetPodsMetric",
    "the HPA was unable to compute the replica count: unable to get metric vllm:num_requests_waiting: unable to fetch "
    "metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered",
)
NO_METRIC = not_active(
    "FailedGetPodsMetric",
    "the HPA was unable to compute the replica count: unable to get metric vllm:num_requests_waiting: unable to fetch "
    "metrics from custom metrics API: the server could not find the metric vllm:num_requests_waiting for pods",
)
AMBIGUOUS = not_active(
    "AmbiguousSelector", "pods by selector hermetic.dev/modeldeployment=llama are controlled by multiple HPAs: [a, b]"
)
DISABLED = not_active("ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
UNABLE = {
    "type": "AbleToScale", "status": "False", "reason": "FailedGetScale",
    "message": "the HPA controller was unable to get the target's current scale: not found",
}  # fmt: skip
LIMITED = {
    "type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas",
    "message": "the desired replica count is more than the maximum replica count",
}  # fmt: skip


def scaled(snapshot: ClusterSnapshot, *reported: dict[str, str]) -> ClusterSnapshot:
    """The snapshot once the autoscaler's controller has reported this."""
    return edited(snapshot, SCALER, lambda live: live.update(status={"conditions": list(reported)}))


def condition_of(manifest: Manifest, snapshot: ClusterSnapshot) -> dict[str, Any]:
    spec = spec_of(manifest)
    decided = plan(spec, snapshot, NOW)
    reported = status(spec, carried_out(snapshot, decided), decided, (), NOW)
    return dict(conditions(reported)["AutoscalerActive"])


@pytest.mark.parametrize(
    ("reported", "truth", "reason", "quoted"),
    [
        ((ABLE, READ), "True", "QueueObserved", "2 to 4 pods"),
        ((ABLE, READ, LIMITED), "True", "QueueObserved", "more than `maxReplicas`"),
        ((), "Unknown", "AutoscalerPending", "not reported"),
        ((ABLE,), "Unknown", "AutoscalerPending", "not reported"),
        ((ABLE, NO_API), "False", "QueueMetricUnavailable", "no custom metrics API (custom.metrics.k8s.io) registered"),
        ((ABLE, NO_METRIC), "False", "QueueMetricUnavailable", "could not find the metric vllm:num_requests_waiting"),
        ((ABLE, AMBIGUOUS), "False", "AutoscalerNotScaling", "multiple HPAs"),
        ((UNABLE,), "False", "AutoscalerNotScaling", "FailedGetScale"),
        ((ABLE, {**READ, "status": "Unknown"}), "False", "AutoscalerNotScaling", "ValidMetricFound"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_condition_repeats_what_the_autoscaler_reports(
    reported: tuple[dict[str, str], ...], truth: str, reason: str, quoted: str
) -> None:
    condition = condition_of(a_model(2), scaled(running(a_model(2), 2), *reported))
    assert (condition["status"], condition["reason"]) == (truth, reason)
    assert quoted in condition["message"]


def test_missing_metric_names_the_command_that_reads_it() -> None:
    message = condition_of(a_model(2), scaled(running(a_model(2), 2), ABLE, NO_API))["message"]
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/inference/pods/*/vllm:num_requests_waiting"
    assert message.endswith(f"kubectl get --raw '{path}'")


@pytest.mark.parametrize("reported", [NO_API, NO_METRIC], ids=["no adapter", "no metric"])
def test_metric_is_not_missed_before_a_pod_serves(reported: dict[str, str]) -> None:
    """A model loads its weights for minutes: its first pods have no metric, and nothing is wrong."""
    loading = scaled(running(a_model(2), 2), ABLE, reported)
    loading = edited(loading, "Deployment", lambda live: live["status"].update(availableReplicas=0))
    condition = condition_of(a_model(2), loading)
    assert (condition["status"], condition["reason"]) == ("Unknown", "AutoscalerPending")


def test_model_that_is_scaled_to_zero_pauses_its_autoscaler() -> None:
    condition = condition_of(a_model(0), scaled(running(a_model(0), 0), ABLE, DISABLED))
    assert (condition["status"], condition["reason"]) == ("False", "AutoscalerPaused")


def test_growth_that_a_closed_gate_holds_is_reported_with_the_reason_of_the_gate() -> None:
    snapshot = behind_a_closed_gate(scaled(running(a_model(2), 2), ABLE, READ))
    condition = condition_of(a_model(4), snapshot)
    assert (condition["status"], condition["reason"]) == ("False", "GrowthHeld")
    assert "asks for 4 pods; the Deployment keeps 2" in condition["message"]


def test_autoscaler_that_is_not_there_is_unknown_and_a_model_without_one_has_no_condition() -> None:
    spec = spec_of(a_model())
    decided = plan(spec, a_snapshot(), NOW)
    condition_by_type = conditions(status(spec, a_snapshot(), decided, (), NOW))
    assert condition_by_type["AutoscalerActive"]["reason"] == "AutoscalerPending"
    fixed = spec_of(a_share_model())
    assert "AutoscalerActive" not in conditions(status(fixed, a_snapshot(), decided, (), NOW))


def test_autoscaler_without_its_metric_leaves_the_model_ready() -> None:
    """It serves with the pods that it has."""
    snapshot = scaled(running(a_model(2), 2), ABLE, NO_API)
    spec = spec_of(a_model(2))
    decided = plan(spec, snapshot, NOW)
    assert conditions(status(spec, snapshot, decided, (), NOW))["Available"]["status"] == "True"


# ---------------------------------------------------------------------- what is kept of it


def test_present_value_of_the_metric_wakes_no_reconcile_and_a_condition_does() -> None:
    """The controller writes the status of each HorizontalPodAutoscaler every 15 seconds."""
    store = Store(Configuration())
    live = living(rendered(a_model())[SCALER])

    def affected(version: int, **reported: Any) -> frozenset[tuple[str, str]]:
        manifest = copy.deepcopy(live)
        manifest["metadata"]["resourceVersion"] = str(version)
        return store.put({**manifest, "status": {"conditions": [{**READ, "lastTransitionTime": "T"}], **reported}})

    assert affected(200) == {("inference", "llama")}
    current = {"type": "Pods", "pods": {"current": {"averageValue": "3"}, "metric": {"name": "queue"}}}
    assert affected(201, currentMetrics=[current], currentReplicas=2) == frozenset()
    assert affected(202, conditions=[{**READ, "status": "False"}]) == {("inference", "llama")}


# ---------------------------------------------------------------------- the manifest in Git


@pytest.mark.parametrize("command", ["validate", "render", "plan"])
def test_manifest_with_replicas_and_autoscaling_is_refused(command: str) -> None:
    ran = hermetic(command, "-f", "-", stdin=json.dumps(a_model(3)))
    assert ran.code == 2
    assert "spec.replicas: 3: must be absent with `autoscaling`" in ran.err + ran.out


def test_manifest_without_replicas_is_rendered_with_its_autoscaler() -> None:
    ran = hermetic("render", "-f", "-", stdin=json.dumps(a_share_model(autoscaling=BOUNDS)))
    assert ran.code == 0
    assert "kind: HorizontalPodAutoscaler" in ran.out


def test_object_that_was_read_from_a_cluster_may_have_both() -> None:
    live = a_model(3)
    live["metadata"]["uid"] = "7d3f9c52-0f5e-4c0f-9d0a-6f1f3f8f2b11"
    assert hermetic("validate", "-f", "-", stdin=json.dumps(live)).code == 0


@pytest.mark.parametrize("word", ["AutoscalerActive", "QueueMetricUnavailable", "GrowthHeld", "AutoscalerPaused"])
def test_every_word_of_the_condition_is_explained(word: str) -> None:
    assert hermetic("explain", word).code == 0

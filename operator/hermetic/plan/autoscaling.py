"""Whether the autoscaler of a model works: the condition AutoscalerActive, in the words of the HorizontalPodAutoscaler.

Its conditions: AbleToScale (it may read and write the scale of its target), ScalingActive (it can compute a number of
pods), ScalingLimited (the number is beyond a bound). Source: kubernetes.io, HorizontalPodAutoscaler Walkthrough,
Appendix: Horizontal Pod Autoscaler status conditions; reasons in pkg/controller/podautoscaler/horizontal.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.condition_updates import ConditionUpdate, condition_of
from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.engines.registry import engine_of
from hermetic.kinds import HORIZONTAL_POD_AUTOSCALER
from hermetic.plan.child_states import is_ours
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.writes import Plan

_KIND = ConditionType.AUTOSCALER_ACTIVE
METRIC_NOT_READ = frozenset({"FailedGetPodsMetric", "InvalidMetricSourceType"})
PAUSED = "ScalingDisabled"
AT_THE_BOUND = "TooManyReplicas"


def autoscaler_active(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, plan: Plan) -> ConditionUpdate | None:
    """The condition for a spec with `autoscaling`; None for one without."""
    if spec.autoscaling is None:
        return None
    live = snapshot.child(HORIZONTAL_POD_AUTOSCALER)
    if live is None or not is_ours(live, snapshot.owner):
        return _update("Unknown", Reason.AUTOSCALER_PENDING, "the HorizontalPodAutoscaler does not exist yet")
    status = live.get("status") or {}
    able, active = condition_of(status, "AbleToScale"), condition_of(status, "ScalingActive")
    if able is not None and able["status"] == "False":
        return _update("False", Reason.AUTOSCALER_NOT_SCALING, f"the autoscaler cannot scale: {_quoted(able)}")
    if active is None:
        return _update("Unknown", Reason.AUTOSCALER_PENDING, "the autoscaler has not reported yet")
    if active["status"] != "True":
        return _inactive(spec, snapshot, active)
    return _growth_held(spec, snapshot, plan) or _active(spec, status)


def _inactive(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, active: Mapping[str, Any]) -> ConditionUpdate:
    if active["reason"] == PAUSED:
        return _update("False", Reason.AUTOSCALER_PAUSED, "`replicas` is 0, which pauses the autoscaler")
    if active["reason"] not in METRIC_NOT_READ:
        return _update("False", Reason.AUTOSCALER_NOT_SCALING, f"the autoscaler computes nothing: {_quoted(active)}")
    if snapshot.workload.serving_pods == 0:
        return _update("Unknown", Reason.AUTOSCALER_PENDING, f"no pod serves, so no queue is read: {_quoted(active)}")
    metric = engine_of(spec).queue_metric(spec)
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{snapshot.owner.namespace}/pods/*/{metric}"
    message = (
        f"the autoscaler cannot read the queue, and the number of pods stays as it is: {_quoted(active)}; a metrics "
        f"adapter must serve the metric '{metric}' of the pods in custom.metrics.k8s.io. "
        f"Read it: kubectl get --raw '{path}'"
    )
    return _update("False", Reason.QUEUE_METRIC_UNAVAILABLE, message)


def _growth_held(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, plan: Plan) -> ConditionUpdate | None:
    """Behind a closed gate the workload keeps its size, whatever the autoscaler asks for."""
    workload = snapshot.workload
    if plan.blocked is None or workload.live is None or spec.wanted_replicas <= workload.replicas:
        return None
    message = (
        f"the autoscaler asks for {spec.wanted_replicas} pods; the {workload.kind_name} keeps {workload.replicas}: "
    )
    return _update("False", Reason.GROWTH_HELD, message + plan.blocked.message)


def _active(spec: ModelDeploymentSpec, status: Mapping[str, Any]) -> ConditionUpdate:
    assert spec.autoscaling is not None  # noqa: S101 - the caller has seen it
    bounds = f"{spec.autoscaling.min_replicas} to {spec.autoscaling.max_replicas} pods"
    message = f"{bounds}, {spec.wanted_replicas} asked for, by '{engine_of(spec).queue_metric(spec)}'"
    limited = condition_of(status, "ScalingLimited")
    if limited is not None and limited["status"] == "True" and limited["reason"] == AT_THE_BOUND:
        message += "; the queue asks for more than `maxReplicas`"
    return _update("True", Reason.QUEUE_OBSERVED, message)


def _quoted(condition: Mapping[str, Any]) -> str:
    return f"{condition['reason']}: {condition['message']}"


def _update(truth: str, reason: Reason, message: str) -> ConditionUpdate:
    return ConditionUpdate(_KIND, truth, reason, message)

"""The condition AcceleratorsHealthy and `status.accelerators`: results of the checks, faults of nodes, and floors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hermetic.api.accelerator_reasons import AcceleratorReason
from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.api.text import first_of
from hermetic.objects.accelerator_checks import is_checked
from hermetic.plan.accelerator_floors import LowRate, low_rates, shown_rates
from hermetic.plan.accelerator_results import (
    SEVERITY,
    AcceleratorFinding,
    AcceleratorResult,
    CheckedPod,
)
from hermetic.plan.preflight import preflight_policy
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.runtime_drift import running
from hermetic.sizing.catalogue import sizes
from hermetic.sizing.placement import Listing, offer_of
from hermetic.sizing.slices import WHOLE_GPUS

MOST_SHOWN = 16
"""Pods in the status."""
_KIND = ConditionType.ACCELERATORS_HEALTHY
_CATEGORY = "Resource.Hpc.Unhealthy."
_HEALTH_CATEGORIES: Mapping[AcceleratorReason, str] = {
    AcceleratorReason.GPU_MISSING: "HpcMissingGpu",
    AcceleratorReason.ROW_REMAP_FAILED: "HpcRowRemapFailure",
    AcceleratorReason.ROW_REMAP_PENDING: "HpcRowRemapFailure",
    AcceleratorReason.ROWS_REMAPPED: "HpcRowRemapFailure",
    AcceleratorReason.NVLINK_INACTIVE: "NvLink",
    AcceleratorReason.ACCELERATOR_NOT_RESPONDING: "UnhealthyGPUNvidiasmi",
}
"""Categories of Azure's Guest Health Reporting, by which a ticket is filed
(https://learn.microsoft.com/azure/azure-impact-reporting/guest-health-impact-categories)."""
_OTHER_CATEGORY = "HpcGenericFailure"


def accelerators_healthy(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, checked: Sequence[CheckedPod]
) -> ConditionUpdate:
    """The condition: faults first, then what is not known. Only results of every kind of check make it True."""
    pods = _by_severity(checked)
    return (
        _node_fault(snapshot)
        or _fault(pods)
        or _below_floor(spec, snapshot, pods)
        or _not_known(spec, snapshot, pods, [pod.name for pod in checked if pod.is_altered])
        or _passed(spec, snapshot, pods)
    )


def accelerators(checked: Sequence[CheckedPod]) -> list[dict[str, Any]]:
    """`status.accelerators`: the results that count, faults first, then the newest pods."""
    results = [(pod, pod.result) for pod in _by_severity(checked) if pod.result is not None]
    return [_as_status(pod, result) for pod, result in results[:MOST_SHOWN]]


def fault_message(pod: str, node: str, finding: AcceleratorFinding, more: int) -> str:
    """What is wrong with which GPU of which node, and what to do."""
    further = f", and {more} more" if more else ""
    category = _CATEGORY + _HEALTH_CATEGORIES.get(finding.reason, _OTHER_CATEGORY)
    return (
        f"pod '{pod}' on node '{node}': {finding}{further}; a report to Azure has the category {category}; "
        f"keep other pods off the node: kubectl cordon {node}"
    )


def result_fault(pod: str, node: str, result: AcceleratorResult) -> tuple[AcceleratorReason, str] | None:
    """Reason and message of the first fault in a result; None without one."""
    if result.verdict != "Fail":
        return None
    finding = result.findings[0]
    return finding.reason, fault_message(pod, node, finding, len(result.findings) + result.omitted - 1)


def _by_severity(checked: Sequence[CheckedPod]) -> list[CheckedPod]:
    """Those whose result counts."""
    newest_first = sorted((pod for pod in checked if not pod.is_altered), key=lambda pod: pod.created, reverse=True)
    return sorted(newest_first, key=lambda pod: SEVERITY.index(pod.result.verdict if pod.result else "Unknown"))


def _node_fault(snapshot: ClusterSnapshot) -> ConditionUpdate | None:
    names = {str((pod.get("spec") or {}).get("nodeName") or "") for pod in running(snapshot)}
    faulty = sorted((node for node in snapshot.nodes if node.name in names and node.faults), key=lambda node: node.name)
    if not faulty:
        return None
    messages = [f"node '{node.name}' has the condition {' and '.join(node.faults)}" for node in faulty]
    message = f"{first_of(messages, 3, '; ')}; keep other pods off the node: kubectl cordon {faulty[0].name}"
    return _update("False", AcceleratorReason.NODE_REPORTS_FAULT, message)


def _fault(pods: list[CheckedPod]) -> ConditionUpdate | None:
    for pod in pods:
        fault = result_fault(pod.name, pod.node, pod.result) if pod.result is not None else None
        if fault is not None:
            return _update("False", *fault)
    return None


def _below_floor(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, pods: list[CheckedPod]
) -> ConditionUpdate | None:
    for pod in pods:
        low = [str(rate) for rate in _low_rates(spec, snapshot, pod) if rate.confirmed]
        if low:
            return _update(
                "False", AcceleratorReason.BELOW_FLOOR, f"{pod}: {first_of(low, 3)}; kubectl cordon {pod.node}"
            )
    return None


def _low_rates(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, pod: CheckedPod) -> list[LowRate]:
    """The rates of the pod below a floor; none for a part of a GPU, whose rates are those of its neighbours too."""
    resource = spec.accelerator.resource
    node = next((node for node in snapshot.nodes if node.name == pod.node), None)
    size = sizes().get(node.instance_type) if node is not None else None
    if node is None or size is None or pod.result is None or resource not in WHOLE_GPUS:
        return []
    offer = offer_of(size, resource, Listing(node.labels, node.gpus.get(resource, 0)))
    if offer.undivided or offer.unknown:
        return []
    return [*low_rates(pod.result, node.instance_type, snapshot.policy)]


def _not_known(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, pods: list[CheckedPod], altered: list[str]
) -> ConditionUpdate | None:
    template, is_off = snapshot.workload.template, preflight_policy(spec, snapshot.policy) == "Off"
    if (is_off or template) and not is_checked(template):
        why = "`accelerator.preflight.policy` is Off" if is_off else "the next change of the spec adds the check"
        return _update("Unknown", AcceleratorReason.PREFLIGHT_NOT_RUN, f"the pods do not check their GPUs: {why}")
    for pod in pods:
        if pod.result is None:
            return _update(
                "Unknown", AcceleratorReason.PREFLIGHT_UNREADABLE, f"{pod}: the result of its checks cannot be read"
            )
        if pod.result.verdict == "Unknown":
            finding = pod.result.findings[0]
            return _update("Unknown", finding.reason, f"{pod}: {finding}")
        if not _has_every_gpu(spec, pod.result):
            message = f"pod '{pod.name}': its result is for {pod.result.gpus} GPUs, and it has {spec.accelerator.count}"
            return _update("Unknown", AcceleratorReason.PREFLIGHT_UNREADABLE, message)
    if altered:
        message = f"pod '{altered[0]}' is not as it was rendered: the result of its checks does not count"
        return _update("Unknown", Reason.NOT_AS_RENDERED, message)
    return (
        None
        if pods
        else _update("Unknown", AcceleratorReason.PREFLIGHT_PENDING, "no pod has ended the checks of its GPUs yet")
    )


def _has_every_gpu(spec: ModelDeploymentSpec, result: AcceleratorResult) -> bool:
    return spec.accelerator.resource not in WHOLE_GPUS or result.gpus == spec.accelerator.count


def _update(truth: str, reason: AcceleratorReason | Reason, message: str) -> ConditionUpdate:
    return ConditionUpdate(_KIND, truth, reason, message)


def _passed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, pods: list[CheckedPod]) -> ConditionUpdate:
    warnings = [f"{pod}: {warning}" for pod in pods for warning in _warnings(spec, snapshot, pod)]
    if warnings:
        return _update("True", AcceleratorReason.ACCELERATORS_CHECKED_WITH_WARNINGS, first_of(warnings, 3, "; "))
    gpus = sum(pod.result.gpus for pod in pods if pod.result is not None)
    message = f"{gpus} GPUs of {len(pods)} pods passed every check before the engine started"
    return _update("True", AcceleratorReason.ACCELERATORS_CHECKED, message)


def _warnings(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, pod: CheckedPod) -> Iterator[str]:
    yield from map(str, pod.result.findings if pod.result is not None else ())
    yield from (str(rate) for rate in _low_rates(spec, snapshot, pod))


def _as_status(pod: CheckedPod, result: AcceleratorResult) -> dict[str, Any]:
    return {
        "pod": pod.name,
        "node": pod.node,
        "verdict": result.verdict,
        "gpus": result.gpus,
        **({"driver": result.driver} if result.driver else {}),
        "seconds": round(result.seconds),
        **{name: int(rate) for name, rate in shown_rates(result).items()},
    }

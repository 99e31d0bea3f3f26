"""Remedies for a ModelDeployment that is not ready: one sentence, and the commands with all names filled in."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.api.accelerator_reasons import ACCELERATOR_FINDINGS, AcceleratorReason
from hermetic.api.audit_reasons import AuditReason
from hermetic.api.condition_updates import CONDITION_REASONS, ConditionReason, StatusReason
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.pod_reasons import PodReason
from hermetic.api.reasons import Reason
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.weights_reasons import WeightsReason
from hermetic.audit.attestation.renewal import renewal_commands

_AUDIT_AGAIN: frozenset[StatusReason] = frozenset(
    {
        Reason.ISOLATION_EVIDENCE_MISSING,
        Reason.ISOLATION_EVIDENCE_STALE,
        AuditReason.ATTESTATION_MISSING,
        AuditReason.ATTESTATION_REFUSED,
        AuditReason.EVIDENCE_AGING,
        AuditReason.EVIDENCE_EXPIRING,
    }
)
_AUDIT = renewal_commands("{cluster}")
_DESCRIBE_AUDIT = ("kubectl describe egressaudits.hermetic.dev cluster",)
_SET_PROBE = ("kubectl edit egressaudits.hermetic.dev cluster",)
_SET_EXCEPTIONS = ("kubectl edit egressaudits.hermetic.dev cluster",)
_PROBES = (
    "kubectl get jobs,pods --all-namespaces --selector app.kubernetes.io/component=egress-probe",
    "kubectl describe pods --all-namespaces --selector app.kubernetes.io/component=egress-probe",
)
_OPERATOR_LOG = ("kubectl logs --namespace hermetic-system --selector app.kubernetes.io/name=hermetic --tail 100",)
_DESCRIBE_POD = ("kubectl describe pod {pod} --namespace {namespace}",)
_OF_WEIGHTS = ("kubectl logs {pod} --namespace {namespace} --container verify-weights",)
_OF_ACCELERATORS = ("kubectl logs {pod} --namespace {namespace} --container check-accelerators",)
_LOGS = ("kubectl logs {pod} --namespace {namespace} --container engine --previous",)
_DESCRIBE_SERVICE = ("kubectl describe service {name} --namespace {namespace}",)
_DESCRIBE_ROUTE = ("kubectl describe httproutes.gateway.networking.k8s.io --namespace {namespace}",)
_DESCRIBE_GATEWAYS = ("kubectl describe gateways.gateway.networking.k8s.io --all-namespaces",)
_WATCH = ("hermetic status {name} --namespace {namespace} --watch",)
_AS_STORED = "kubectl get modeldeployments.hermetic.dev {name} --namespace {namespace} --output yaml"

_COMMANDS: dict[StatusReason, tuple[str, ...]] = {
    **dict.fromkeys(_AUDIT_AGAIN, _AUDIT),
    **dict.fromkeys(
        (Reason.ISOLATION_EVIDENCE_PENDING, Reason.ISOLATION_UNKNOWN, Reason.ISOLATION_BROKEN), _DESCRIBE_AUDIT
    ),
    **dict.fromkeys((AuditReason.EXCEPTION_EXPIRING, AuditReason.EXCEPTION_EXPIRED), _SET_EXCEPTIONS),
    AuditReason.PROBE_NOT_CONFIGURED: _SET_PROBE,
    **dict.fromkeys(
        (
            AuditReason.PROBE_PENDING,
            AuditReason.PROBE_STALE,
            AuditReason.PROBE_INCOMPLETE,
            AuditReason.PROBE_PLACE_NOT_COVERED,
        ),
        _PROBES,
    ),
    AuditReason.CLUSTER_NOT_SEEN: _OPERATOR_LOG,
    **dict.fromkeys((Reason.STARTING, Reason.ROLLING_OUT), _WATCH),
    **dict.fromkeys((Reason.LOAD_BALANCER_PENDING, Reason.PUBLIC_ADDRESS), _DESCRIBE_SERVICE),
    **dict.fromkeys(
        (GatewayReason.ROUTE_PENDING, GatewayReason.ROUTE_REFUSED, GatewayReason.ROUTE_BACKEND_REFUSED),
        _DESCRIBE_ROUTE,
    ),
    **dict.fromkeys(
        (
            GatewayReason.GATEWAY_NOT_FOUND,
            GatewayReason.GATEWAY_ADDRESS_PENDING,
            GatewayReason.GATEWAY_NOT_PRIVATE,
            GatewayReason.GATEWAY_NOT_PROGRAMMED,
            GatewayReason.NO_LISTENER_FOR_NAMESPACE,
            GatewayReason.NO_LISTENER_FOR_HOSTNAME,
            GatewayReason.LISTENER_NOT_PROGRAMMED,
        ),
        _DESCRIBE_GATEWAYS,
    ),
    **dict.fromkeys(
        (
            Reason.UNAVAILABLE,
            PodReason.IMAGE_PULL_FAILED,
            PodReason.UNSCHEDULABLE,
            PodReason.REFERENCE_NOT_FOUND,
            PodReason.MOUNT_FAILED,
            PodReason.CONTAINER_CONFIG_INVALID,
            PodReason.OUT_OF_MEMORY,
        ),
        _DESCRIBE_POD,
    ),
    **dict.fromkeys(
        (
            PodReason.CRASH_LOOP,
            PodReason.STARTUP_BUDGET_EXCEEDED,
            EngineReason.MODEL_PATH_MISSING,
            EngineReason.MODEL_INCOMPLETE,
            EngineReason.MODEL_UNREADABLE,
            EngineReason.REMOTE_CODE_REQUIRED,
            EngineReason.CONTEXT_TOO_LONG,
            EngineReason.TENSOR_PARALLEL_INVALID,
            EngineReason.GPU_MEMORY_TOO_SMALL,
            EngineReason.GPU_BUSY,
            EngineReason.CACHE_UNWRITABLE,
            EngineReason.SHARED_MEMORY_TOO_SMALL,
            EngineReason.ENGINE_ARGUMENTS_REFUSED,
            EngineReason.DRIVER_TOO_OLD,
            EngineReason.GPU_UNSUPPORTED,
            EngineReason.GPU_NOT_VISIBLE,
            EngineReason.GPU_COMMUNICATION_FAILED,
            EngineReason.INTERCONNECT_DEGRADED,
            EngineReason.INTERCONNECT_MEMLOCK,
            EngineReason.ADAPTER_MISSING,
            EngineReason.DISK_FULL,
            EngineReason.IMAGE_NOT_WRITABLE,
            EngineReason.FETCH_ATTEMPTED,
        ),
        _LOGS,
    ),
    **dict.fromkeys({*ACCELERATOR_FINDINGS, AcceleratorReason.PREFLIGHT_UNREADABLE}, _OF_ACCELERATORS),
    PodReason.VOLUME_NOT_BOUND: ("kubectl describe persistentvolumeclaims --namespace {namespace}",),
    Reason.SPEC_INVALID: (f"{_AS_STORED} | hermetic validate --file -",),
    SpecReason.VOLUME_CREATION_OFF: (f"{_AS_STORED} | hermetic render --volumes --file -",),
    Reason.PERMISSION_LOST: ("kubectl apply --server-side --kustomize manifests/rbac",),
    Reason.QUOTA_EXCEEDED: ("kubectl describe resourcequotas --namespace {namespace}",),
}


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do, and the commands for it in their order."""

    advice: str
    commands: tuple[str, ...] = ()


def remedy_for(reason: str, namespace: str, name: str, pod: str, cluster: str) -> Remedy | None:
    """The remedy for a reason; None for one that this release does not know.

    `pod` is one that does not serve ("" when there is none), `cluster` the ARM id in the EgressAudit ("" when it
    cannot be read).
    """
    condition_reason = CONDITION_REASONS.get(reason)
    if condition_reason is None:
        return None
    blanks = {"namespace": namespace, "name": name, "pod": pod, "cluster": cluster or "CLUSTER_ARM_ID"}
    templates = _OF_WEIGHTS if isinstance(condition_reason, WeightsReason) else _COMMANDS.get(condition_reason, ())
    commands = tuple(command.format(**blanks) for command in templates if pod or "{pod}" not in command)
    return Remedy(_advice(condition_reason, cluster), commands)


def _advice(reason: ConditionReason, cluster: str) -> str:
    if reason not in _AUDIT_AGAIN:
        return reason.remedy
    audit = "on the jump box audit again, then apply the attestation"
    return audit if cluster else f"apply an EgressAudit named 'cluster' that names this cluster; {audit}"

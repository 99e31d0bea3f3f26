"""docs/troubleshooting.md: from what a person sees to the reason, and from the reason to the fix.

A symptom names where to look and which reasons it can have; what a reason means and what to do comes from the reason
itself. Every reason that asks for something is in one symptom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.accelerator_reasons import ACCELERATOR_FINDINGS, AcceleratorReason
from hermetic.api.audit_reasons import AuditReason
from hermetic.api.condition_updates import StatusReason
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.pod_reasons import PodReason
from hermetic.api.reasons import Reason
from hermetic.api.spec_reasons import SpecReason
from hermetic.cli.explanations import error_pages

NOTHING = "Nothing to do."


@dataclass(frozen=True, slots=True)
class Symptom:
    """What is seen, the commands that show more, and the reasons it can have, the likely ones first."""

    title: str
    text: str
    commands: tuple[str, ...]
    reasons: tuple[StatusReason, ...]


SYMPTOMS = (
    Symptom(
        "A model has no pods, and isolation is not proven",
        "READY is False and `kubectl get pods` shows nothing of the model. IsolationVerified is not True: no pod\n"
        "starts without fresh evidence that the node subnets have no egress path.",
        ("hermetic status llama-3-1-8b -n inference", "kubectl describe egressaudit cluster"),
        (
            Reason.ISOLATION_EVIDENCE_MISSING,
            Reason.ISOLATION_EVIDENCE_PENDING,
            Reason.ISOLATION_EVIDENCE_STALE,
            Reason.ISOLATION_BROKEN,
            Reason.ISOLATION_UNKNOWN,
            Reason.ENFORCEMENT_RAISED,
        ),
    ),
    Symptom(
        "The EgressAudit is not Pass",
        "Its conditions show the missing part: the attestation from outside, the cluster's own objects, the\n"
        "probe, or an exception that expired.",
        ("kubectl get egressaudit cluster", "kubectl describe egressaudit cluster"),
        (
            AuditReason.ATTESTATION_MISSING,
            AuditReason.ATTESTATION_REFUSED,
            AuditReason.EVIDENCE_AGING,
            AuditReason.EVIDENCE_EXPIRING,
            AuditReason.CLUSTER_NOT_SEEN,
            AuditReason.PROBE_NOT_CONFIGURED,
            AuditReason.PROBE_PENDING,
            AuditReason.PROBE_INCOMPLETE,
            AuditReason.PROBE_PLACE_NOT_COVERED,
            AuditReason.PROBE_STALE,
            AuditReason.EXCEPTION_EXPIRING,
            AuditReason.EXCEPTION_EXPIRED,
            AuditReason.POOL_NOT_ATTESTED,
            AuditReason.POOL_CHANGED,
            AuditReason.ATTESTATION_CONTRADICTED,
            AuditReason.AUDIT_FAULT,
        ),
    ),
    Symptom(
        "A model has no pods, because of its spec or of what the platform allows",
        "READY is False, and Stalled is True: a retry does not help. The message names the field, or the\n"
        "line of the operator's configuration.",
        ("hermetic status llama-3-1-8b -n inference", "hermetic validate -f llama.yaml --config config.yaml"),
        (
            SpecReason.REGISTRY_NOT_ALLOWED,
            SpecReason.SHARE_NOT_ALLOWED,
            SpecReason.ADDRESS_NOT_ALLOWED,
            SpecReason.TOLERATION_NOT_ALLOWED,
            SpecReason.SCHEDULING_NOT_ALLOWED,
            Reason.SPEC_INVALID,
            SpecReason.ENGINE_VERSION_UNSUPPORTED,
            SpecReason.ENGINE_FLAG_UNKNOWN,
            SpecReason.ENGINE_FLAG_RESERVED,
            SpecReason.ENGINE_SETTING_NOT_ALLOWED,
            SpecReason.MEMORY_TOO_SMALL,
            SpecReason.CPU_LIMIT_TOO_LOW,
            SpecReason.EPHEMERAL_STORAGE_LIMIT_TOO_LOW,
            SpecReason.ANNOTATION_TOO_LONG,
            SpecReason.INSUFFICIENT_GPU_MEMORY,
            SpecReason.TENSOR_PARALLEL_IMPOSSIBLE,
            SpecReason.NIM_PROFILE_MISMATCH,
            SpecReason.VM_SIZE_UNSUITABLE,
            EngineReason.GPU_COUNT_MISMATCH,
            SpecReason.INTEGRITY_NOT_PINNED,
            SpecReason.INTEGRITY_KEY_REFUSED,
            SpecReason.VERIFIER_NOT_CONFIGURED,
            SpecReason.IMAGE_VOLUME_UNSUPPORTED,
            SpecReason.VOLUME_CREATION_OFF,
            SpecReason.ENDPOINT_CONFLICT,
            Reason.CHILD_NOT_OWNED,
            Reason.WORKLOAD_NOT_CREATED,
        ),
    ),
    Symptom(
        "The API server refuses an object",
        "An admission policy, a quota, the namespace's Pod Security level or missing rights stop a write.",
        ("hermetic status llama-3-1-8b -n inference", "hermetic check --installed"),
        (
            Reason.ADMISSION_DENIED,
            Reason.POD_SECURITY_VIOLATION,
            Reason.QUOTA_EXCEEDED,
            Reason.PERMISSION_LOST,
            Reason.OBJECT_REFUSED,
            Reason.API_SERVER_TROUBLE,
            Reason.PROGRESSING_WITH_RETRY,
        ),
    ),
    Symptom(
        "A GPU is faulty, slow, or was not checked",
        "AcceleratorsHealthy is False or Unknown, or the init container check-accelerators keeps failing. The\n"
        "message names pod, node and GPU.",
        (
            "kubectl logs POD -n inference -c check-accelerators",
            "kubectl get mdep llama-3-1-8b -n inference -o jsonpath='{.status.accelerators}'",
        ),
        (
            *sorted(ACCELERATOR_FINDINGS),
            AcceleratorReason.ACCELERATORS_CHECKED_WITH_WARNINGS,
            AcceleratorReason.PREFLIGHT_PENDING,
            AcceleratorReason.PREFLIGHT_NOT_RUN,
            AcceleratorReason.PREFLIGHT_UNREADABLE,
            AcceleratorReason.BELOW_FLOOR,
            AcceleratorReason.NODE_REPORTS_FAULT,
        ),
    ),
    Symptom(
        "A pod exists and does not start",
        "The pod is Pending, ContainerCreating or ImagePullBackOff.",
        (
            "kubectl get pods -n inference -l hermetic.dev/modeldeployment=llama-3-1-8b",
            "kubectl describe pods -n inference -l hermetic.dev/modeldeployment=llama-3-1-8b",
        ),
        (
            Reason.STARTING,
            Reason.INTEGRITY_PENDING,
            PodReason.IMAGE_PULL_FAILED,
            PodReason.UNSCHEDULABLE,
            PodReason.VOLUME_NOT_BOUND,
            PodReason.MOUNT_FAILED,
            PodReason.REFERENCE_NOT_FOUND,
            PodReason.CONTAINER_CONFIG_INVALID,
        ),
    ),
    Symptom(
        "The engine exits, or never serves",
        "The pod restarts, or runs without becoming ready. The message quotes the last lines of the engine's log.",
        ("kubectl logs -n inference deployment/llama-3-1-8b --previous", "hermetic status llama-3-1-8b -n inference"),
        (
            PodReason.CRASH_LOOP,
            PodReason.STARTUP_BUDGET_EXCEEDED,
            PodReason.OUT_OF_MEMORY,
            EngineReason.GPU_MEMORY_TOO_SMALL,
            EngineReason.GPU_BUSY,
            EngineReason.DRIVER_TOO_OLD,
            EngineReason.GPU_UNSUPPORTED,
            EngineReason.GPU_NOT_VISIBLE,
            EngineReason.GPU_COMMUNICATION_FAILED,
            EngineReason.INTERCONNECT_DEGRADED,
            EngineReason.INTERCONNECT_MEMLOCK,
            EngineReason.ADAPTER_MISSING,
            EngineReason.DISK_FULL,
            EngineReason.IMAGE_NOT_WRITABLE,
            EngineReason.MODEL_PATH_MISSING,
            EngineReason.MODEL_INCOMPLETE,
            EngineReason.MODEL_UNREADABLE,
            EngineReason.MODEL_UNSUPPORTED,
            EngineReason.REMOTE_CODE_REQUIRED,
            EngineReason.CONTEXT_TOO_LONG,
            EngineReason.TENSOR_PARALLEL_INVALID,
            EngineReason.ENGINE_ARGUMENTS_REFUSED,
            EngineReason.SHARED_MEMORY_TOO_SMALL,
            EngineReason.FETCH_ATTEMPTED,
            EngineReason.CACHE_UNWRITABLE,
        ),
    ),
    Symptom(
        "Clients get no response",
        "Pods are ready, but the endpoint has no address, or was removed.",
        (
            "kubectl get services -n inference -l hermetic.dev/modeldeployment=llama-3-1-8b",
            "kubectl describe services -n inference -l hermetic.dev/modeldeployment=llama-3-1-8b",
        ),
        (Reason.LOAD_BALANCER_PENDING, Reason.ENDPOINT_NOT_CREATED, Reason.PUBLIC_ADDRESS, Reason.ENDPOINT_EXPOSED),
    ),
    Symptom(
        "Clients get no response through a gateway",
        "The model has `endpoint.gateway`, and RouteServed or EndpointPrivate is not True. The message names the\n"
        "Gateway, and quotes its controller.",
        (
            "kubectl describe httproutes -n inference llama-3-1-8b",
            "kubectl describe gateways -n gateways models",
        ),
        tuple(reason for reason in GatewayReason if reason is not GatewayReason.ROUTE_ACCEPTED),
    ),
    Symptom(
        "A model that served is not Ready, or not as it should be",
        "It was Ready before, or it serves with a reason that is not `Serving`.",
        ("hermetic status llama-3-1-8b -n inference", "kubectl get events -n inference"),
        (
            Reason.ROLLING_OUT,
            Reason.UNAVAILABLE,
            PodReason.GROUP_MEMBER_FAILED,
            PodReason.GROUP_MEMBER_LOST,
            PodReason.GROUP_WAITING,
            Reason.SCALED_TO_ZERO,
            Reason.NOT_AS_RENDERED,
            Reason.DRIFT_CONTESTED,
            Reason.SERVING_NOT_ENFORCED,
            Reason.ISOLATION_NOT_ENFORCED,
            Reason.INTEGRITY_NOT_CHECKED,
            SpecReason.GPU_MEMORY_TIGHT,
            SpecReason.GPU_MEMORY_UNKNOWN,
            Reason.CACHES_IGNORED,
        ),
    ),
    Symptom(
        "A model does not follow its load",
        "AutoscalerActive is not True. The model serves with its present pods, and READY does not show the problem.\n"
        "The message quotes the HorizontalPodAutoscaler.",
        ("hermetic status llama-3-1-8b -n inference", "kubectl describe mdep llama-3-1-8b -n inference"),
        (
            Reason.QUEUE_METRIC_UNAVAILABLE,
            Reason.GROWTH_HELD,
            Reason.AUTOSCALER_PENDING,
            Reason.AUTOSCALER_PAUSED,
            Reason.AUTOSCALER_NOT_SCALING,
        ),
    ),
)

_INTRODUCTION = """\
# Troubleshooting

This page leads from a symptom to the reason, and from the reason to the fix. `hermetic status` shows the reason of a
model with its message, which names the object or the field. `hermetic explain REASON` prints the line of this page
offline. In the examples, the model is `llama-3-1-8b` in the namespace `inference`.

Before the installation, `hermetic check` shows what the cluster lacks. After it, `hermetic check --installed` compares
the cluster with the release ([install.md](install.md#after-installing)). A Kustomization of Flux that is
not ready names the object: [flux.md](flux.md#a-failing-model). The log of the operator is described in
[observability.md](observability.md#log-lines).
"""

_COMMANDS = """\
## A command ends with an error

One line `error: CODE: message`, then one line `fix: what to do` for this very case.
"""


def troubleshooting_markdown() -> str:
    """The whole page."""
    return "\n".join((_INTRODUCTION, *_contents(), "", *map(_section, SYMPTOMS), _COMMANDS, *_error_rows(), ""))


def _contents() -> Iterator[str]:
    yield from ("| what is seen | reasons |", "| --- | --- |")
    for symptom in SYMPTOMS:
        title = symptom.title.lower().replace(" ", "-")
        anchor = "".join(letter for letter in title if letter.isalnum() or letter == "-")
        yield f"| [{symptom.title}](#{anchor}) | {', '.join(f'`{reason.value}`' for reason in symptom.reasons)} |"
    yield "| [A command ends with an error](#a-command-ends-with-an-error) | `HRM-...` |"


def _section(symptom: Symptom) -> str:
    commands = "\n".join(symptom.commands)
    rows = "\n".join(f"| `{reason.value}` | {reason.meaning} | {reason.remedy} |" for reason in symptom.reasons)
    head = "| reason | what it means | what to do |\n| --- | --- | --- |"
    return f"## {symptom.title}\n\n{symptom.text}\n\n```\n{commands}\n```\n\n{head}\n{rows}\n"


def _error_rows() -> Iterator[str]:
    yield from ("| exit code | code | what it means | what to do |", "| --- | --- | --- | --- |")
    rows = ((int((page.more or {})["Exit code"]), page) for page in error_pages())
    for code, page in sorted(rows, key=lambda row: (row[0], row[1].name)):
        yield f"| {code} | `{page.name}` | {_cell(page.meaning)} | {_cell(page.remedy)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

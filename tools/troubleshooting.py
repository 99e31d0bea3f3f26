"""docs/troubleshooting.md: from what a person sees to the reason, and from the reason to the fix.

A symptom names where to look and which reasons it can have; what a reason means and what to do comes from the reason
itself. Every reason that asks for something is in one symptom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.reasons import ACCELERATOR_FINDINGS, Reason
from hermetic.cli.explanations import error_pages

NOTHING = "Nothing to do."


@dataclass(frozen=True, slots=True)
class Symptom:
    """What is seen, the commands that show more, and the reasons it can have, the likely ones first."""

    title: str
    text: str
    commands: tuple[str, ...]
    reasons: tuple[Reason | GatewayReason, ...]


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
            Reason.ATTESTATION_MISSING,
            Reason.ATTESTATION_REFUSED,
            Reason.EVIDENCE_AGING,
            Reason.EVIDENCE_EXPIRING,
            Reason.CLUSTER_NOT_SEEN,
            Reason.PROBE_NOT_CONFIGURED,
            Reason.PROBE_PENDING,
            Reason.PROBE_INCOMPLETE,
            Reason.PROBE_PLACE_NOT_COVERED,
            Reason.PROBE_STALE,
            Reason.EXCEPTION_EXPIRING,
            Reason.EXCEPTION_EXPIRED,
            Reason.POOL_NOT_ATTESTED,
            Reason.POOL_CHANGED,
            Reason.ATTESTATION_CONTRADICTED,
            Reason.AUDIT_FAULT,
        ),
    ),
    Symptom(
        "A model has no pods, because of its spec or of what the platform allows",
        "READY is False, and Stalled is True: a retry does not help. The message names the field, or the\n"
        "line of the operator's configuration.",
        ("hermetic status llama-3-1-8b -n inference", "hermetic validate -f llama.yaml --config config.yaml"),
        (
            Reason.REGISTRY_NOT_ALLOWED,
            Reason.SHARE_NOT_ALLOWED,
            Reason.ADDRESS_NOT_ALLOWED,
            Reason.TOLERATION_NOT_ALLOWED,
            Reason.SCHEDULING_NOT_ALLOWED,
            Reason.SPEC_INVALID,
            Reason.ENGINE_VERSION_UNSUPPORTED,
            Reason.ENGINE_FLAG_UNKNOWN,
            Reason.ENGINE_FLAG_RESERVED,
            Reason.ENGINE_SETTING_NOT_ALLOWED,
            Reason.MEMORY_TOO_SMALL,
            Reason.CPU_LIMIT_TOO_LOW,
            Reason.EPHEMERAL_STORAGE_LIMIT_TOO_LOW,
            Reason.ANNOTATION_TOO_LONG,
            Reason.INSUFFICIENT_GPU_MEMORY,
            Reason.TENSOR_PARALLEL_IMPOSSIBLE,
            Reason.NIM_PROFILE_MISMATCH,
            Reason.VM_SIZE_UNSUITABLE,
            Reason.GPU_COUNT_MISMATCH,
            Reason.INTEGRITY_NOT_PINNED,
            Reason.INTEGRITY_KEY_REFUSED,
            Reason.VERIFIER_NOT_CONFIGURED,
            Reason.IMAGE_VOLUME_UNSUPPORTED,
            Reason.VOLUME_CREATION_OFF,
            Reason.ENDPOINT_CONFLICT,
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
            Reason.ACCELERATORS_CHECKED_WITH_WARNINGS,
            Reason.PREFLIGHT_PENDING,
            Reason.PREFLIGHT_NOT_RUN,
            Reason.PREFLIGHT_UNREADABLE,
            Reason.BELOW_FLOOR,
            Reason.NODE_REPORTS_FAULT,
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
            Reason.IMAGE_PULL_FAILED,
            Reason.UNSCHEDULABLE,
            Reason.VOLUME_NOT_BOUND,
            Reason.MOUNT_FAILED,
            Reason.REFERENCE_NOT_FOUND,
            Reason.CONTAINER_CONFIG_INVALID,
        ),
    ),
    Symptom(
        "The engine exits, or never serves",
        "The pod restarts, or runs without becoming ready. The message quotes the last lines of the engine's log.",
        ("kubectl logs -n inference deployment/llama-3-1-8b --previous", "hermetic status llama-3-1-8b -n inference"),
        (
            Reason.CRASH_LOOP,
            Reason.STARTUP_BUDGET_EXCEEDED,
            Reason.OUT_OF_MEMORY,
            Reason.GPU_MEMORY_TOO_SMALL,
            Reason.GPU_BUSY,
            Reason.DRIVER_TOO_OLD,
            Reason.GPU_UNSUPPORTED,
            Reason.GPU_NOT_VISIBLE,
            Reason.GPU_COMMUNICATION_FAILED,
            Reason.INTERCONNECT_DEGRADED,
            Reason.INTERCONNECT_MEMLOCK,
            Reason.ADAPTER_MISSING,
            Reason.DISK_FULL,
            Reason.IMAGE_NOT_WRITABLE,
            Reason.MODEL_PATH_MISSING,
            Reason.MODEL_INCOMPLETE,
            Reason.MODEL_UNREADABLE,
            Reason.MODEL_UNSUPPORTED,
            Reason.REMOTE_CODE_REQUIRED,
            Reason.CONTEXT_TOO_LONG,
            Reason.TENSOR_PARALLEL_INVALID,
            Reason.ENGINE_ARGUMENTS_REFUSED,
            Reason.SHARED_MEMORY_TOO_SMALL,
            Reason.FETCH_ATTEMPTED,
            Reason.CACHE_UNWRITABLE,
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
            Reason.GROUP_MEMBER_FAILED,
            Reason.GROUP_MEMBER_LOST,
            Reason.GROUP_WAITING,
            Reason.SCALED_TO_ZERO,
            Reason.NOT_AS_RENDERED,
            Reason.DRIFT_CONTESTED,
            Reason.SERVING_NOT_ENFORCED,
            Reason.ISOLATION_NOT_ENFORCED,
            Reason.INTEGRITY_NOT_CHECKED,
            Reason.GPU_MEMORY_TIGHT,
            Reason.GPU_MEMORY_UNKNOWN,
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

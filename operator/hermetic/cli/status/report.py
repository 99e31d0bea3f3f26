"""The state of one ModelDeployment: what holds, what blocks it, and the command that fixes it.

Pure: computed from the manifests in the cluster, written by any release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermetic.api.autoscaling import Autoscaling
from hermetic.api.condition_updates import CONDITION_REASONS, StatusReason
from hermetic.api.conditions import ConditionType
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.reasons import Reason
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.times import moment_in
from hermetic.cli.benchmarks import BenchmarkRecord, records_of
from hermetic.cli.status.isolation import Proof, proof
from hermetic.cli.status.remedies import Remedy, remedy_for
from hermetic.cli.status.starting import StartReport, start_report
from hermetic.engines.registry import ENGINES

Manifest = Mapping[str, Any]

# Reasons that keep pods from being created; running pods are never affected by them.
BLOCKING_NEW_PODS: frozenset[StatusReason] = frozenset(
    {
        *(reason for reason in SpecReason if reason.needs_human),
        Reason.SPEC_INVALID,
        EngineReason.GPU_COUNT_MISMATCH,
        GatewayReason.GATEWAY_NOT_ALLOWED,
        GatewayReason.GATEWAY_API_MISSING,
        GatewayReason.ROUTE_NOT_ALLOWED,
        GatewayReason.ROUTE_CONFLICT,
        GatewayReason.ROUTE_GROUP_MISMATCH,
        Reason.CHILD_NOT_OWNED,
        Reason.ISOLATION_EVIDENCE_MISSING,
        Reason.ISOLATION_EVIDENCE_PENDING,
        Reason.ISOLATION_EVIDENCE_STALE,
        Reason.ISOLATION_UNKNOWN,
        Reason.ISOLATION_BROKEN,
    }
)
# Reasons whose remedy is that of the EgressAudit.
OF_THE_PROOF = frozenset(
    {Reason.ISOLATION_EVIDENCE_MISSING, Reason.ISOLATION_EVIDENCE_PENDING, Reason.ISOLATION_UNKNOWN}
)
# Messages of this command, not of the operator: the operator has not reconciled yet, or no longer does.
NOT_SEEN = "NotSeenYet"
BEING_DELETED = "BeingDeleted"
SERVED = "Serving"
"""State of an adapter that every pod that serves has loaded."""


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """One condition: `truth` is True, False or Unknown."""

    type: str
    truth: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod in a word: "ready", or what it waits for."""

    name: str
    state: str
    restarts: int
    node: str


@dataclass(frozen=True, slots=True)
class AdapterRow:
    """One adapter of `status.adapters`. `digest`: with which a pod verified it, "" where none did on its own.

    `reason`: why not every pod that serves has it, "" where they have or nothing is known: that of its verification,
    else that of Ready.
    """

    name: str
    state: str
    digest: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeploymentReport:
    """One ModelDeployment. `ready` is Unknown while the operator has not seen the present generation.

    `remedy` is None when nothing blocks it; `blocks` says how its reason affects pods, "" when it does not.
    `proof` is None where the EgressAudit does not exist or cannot be read. `endpoint` is "" while no pod serves.
    `start` is None while every pod serves. `benchmarks`: the recorded results, newest first.
    """

    namespace: str
    name: str
    engine: str
    model: str
    gpus: str
    weights: str
    desired: int
    serving: int
    endpoint: str
    ready: ConditionRow
    conditions: tuple[ConditionRow, ...]
    pods: tuple[PodState, ...]
    evidence: datetime | None
    remedy: Remedy | None
    blocks: str
    proof: Proof | None = None
    start: StartReport | None = None
    benchmarks: tuple[BenchmarkRecord, ...] = ()
    adapters: tuple[AdapterRow, ...] = ()

    def condition(self, kind: ConditionType) -> ConditionRow | None:
        """The condition of this type, if the status has it."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


def _desired(spec: Manifest) -> int:
    """How many pods the operator keeps. Fields that a later release added to `autoscaling` are ignored."""
    replicas, bounds = int(spec.get("replicas", 1)) * _nodes(spec), spec.get("autoscaling")
    return Autoscaling.model_validate(bounds, extra="ignore").clamp(replicas) if bounds else replicas


def _nodes(spec: Manifest) -> int:
    """The nodes of each replica, with a pod on each."""
    return int((spec.get("accelerator") or {}).get("nodes") or 1)


def _gpus(spec: Manifest) -> str:
    """GPUs of each pod, with the nodes of a replica where there are several."""
    gpus = f"{_at(spec, 'accelerator', 'count') or 1} x {_at(spec, 'accelerator', 'resource') or 'nvidia.com/gpu'}"
    return gpus if _nodes(spec) == 1 else f"{gpus} on each of {_nodes(spec)} nodes"


def report(deployment: Manifest, pods: Sequence[Manifest], audit: Manifest | None) -> DeploymentReport:
    """The report of one ModelDeployment; `audit` is the cluster's EgressAudit, None when it cannot be read."""
    metadata, spec, status = deployment["metadata"], deployment.get("spec") or {}, deployment.get("status") or {}
    conditions = tuple(_observed(condition) for condition in status.get("conditions") or ())
    states = tuple(_state(pod) for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])))
    ready, desired = _ready(metadata, status, conditions), _desired(spec)
    serving = sum(state.state == "ready" for state in states) if states else int(status.get("replicas") or 0)
    return DeploymentReport(
        namespace=metadata["namespace"],
        name=metadata["name"],
        engine=_engine(spec),
        model=_at(spec, "model", "name"),
        gpus=_gpus(spec),
        weights=_weights(spec.get("weights") or {}),
        desired=desired,
        serving=serving,
        endpoint=_at(status, "endpoint", "url") if serving else "",
        ready=ready,
        conditions=conditions,
        pods=states,
        evidence=moment_in(_at(audit or {}, "status", "evidence", "azure", "observedAt")),
        remedy=_remedy(ready, metadata, states, audit),
        blocks=_blocks(ready, serving),
        proof=proof(audit) if audit is not None else None,
        start=start_report(spec, status, pods) if desired else None,
        benchmarks=records_of(deployment),
        adapters=tuple(_adapter(adapter, ready) for adapter in status.get("adapters") or ()),
    )


def _observed(condition: Manifest) -> ConditionRow:
    return ConditionRow(*(str(condition.get(key) or "") for key in ("type", "status", "reason", "message")))


def _adapter(adapter: Manifest, ready: ConditionRow) -> AdapterRow:
    """A verification is a digest, or the reason why there is none."""
    name, state, verification = (_at(adapter, key) for key in ("name", "state", "verification"))
    is_digest = verification.startswith("sha256:")
    reason = "" if is_digest else verification
    if not reason and state != SERVED and ready.truth != "True":
        reason = ready.reason
    return AdapterRow(name, state, verification if is_digest else "", reason)


def _ready(metadata: Manifest, status: Manifest, conditions: tuple[ConditionRow, ...]) -> ConditionRow:
    """The condition Ready, replaced where it is about another generation than the present one."""
    if metadata.get("deletionTimestamp"):
        return ConditionRow("Ready", "False", BEING_DELETED, f"since {metadata['deletionTimestamp']}")
    observed_generation, generation = status.get("observedGeneration", -1), metadata.get("generation", 0)
    ready = next((condition for condition in conditions if condition.type == ConditionType.READY), None)
    if ready is not None and observed_generation == generation:
        return ready
    explanation = (
        "it yet" if ready is None else f"the last change yet (generation {generation}; it saw {observed_generation})"
    )
    return ConditionRow("Ready", "Unknown", NOT_SEEN, f"the operator has not observed {explanation}")


def _state(pod: Manifest) -> PodState:
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waiting = [_at(container, "state", "waiting", "reason") for container in containers]
    states = {condition.get("type"): condition.get("status") for condition in status.get("conditions") or ()}
    if pod["metadata"].get("deletionTimestamp"):
        state = "ending"
    elif states.get("Ready") == "True":
        state = "ready"
    else:
        state = next(filter(None, waiting), "") or _unscheduled(status) or str(status.get("phase") or "Pending").lower()
    restarts = sum(int(container.get("restartCount") or 0) for container in containers)
    return PodState(pod["metadata"]["name"], state, restarts, _at(pod, "spec", "nodeName"))


def _unscheduled(status: Manifest) -> str:
    unplaced = (condition for condition in status.get("conditions") or () if condition.get("type") == "PodScheduled")
    return next((str(condition.get("reason")) for condition in unplaced if condition.get("status") == "False"), "")


def _remedy(
    ready: ConditionRow, metadata: Manifest, pods: tuple[PodState, ...], audit: Manifest | None
) -> Remedy | None:
    if ready.truth == "True":
        return None
    if ready.reason == NOT_SEEN:
        return Remedy("see whether the operator runs", ("kubectl get pods --namespace hermetic-system",))
    if (
        audit is not None
        and CONDITION_REASONS.get(ready.reason) in OF_THE_PROOF
        and (brings := proof(audit).remedy) is not None
    ):
        return brings
    pod = next((state.name for state in pods if state.state not in {"ready", "ending"}), "")
    return remedy_for(ready.reason, metadata["namespace"], metadata["name"], pod, _at(audit or {}, "spec", "cluster"))


def _blocks(ready: ConditionRow, serving: int) -> str:
    if ready.truth == "True" or CONDITION_REASONS.get(ready.reason) not in BLOCKING_NEW_PODS:
        return ""
    keeps = "the one that runs keeps serving" if serving == 1 else f"the {serving} that run keep serving"
    return f"blocks new pods; {keeps}" if serving else "blocks new pods"


def _engine(spec: Manifest) -> str:
    for engine in ENGINES.values():
        if part := _part(spec, "engine", engine.member):
            return f"{engine.name} {part.get(engine.release_field, '')}".rstrip()
    return ""


def _weights(weights: Manifest) -> str:
    match next(iter(weights.items()), ("", {})):
        case "azureFiles", share:
            return _path(share.get("account") or share.get("server"), share.get("share"), share.get("folder"))
        case "nfs", share:
            return f"{share.get('server')}:{_path(share.get('path'), share.get('folder'))}"
        case "persistentVolumeClaim", claim:
            return f"claim {_path(claim.get('claimName'), claim.get('folder'))}"
        case "bakedImage", image:
            return f"{image.get('path')} of the serving image"
        case "imageVolume", image:
            return f"image {image.get('reference')}"
        case _:
            return ""


def _path(*parts: str | None) -> str:
    return "/".join(part for part in parts if part)


def _part(value: Manifest, *path: str) -> Manifest:
    for step in path:
        value = value.get(step) or {}
    return value


def _at(value: Manifest, *path: str) -> str:
    field_value = _part(value, *path[:-1]).get(path[-1])
    return "" if field_value is None else str(field_value)

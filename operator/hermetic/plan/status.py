"""Computes the whole status from spec, snapshot, plan and refusals: the only place that sets reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from hermetic.api.condition_updates import ConditionReason, ConditionUpdate, dated, pointing_to_ready
from hermetic.api.conditions import ConditionType
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.objects.names import selector
from hermetic.objects.weights_verifier import Verifier, is_required
from hermetic.objects.workloads.registry import expected_pods, workload_kind
from hermetic.plan.accelerator_health import accelerators, accelerators_healthy
from hermetic.plan.accelerator_results import checked_pods
from hermetic.plan.adapters import adapter_states
from hermetic.plan.api_rejections import ApiRejection
from hermetic.plan.autoscaling import autoscaler_active
from hermetic.plan.cache_use import cache_use
from hermetic.plan.endpoint_status import endpoint_of, endpoint_private, own_service
from hermetic.plan.exposure.public_side import public_side
from hermetic.plan.gate_results import Blocks
from hermetic.plan.gateway_route import route_served
from hermetic.plan.groups.reported import groups_status, has_older_pods, with_groups
from hermetic.plan.isolation import enforcement
from hermetic.plan.planned_status import planned_status
from hermetic.plan.pod_diagnosis import PodDiagnosis, diagnose_pods
from hermetic.plan.pod_start import reported_start, start_clause
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.runtime_drift import Strange, strange
from hermetic.plan.waiting_pods import started_pods
from hermetic.plan.weights_integrity import integrity_policy, is_pinned, verifier
from hermetic.plan.weights_verification import weights_verified
from hermetic.plan.writes import Contested, Plan

Status = dict[str, Any]
OURS = frozenset(kind.value for kind in ConditionType)


def status(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, plan: Plan, refusals: tuple[ApiRejection, ...], now: datetime
) -> Status:
    """The whole status: `snapshot` is taken after the plan was applied."""
    # With zero replicas, a pod that is not ready is terminating; do not report it.
    diagnosis = with_groups(plan.groups, diagnose_pods(spec, snapshot, now)) if spec.wanted_replicas else None
    start = reported_start(spec, snapshot, now) if diagnosis is None else None
    deviation = strange(snapshot, now)
    verified_by, checked = verifier(spec, snapshot), checked_pods(snapshot)
    parts = [
        _images_pinned(deviation, plan),
        _weights_verified(spec, snapshot, plan, verified_by),
        *((plan.placement.condition(),) if plan.placement is not None else ()),
        *((caches,) if (caches := cache_use(spec, required=is_required(verified_by))) is not None else ()),
        accelerators_healthy(spec, snapshot, checked),
        _isolation_verified(spec, snapshot, plan),
        endpoint_private(spec, snapshot, plan),
        *((route,) if (route := route_served(spec, snapshot)) is not None else ()),
        _available(spec, snapshot, diagnosis),
        *((scaler,) if (scaler := autoscaler_active(spec, snapshot, plan)) is not None else ()),
    ]
    hindered = _hindered(spec, snapshot, plan, refusals, parts, deviation)
    ready = hindered or _serves(spec, snapshot, plan, parts, diagnosis, start)
    updates = [ready, *_kstatus(ready), *parts]
    fields = {
        "observedGeneration": snapshot.generation,
        "conditions": [dated(update, snapshot.generation, snapshot.status, now) for update in updates],
        "replicas": snapshot.workload.existing_replicas,
        "selector": ",".join(f"{key}={value}" for key, value in selector(snapshot.owner).items()),
        "plan": planned_status(spec, plan.placement),
    }
    endpoint, results = endpoint_of(spec, snapshot), accelerators(checked)
    fields |= {"endpoint": endpoint} if endpoint else {}
    fields |= {"serving": _serving(spec, snapshot, endpoint)} | ({"start": start} if start is not None else {})
    fields |= {"accelerators": results} if results else {}
    fields |= {"groups": groups_status(plan.groups)} if plan.groups else {}
    fields |= {"adapters": adapter_states(spec, snapshot)} if spec.adapters else {}
    public = public_side(own_service(snapshot), snapshot, plan)
    return fields | ({"publicAddress": public.as_status()} if public is not None and public.address else {})


def status_unreadable(snapshot: ClusterSnapshot, message: str, now: datetime) -> Status:
    """The status of an object whose spec this version cannot read."""
    ready = ConditionUpdate(ConditionType.READY, "False", Reason.SPEC_INVALID, message)
    return {
        "observedGeneration": snapshot.generation,
        "conditions": [
            dated(update, snapshot.generation, snapshot.status, now) for update in (ready, *_kstatus(ready))
        ],
    }


def same_status(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether writing `new` over `old` would change nothing; conditions that other writers added are left alone."""
    return _comparable(new) == _comparable(old)


def _comparable(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**fields, "conditions": {c["type"]: dict(c) for c in fields.get("conditions") or () if c["type"] in OURS}}


def _images_pinned(deviation: Strange | None, plan: Plan) -> ConditionUpdate:
    kind = ConditionType.IMAGES_PINNED
    blocked = _blocks(plan, kind)
    if blocked is not None:
        return _from_block(kind, blocked)
    if deviation is not None and deviation.of_image:
        return ConditionUpdate(kind, "False", Reason.NOT_AS_RENDERED, deviation.message)
    return ConditionUpdate(kind, "True", Reason.PINNED_BY_DIGEST, "every image is named by digest and allowed here")


def _weights_verified(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, plan: Plan, verified_by: Verifier | None
) -> ConditionUpdate:
    kind = ConditionType.WEIGHTS_VERIFIED
    blocked = _blocks(plan, kind)
    if blocked is not None:
        return _from_block(kind, blocked)
    if spec.weights.baked_image is not None or spec.weights.image_volume is not None:
        return ConditionUpdate(
            kind, "True", Reason.PINNED_BY_DIGEST, "the weights are part of an image that is named by digest"
        )
    if verified_by is not None:
        return weights_verified(snapshot, pinned=is_pinned(spec, snapshot))
    policy = integrity_policy(spec, snapshot)
    sentence = f"the weights are read as staged, and no digest of them is checked: the policy in effect is {policy}"
    if policy != "Off":
        sentence += ", and the operator's configuration names no image under `integrity.verifiers`"
    return ConditionUpdate(kind, "Unknown", Reason.INTEGRITY_NOT_CHECKED, sentence)


def _isolation_verified(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, plan: Plan) -> ConditionUpdate:
    kind = ConditionType.ISOLATION_VERIFIED
    if enforcement(spec, snapshot) == "Off":
        sentence = "`isolation.enforcement` is Off: the evidence was not read"
        return ConditionUpdate(kind, "Unknown", Reason.ISOLATION_NOT_ENFORCED, sentence)
    if isinstance(plan.isolation, Blocks):
        return _from_block(kind, plan.isolation)
    if plan.isolation is None:
        return ConditionUpdate(
            kind, "Unknown", Reason.ISOLATION_EVIDENCE_PENDING, "not evaluated until the spec is acceptable"
        )
    return ConditionUpdate(
        kind, "True", Reason.ISOLATION_PROVEN, "fresh evidence shows that the node subnets have no egress path"
    )


def _available(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, diagnosis: PodDiagnosis | None) -> ConditionUpdate:
    kind = ConditionType.AVAILABLE
    if spec.wanted_replicas == 0:
        return ConditionUpdate(kind, "False", Reason.SCALED_TO_ZERO, "`replicas` is 0")
    serving = snapshot.workload.serving_replicas
    if serving >= spec.wanted_replicas:
        return ConditionUpdate(kind, "True", Reason.SERVING, f"{_of(spec.wanted_replicas, spec.wanted_replicas)} serve")
    if snapshot.workload.live is None:
        message = f"the {workload_kind(spec).resource.kind} does not exist yet"
        return ConditionUpdate(kind, "False", Reason.WORKLOAD_NOT_CREATED, message)
    if diagnosis is not None:
        return ConditionUpdate(kind, "False", diagnosis.reason, diagnosis.message)
    reason = Reason.STARTING if serving == 0 else Reason.UNAVAILABLE
    return ConditionUpdate(kind, "False", reason, f"{_of(serving, spec.wanted_replicas)} serve")


def _of(count: int, total: int) -> str:
    return f"{count} of {total} replicas"


def _hindered(
    spec: ModelDeploymentSpec,
    snapshot: ClusterSnapshot,
    plan: Plan,
    refusals: tuple[ApiRejection, ...],
    parts: list[ConditionUpdate],
    deviation: Strange | None,
) -> ConditionUpdate | None:
    """The condition Ready where something fails: the first of refusals, gates, endpoint, drift."""
    if refusals:
        return _not_ready(refusals[0].reason, refusals[0].message)
    if plan.blocked is not None:
        serving_clause = "; the pods that run keep serving" if snapshot.workload.serving_pods else ""
        serving_clause += _replacements(plan, snapshot) if serving_clause else ""
        waiting_clause = "; the change of the pods waits for it" if plan.held and serving_clause else ""
        waiting_clause += _waiting(spec, plan, snapshot)
        return _not_ready(plan.blocked.reason, plan.blocked.message + serving_clause + waiting_clause)
    broken = next((part for part in _of_the_endpoint(parts) if part.status == "False"), None)
    return _not_ready(broken.reason, broken.message) if broken is not None else _altered(deviation, plan)


def _serves(
    spec: ModelDeploymentSpec,
    snapshot: ClusterSnapshot,
    plan: Plan,
    parts: list[ConditionUpdate],
    diagnosis: PodDiagnosis | None,
    start: Mapping[str, Any] | None,
) -> ConditionUpdate:
    """The condition Ready where nothing fails except, possibly, the pods."""
    if _settled(spec, snapshot) and not has_older_pods(plan.groups):
        return _settled_verdict(spec, snapshot, _of_the_endpoint(parts))
    return _not_settled(spec, snapshot, plan, diagnosis, start)


def _of_the_endpoint(parts: list[ConditionUpdate]) -> list[ConditionUpdate]:
    return [part for part in parts if part.type in (ConditionType.ENDPOINT_PRIVATE, ConditionType.ROUTE_SERVED)]


def _replacements(plan: Plan, snapshot: ClusterSnapshot) -> str:
    """A note that pods start although the isolation gate is closed, where the configuration admits replacements."""
    closed = _blocks(plan, ConditionType.ISOLATION_VERIFIED) is not None
    admitted = closed and snapshot.policy.isolation.replacements == "Admit"
    return ", and pods that end are replaced: `isolation.replacements` is Admit" if admitted else ""


def _waiting(spec: ModelDeploymentSpec, plan: Plan, snapshot: ClusterSnapshot) -> str:
    """A note of how many pods the closed isolation gate keeps from starting, once there is a workload."""
    closed = _blocks(plan, ConditionType.ISOLATION_VERIFIED) is not None
    expected = expected_pods(spec)
    absent = expected - started_pods(snapshot)
    if not closed or absent <= 0 or snapshot.workload.live is None or snapshot.policy.isolation.replacements == "Admit":
        return ""
    return f"; {absent} of {expected} pods have not started and start by themselves when isolation is proven"


def _altered(deviation: Strange | None, plan: Plan) -> ConditionUpdate | None:
    """What others changed and is not corrected: objects that another writer keeps changing back, then pods."""
    if plan.contested:
        return _not_ready(Reason.DRIFT_CONTESTED, _contested_by(plan.contested[0]))
    return None if deviation is None else _not_ready(Reason.NOT_AS_RENDERED, deviation.message)


def _contested_by(contested: Contested) -> str:
    kind, name = contested.child
    sentence = f"{kind} '{name}' is changed back as often as it is corrected"
    named = ", ".join(f"'{writer}'" for writer in contested.writers)
    by = f", written by {named} (field manager)" if named else ""
    return f"{sentence}: {contested.place}{by}" if contested.place else sentence


def _settled_verdict(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, endpoint: list[ConditionUpdate]
) -> ConditionUpdate:
    if spec.wanted_replicas == 0:
        return ConditionUpdate(ConditionType.READY, "True", Reason.SCALED_TO_ZERO, "scaled to zero, as asked")
    missing = next((part for part in endpoint if part.status != "True"), None)
    if missing is not None:
        return _not_ready(missing.reason, missing.message)
    serving, enforced = f"{_of(spec.wanted_replicas, spec.wanted_replicas)} serve", enforcement(spec, snapshot)
    if enforced != "Enforce":
        sentence = f"{serving}; `isolation.enforcement` is {enforced}: pods start whether isolation is proven or not"
        return ConditionUpdate(ConditionType.READY, "True", Reason.SERVING_NOT_ENFORCED, sentence)
    return ConditionUpdate(ConditionType.READY, "True", Reason.SERVING, serving)


def _serving(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, endpoint: dict[str, str] | None) -> dict[str, str]:
    workload, expected = snapshot.workload, expected_pods(spec)
    reachable = {"url": endpoint["url"]} if endpoint is not None and workload.serving_replicas else {}
    return {"pods": f"{min(workload.serving_pods, expected)}/{expected}", **reachable}


def _not_settled(
    spec: ModelDeploymentSpec,
    snapshot: ClusterSnapshot,
    plan: Plan,
    diagnosis: PodDiagnosis | None,
    start: Mapping[str, Any] | None,
) -> ConditionUpdate:
    if diagnosis is not None:
        return _not_ready(diagnosis.reason, diagnosis.message)
    if spec.wanted_replicas == 0:
        return _not_ready(Reason.ROLLING_OUT, "scaling to zero; pods are ending")
    serving = _of(snapshot.workload.serving_replicas, spec.wanted_replicas)
    phase = f": {start_clause(start)}" if start is not None else ""
    if _has_older_pods(snapshot, plan):
        return _not_ready(Reason.ROLLING_OUT, f"{serving} serve; a change is being rolled out{phase}")
    return _not_ready(Reason.STARTING, f"{serving} serve; pods are starting{phase}")


def _has_older_pods(snapshot: ClusterSnapshot, plan: Plan) -> bool:
    """Whether pods of an earlier template remain, or the workload's present generation is not observed yet."""
    workload = snapshot.workload
    if workload.kind.is_grouped:
        return has_older_pods(plan.groups)
    return bool(workload.existing_pods) and (not workload.is_observed or workload.existing_pods > workload.updated_pods)


def _settled(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> bool:
    """Whether every pod is of the present template and serves, and no older one is left."""
    workload = snapshot.workload
    if workload.live is None:
        # A Deployment exists without pods too; of a model without replicas there is no group.
        return spec.wanted_replicas == 0 and workload_kind(spec).is_grouped
    if not (workload.is_observed or _was_ready(snapshot)):
        return False
    replicas = {workload.replicas, workload.existing_replicas, workload.serving_replicas}
    pods = {workload.existing_pods, workload.updated_pods, workload.serving_pods}
    return replicas == {spec.wanted_replicas} and pods == {expected_pods(spec)}


def _was_ready(snapshot: ClusterSnapshot) -> bool:
    """Whether this generation of the spec was Ready already.

    Then a workload whose present generation is not observed yet may stay Ready: a change of an annotation alone
    increments it. If the change matters, the replica counts show that a moment later.
    """
    ready = snapshot.condition(ConditionType.READY) or {}
    return (ready.get("status"), ready.get("observedGeneration")) == ("True", snapshot.generation)


def _not_ready(reason: ConditionReason, message: str) -> ConditionUpdate:
    return ConditionUpdate(ConditionType.READY, "False", reason, message)


def _kstatus(ready: ConditionUpdate) -> Iterator[ConditionUpdate]:
    """Exactly one of Reconciling and Stalled while Ready is not True, neither while it is."""
    if ready.status == "True":
        return
    sentence = pointing_to_ready(ready.reason)
    if ready.reason.needs_human:
        yield ConditionUpdate(ConditionType.STALLED, "True", ready.reason, sentence)
    else:
        reason = ready.reason if ready.reason in PROGRESS else Reason.PROGRESSING_WITH_RETRY
        yield ConditionUpdate(ConditionType.RECONCILING, "True", reason, sentence)


PROGRESS: frozenset[ConditionReason] = frozenset(
    {
        Reason.STARTING,
        Reason.ROLLING_OUT,
        Reason.LOAD_BALANCER_PENDING,
        GatewayReason.GATEWAY_ADDRESS_PENDING,
        GatewayReason.ROUTE_PENDING,
    }
)


def _blocks(plan: Plan, kind: ConditionType) -> Blocks | None:
    return plan.blocked if plan.blocked is not None and plan.blocked.condition is kind else None


def _from_block(kind: ConditionType, block: Blocks) -> ConditionUpdate:
    return ConditionUpdate(kind, block.truth, block.reason, block.message)

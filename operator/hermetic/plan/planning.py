"""Computes the writes and deletes that bring one ModelDeployment from its snapshot to its spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.engines.registry import engine_of
from hermetic.kinds import BY_KIND, MODEL_DEPLOYMENT, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, SERVICE, Kind
from hermetic.objects.children import CHILDREN
from hermetic.objects.names import OWNER_UID_LABEL, TEMPLATE_ANNOTATION, Owner, metadata, template_of, with_intent
from hermetic.plan.addresses import public_addresses
from hermetic.plan.desired_children import desired_children, isolating_children
from hermetic.plan.drift import differences, has_drifted, holds_template, intent, is_of_another_intent
from hermetic.plan.field_owners import spelled, writers
from hermetic.plan.foreign_fields import foreign, foreign_to_template, whole
from hermetic.plan.gate_results import Blocks, Holds
from hermetic.plan.gates import first_block
from hermetic.plan.isolation import closes_at, enforcement, gate
from hermetic.plan.model_fit import ModelPlacement, model_placement
from hermetic.plan.pods_of_template import not_of_the_changed, were_started_with_a_proof
from hermetic.plan.runtime_drift import all_of, has_ended, is_left_over, rolled_out_at
from hermetic.plan.scheduling import unschedulable_deadline
from hermetic.plan.snapshot import ChildKey, ClusterSnapshot

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A manifest to apply, and why: the object is absent, the spec changed, or the live object drifted.

    `patch` is sent instead where other managers own fields of the live object, which an apply would leave there.
    """

    manifest: Manifest
    why: Literal["absent", "changed", "drifted"]
    patch: Manifest | None = None


@dataclass(frozen=True, slots=True)
class Contested:
    """A child that others change back as often as it is corrected: which place, and the field managers that own it."""

    child: ChildKey
    place: str = ""
    writers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deletion:
    """A live object to delete, with uid and resourceVersion of the snapshot as preconditions.

    `public_address`: the public address of the object, "" if none. Such an object is deleted before anything else is
    written, even if other writes are refused.
    """

    kind: Kind
    namespace: str | None
    name: str
    uid: str
    resource_version: str
    why: str
    public_address: str = ""

    @property
    def urgent(self) -> bool:
        """Whether it is deleted before anything else is written."""
        return bool(self.public_address)


@dataclass(frozen=True, slots=True)
class Plan:
    """What must be written, in order, and what prevents further writes.

    `blocked`: the first gate that keeps pods from being created. `isolation`: the verdict of the isolation gate, which
    with enforcement Report is reported without blocking. `held`: a change of the Deployment waits for that gate.
    `contested`: children that others change back as often as they are corrected. `placement`: the model on the VM sizes
    that its pods may get; None for a spec without facts.
    """

    apply: tuple[Change, ...] = ()
    delete: tuple[Deletion, ...] = ()
    blocked: Blocks | None = None
    isolation: Holds | Blocks | None = None
    held: bool = False
    contested: tuple[Contested, ...] = ()
    requeue_at: datetime | None = None
    placement: ModelPlacement | None = None


def plan(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, now: datetime) -> Plan:
    """Everything that must be written to reach the state of the spec. Deterministic; no I/O.

    Idempotent: planning again on the resulting snapshot yields nothing to write.
    """
    if snapshot.deleting:
        return Plan()
    placement = model_placement(spec, snapshot)
    if (block := first_block(spec, snapshot, placement)) is not None:
        return _while_blocked(spec, snapshot, block, placement)
    desired = desired_children(spec, snapshot)
    if (obstacle := _first_obstacle(desired, snapshot)) is not None:
        return _while_blocked(spec, snapshot, obstacle, placement)
    isolation = gate(spec, snapshot, now)
    closed = isolation if enforcement(spec, snapshot) == "Enforce" and isinstance(isolation, Blocks) else None
    wanted = desired if closed is None else tuple(_behind_closed_gate(desired, snapshot, spec.replicas))
    to_apply, contested = _to_apply(_private_only(wanted, snapshot), snapshot)
    return Plan(
        apply=to_apply,
        delete=(*exposed(snapshot), *_surplus(desired, snapshot, claims=closed is None)),
        blocked=closed,
        isolation=isolation,
        held=closed is not None and len(wanted) < len(desired),
        contested=contested,
        requeue_at=_requeue_at(spec, snapshot, now),
        placement=placement,
    )


def _while_blocked(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, block: Blocks, placement: ModelPlacement | None
) -> Plan:
    """With a blocked spec: delete a Service with a public address, keep the NetworkPolicy of a live Deployment."""
    to_apply, contested = _to_apply(_private_only(tuple(_around_what_runs(spec, snapshot)), snapshot), snapshot)
    return Plan(apply=to_apply, delete=exposed(snapshot), blocked=block, contested=contested, placement=placement)


def _around_what_runs(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Iterator[Manifest]:
    """ServiceAccount, NetworkPolicy and Service of a live Deployment, and its scale-down. No volumes, no new pods."""
    live = snapshot.workload.live
    if live is None or not is_ours(live, snapshot.owner):
        return
    for manifest in isolating_children(spec, snapshot):
        standing = snapshot.children.get(_key(manifest))
        if standing is not None and not is_ours(standing, snapshot.owner):
            continue
        if manifest["kind"] != SERVICE.kind or not _takes_a_held_address(manifest, standing, spec, snapshot):
            yield manifest
    if spec.replicas < snapshot.workload.replicas:
        yield _scaled_down(live, spec, snapshot.owner)


def _takes_a_held_address(
    service: Manifest, standing: Manifest | None, spec: ModelDeploymentSpec, snapshot: ClusterSnapshot
) -> bool:
    """Whether applying the Service would newly ask for an address that belongs to another ModelDeployment."""
    balancer = spec.endpoint.internal_load_balancer
    held = bool(snapshot.address_holder) and balancer is not None and balancer.address is not None
    return held and (standing is None or is_of_another_intent(service, standing))


def _scaled_down(live: Manifest, spec: ModelDeploymentSpec, owner: Owner) -> Manifest:
    """The live Deployment with the spec's replicas: a blocked spec may not render a pod template of its own."""
    marked = {TEMPLATE_ANNOTATION: mark} if (mark := _template_mark(live)) else {}
    return with_intent(
        {
            "apiVersion": BY_KIND[live["kind"]].api_version,
            "kind": live["kind"],
            "metadata": {**metadata(owner, engine_of(spec).name), "annotations": marked},
            "spec": {**live["spec"], "replicas": spec.replicas},
        }
    )


def _template_mark(deployment: Manifest) -> str:
    return str((deployment["metadata"].get("annotations") or {}).get(TEMPLATE_ANNOTATION, ""))


def _requeue_at(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, now: datetime) -> datetime | None:
    """When the plan changes without an event: evidence expires, or a grace period for a pod ends."""
    closes = closes_at(spec, snapshot) if enforcement(spec, snapshot) != "Off" else None
    left_over = rolled_out_at(snapshot) if any(is_left_over(pod, snapshot) for pod in snapshot.pods) else None
    moments = (closes, left_over, *(unschedulable_deadline(pod) for pod in snapshot.pods))
    return min((moment for moment in moments if moment is not None and moment > now), default=None)


def _first_obstacle(desired: tuple[Manifest, ...], snapshot: ClusterSnapshot) -> Blocks | None:
    """The first object that has the name of a desired child and is not owned by this ModelDeployment."""
    found = (snapshot.children.get(_key(manifest)) for manifest in desired)
    return next((obstacle(live, snapshot.owner) for live in found if live and not is_ours(live, snapshot.owner)), None)


def obstacle(live: Manifest, owner: Owner) -> Blocks:
    """Reason and message for such an object: it is never overwritten; one of an earlier owner is being removed."""
    subject = f"{live['kind']} '{live['metadata']['name']}'"
    if any(one["kind"] == MODEL_DEPLOYMENT.kind and one["name"] == owner.name for one in _controllers(live)):
        return Blocks(
            Reason.PROGRESSING_WITH_RETRY,
            f"{subject} belongs to an earlier ModelDeployment of this name and is still being removed: the garbage "
            "collector of Kubernetes may pause for up to 17 minutes after an outage of the API server; "
            "wait, or delete it",
        )
    return Blocks(
        Reason.CHILD_NOT_OWNED,
        f"{subject} exists and is not owned by this ModelDeployment; rename the ModelDeployment or remove that object",
    )


def is_ours(live: Manifest, owner: Owner) -> bool:
    """Whether the object belongs to this ModelDeployment by uid, not to another one of the same name."""
    if live["kind"] == PERSISTENT_VOLUME.kind:
        return bool((live["metadata"].get("labels") or {}).get(OWNER_UID_LABEL) == owner.uid)
    return any(reference.get("uid") == owner.uid for reference in _controllers(live))


def _controllers(live: Manifest) -> Iterator[Mapping[str, Any]]:
    return (one for one in live["metadata"].get("ownerReferences") or () if one.get("controller"))


def _behind_closed_gate(desired: tuple[Manifest, ...], snapshot: ClusterSnapshot, replicas: int) -> Iterator[Manifest]:
    """What may be written while isolation is not proven: everything but new pods, once a Deployment exists.

    Nothing before there is a Deployment. A live Deployment keeps its template; a change that would create pods waits.
    A template that others changed is corrected at once, with at most as many replicas as running pods that are not
    shown to be of the changed template.
    """
    live = snapshot.workload.live
    if live is None:
        return
    for manifest in desired:
        if not CHILDREN[manifest["kind"]].runs_pods or replicas == 0:
            yield manifest
        elif (most := _startless(manifest, live, snapshot)) is not None:
            yield _with_replicas(manifest, min(replicas, snapshot.workload.replicas, most))


def _startless(manifest: Manifest, live: Manifest, snapshot: ClusterSnapshot) -> int | None:
    """The most replicas with which the manifest can be applied without starting a pod; None: only 0.

    None for a template that the spec changed: the running pods are of the earlier template, and keep it. None for one
    that others changed and rolled out before the gate closed: to correct it would end every pod.
    """
    replicas, template = snapshot.workload.replicas, manifest["spec"]["template"]
    if replicas == 0 or _same_template(manifest, live):
        return replicas
    is_changed_by_others = _template_mark(live) == _template_mark(manifest) or all_of(template, snapshot)
    if not is_changed_by_others:
        return None
    most = not_of_the_changed(template, snapshot)
    return None if most == 0 and were_started_with_a_proof(template, snapshot) else most


def _same_template(manifest: Manifest, live: Manifest) -> bool:
    """Whether applying the manifest would create no new pods."""
    return (
        _template_mark(live) == _template_mark(manifest)
        and holds_template(manifest, live)
        and not foreign_to_template(manifest, live)
    )


def _with_replicas(manifest: Manifest, replicas: int) -> Manifest:
    if manifest["spec"]["replicas"] == replicas:
        return manifest
    return with_intent({**manifest, "spec": {**manifest["spec"], "replicas": replicas}})


def exposed(snapshot: ClusterSnapshot) -> tuple[Deletion, ...]:
    """The model's own Service, to be deleted once it has a public address, whatever else blocks the spec."""
    live = snapshot.child(SERVICE)
    public = public_addresses(live, snapshot.policy) if live is not None else ()
    if live is None or not public or live["metadata"].get("deletionTimestamp") or not is_ours(live, snapshot.owner):
        return ()
    return (_deletion(live, f"the load balancer gave the public address '{public[0]}'", public_address=public[0]),)


def _private_only(wanted: tuple[Manifest, ...], snapshot: ClusterSnapshot) -> tuple[Manifest, ...]:
    """The manifests without the Service, once it was given a public address: not recreated for this generation."""
    live = snapshot.child(SERVICE)
    public = was_given_a_public_address(snapshot) if live is None else bool(public_addresses(live, snapshot.policy))
    return tuple(m for m in wanted if m["kind"] != SERVICE.kind) if public else wanted


def was_given_a_public_address(snapshot: ClusterSnapshot) -> bool:
    """Whether this generation of the spec already led to a public address."""
    condition = snapshot.condition(ConditionType.ENDPOINT_PRIVATE)
    return (
        condition is not None
        and condition.get("reason") == Reason.PUBLIC_ADDRESS
        and condition.get("observedGeneration") == snapshot.generation
    )


def _to_apply(
    wanted: tuple[Manifest, ...], snapshot: ClusterSnapshot
) -> tuple[tuple[Change, ...], tuple[Contested, ...]]:
    """What to apply, and which children are not rewritten during drift back-off."""
    due = [change for manifest in wanted if (change := _change(manifest, snapshot.children.get(_key(manifest))))]
    # Only repeated manifests are held back: a manifest that the spec changed is applied even then.
    barred = [change for change in due if intent(change.manifest) in snapshot.backed_off.get(_key(change.manifest), ())]
    return tuple(c for c in due if c not in barred), tuple(_contested(change, snapshot) for change in barred)


def _contested(change: Change, snapshot: ClusterSnapshot) -> Contested:
    live = snapshot.children.get(_key(change.manifest))
    if live is None:
        return Contested(_key(change.manifest))
    places = (*foreign(change.manifest, live), *differences(change.manifest, live))
    if not places:
        return Contested(_key(change.manifest))
    return Contested(_key(change.manifest), spelled(places[0]), writers(live, places[0]))


def _change(manifest: Manifest, live: Manifest | None) -> Change | None:
    if live is None:
        return Change(manifest, "absent")
    if live["metadata"].get("deletionTimestamp"):
        return None
    added = foreign(manifest, live)
    # An apply that drops a field leaves it in place if another manager owns it too.
    patch = whole(manifest, live) if added or live["metadata"].get("managedFields") else None
    if is_of_another_intent(manifest, live):
        return Change(manifest, "changed", patch)
    return Change(manifest, "drifted", patch) if added or has_drifted(manifest, live) else None


def _surplus(desired: tuple[Manifest, ...], snapshot: ClusterSnapshot, *, claims: bool) -> Iterator[Deletion]:
    """Objects of ours that the spec no longer asks for, with or without `claims`. Volumes: see plan/volume_sweep.py."""
    wanted = {_key(manifest) for manifest in desired}
    for key, live in snapshot.children.items():
        gone = live["metadata"].get("deletionTimestamp")
        if not CHILDREN[live["kind"]].dispensable or key in wanted or gone or not is_ours(live, snapshot.owner):
            continue
        if live["kind"] != PERSISTENT_VOLUME_CLAIM.kind or (claims and not _may_be_mounted(live, snapshot)):
            yield _deletion(live, "the spec no longer asks for it")


def _may_be_mounted(claim: Manifest, snapshot: ClusterSnapshot) -> bool:
    """Whether a pod may mount the claim: the live template names it, or pods of another template, not known here, run.

    Kubernetes keeps a deleted claim until its last pod ends, and starts no further pod that mounts it.
    """
    template = snapshot.workload.template
    if not template:
        return bool(snapshot.pods)
    named = (volume.get("persistentVolumeClaim") or {} for volume in template["spec"].get("volumes") or ())
    if any(mounted.get("claimName") == claim["metadata"]["name"] for mounted in named):
        return True
    return any(template_of(pod) != template_of(template) and not has_ended(pod) for pod in snapshot.pods)


def _deletion(live: Manifest, why: str, *, public_address: str = "") -> Deletion:
    seen = live["metadata"]
    return Deletion(
        kind=BY_KIND[live["kind"]],
        namespace=seen.get("namespace"),
        name=seen["name"],
        uid=seen["uid"],
        resource_version=seen["resourceVersion"],
        why=why,
        public_address=public_address,
    )


def _key(manifest: Manifest) -> tuple[str, str]:
    return (manifest["kind"], manifest["metadata"]["name"])

"""Foreign fields of a live object: server-side apply keeps what other managers added.

Everything of an object except metadata and status is compared: what the operator did not set and the API server does
not fill in is foreign, and a merge patch removes it. Of metadata, only annotations that steer a Service are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hermetic.api.public_services import PUBLISHES
from hermetic.kinds import MODEL_DEPLOYMENT, SERVICE
from hermetic.objects.children import CHILDREN
from hermetic.objects.workloads.registry import WORKLOADS
from hermetic.plan.tampering.field_owners import FieldStep, Steps, spelled

ANYTHING = object()
ASIDE = frozenset({"apiVersion", "kind", "metadata", "status"})
# Annotations by which a cloud provider and the cluster's network configure a Service.
STEERING = ("service.beta.kubernetes.io/", "service.kubernetes.io/")
_POD = "spec.template.spec"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

# What the API server fills in, by place (without merge keys), and with which value: of everything that runs pods.
FILLED_IN_TEMPLATE: Mapping[str, Any] = {
    f"{_POD}.restartPolicy": "Always",
    f"{_POD}.dnsPolicy": "ClusterFirst",
    f"{_POD}.schedulerName": "default-scheduler",
    f"{_POD}.volumes.secret.defaultMode": 0o644,
    **{f"{_POD}.{kind}.terminationMessagePath": "/dev/termination-log" for kind in ("containers", "initContainers")},
    **{f"{_POD}.{kind}.securityContext.procMount": "Default" for kind in ("containers", "initContainers")},
    f"{_POD}.containers.env.valueFrom.fieldRef.apiVersion": "v1",
    **{f"{_POD}.containers.{probe}.successThreshold": 1 for probe in _PROBES},
    # 'kubectl rollout restart' replaces pods without changing their content.
    "spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt": ANYTHING,
}
# By kind. Of other kinds: nothing.
FILLED: Mapping[str, Mapping[str, Any]] = {
    **{workload.resource.kind: {**FILLED_IN_TEMPLATE, **workload.filled} for workload in WORKLOADS},
    "Service": {
        **{
            f"spec.{name}": ANYTHING
            for name in (
                "clusterIP",
                "clusterIPs",
                "ipFamilies",
                "ipFamilyPolicy",
                "allocateLoadBalancerNodePorts",
                "healthCheckNodePort",
                "ports.nodePort",
            )
        },
        "spec.externalTrafficPolicy": "Cluster",
        "spec.internalTrafficPolicy": "Cluster",
        "spec.sessionAffinity": "None",
    },
    "PersistentVolume": {"spec.claimRef.uid": ANYTHING, "spec.claimRef.resourceVersion": ANYTHING},
}

# Fields that the API server does not let anyone remove once set, by kind: reported, not removed.
LASTING: Mapping[str, tuple[str, ...]] = {
    "PersistentVolume": ("nodeAffinity", "volumeAttributesClassName"),
    "PersistentVolumeClaim": ("volumeAttributesClassName",),
}


def foreign(desired: Mapping[str, Any], live: Mapping[str, Any]) -> tuple[Steps, ...]:
    """The places in the live object where another manager added something that can be removed."""
    added = _added(desired["kind"], _content(desired), _content(live), ())
    return (
        *added,
        *((FieldStep("metadata"), FieldStep("annotations"), FieldStep(name)) for name in _steering(desired, live)),
    )


def foreign_to_template(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether another manager added something to the pod template of a workload."""
    return any(steps[:2] == (FieldStep("spec"), FieldStep("template")) for steps in foreign(desired, live))


def lasting(live: Mapping[str, Any]) -> tuple[Steps, ...]:
    """The places where another manager added something that cannot be removed; no builder renders these fields."""
    spec = live.get("spec") or {}
    return tuple((FieldStep("spec"), FieldStep(name)) for name in LASTING.get(live["kind"], ()) if spec.get(name))


def whole(desired: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that gives the live object every desired value and removes the foreign fields that were seen.

    It names no resourceVersion unless it replaces ownerReferences: controllers write the status all the time. What
    others add meanwhile is removed by the next reconcile.
    """
    kind, metadata, live_metadata = desired["kind"], dict(desired["metadata"]), live["metadata"]
    ours, theirs = metadata.pop("ownerReferences", []), live_metadata.get("ownerReferences") or []
    uids = {reference["uid"] for reference in ours}
    left = any(
        reference.get("kind") == MODEL_DEPLOYMENT.kind and reference.get("uid") not in uids for reference in theirs
    )
    if left or any(reference not in theirs for reference in ours):
        # A ModelDeployment that no longer asks for the object is no owner of it either.
        remaining = (reference for reference in theirs if reference.get("kind") != MODEL_DEPLOYMENT.kind)
        foreign_references = [reference for reference in remaining if reference.get("uid") not in uids]
        metadata |= {
            "ownerReferences": [*foreign_references, *ours],
            "resourceVersion": live_metadata["resourceVersion"],
        }
    if steering := _steering(desired, live):
        metadata |= {"annotations": {**metadata.get("annotations", {}), **dict.fromkeys(steering)}}
    return {
        "apiVersion": desired["apiVersion"],
        "kind": kind,
        "metadata": {**metadata, "uid": live_metadata["uid"]},
        **_patch(kind, _content(desired), _content(live), ()),
    }


def _content(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in manifest.items() if name not in ASIDE}


def _steering(desired: Mapping[str, Any], live: Mapping[str, Any]) -> tuple[str, ...]:
    """Annotations by other managers that steer a Service."""
    if desired["kind"] != SERVICE.kind:
        return ()
    ours, theirs = (manifest["metadata"].get("annotations") or {} for manifest in (desired, live))
    steer = (name for name, value in theirs.items() if value and (name.startswith(STEERING) or name in PUBLISHES))
    return tuple(sorted(name for name in steer if name not in ours))


def _added(kind: str, desired: Any, live: Any, at: Steps) -> Iterator[Steps]:
    if desired == live:
        return
    if isinstance(desired, dict) and isinstance(live, dict):
        for key, value in live.items():
            steps = (*at, FieldStep(key))
            if key in desired:
                yield from _added(kind, desired[key], value, steps)
            elif not _is_filled_in(kind, desired, value, steps):
                yield steps
    elif (
        isinstance(desired, (list, tuple))
        and isinstance(live, (list, tuple))
        and (by := CHILDREN[kind].merge_keys.get(at[-1].field))
    ):
        yield from _added_items(kind, by, desired, live, at)


def _added_items(
    kind: str, by: tuple[str, ...], desired: Sequence[Any], live: Sequence[Any], at: Steps
) -> Iterator[Steps]:
    missing = {_key(item, by): item for item in desired}
    for item in live:
        key = _key(item, by)
        steps = (*at[:-1], FieldStep(at[-1].field, tuple(zip(by, key, strict=True))))
        ours = missing.pop(key, None)
        # A variable may be listed twice; the last one counts.
        if ours is None:
            yield steps
        else:
            yield from _added(kind, ours, item, steps)
    if (
        not missing
        and len(desired) == len(live)
        and [_key(entry, by) for entry in desired] != [_key(entry, by) for entry in live]
    ):
        yield at  # order matters: variables refer to earlier ones, init containers run in turn


def _key(item: Mapping[str, Any], by: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(item.get(field, "TCP" if field == "protocol" else None) for field in by)


def _is_filled_in(kind: str, beside: Mapping[str, Any], value: Any, steps: Steps) -> bool:
    if value in (None, "", [], {}) or (len(steps) == 2 and steps[1].field in LASTING.get(kind, ())):
        return True
    if CHILDREN[kind].runs_pods and steps[-1].field == "serviceAccount":
        return bool(value == beside.get("serviceAccountName"))
    path = spelled(steps, keys=False)
    if path == "spec.template.metadata.annotations":
        return all(_is_filled_in(kind, value, inner, (*steps, FieldStep(name))) for name, inner in value.items())
    expected = FILLED.get(kind, {}).get(path)
    return expected is ANYTHING or (expected is not None and value == expected)


def _patch(kind: str, desired: Any, live: Any, at: Steps) -> Any:
    if not isinstance(desired, dict) or not isinstance(live, dict):
        return desired
    patch = {key: _patch(kind, value, live.get(key), (*at, FieldStep(key))) for key, value in desired.items()}
    gone = [
        key
        for key, value in live.items()
        if key not in desired and not _is_filled_in(kind, desired, value, (*at, FieldStep(key)))
    ]
    return {**patch, **dict.fromkeys(gone)}

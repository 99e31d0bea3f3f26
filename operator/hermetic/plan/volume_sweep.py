"""Which PersistentVolumes and claims are no longer needed. Data stays: the reclaim policy of the volumes is Retain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hermetic.objects.names import OWNER_UID_LABEL, template_of
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.runtime_drift import has_ended

Manifest = Mapping[str, Any]


def volumes_to_remove(
    volumes: Iterable[Manifest], claims: Mapping[tuple[str, str], str], wanted_by: Callable[[str], str]
) -> Iterator[Manifest]:
    """Volumes of the operator that nothing uses or can use any more.

    `claims` maps (namespace, name) of every live claim to its uid; `wanted_by` the uid of a ModelDeployment to the
    name of the volume that its spec asks for, "" if it is gone. It is asked only about volumes that no claim keeps: a
    volume whose claim exists stays, for pods may read it.
    """
    for volume in volumes:
        if OWNER_UID_LABEL not in (volume["metadata"].get("labels") or {}) or _is_in_transition(volume):
            continue
        if _is_stranded(volume, claims) or (_claimed_by(volume) not in claims and not _is_wanted(volume, wanted_by)):
            yield volume


def may_be_mounted(claim: Manifest, snapshot: ClusterSnapshot) -> bool:
    """Whether a pod may mount the claim: the live template names it, or pods of another template, not known here, run.

    Kubernetes keeps a deleted claim until its last pod ends, and starts no further pod that mounts it.
    """
    templates = [part.template for part in snapshot.workload.parts if part.template]
    if not templates:
        return bool(snapshot.pods)
    volumes = (volume for template in templates for volume in template["spec"].get("volumes") or ())
    claims = (volume.get("persistentVolumeClaim") or {} for volume in volumes)
    if any(mounted.get("claimName") == claim["metadata"]["name"] for mounted in claims):
        return True
    marks = {template_of(template) for template in templates}
    return any(template_of(pod) not in marks and not has_ended(pod) for pod in snapshot.pods)


def _is_in_transition(volume: Manifest) -> bool:
    """Being deleted, or still bound as far as is known: its release arrives as an event with a newer version."""
    return bool(volume["metadata"].get("deletionTimestamp")) or (volume.get("status") or {}).get("phase") == "Bound"


def _is_stranded(volume: Manifest, claims: Mapping[tuple[str, str], str]) -> bool:
    """Released by a claim that is gone: it can never be bound again, not even by a claim of the same name."""
    bound_uid = (volume["spec"].get("claimRef") or {}).get("uid")
    released = (volume.get("status") or {}).get("phase") == "Released"
    return released and bool(bound_uid) and claims.get(_claimed_by(volume)) != bound_uid


def _is_wanted(volume: Manifest, wanted_by: Callable[[str], str]) -> bool:
    return bool(volume["metadata"]["name"] == wanted_by(volume["metadata"]["labels"][OWNER_UID_LABEL]))


def _claimed_by(volume: Manifest) -> tuple[str, str]:
    claim = volume["spec"].get("claimRef") or {}
    return (claim.get("namespace", ""), claim.get("name", ""))

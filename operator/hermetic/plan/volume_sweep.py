"""Which PersistentVolumes of the operator are no longer needed. Data stays: their reclaim policy is Retain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hermetic.objects.names import OWNER_UID_LABEL

Manifest = Mapping[str, Any]


def volumes_to_remove(
    volumes: Iterable[Manifest], claims: Mapping[tuple[str, str], str], wanted: Mapping[str, frozenset[str]]
) -> Iterator[Manifest]:
    """Volumes of the operator that nothing uses or can use any more.

    `claims` maps (namespace, name) of every live claim to its uid; `wanted` the uid of every live ModelDeployment to
    the names of the volumes that its spec asks for. A volume whose claim exists stays: pods may read it.
    """
    for volume in volumes:
        if OWNER_UID_LABEL not in (volume["metadata"].get("labels") or {}) or _is_in_transition(volume):
            continue
        if _is_stranded(volume, claims) or (_claimed_by(volume) not in claims and not _is_wanted(volume, wanted)):
            yield volume


def _is_in_transition(volume: Manifest) -> bool:
    """Being deleted, or still bound as far as is known: its release arrives as an event with a newer version."""
    return bool(volume["metadata"].get("deletionTimestamp")) or (volume.get("status") or {}).get("phase") == "Bound"


def _is_stranded(volume: Manifest, claims: Mapping[tuple[str, str], str]) -> bool:
    """Released by a claim that is gone: it can never be bound again, not even by a claim of the same name."""
    bound_uid = (volume["spec"].get("claimRef") or {}).get("uid")
    released = (volume.get("status") or {}).get("phase") == "Released"
    return released and bool(bound_uid) and claims.get(_claimed_by(volume)) != bound_uid


def _is_wanted(volume: Manifest, wanted: Mapping[str, frozenset[str]]) -> bool:
    owner = volume["metadata"]["labels"][OWNER_UID_LABEL]
    return volume["metadata"]["name"] in wanted.get(owner, frozenset())


def _claimed_by(volume: Manifest) -> tuple[str, str]:
    claim = volume["spec"].get("claimRef") or {}
    return (claim.get("namespace", ""), claim.get("name", ""))

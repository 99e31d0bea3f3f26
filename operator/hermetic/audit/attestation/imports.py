"""When each signed statement was first imported, by its digest, as the status of the EgressAudit remembers it.

Clocks of jump boxes differ: a statement whose `observedAt` is older can be the newer one. The order of first imports is
that of one clock, the API server's. An object that is deleted and created again (by Flux, for example) has a new
creation time; its digest is the same, so that the remembered time counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hermetic.api.egressaudit import MOST_IMPORTS
from hermetic.api.times import timestamp
from hermetic.audit.attestation.verification import Attestation
from hermetic.errors import AttestationRefused

Imports = Mapping[str, datetime]
"""First import by digest."""


def read_imports(status: Mapping[str, Any]) -> dict[str, datetime]:
    """The first imports that the status of the EgressAudit remembers."""
    return {entry["digest"]: datetime.fromisoformat(entry["at"]) for entry in status.get("imports") or ()}


def first_imports(
    candidates: Mapping[str, Attestation | AttestationRefused],
    created: Mapping[str, datetime],
    remembered: Imports,
    cluster_arm_id: str | None,
) -> dict[str, datetime]:
    """First imports of the remembered statements and of the authentic `candidates` about this cluster.

    `created`: creation time of each object by name. The clock of the operator plays no part: it may jump.
    """
    imports = dict(remembered)
    for name, candidate in candidates.items():
        if isinstance(candidate, Attestation) and _is_about(candidate, cluster_arm_id):
            imports[candidate.digest] = min(imports.get(candidate.digest, created[name]), created[name])
    return imports


def status_imports(imports: Imports, accepted: str | None) -> list[dict[str, str]]:
    """The list for the status: the latest imports, and always that of the accepted digest."""
    latest = sorted(imports.items(), key=lambda entry: (entry[0] == accepted, entry[1], entry[0]))[-MOST_IMPORTS:]
    return [{"digest": digest, "at": timestamp(moment)} for digest, moment in sorted(latest)]


def _is_about(attestation: Attestation, cluster_arm_id: str | None) -> bool:
    return cluster_arm_id is None or attestation.scope.cluster_arm_id.casefold() == cluster_arm_id.casefold()

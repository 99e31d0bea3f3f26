"""The condition AuditFaulty of an EgressAudit: set when a part of the audit itself has failed.

It stands by itself: the operator loads it before there is an EgressAudit, and the rest of the verdict after.
"""

from __future__ import annotations

from collections.abc import Mapping

from hermetic.api.audit_reasons import AuditReason
from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.conditions import ConditionType


def faulty(faults: Mapping[str, str]) -> ConditionUpdate:
    """The condition AuditFaulty: each part of the audit that failed, with its error."""
    message = "; ".join(f"{part}: {error}" for part, error in sorted(faults.items()))
    return ConditionUpdate(ConditionType.AUDIT_FAULTY, "True", AuditReason.AUDIT_FAULT, message)

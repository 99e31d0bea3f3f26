"""What the init container `verify-weights` of each pod found, from its termination message, and the condition from it.

Only the kubelet writes that message; a pod that others made is none of the snapshot's present template.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import Reason
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.text import single_line
from hermetic.api.weights_reasons import WEIGHTS_REASONS, WeightsReason
from hermetic.objects.weights_verifier import VERIFIER, verifier_in
from hermetic.plan.snapshot import ClusterSnapshot, last_end

_KIND = ConditionType.WEIGHTS_VERIFIED
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class WeightsVerification:
    """One result. `digest`, `signed_by`: "" where none was read. `reason` and `message` are of the first finding.

    `adapters`: by name the root digest of each, or the reason why it is not right.
    """

    verdict: Literal["Pass", "Fail", "Unknown"]
    digest: str = ""
    signed_by: str = ""
    files: int = 0
    bytes: int = 0
    reason: WeightsReason | None = None
    message: str = ""
    adapters: Mapping[str, str] = field(default_factory=dict)


def verification_of(status: Mapping[str, Any]) -> WeightsVerification | None:
    """The result in a container's status; None while there is none, and for a message of another form."""
    try:
        return _read(json.loads((last_end(status) or {}).get("message") or ""))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _read(document: Mapping[str, Any]) -> WeightsVerification:
    """Raises ValueError, TypeError or KeyError for another form."""
    verdict: Literal["Pass", "Fail", "Unknown"] = document["verdict"]
    if verdict not in ("Pass", "Fail", "Unknown"):
        raise ValueError(verdict)
    findings = document["findings"]
    reason = WEIGHTS_REASONS[findings[0]["reason"]] if findings else None
    if (verdict == "Pass") != (reason is None):
        raise ValueError(verdict)
    return WeightsVerification(
        verdict,
        single_line(str(document["digest"]), _LONGEST),
        single_line(str(document["signedBy"]), _LONGEST),
        int(document["files"]),
        int(document["bytes"]),
        reason,
        _sentence(findings[0], len(findings) + int(document["omitted"])) if findings else "",
        {str(name): single_line(str(result), _LONGEST) for name, result in document.get("adapters", {}).items()},
    )


def _sentence(finding: Mapping[str, Any], count: int) -> str:
    file, expected, observed = (single_line(str(finding[name]), _LONGEST) for name in ("file", "expected", "found"))
    compared = f"expected {expected}, found {observed}" if expected else observed
    more = f", and {count - 1} more" if count > 1 else ""
    return f"'{file}': {compared}{more}" if file else f"{compared}{more}"


def verifications(snapshot: ClusterSnapshot) -> Iterator[tuple[str, WeightsVerification]]:
    """(name of the pod, result) of the pods of the workload's present template."""
    for name, status in _verifying(snapshot):
        if (result := verification_of(status)) is not None:
            yield name, result


def _verifying(snapshot: ClusterSnapshot) -> Iterator[tuple[str, Mapping[str, Any]]]:
    workload = snapshot.workload
    for pod in snapshot.pods:
        if not workload.is_present(pod) or pod["metadata"].get("deletionTimestamp"):
            continue
        for status in (pod.get("status") or {}).get("initContainerStatuses") or ():
            if status.get("name") == VERIFIER:
                yield str(pod["metadata"]["name"]), status


def weights_verified(snapshot: ClusterSnapshot, *, pinned: bool) -> ConditionUpdate:
    """The condition of weights that are verified in their pods. `pinned`: a digest or a key says what they must be."""
    if verifier_in(snapshot.workload.template) is None:
        return ConditionUpdate(
            _KIND, "Unknown", Reason.INTEGRITY_PENDING, "no pod that verifies the weights exists yet"
        )
    results = sorted(
        verifications(snapshot),
        key=lambda named_result: (named_result[1].verdict != "Fail", named_result[1].verdict, named_result[0]),
    )
    for name, result in results:
        if result.reason is not None:
            truth = "Unknown" if result.verdict == "Unknown" else "False"
            return ConditionUpdate(_KIND, truth, result.reason, f"pod '{name}': {result.message}")
    if not results:
        return ConditionUpdate(_KIND, "Unknown", Reason.INTEGRITY_PENDING, "no pod has verified the weights yet")
    return _all_right([result for _, result in results], pinned=pinned)


def _all_right(results: list[WeightsVerification], *, pinned: bool) -> ConditionUpdate:
    first = results[0]
    if len({(result.digest, *sorted(result.adapters.items())) for result in results}) > 1:
        message = "pods verified different weights: the share was changed between their starts, and no digest is pinned"
        return ConditionUpdate(_KIND, "Unknown", SpecReason.INTEGRITY_NOT_PINNED, message)
    verified = f"{first.files} files, {first.bytes} bytes, root digest {first.digest}"
    if first.adapters:
        verified += f", and the adapters {', '.join(sorted(first.adapters))}"
    if not pinned:
        message = f"they match their own manifest ({verified}); neither digest nor key shows that it is the right one"
        return ConditionUpdate(_KIND, "Unknown", SpecReason.INTEGRITY_NOT_PINNED, message)
    signed = f", signed by {first.signed_by}" if first.signed_by else ""
    return ConditionUpdate(
        _KIND, "True", Reason.INTEGRITY_VERIFIED, f"verified before each engine started: {verified}{signed}"
    )

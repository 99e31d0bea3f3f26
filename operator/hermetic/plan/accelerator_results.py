"""What the init container `check-accelerators` of each pod found, from its termination message.

Only the kubelet writes that message. It counts for a pod that is as it was rendered, and for no other: who may create
pods could otherwise let a program of their own report.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hermetic.api.accelerator_reasons import ACCELERATOR_FINDINGS, AcceleratorReason
from hermetic.api.text import cut, one_line
from hermetic.objects.accelerator_checks import CHECKER
from hermetic.objects.names import Owner, template_of
from hermetic.plan.snapshot import ClusterSnapshot, last_end
from hermetic.plan.tampering.container_digests import containers, differing
from hermetic.plan.tampering.runtime_drift import contents_by_mark, has_rendered_identity, running

Level = Literal["Pass", "Warn", "Fail", "Unknown"]
Pod = Mapping[str, Any]
RATES = ("teraflops", "memoryGBs", "hostToDeviceGBs", "deviceToHostGBs", "peerGBs", "allReduceGBs")
"""Rates of the result: TFLOP/s, and GB/s (10^9 bytes)."""
_FINDINGS = {reason.value: reason for reason in ACCELERATOR_FINDINGS}
SEVERITY: tuple[Level, ...] = ("Fail", "Unknown", "Warn", "Pass")
_LONGEST_MESSAGE, _LONGEST_NAME, _MOST_GPUS, _LARGEST = 300, 64, 64, 1_000_000


@dataclass(frozen=True, slots=True)
class AcceleratorFinding:
    """One fault. `gpu`: its UUID, "" for a fault of the whole pod."""

    level: Level
    reason: AcceleratorReason
    gpu: str
    message: str

    def __str__(self) -> str:
        return f"GPU {self.gpu}: {self.message}" if self.gpu else self.message


@dataclass(frozen=True, slots=True)
class AcceleratorResult:
    """The result of one pod. `rates` are by the names of RATES; those that were not measured are absent.

    `findings`: the worst first; `omitted` more did not fit the message.
    """

    verdict: Level
    gpus: int
    driver: str
    seconds: float
    rates: Mapping[str, float]
    findings: tuple[AcceleratorFinding, ...] = ()
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class CheckedPod:
    """A pod that has ended its checks at least once; `result`: None where the message is not one of the program.

    `is_altered`: the pod is not as it was rendered, so its result does not count.
    """

    name: str
    node: str
    created: str
    result: AcceleratorResult | None
    is_altered: bool

    def __str__(self) -> str:
        return f"pod '{self.name}' on node '{self.node}'"


def checked_pods(snapshot: ClusterSnapshot) -> tuple[CheckedPod, ...]:
    """The pods of the present template that ended their checks, by name."""
    ended = [(pod, status) for pod, status in _checking(snapshot) if last_end(status)]
    expected = contents_by_mark(snapshot.workload) if ended else {}
    return tuple(
        CheckedPod(
            str(pod["metadata"]["name"]),
            str((pod.get("spec") or {}).get("nodeName") or ""),
            str(pod["metadata"].get("creationTimestamp", "")),
            result_of(status),
            is_altered=not _is_as_rendered(pod, expected[template_of(pod)], snapshot.owner),
        )
        for pod, status in ended
    )


def result_of(status: Mapping[str, Any]) -> AcceleratorResult | None:
    """The result in a container's status; None for a message that the program did not write, or not to its end."""
    ended = last_end(status) or {}
    try:
        result = _parse_result(json.loads(ended.get("message") or ""))
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, OverflowError):
        return None
    return result if result.verdict == "Fail" or ended.get("exitCode") == 0 else None


def _checking(snapshot: ClusterSnapshot) -> Iterator[tuple[Pod, Mapping[str, Any]]]:
    for pod in sorted(running(snapshot), key=lambda pod: str(pod["metadata"]["name"])):
        if snapshot.workload.is_present(pod):
            statuses = (pod.get("status") or {}).get("initContainerStatuses") or ()
            yield from ((pod, status) for status in statuses if status.get("name") == CHECKER)


def _is_as_rendered(pod: Pod, expected: Mapping[str, Any], owner: Owner) -> bool:
    """Whether the container that checks the GPUs, and the fields of the pod around it, are those of the template."""
    live = pod.get("spec") or {}
    checkers = [
        [container for kind, container in containers(spec) if (kind, container["name"]) == ("initContainers", CHECKER)]
        for spec in (live, expected)
    ]
    return (
        has_rendered_identity(pod, owner)
        and checkers[0] == checkers[1] != []
        and not differing(live.get("marks") or {}, expected["marks"])
    )


def _parse_result(document: Mapping[str, Any]) -> AcceleratorResult:
    """Raises ValueError, TypeError or KeyError for another form."""
    findings = tuple(map(_parse_finding, document["findings"]))
    omitted, verdict = _number(document["omitted"]), document["verdict"]
    levels: set[Level] = {finding.level for finding in findings}
    worst: Level = next((level for level in SEVERITY if level in levels), "Pass")
    if verdict != worst or (omitted and not findings):
        raise ValueError(verdict)
    return AcceleratorResult(
        worst,
        int(_number(document.get("gpus", 0), _MOST_GPUS)),
        cut(one_line(str(document["driver"])), _LONGEST_NAME) if document.get("driver") else "",
        _number(document["seconds"]),
        {name: _number(document[name]) for name in RATES if name in document},
        tuple(sorted(findings, key=lambda finding: SEVERITY.index(finding.level))),
        int(omitted),
    )


def _parse_finding(document: Mapping[str, Any]) -> AcceleratorFinding:
    reason, level = _FINDINGS[document["reason"]], document["level"]
    if level not in ("Fail", "Unknown", "Warn"):
        raise ValueError(level)
    gpu = cut(one_line(str(document["gpu"])), _LONGEST_NAME) if document["gpu"] else ""
    return AcceleratorFinding(level, reason, gpu, cut(one_line(str(document["message"])), _LONGEST_MESSAGE))


def _number(value: Any, largest: float = _LARGEST) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    if not (math.isfinite(value) and 0 <= value <= largest):
        raise ValueError(value)
    return value

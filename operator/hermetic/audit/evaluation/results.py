"""The result of a check for one resource, before doubt is applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from hermetic.api.field_managers import Place
from hermetic.audit.egress.masks import describe
from hermetic.audit.estate.observation import Observation, unreadable
from hermetic.audit.model.findings import Parts, Severity, Verdict
from hermetic.audit.model.hops import Path
from hermetic.audit.remedies.filling import Fill
from hermetic.errors import FactDamaged


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check for one resource, before doubt is applied.

    `severity` and `remedy` are given only where they differ from those of the check. `fill` has values of placeholders
    that only the check knows, such as the name of a rule. `blames` are the offending fields of a Kubernetes object; the
    writer is taken from the first of them that has one.
    """

    verdict: Verdict
    resource: str
    reason: str
    message: str
    observations: tuple[Observation, ...] = ()
    paths: tuple[Path, ...] = ()
    severity: Severity | None = None
    remedy: str = ""
    fill: Fill = field(default_factory=dict)
    parts: Parts | None = None
    masked: bool = False
    blames: tuple[Place, ...] = ()


def fails(  # noqa: PLR0913 - passed by keyword
    resource: str,
    reason: str,
    message: str,
    *observations: Observation,
    paths: Iterable[Path] = (),
    severity: Severity | None = None,
    remedy: str = "",
    fill: Fill | None = None,
    masked: bool = False,
    blames: Iterable[Place] = (),
) -> CheckResult:
    """A Fail. `paths` are hops in the order of a packet: `path_of(NODE_SUBNETS, PUBLIC_IP, INTERNET)`.

    `masked` where something else stops its packets today. `blames`: the offending fields.
    """
    return CheckResult(
        Verdict.FAIL, resource, reason, message, observations, tuple(paths), severity, remedy, fill or {},
        masked=masked, blames=tuple(blames),
    )  # fmt: skip


def passes(
    resource: str,
    reason: str,
    message: str,
    *observations: Observation,
    severity: Severity | None = None,
    parts: Parts | None = None,
) -> CheckResult:
    """A Pass. `observations` must hold every observation that it rests on: a Pass without evidence is a defect.

    With `parts` the verdict also depends on those: `hermetic.audit.result.derived_findings` settles it after
    exceptions.
    """
    return CheckResult(Verdict.PASS, resource, reason, message, observations, severity=severity, parts=parts)


def unknown(
    resource: str,
    reason: str,
    message: str,
    *observations: Observation,
    severity: Severity | None = None,
    remedy: str = "",
    fill: Fill | None = None,
) -> CheckResult:
    """An Unknown: what was observed does not decide the check."""
    return CheckResult(
        Verdict.UNKNOWN, resource, reason, message, observations, severity=severity, remedy=remedy, fill=fill or {}
    )


def does_not_apply(resource: str, reason: str, message: str, *observations: Observation) -> CheckResult:
    """A NotApplicable; `observations` are the observations that show it."""
    return CheckResult(Verdict.NOT_APPLICABLE, resource, reason, message, observations)


def whatever_is_damaged(resource: str, results: Iterable[CheckResult]) -> Iterator[CheckResult]:
    """The results of one resource; a field of it that cannot be read makes this resource Unknown, and no other."""
    try:
        yield from results
    except FactDamaged as damage:
        yield unknown(resource, "Unreadable", damage.message, unreadable(damage))


def with_masks(result: CheckResult, masks: tuple[str, ...]) -> CheckResult:
    """The Fail with its masks in its message, if there are any."""
    return replace(result, message=f"{result.message}; {describe(masks)}", masked=True) if masks else result

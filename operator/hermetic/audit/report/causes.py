"""Groups findings by the one change that settles them, in the order of fixing.

A cause holds the findings that fail or are unknown and that one change settles:

1. What could not be read for lack of the same permission is one cause: the permission.
2. Checks of one row of `cause_table` share a cause, for the whole cluster or for each resource.
3. Any other finding shares a cause with those of its check on the same resource.

A finding that follows from others (`derived_from`) belongs to the causes of those. It is listed under the first of
them and is settled with the last. Pure: equal findings give equal causes in equal order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from hermetic.audit.derived_findings import parts_of
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.findings import CheckPage, Finding, Severity, Verdict, urgency, worst_first
from hermetic.audit.report.cause_table import CHANGES, CauseOfFindings
from hermetic.audit.report.resources import readable, short_name

_CHANGE_OF: Mapping[str, CauseOfFindings] = {check: change for change in CHANGES for check in change.checks}
_OPEN = frozenset({Verdict.FAIL, Verdict.UNKNOWN})
_TROUBLE = frozenset(trouble.value for trouble in UnreadReason)
UNREAD = "unread-"
"""The begin of the id of a cause that is an answer that could not be read."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One change and the findings that it settles, by check and resource. `number` is its position in fixing order.

    `derived` are findings that are listed here and settled only when the causes of `awaits` are fixed too.
    `completes` are the derived findings, listed here or elsewhere, for which this cause is the last one.
    """

    id: str
    number: int
    title: str
    findings: tuple[Finding, ...]
    derived: tuple[Finding, ...] = ()
    awaits: tuple[int, ...] = ()
    completes: tuple[Finding, ...] = ()

    @property
    def worst(self) -> Finding:
        """The finding that determines the urgency of the cause."""
        return worst_first(self.findings)[0]

    @property
    def all(self) -> tuple[Finding, ...]:
        """All findings listed under it."""
        return (*self.findings, *self.derived)

    @property
    def unread(self) -> Finding | None:
        """Where findings are Unknown for one unread answer: one whose message most of them have; else None.

        All of them have its remedy.
        """
        if not self.id.startswith(UNREAD):
            return None
        counted = Counter(one.message for one in self.findings)
        return max(self.findings, key=lambda one: (counted[one.message], one.message))

    @property
    def settles(self) -> int:
        """How many findings are settled by this cause once the earlier ones are fixed."""
        return len(self.findings) + len(self.completes)

    def by_check(self) -> Iterator[tuple[str, tuple[Finding, ...]]]:
        """Its findings by check in the order of fixing, derived ones last."""
        groups: dict[str, list[Finding]] = defaultdict(list)
        for finding in (*worst_first(self.findings), *worst_first(self.derived)):
            groups[finding.check].append(finding)
        for check, findings in sorted(groups.items(), key=lambda group: _place(group[0])):
            yield (
                check,
                tuple(sorted(findings, key=lambda one: (*urgency(one), one.severity.rank, one.resource.lower()))),
            )


def causes_of(findings: Iterable[Finding], pages: Mapping[str, CheckPage]) -> tuple[Cause, ...]:
    """Every cause in the order of fixing: those that affect the verdict first, then by number of findings settled."""
    every = worst_first(findings)
    open_ = [finding for finding in every if finding.verdict in _OPEN]
    derived = {id(one): parts for one in open_ if (parts := _open_parts(one, every))}
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in open_:
        if id(finding) not in derived:
            groups[_key(finding)].append(finding)
    ordered = sorted(groups.items(), key=lambda group: _urgency(*group))
    names = _ids([key for key, _ in ordered])
    place = {id(one): number for number, (_, group) in enumerate(ordered, 1) for one in group}
    summed = [(one, sorted({place[id(part)] for part in derived[id(one)]})) for one in open_ if id(one) in derived]
    return tuple(
        Cause(
            id=names[key],
            number=number,
            title=_title(key, group, pages),
            findings=_sorted(group),
            derived=tuple(one for one, places in summed if places[0] == number),
            awaits=tuple(sorted({at for _, places in summed if places[0] == number for at in places[1:]})),
            completes=tuple(one for one, places in summed if places[-1] == number),
        )
        for number, (key, group) in enumerate(ordered, 1)
    )


def by_cause(findings: Iterable[Finding], pages: Mapping[str, CheckPage]) -> list[tuple[Finding, Cause | None]]:
    """Every finding with its cause: by cause and check; then findings without a cause, worst first."""
    kept = list(findings)
    under = [(finding, cause) for cause in causes_of(kept, pages) for _, group in cause.by_check() for finding in group]
    return under + [(finding, None) for finding in worst_first(kept) if finding.verdict not in _OPEN]


def _place(check: str) -> int:
    """The position of a check in its row of the table; checks in no row keep their order, and come last."""
    change = _CHANGE_OF.get(check)
    return change.checks.index(check) if change is not None else len(_CHANGE_OF)


def _key(finding: Finding) -> tuple[str, str]:
    """Findings with the same key share a cause: the change, and the resource where it is made per resource."""
    if finding.verdict is Verdict.UNKNOWN and finding.reason in _TROUBLE and finding.remedy:
        return f"{UNREAD}{finding.reason.lower()}", finding.remedy
    change = _CHANGE_OF.get(finding.check)
    if change is None:
        return finding.check, finding.resource.lower()
    return change.id, finding.resource.lower() if change.each else ""


def _title(key: tuple[str, str], group: list[Finding], pages: Mapping[str, CheckPage]) -> str:
    first = worst_first(group)[0]
    if key[0].startswith(UNREAD):
        return first.remedy.splitlines()[0].rstrip(".")
    change = _CHANGE_OF.get(first.check)
    if change is None:
        page = pages.get(first.check)
        return f"Not fulfilled: {page.title if page else first.check} ({readable(first.resource)})"
    return f"{change.title} ({readable(first.resource)})" if change.each else change.title


def _open_parts(finding: Finding, every: Iterable[Finding]) -> list[Finding]:
    """The findings that a derived one follows from and that fail or are unknown; none for any other finding."""
    if finding.derived_from is None:
        return []
    return [one for one in parts_of(finding.derived_from, every) if one.verdict in _OPEN]


def _urgency(key: tuple[str, str], group: list[Finding]) -> tuple[object, ...]:
    worst = worst_first(group)[0]
    deciding = sum(one.severity.decides for one in group)
    return (*urgency(worst), worst.severity.rank, -deciding, -len(group), key)


def _sorted(group: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(group, key=lambda one: (one.check, one.resource.lower(), one.resource)))


def _ids(keys: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A stable id for each key: the same in every audit while the same resources have findings."""
    names: dict[tuple[str, str], str] = {}
    for wanted, same in groupby(sorted(keys, key=lambda key: (_id(key), key)), key=_id):
        for place, key in enumerate(same):
            names[key] = wanted if place == 0 else f"{wanted}-{place + 1}"
    return names


def _id(key: tuple[str, str]) -> str:
    change, resource = key
    return f"{change}/{short_name(resource)}" if resource and not change.startswith(UNREAD) else change


def severities(findings: Iterable[Finding]) -> str:
    """ "2 critical, 1 high, 3 medium" of some findings."""
    kept = list(findings)
    counts = ((severity, sum(one.severity is severity for one in kept)) for severity in Severity)
    return ", ".join(f"{count} {severity}" for severity, count in counts if count)

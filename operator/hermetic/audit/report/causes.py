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

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import CheckPage, Finding, Severity, Verdict, urgency, worst_first
from hermetic.audit.report.cause_table import CHANGES, CauseOfFindings
from hermetic.audit.report.resources import readable, short_name
from hermetic.audit.result.derived_findings import parts_of

_CHANGE_OF: Mapping[str, CauseOfFindings] = {check: change for change in CHANGES for check in change.checks}
_OPEN = frozenset({Verdict.FAIL, Verdict.UNKNOWN})
_TROUBLE = frozenset(trouble.value for trouble in UnreadReason)
UNREAD = "unread-"
"""The begin of the id of a cause that is an answer that could not be read."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One change and the findings that it settles, by check and resource. `number` is its position in fixing order.

    `action` is the title without a resource: causes of several clusters with one action are the same work.
    `derived` are findings that are listed here and settled only when the causes of `awaits` are fixed too.
    `completes` are the derived findings, listed here or elsewhere, for which this cause is the last one.
    """

    id: str
    number: int
    title: str
    action: str
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
    def decides(self) -> bool:
        """Whether the verdict is not Pass before it is fixed."""
        return any(finding.severity.decides for finding in self.all)

    @property
    def unread(self) -> Finding | None:
        """Where findings are Unknown for one unread answer: one whose message most of them have; else None.

        All of them have its remedy.
        """
        if not self.id.startswith(UNREAD):
            return None
        counted = Counter(finding.message for finding in self.findings)
        return max(self.findings, key=lambda finding: (counted[finding.message], finding.message))

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
                tuple(
                    sorted(
                        findings,
                        key=lambda finding: (*urgency(finding), finding.severity.rank, finding.resource.lower()),
                    )
                ),
            )


def causes_of(findings: Iterable[Finding], pages: Mapping[str, CheckPage]) -> tuple[Cause, ...]:
    """Every cause in the order of fixing: those that affect the verdict first, then by number of findings settled."""
    every = worst_first(findings)
    open_ = [finding for finding in every if finding.verdict in _OPEN]
    derived = {id(finding): parts for finding in open_ if (parts := _open_parts(finding, every))}
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in open_:
        if id(finding) not in derived:
            groups[_key(finding)].append(finding)
    ordered = sorted(groups.items(), key=lambda group: _urgency(*group))
    names = _ids([key for key, _ in ordered])
    numbers = {id(finding): number for number, (_, group) in enumerate(ordered, 1) for finding in group}
    summed = [
        (finding, sorted({numbers[id(part)] for part in derived[id(finding)]}))
        for finding in open_
        if id(finding) in derived
    ]
    return tuple(
        Cause(
            id=names[key],
            number=number,
            title=_title(key, group, pages),
            action=_cause_action(key, group, pages),
            findings=_sorted(group),
            derived=tuple(finding for finding, cause_numbers in summed if cause_numbers[0] == number),
            awaits=tuple(
                sorted({at for _, cause_numbers in summed if cause_numbers[0] == number for at in cause_numbers[1:]})
            ),
            completes=tuple(finding for finding, cause_numbers in summed if cause_numbers[-1] == number),
        )
        for number, (key, group) in enumerate(ordered, 1)
    )


def by_cause(findings: Iterable[Finding], pages: Mapping[str, CheckPage]) -> list[tuple[Finding, Cause | None]]:
    """Every finding with its cause: by cause and check; then findings without a cause, worst first."""
    all_findings = list(findings)
    under = [
        (finding, cause)
        for cause in causes_of(all_findings, pages)
        for _, group in cause.by_check()
        for finding in group
    ]
    return under + [(finding, None) for finding in worst_first(all_findings) if finding.verdict not in _OPEN]


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
    return change.id, finding.resource.lower() if change.is_per_resource else ""


def _title(key: tuple[str, str], group: list[Finding], pages: Mapping[str, CheckPage]) -> str:
    """The change as an imperative, with the resource where it is made for each."""
    action = _cause_action(key, group, pages)
    if key[0].startswith(UNREAD) or not key[1]:
        return action
    return f"{action} ({readable(worst_first(group)[0].resource)})"


def _cause_action(key: tuple[str, str], group: list[Finding], pages: Mapping[str, CheckPage]) -> str:
    """The change as an imperative, without a resource."""
    first = worst_first(group)[0]
    if key[0].startswith(UNREAD):
        return first.remedy.splitlines()[0].rstrip(".")
    change = _CHANGE_OF.get(first.check)
    return change.title if change is not None else _action(first, pages)


def _action(finding: Finding, pages: Mapping[str, CheckPage]) -> str:
    """The action of the check's page; a check of another release may have no page here."""
    if finding.verdict is Verdict.UNKNOWN:
        return f"Settle what is unknown about {finding.check}"
    page = pages.get(finding.check)
    return page.action if page is not None and page.action else f"Fulfil {finding.check}"


def _open_parts(finding: Finding, every: Iterable[Finding]) -> list[Finding]:
    """The findings that a derived one follows from and that fail or are unknown; none for any other finding."""
    if finding.derived_from is None:
        return []
    return [part for part in parts_of(finding.derived_from, every) if part.verdict in _OPEN]


def _urgency(key: tuple[str, str], group: list[Finding]) -> tuple[object, ...]:
    worst = worst_first(group)[0]
    deciding = sum(finding.severity.decides for finding in group)
    return (*urgency(worst), worst.severity.rank, -deciding, -len(group), key)


def _sorted(group: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(group, key=lambda finding: (finding.check, finding.resource.lower(), finding.resource)))


def _ids(keys: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A stable id for each key: the same in every audit while the same resources have findings."""
    names: dict[tuple[str, str], str] = {}
    for cause_id, same in groupby(sorted(keys, key=lambda key: (_id(key), key)), key=_id):
        for position, key in enumerate(same):
            names[key] = cause_id if position == 0 else f"{cause_id}-{position + 1}"
    return names


def _id(key: tuple[str, str]) -> str:
    change, resource = key
    return f"{change}/{short_name(resource)}" if resource and not change.startswith(UNREAD) else change


def severities(findings: Iterable[Finding]) -> str:
    """ "2 critical, 1 high, 3 medium" of some findings."""
    all_findings = list(findings)
    counts = ((severity, sum(finding.severity is severity for finding in all_findings)) for severity in Severity)
    return ", ".join(f"{count} {severity}" for severity, count in counts if count)

"""The report for a terminal: what to fix and in which order, then each cause with its checks and their resources.

Lines have a tone, not a colour: `as_table` drops it, and the command line maps it to colours on a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from hermetic.api.text import printable, wrapped
from hermetic.api.times import timestamp
from hermetic.audit.model.findings import CheckPage, Finding, Severity, Verdict, worst_first
from hermetic.audit.model.hops import Path, shown
from hermetic.audit.remedies.steps import is_command
from hermetic.audit.report.cause_sentence import cause_sentence, since_sentence
from hermetic.audit.report.causes import Cause, causes_of
from hermetic.audit.report.resources import readable, short_name
from hermetic.audit.report.sentences import (
    acceptance,
    awaiting,
    belonging,
    evidence_line,
    facts_of_the_run,
    fixing_range,
    heading_of,
    headline,
    last_deciding,
    page_of,
    remedy_of,
    settling,
    since,
    transition,
)
from hermetic.audit.result.open_since import Opening, key_of
from hermetic.audit.result.report import Comparison, FindingChange, Report

WIDTH = 100
ROOMY = 80
_OPEN = (Verdict.FAIL, Verdict.UNKNOWN)
_BRIEF = (Verdict.PASS, Verdict.NOT_APPLICABLE)


class Tone(StrEnum):
    """The meaning of a line's colour."""

    BAD = "bad"
    UNSURE = "unsure"
    GOOD = "good"
    STRONG = "strong"
    PLAIN = "plain"


_TONES = {
    Verdict.FAIL: Tone.BAD,
    Verdict.UNKNOWN: Tone.UNSURE,
    Verdict.EXCEPTED: Tone.UNSURE,
    Verdict.PASS: Tone.GOOD,
    Verdict.NOT_APPLICABLE: Tone.PLAIN,
}


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of output, without its line break: a break in a text, of a note for example, becomes a blank."""

    text: str
    tone: Tone = Tone.PLAIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", " ".join(self.text.splitlines()))


def as_table(report: Report, pages: Mapping[str, CheckPage], *, width: int = WIDTH, wide: bool = False) -> str:
    """Plain text. `width` in columns wraps prose, never a command or an id; `wide` adds full ids and evidence."""
    return "".join(f"{line.text.rstrip()}\n" for line in lines(report, pages, width=width, wide=wide))


def lines(
    report: Report, pages: Mapping[str, CheckPage], *, width: int = WIDTH, wide: bool = False
) -> Iterator[TableLine]:
    """The lines of `as_table`, with tones."""
    shown = _Shown(pages, width, wide, report.openings)
    causes = causes_of(report.findings, pages)
    yield from shown.head(report, causes)
    yield from shown.order(causes)
    for cause in causes:
        yield from shown.cause(cause)
    settled = [finding for finding in worst_first(report.findings) if finding.verdict not in _OPEN]
    for heading, group in groupby(settled, key=heading_of):
        below = list(group)
        yield TableLine("")
        yield TableLine(f"{heading} ({len(below)})", Tone.STRONG)
        yield from (shown.brief if below[0].verdict in _BRIEF else shown.full)(below)
    yield from shown.tail(report)


def closing_lines(
    report: Report, pages: Mapping[str, CheckPage], files: Sequence[str], *, width: int = WIDTH
) -> Iterator[TableLine]:
    """The end of the output on a terminal: verdict, what to fix to reach Pass, and where the report is."""
    shown = _Shown(pages, width, wide=False, openings=report.openings)
    causes = causes_of(report.findings, pages)
    yield TableLine("")
    yield TableLine(f"{report.verdict}  {printable(short_name(report.cluster))}", _TONES[report.verdict])
    sentences = (cause_sentence(causes), since_sentence(report, causes), headline(report), fixing_range(causes))
    yield from shown.prose(" ".join(filter(None, sentences)), "")
    written = f"Report: {', '.join(files)}" if files else "No report was written: add --out report.html"
    yield from shown.prose(written, "")


@dataclass(frozen=True, slots=True)
class _Shown:
    """The options of one output: the pages, the width, the level of detail, and since when findings fail."""

    pages: Mapping[str, CheckPage]
    width: int
    wide: bool
    openings: Mapping[tuple[str, str], Opening]

    @property
    def indent(self) -> str:
        """The indent of what is below a check; smaller in a narrow terminal."""
        return " " * (10 if self.width >= ROOMY else 2)

    def head(self, report: Report, causes: Sequence[Cause]) -> Iterator[TableLine]:
        tone = _TONES[report.verdict]
        yield TableLine(f"{report.verdict}  {printable(short_name(report.cluster))}", tone)
        yield from self.prose(headline(report), "")
        yield from self.prose(" ".join(filter(None, (cause_sentence(causes), since_sentence(report, causes)))), "")
        if self.wide:
            yield TableLine(printable(report.cluster))
        yield from self.prose(belonging(report.ownership), "")
        seconds = (report.finished_at - report.started_at).total_seconds()
        sources = ", ".join(report.sources) or "no source"
        yield from self.prose(
            f"profile {report.profile}; asked {sources}; {timestamp(report.finished_at)} after {seconds:.0f} s", ""
        )
        if run := facts_of_the_run(report):
            yield from self.prose("; ".join(f"{name.replace('-', ' ')} {value}" for name, value in run.items()), "")
        yield TableLine("   ".join(f"{verdict} {count}" for verdict, count in report.summary.items()), Tone.STRONG)
        for note in report.notes:
            yield from self.prose(f"note: {note}", "", Tone.UNSURE)
        if report.comparison is not None:
            yield from self._since(report.comparison)

    def _since(self, comparison: Comparison) -> Iterator[TableLine]:
        """Changes since the baseline: every finding that is, or was, Fail, Unknown or Excepted."""
        yield TableLine("")
        yield TableLine(f"Since {printable(comparison.finished_at)} (then {comparison.verdict})", Tone.STRONG)
        yield from self.prose(since(comparison), "  ")
        for change in comparison.that_matter:
            text = f"{change.kind}: {transition(change)}: {change.check} {readable(change.resource)}"
            yield from self.prose(text, "  ", _tone_of(change))

    def order(self, causes: tuple[Cause, ...]) -> Iterator[TableLine]:
        """One line for each cause, in the order of fixing."""
        if not causes:
            return
        yield TableLine("")
        yield TableLine(f"What to fix, in this order ({len(causes)})", Tone.STRONG)
        for cause in causes:
            indent = " " * 4
            rows = self.prose(f"{cause.title}; {settling(cause)}", indent, _tone(cause.worst))
            for position, row in enumerate(rows):
                yield row if position else TableLine(f"{cause.number:>3} {row.text[len(indent) :]}", row.tone)
            if cause.number == last_deciding(causes) < len(causes):
                yield TableLine(f"{indent}--- {fixing_range(causes)}", Tone.STRONG)

    def cause(self, cause: Cause) -> Iterator[TableLine]:
        """A cause in full, by check."""
        yield TableLine("")
        rows = self.prose(f"{cause.number}  {cause.title} ({len(cause.all)})", "", Tone.STRONG)
        yield from rows
        once: tuple[str, ...] = ()
        if len(cause.all) > 1 and (unread := cause.unread) is not None:
            once = (unread.message, unread.remedy)
            yield from self.prose(unread.message, self.indent)
            yield from self._remedy(unread.remedy)
        for check, findings in cause.by_check():
            for (verdict, severity), group in groupby(
                findings, key=lambda finding: (finding.verdict, finding.severity)
            ):
                label = "" if verdict is Verdict.FAIL else f"  {verdict}"
                yield from self._block(severity, check, list(group), label, once)
            if any(finding.check == check for finding in cause.derived) and cause.awaits:
                yield from self.prose(awaiting(cause), self.indent)

    def full(self, findings: list[Finding]) -> Iterator[TableLine]:
        for (check, severity), group in groupby(
            sorted(findings, key=lambda finding: finding.check), key=lambda finding: (finding.check, finding.severity)
        ):
            yield from self._block(severity, check, list(group))

    def brief(self, findings: list[Finding]) -> Iterator[TableLine]:
        """Pass and NotApplicable findings: which checks, on how many resources."""
        if self.wide:
            for finding in sorted(findings, key=lambda finding: (finding.check, finding.resource.lower())):
                yield TableLine(f"  {finding.check}  {printable(finding.resource)}")
                yield from self._evidence(finding)
            return
        counted = sorted(Counter(finding.check for finding in findings).items())
        line = "  ".join(check if count == 1 else f"{check}\N{MULTIPLICATION SIGN}{count}" for check, count in counted)
        yield from self.prose(line, "  ")

    def tail(self, report: Report) -> Iterator[TableLine]:
        if report.not_asked:
            yield TableLine("")
            yield TableLine("Not asked", Tone.STRONG)
        for source, checks in sorted(report.not_asked.items()):
            yield from self.prose(f"{source}: {', '.join(sorted(checks))}", "  ")

    def _block(
        self, severity: Severity, check: str, findings: list[Finding], verdict: str = "", once: tuple[str, ...] = ()
    ) -> Iterator[TableLine]:
        """One check with one or many resources: the title and a shared remedy are printed once.

        `once` are a message and a remedy that are printed above.
        """
        yield TableLine(f"{severity:<8}  {check}{verdict}", _tone(findings[0]))
        yield from self.prose(f"expected: {page_of(check, self.pages).title}", self.indent)
        remedies = list(dict.fromkeys(remedy_of(finding, self.pages) for finding in findings))
        for finding in findings:
            yield from self._finding(finding, once)
            if len(remedies) > 1:
                yield from self._remedy(remedy_of(finding, self.pages))
        if len(remedies) == 1 and remedies[0] not in once:
            yield from self._remedy(remedies[0])

    def _finding(self, finding: Finding, once: tuple[str, ...] = ()) -> Iterator[TableLine]:
        resource = finding.resource if self.wide else readable(finding.resource)
        yield TableLine(f"{self.indent}{printable(resource)}", Tone.STRONG)
        if finding.message not in once:
            yield from self.prose(finding.message or finding.reason, self.indent)
        for path in finding.paths:
            yield from self._path(path)
        yield from self.prose(acceptance(finding), self.indent)
        if (opening := self.openings.get(key_of(finding))) is not None:
            yield from self.prose(f"failing {opening.phrase}", self.indent)
        yield from self._evidence(finding)

    def _path(self, path: Path) -> Iterator[TableLine]:
        """As many hops per line as fit; a line breaks before an arrow, never within a hop."""
        row = self.indent
        for position, hop in enumerate(printable(hop.label) for hop in shown(path)):
            arrow = " -> " if position else "  "
            if position and len(row) + len(arrow) + len(hop) > self.width:
                yield TableLine(row, Tone.BAD)
                row = self.indent + "  "
            row += arrow + hop
        yield TableLine(row, Tone.BAD)

    def _remedy(self, remedy: str) -> Iterator[TableLine]:
        if remedy:
            yield TableLine(f"{self.indent}remedy:")
        for row in map(str.strip, printable(remedy).splitlines()):
            if is_command(row):
                yield TableLine(f"{self.indent}  {row}")
            else:
                yield from self.prose(row, f"{self.indent}  ")

    def _evidence(self, finding: Finding) -> Iterator[TableLine]:
        if self.wide:
            yield from (
                TableLine(f"{self.indent}  {printable(evidence_line(exchange))}") for exchange in finding.evidence
            )

    def prose(self, text: str, indent: str, tone: Tone = Tone.PLAIN) -> Iterable[TableLine]:
        # Names of objects are in the text: none may be the first word of a line that looks like one of the table.
        return [TableLine(row, tone) for row in wrapped(printable(text), self.width, indent, indent or "  ") if text]


def _tone(finding: Finding) -> Tone:
    return _TONES[finding.verdict] if finding.severity.decides else Tone.UNSURE


def _tone_of(change: FindingChange) -> Tone:
    if change.now is None:
        return Tone.GOOD
    return _TONES[change.now.verdict]

"""The report as one HTML file: it fetches nothing and runs only the script of this package.

The content security policy forbids every request and every script or style but the two of this package, by digest.
Jinja escapes the names of resources; the embedded JSON cannot end its own element.
"""

from __future__ import annotations

import hashlib
import re
import string
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hermetic.api.text import printable
from hermetic.api.times import timestamp
from hermetic.audit.model.findings import CheckPage, Evidence, Finding, Severity, Verdict, by_check
from hermetic.audit.model.hops import shown
from hermetic.audit.model.topology import NetworkLink
from hermetic.audit.remedies.steps import RemedyStep
from hermetic.audit.report.cause_sentence import cause_sentence, opening_of, since_sentence
from hermetic.audit.report.causes import Cause, causes_of
from hermetic.audit.report.drawing import Drawing, drawing_of
from hermetic.audit.report.json_form import as_json, digest
from hermetic.audit.report.paths import DrawnPath, bundles_of, drawn_paths, topology_of
from hermetic.audit.report.resources import readable, short_name
from hermetic.audit.report.sentences import (
    acceptance,
    awaiting,
    belonging,
    cause_summary,
    controls_of,
    fixing_range,
    headline,
    last_deciding,
    page_of,
    remedy_steps,
    settling,
    since,
    transition,
)
from hermetic.audit.result.report import Report

_ROOM = "hermetic.audit.report"
_PLAIN = frozenset(f"{string.ascii_letters}{string.digits} -_./:")
_FULL = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.EXCEPTED)
_WORDS = {Verdict.NOT_APPLICABLE: "Not applicable"}
# replaces characters that could end the element or start another by their JSON escapes
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Card:
    """One finding as the page shows it; `anchor` is the same in every audit of the same cluster.

    `steps` are the remedy. `evidence` has the numbers of its evidence in the table of all evidence, each with the value
    that was read. `since` says since when it fails, "" where no earlier report shows it.
    """

    finding: Finding
    page: CheckPage
    anchor: str
    resource: str
    paths: tuple[tuple[str, ...], ...]
    steps: tuple[RemedyStep, ...]
    accepted: str
    evidence: tuple[tuple[int, str], ...]
    since: str


@dataclass(frozen=True, slots=True)
class CheckView:
    """One check below a cause, with a card for each resource. `steps` is set where all resources share them."""

    page: CheckPage
    controls: str
    cards: tuple[Card, ...]
    steps: tuple[RemedyStep, ...]


@dataclass(frozen=True, slots=True)
class CauseView:
    """A cause with its checks, and its dependencies on other causes."""

    cause: Cause
    settling: str
    awaiting: str
    checks: tuple[CheckView, ...]


@dataclass(frozen=True, slots=True)
class PageContext:
    """Context of every part of the page: the report, the pages of the checks, and the number of each evidence."""

    report: Report
    pages: Mapping[str, CheckPage]
    numbers: Mapping[Evidence, int]

    def card(self, finding: Finding) -> Card:
        opening = opening_of(self.report, finding)
        return Card(
            finding=finding,
            page=page_of(finding.check, self.pages),
            anchor=_anchor("f", f"{finding.check}\n{finding.resource.lower()}"),
            resource=readable(finding.resource),
            paths=tuple(tuple(hop.label for hop in shown(path)) for path in finding.paths),
            steps=remedy_steps(finding, self.pages),
            accepted=acceptance(finding),
            evidence=tuple((self.numbers[exchange], exchange.value) for exchange in finding.evidence),
            since=opening.phrase if opening is not None else "",
        )

    def check(self, check: str, findings: Iterable[Finding]) -> CheckView:
        """The view of one check with several resources."""
        cards = tuple(self.card(finding) for finding in findings)
        steps = {card.steps for card in cards}
        page = page_of(check, self.pages)
        return CheckView(page, controls_of(page), cards, cards[0].steps if len(steps) == 1 else ())

    def cause(self, cause: Cause) -> CauseView:
        """The view of one cause with its checks."""
        checks = tuple(self.check(check, findings) for check, findings in cause.by_check())
        return CauseView(cause, settling(cause), awaiting(cause), checks)


def as_html(report: Report, pages: Mapping[str, CheckPage]) -> str:
    """The whole page. Scripts are optional: they filter, search and unfold sections before printing."""
    content = _content(report, pages)
    style = _asset("report.css") + page_footer(_footer(report, content["digest"]))
    script = _asset("report.js")
    # files of this package and an escaped footer; the digests in the content security policy are of exactly these bytes
    texts = {"style": Markup(style), "script": Markup(script), "policy": _policy(style, script)}  # noqa: S704
    return _environment().get_template("report.html.j2").render(**content, **texts) + "\n"


def as_page(template: str, content: Mapping[str, Any], footer: str) -> str:
    """A page of another template in the same style, without a script. `footer`: what each printed page is about."""
    style = _asset("report.css") + page_footer(footer)
    texts = {"style": Markup(style), "policy": _policy(style, "")}  # noqa: S704 - of this package, the footer escaped
    return _environment().get_template(template).render(**content, **texts) + "\n"


@cache
def _environment() -> Environment:
    """The environment is cached: compiling the templates takes longer than rendering them."""
    environment = Environment(
        loader=PackageLoader(_ROOM),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters["time"] = timestamp
    environment.filters["readable"] = readable
    environment.filters["since"] = since
    environment.filters["transition"] = transition
    environment.filters["short"] = short_name
    environment.filters["anchor"] = lambda text: _anchor("c", text)
    environment.filters["segments"] = id_segments
    environment.filters["style"] = style_of
    environment.filters["word"] = lambda verdict: _WORDS.get(verdict, verdict)
    return environment


def _content(report: Report, pages: Mapping[str, CheckPage]) -> dict[str, Any]:
    paths, minor_paths = _by_weight(drawn_paths(report))
    topology = topology_of(report, paths)
    causes = causes_of(report.findings, pages)
    fine = [finding for finding in by_check(report.findings) if finding.verdict not in _FULL]
    excepted = [finding for finding in by_check(report.findings) if finding.verdict is Verdict.EXCEPTED]
    findings = [*(finding for cause in causes for _, group in cause.by_check() for finding in group), *excepted, *fine]
    evidence = list(dict.fromkeys(exchange for finding in findings for exchange in finding.evidence))
    shown = PageContext(report, pages, {exchange: number for number, exchange in enumerate(evidence, 1)})
    drawing = drawing_of(topology)
    return {
        "report": report,
        "cause": " ".join(filter(None, (cause_sentence(causes), since_sentence(report, causes)))),
        "headline": headline(report),
        "to_reach_pass": cause_summary(causes),
        "fixing_range": fixing_range(causes),
        "last_deciding": last_deciding(causes),
        "seconds": round((report.finished_at - report.started_at).total_seconds()),
        "counts": list(_counts(report)),
        "verdicts": [(verdict, count) for verdict, count in report.summary.items() if count],
        "severities": [severity for severity in Severity if _has(report, severity)],
        "drawing": drawing,
        "styles": _styles(drawing),
        "labels": {node.id: node.label for node in topology.nodes},
        "ways": paths,
        "bundles": bundles_of(paths),
        "minor_bundles": bundles_of(minor_paths),
        "causes": [shown.cause(cause) for cause in causes if not cause.worst.severity.is_minor],
        "minor_causes": [shown.cause(cause) for cause in causes if cause.worst.severity.is_minor],
        "order": [(cause, settling(cause)) for cause in causes],
        "accepted": [
            shown.check(check, group) for check, group in groupby(excepted, key=lambda finding: finding.check)
        ],
        "fine": [
            shown.card(finding) for finding in sorted(fine, key=lambda finding: page_of(finding.check, pages).family)
        ],
        "families": sorted({page_of(finding.check, pages).family for finding in report.findings}),
        "resources": sorted({readable(finding.resource) for finding in report.findings}),
        "evidence": evidence,
        "values": _values(findings),
        "controls": list(_controls(report, pages)),
        "not_asked": [(source, sorted(checks)) for source, checks in sorted(report.not_asked.items())],
        "belonging": belonging(report.ownership),
        "digest": digest(report, pages),
        "machine": Markup(as_json(report, pages).translate(_ESCAPES)),  # noqa: S704 - escaped: it cannot end the element
    }


def _by_weight(paths: list[DrawnPath]) -> tuple[list[DrawnPath], list[DrawnPath]]:
    """The paths to draw, and those of low severity, which are only listed. Where all are low, all are drawn."""
    minor = [path for path in paths if path.severity.is_minor]
    return (paths, []) if len(minor) == len(paths) else ([path for path in paths if not path.severity.is_minor], minor)


def _footer(report: Report, sha256: str) -> str:
    """What a loose page needs to be attributed: the cluster, the time, the digest of the report."""
    return f"{report.verdict}  {short_name(report.cluster)}  {timestamp(report.finished_at)}  sha256 {sha256}"


def page_footer(text: str) -> str:
    """CSS that prints the text and the page number below each page (css-page-3, "Page-margin boxes").

    Every character but ASCII letters, digits and a few signs is escaped as CSS does it (css-syntax-3): the text is of
    the cluster, and must not end the string.
    """
    escaped = "".join(char if char in _PLAIN else f"\\{ord(char):x} " for char in printable(text))
    box = "font: 8px system-ui, sans-serif; color: #55606f;"
    return (
        f'\n@page {{\n  @bottom-left {{ {box} content: "{escaped}"; width: 85%; }}\n'
        f'  @bottom-right {{ {box} content: counter(page) " / " counter(pages); }}\n}}\n'
    )


def _values(findings: Iterable[Finding]) -> dict[Evidence, str]:
    """The value that was read, by evidence, of all findings."""
    read: dict[Evidence, dict[str, None]] = {}
    for exchange in (exchange for finding in findings for exchange in finding.evidence):
        read.setdefault(exchange, {}).update({value: None for value in exchange.value.split("; ") if value})
    return {exchange: "; ".join(values) for exchange, values in read.items()}


def _styles(drawing: Drawing) -> list[str]:
    """The line styles that occur in the drawing, for the legend."""
    styles = {style_of(arrow.link) for arrow in drawing.arrows}
    return [style for style in ("open", "masked", "inbound", "accepted", "closed") if style in styles]


def id_segments(resource: str) -> list[str]:
    """The parts of an ARM id between which a line may end, each with the slash before it; together they are the id."""
    return [segment for segment in re.split("(?=/)", resource) if segment]


def style_of(link: NetworkLink) -> str:
    """The CSS class of a line: its target, then whether a packet can take it."""
    if not link.open:
        return "closed"
    if link.inbound:
        return "inbound"
    return link.state if link.state in {"masked", "accepted"} else "open"


def _anchor(sort: str, text: str) -> str:
    return f"{sort}-{hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()[:12]}"


def _counts(report: Report) -> Iterator[tuple[Severity, dict[Verdict, int]]]:
    for severity in Severity:
        yield severity, _counted(finding.verdict for finding in report.findings if finding.severity is severity)


def _controls(report: Report, pages: Mapping[str, CheckPage]) -> Iterator[tuple[str, str, dict[Verdict, int]]]:
    """Each control that a check serves: its framework, its id, and how many findings have each verdict."""
    verdicts: dict[tuple[str, str], list[Verdict]] = {}
    for finding in report.findings:
        for _, framework, ids in page_of(finding.check, pages).controls.by_framework():
            for control in ids:
                verdicts.setdefault((framework, control), []).append(finding.verdict)
    for framework, control in sorted(verdicts, key=lambda key: (key[0], _numbered(key[1]))):
        yield framework, control, _counted(verdicts[framework, control])


def _counted(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """How often each verdict occurs, those that do not occur among them."""
    counts = Counter(verdicts)
    return {verdict: counts[verdict] for verdict in Verdict}


def _numbered(control: str) -> list[tuple[int, str]]:
    """A key that sorts NS-2 before NS-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", control)]


def _has(report: Report, severity: Severity) -> bool:
    return any(finding.severity is severity for finding in report.findings)


def _visible(value: Any) -> Any:
    """Finalizer of the templates: removes invisible characters from text; Markup is left as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return files(_ROOM).joinpath("templates", name).read_text(encoding="utf-8")

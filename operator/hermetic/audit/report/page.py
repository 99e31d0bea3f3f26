"""The report as one HTML file for people: nothing in it is fetched, and nothing in it runs but our own few lines.

The content security policy forbids every request and every script or style but the two of this package, by digest.
Whatever a resource is called, Jinja escapes it; the embedded JSON cannot end its own element.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hermetic.api.times import timestamp
from hermetic.audit.findings import CheckPage, Finding, Report, Severity, Verdict, by_check, worst_first
from hermetic.audit.report.drawing import drawing_of
from hermetic.audit.report.machine import as_json, digest
from hermetic.audit.report.resources import readable, short_name
from hermetic.audit.report.telling import (
    acceptance,
    heading_of,
    headline,
    hops_of,
    page_of,
    printable,
    remedy_of,
)
from hermetic.audit.report.ways import topology_of, ways_of

_ROOM = "hermetic.audit.report"
_FULL = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.EXCEPTED)
_WORDS = {Verdict.NOT_APPLICABLE: "Not applicable"}
# a hex digit of JSON's own escapes stands for what could end the element or start another
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Card:
    """One finding as the page shows it; `anchor` is the same in every audit of the same cluster."""

    finding: Finding
    page: CheckPage
    anchor: str
    resource: str
    paths: tuple[tuple[str, ...], ...]
    remedy: str
    accepted: str


@dataclass(frozen=True, slots=True)
class Group:
    """Cards below one heading: how bad they are, or their family of checks."""

    name: str
    cards: tuple[Card, ...]


def as_html(report: Report, pages: Mapping[str, CheckPage]) -> str:
    """The whole page. Works without scripts: they only filter, search and open what is folded before printing."""
    style, script = _asset("report.css"), _asset("report.js")
    # both are files of this package; the digests in the policy are of exactly these bytes
    texts = {"style": Markup(style), "script": Markup(script), "policy": _policy(style, script)}  # noqa: S704
    return _environment().get_template("report.html.j2").render(**_content(report, pages), **texts) + "\n"


@cache
def _environment() -> Environment:
    """Compiling the templates takes longer than filling them."""
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
    environment.filters["short"] = short_name
    environment.filters["word"] = lambda verdict: _WORDS.get(verdict, verdict)
    return environment


def _content(report: Report, pages: Mapping[str, CheckPage]) -> dict[str, Any]:
    topology = topology_of(report)
    return {
        "report": report,
        "headline": headline(report),
        "seconds": round((report.finished_at - report.started_at).total_seconds()),
        "counts": list(_counts(report)),
        "verdicts": [(verdict, count) for verdict, count in report.summary.items() if count],
        "severities": [severity for severity in Severity if _has(report, severity)],
        "drawing": drawing_of(topology),
        "labels": {place.id: place.label for place in topology.nodes},
        "ways": ways_of(report),
        "groups": _groups(report, pages),
        "families": _families(report, pages),
        "not_asked": [(source, sorted(checks)) for source, checks in sorted(report.not_asked.items())],
        "digest": digest(report),
        "machine": Markup(as_json(report).translate(_ESCAPES)),  # noqa: S704 - nothing in it ends the element now
    }


def _counts(report: Report) -> Iterator[tuple[Severity, dict[Verdict, int]]]:
    """The summary again, by severity."""
    for severity in Severity:
        of_severity = [finding.verdict for finding in report.findings if finding.severity is severity]
        yield severity, {verdict: of_severity.count(verdict) for verdict in Verdict}


def _has(report: Report, severity: Severity) -> bool:
    return any(finding.severity is severity for finding in report.findings)


def _groups(report: Report, pages: Mapping[str, CheckPage]) -> list[Group]:
    """What is not fine, worst first, by verdict."""
    return _grouped(
        [finding for finding in worst_first(report.findings) if finding.verdict in _FULL],
        heading_of,
        pages,
    )


def _families(report: Report, pages: Mapping[str, CheckPage]) -> list[Group]:
    """What is fine or does not apply, by family of checks."""

    def family(finding: Finding) -> str:
        return page_of(finding.check, pages).family

    fine = [finding for finding in by_check(report.findings) if finding.verdict not in _FULL]
    return _grouped(sorted(fine, key=family), family, pages)


def _grouped(findings: list[Finding], name_of: Callable[[Finding], str], pages: Mapping[str, CheckPage]) -> list[Group]:
    return [
        Group(name, tuple(_card(finding, pages) for finding in group)) for name, group in groupby(findings, key=name_of)
    ]


def _card(finding: Finding, pages: Mapping[str, CheckPage]) -> Card:
    told = f"{finding.check}\n{finding.resource.lower()}".encode(errors="backslashreplace")
    return Card(
        finding=finding,
        page=page_of(finding.check, pages),
        anchor=f"f-{hashlib.sha256(told).hexdigest()[:12]}",
        resource=readable(finding.resource),
        paths=tuple(hops_of(path) for path in finding.paths),
        remedy=remedy_of(finding, pages).strip(),
        accepted=acceptance(finding),
    )


def _visible(value: Any) -> Any:
    """What is about to be written into the page: text from outside without characters that nobody could see."""
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

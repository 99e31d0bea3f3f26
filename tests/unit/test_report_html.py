"""The HTML page as text: its policy, its escaping, its embedded JSON. tests/browser shows it to a browser."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hermetic.api.times import timestamp
from hermetic.audit.model.controls import Controls
from hermetic.audit.model.findings import Verdict
from hermetic.audit.report.json_form import digest, document
from hermetic.audit.report.page import as_html, id_segments, page_footer
from hermetic.audit.report.resources import short_name
from tests.audit_reports import SCRIPT, a_failing_report, a_hostile_report, a_sealed_report, an_empty_report, pages

REPORTS = [a_failing_report(), a_sealed_report(), an_empty_report(), a_hostile_report()]
VOID = {"meta", "link", "br", "input", "img"}


class Page(HTMLParser):
    """Elements with attributes, and the text of scripts and styles, as a parser of HTML sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag in self.raw:
            self.raw[tag].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]][-1] += data

    def attributes(self, name: str) -> list[str | None]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]


@pytest.mark.parametrize("report", REPORTS)
def test_elements_are_closed_in_order_and_ids_are_unique(report):
    page = Page(as_html(report, pages()))
    assert page.open == []
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("report", REPORTS)
def test_nothing_refers_outside(report):
    page = Page(as_html(report, pages()))
    assert page.attributes("src") == []
    assert page.attributes("style") == []
    assert {str(href).partition(":")[0][:1] for href in page.attributes("href")} <= {"#", "d"}
    assert [href for href in page.attributes("href") if not str(href).startswith("#")] == ["data:,"]
    assert not any("url(" in text or "@import" in text for text in page.raw["style"])


@pytest.mark.parametrize("report", REPORTS)
def test_the_policy_allows_exactly_the_two_inline_texts(report):
    page = Page(as_html(report, pages()))
    (policy,) = [attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes]
    style, (data, script) = page.raw["style"][0], page.raw["script"]
    assert data.startswith("{")

    def source(text: str) -> str:
        return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy == (
        f"default-src 'none'; style-src {source(style)}; script-src {source(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("report", REPORTS)
def test_the_embedded_json_is_the_report(report):
    embedded = Page(as_html(report, pages())).raw["script"][0]
    assert json.loads(embedded) == document(report, pages())
    assert digest(report, pages()) in as_html(report, pages())


def test_a_name_that_is_a_script_stays_text_everywhere():
    text = as_html(a_hostile_report(), pages())
    assert SCRIPT not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\\u003cscript\\u003e" in text
    page = Page(text)
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert "img" not in {tag for tag, _ in page.elements}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


@pytest.mark.parametrize("resource", ["/subscriptions/a-b/resourceGroups/rg-gpu", "aks-gpu", "a//b/", ""])
def test_segments_of_an_id_are_the_id_and_each_begins_with_its_slash(resource):
    segments = id_segments(resource)
    assert "".join(segments) == resource
    assert all(segment and "/" not in segment[1:] for segment in segments)


def test_invisible_characters_are_made_visible():
    text = as_html(a_hostile_report(), pages())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    text.encode()


def test_equal_reports_give_equal_pages():
    assert as_html(a_failing_report(), pages()) == as_html(a_failing_report(), pages())


def test_a_report_that_could_not_see_everything_does_not_claim_that_there_is_no_way():
    assert "No open way was found." in as_html(a_sealed_report(), pages())
    assert "this does not prove that no path exists" in as_html(an_empty_report(), pages())
    assert "No open way was found." not in as_html(an_empty_report(), pages())


def test_every_request_and_digest_is_on_the_page():
    text = as_html(a_failing_report(), pages())
    for finding in a_failing_report().findings:
        for exchange in finding.evidence:
            assert exchange.request in text
            assert (exchange.sha256 or "403") in text


def test_each_printed_page_has_cluster_date_digest_and_page_number():
    report = a_failing_report()
    style = "".join(Page(as_html(report, pages())).raw["style"])
    footer = style[style.rindex("@page") :]
    assert digest(report, pages()) in footer
    assert short_name(report.cluster) in footer
    assert timestamp(report.finished_at) in footer
    assert 'counter(page) " / " counter(pages)' in footer


@pytest.mark.parametrize("name", ['a"; } body { display: none', "a\\", "</style><script>", "a\nb", "näme", "日本"])
def test_no_name_ends_the_string_of_the_footer(name):
    content = re.findall(r'content: "(.*?)";', page_footer(name))[0]
    assert re.fullmatch(r"(?:[A-Za-z0-9 ._/:-]|\\[0-9a-f]{1,6} )*", content)
    assert page_footer(name).count("{") == page_footer("a").count("{")


def test_the_first_screen_names_the_causes_and_the_list_shows_where_the_verdict_flips():
    text = as_html(a_failing_report(), pages())
    assert "To reach Pass: " in text[: text.index("<table")]
    assert text.count("flips") >= 1
    sealed = as_html(a_sealed_report(), pages())
    assert "To reach Pass" not in sealed


def test_table_by_control_counts_each_finding_for_each_of_its_controls():
    report = a_failing_report()
    check = report.findings[0].check
    of_check = [finding.verdict for finding in report.findings if finding.check == check]
    served = {
        **pages(),
        check: replace(pages()[check], controls=Controls(nist=("SC-7(11)", "SC-7(5)"), mcsb=("NS-1",))),
    }
    page = as_html(report, served)
    rows = re.findall(r'<tr><td>([^<]+)</td><th scope="row">([^<]+)</th>(.*?)</tr>', page)
    assert [(framework[:4], control) for framework, control, _ in rows] == [
        ("MCSB", "NS-1"), ("NIST", "SC-7(5)"), ("NIST", "SC-7(11)"),
    ]  # fmt: skip
    for _, _, cells in rows:
        assert [int(number) for number in re.findall(r">(\d+)<", cells)] == [
            of_check.count(verdict) for verdict in Verdict
        ]
    assert 'id="controls"' not in as_html(report, pages()), "no check serves a control"


def test_page_states_its_limits_and_who_signs_its_digest():
    page = as_html(a_sealed_report(), pages())
    limits = page.partition('id="limits"')[2].partition("</section>")[0]
    assert timestamp(a_sealed_report().finished_at) in limits
    assert "activity log" in limits
    assert "hermetic attest verify" in page.partition('id="check-it"')[2]

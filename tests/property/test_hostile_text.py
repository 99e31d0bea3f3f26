"""Whatever text an object holds: it adds no line to a report, a status, an Event or a log, and no hop to a path."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.model.findings import Evidence, Finding, Severity, Verdict
from hermetic.audit.model.hops import LONGEST_LABEL, Hop, kubernetes, path_of, read_path, written
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.report.openreports import cluster_report
from hermetic.audit.result.report import Report
from hermetic.audit.verdict.status import listed
from hermetic.cli.audit.formats import FORMS, rendered

FORGED = "FORGED"
# What begins a line for Python, a terminal, a browser or an editor (Unicode TR 13), what moves a terminal's cursor, and
# what hides or turns text (Unicode TR 36).
BREAKS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
ESCAPES = ("\x1b[2K\x1b[1G", "\x1b]0;", "\x9b2J", "\b\b\b\b", "\x00", "\x7f")
HIDDEN = ("\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\u2060", "\ufeff", "\U000e0041", "\ud800")
HOSTILE = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "x", "https://a.example/"]),
    st.sampled_from((*BREAKS, *ESCAPES, *HIDDEN, " -> internet -> ")),
    st.just(FORGED),
    st.text(max_size=20) | st.just("y" * 20_000),
)
PLAIN = "x"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def a_report(text: str) -> Report:
    """A finding for which an object decides the message, the hops and what is shown as evidence."""
    finding = Finding(
        "k8s-static-egress",
        "v1/Pod team/x",
        Verdict.FAIL,
        Severity.CRITICAL,
        "StaticGateway",
        f"it asks for the gateway {text}",
        "",
        (path_of("pod", f"gateway {text}", text), (kubernetes(f"v1/Pod team/{text}"), Hop(PlaceKind.OTHER, text))),
        (Evidence("GET /api/v1/pods", 200, "0" * 64, text),),
    )
    return Report("c", ("kube",), "sealed", MOMENT, MOMENT, (finding,))


def strings_of(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings_of(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings_of(item)]
    return [value] if isinstance(value, str) else []


def unsafe(text: str) -> set[str]:
    """Characters that no output holds, in one of its lines."""
    hidden = set("".join(HIDDEN))
    controls = {"Cc", "Cs", "Zl", "Zp"}
    return {character for character in text if category(character) in controls or character in hidden} - {"\n"}


def is_one_line(text: str) -> bool:
    return "\n" not in text and not unsafe(text)


@given(HOSTILE)
def test_a_hop_is_one_short_line_and_stays_one_hop(text: str) -> None:
    path = path_of("pod", text, "internet")
    assert all(is_one_line(hop.label) and len(hop.label) <= LONGEST_LABEL for hop in path)
    assert [hop.label for hop in read_path(written(path))] == [hop.label for hop in path]
    assert len(read_path(written(path))) == 3


@pytest.mark.parametrize("form", sorted(FORMS))
@given(HOSTILE)
def test_no_format_gets_a_line_or_a_control_character_from_an_object(form: str, text: str) -> None:
    output = rendered(form, a_report(text), {})
    assert not unsafe(output.replace("\r\n", "\n")), form
    # A table wraps a long word onto a line of its own, which is indented.
    starts = [line if form == "table" else line.lstrip(" '\"") for line in output.splitlines()]
    assert not any(start.startswith(FORGED) for start in starts), form
    if form == "table":
        return  # wrapping and the length of a hop decide the number of its lines
    expected = len(rendered(form, a_report(PLAIN), {}).splitlines())
    if form not in {"html"}:  # a page draws a hop in as many rows as it needs
        assert len(output.splitlines()) == expected, form


@given(HOSTILE)
def test_a_cell_of_csv_and_a_property_of_openreports_have_a_line_for_each_path(text: str) -> None:
    report = a_report(text)
    rows = list(csv.DictReader(io.StringIO(rendered("csv", report, {}), newline="")))
    assert [len(row["paths"].splitlines()) for row in rows] == [2]
    result = cluster_report(report, {})["results"][0]
    assert len(result["properties"]["paths"].splitlines()) == 2
    assert all(not unsafe(value) for value in strings_of(result))


@given(HOSTILE)
def test_every_text_of_a_status_is_one_line(text: str) -> None:
    status = listed(a_report(text).findings)
    assert all(is_one_line(value) for value in strings_of(status)), json.dumps(status)


@given(HOSTILE)
def test_a_finding_of_an_earlier_release_is_made_safe_as_well(text: str) -> None:
    finding = replace(a_report(PLAIN).findings[0], message=text, resource=f"v1/Pod team/{text}")
    assert is_one_line(finding.message)
    assert is_one_line(finding.resource)

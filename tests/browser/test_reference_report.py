"""The report of the public reference deployment in a browser: a screen for the drawing, a phone, twenty pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.azure.reference_estate import reference_estate
from testbed.azure.server import ArmStandIn
from tests.audits_by_command import audit
from tests.browser.chromium import Tab
from tests.browser.pictures import take

MOST_PAGES = 20
SCREEN = (1280, 800)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that `--out report.html` writes about it."""
    file = tmp_path_factory.mktemp("reference") / "report.html"
    with ArmStandIn(reference_estate()) as arm:
        assert audit(arm, "--out", file).code == 1
    return file


@pytest.fixture
def shown(tab: Tab, page: Path) -> Iterator[Tab]:
    """The page from the file system, as a reviewer opens it."""
    tab.call("Emulation.setDeviceMetricsOverride", width=SCREEN[0], height=SCREEN[1], deviceScaleFactor=1, mobile=False)
    tab.open(page.as_uri())
    yield tab
    tab.call("Emulation.clearDeviceMetricsOverride")


def test_the_drawing_fits_on_one_screen(shown):
    width, height = shown.evaluate(
        "(() => { const at = document.querySelector('.topology').getBoundingClientRect();"
        "return [at.width, at.height]; })()"
    )
    assert width <= SCREEN[0]
    assert height <= SCREEN[1]
    assert shown.evaluate("document.querySelectorAll('.ways li').length") <= 20


def test_the_first_screens_say_what_to_fix(shown):
    assert shown.evaluate("document.getElementById('fixing').getBoundingClientRect().bottom") <= SCREEN[1]
    assert 5 <= shown.evaluate("document.querySelectorAll('.order li').length") <= 20


def test_it_prints_on_twenty_pages_at_most(shown):
    shown.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    pages = re.findall(rb"/Type\s*/Page[^s]", shown.pdf())
    assert 3 < len(pages) <= MOST_PAGES


def test_a_phone_needs_no_sideways_scrolling(shown):
    shown.call("Emulation.setDeviceMetricsOverride", width=360, height=780, deviceScaleFactor=1, mobile=True)
    shown.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_value_that_was_read_is_beside_its_digest(shown):
    rows = shown.evaluate("[...document.querySelectorAll('.evidence tr')].map(each => each.textContent)")
    (subnet,) = [row for row in rows if "/subnets/snet-gpu?" in row]
    assert "defaultOutboundAccess: true" in subnet
    assert re.search(r"sha256 [0-9a-f]{64}", subnet)
    assert shown.seen.problems == []


def test_on_a_phone_each_kind_of_line_is_beside_its_words(shown):
    shown.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    apart = shown.evaluate(
        "[...document.querySelectorAll('.legend .key')].map(key => {"
        "  const words = document.createRange(); words.selectNodeContents(key.nextSibling);"
        "  const [line, text] = [key.getBoundingClientRect(), words.getClientRects()[0]];"
        "  return text.top > line.bottom || text.bottom < line.top; })"
    )
    assert apart == [False] * 3


def test_on_paper_no_verdict_touches_the_check_beside_it(shown):
    shown.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    shown.media("print")
    shown.call("Emulation.setDeviceMetricsOverride", width=711, height=1040, deviceScaleFactor=1, mobile=False)
    touching = shown.evaluate(
        "[...document.querySelectorAll('.fine tbody tr')].filter(row =>"
        "  row.querySelector('.chip').getBoundingClientRect().right"
        "  >= row.cells[1].getBoundingClientRect().left).map(row => row.textContent)"
    )
    shown.media()
    assert touching == []


def test_pictures_of_the_report_are_taken_in_both_themes(shown, page, tmp_path):
    take(shown, page, tmp_path)
    light, dark = ((tmp_path / f"report-{theme}.png").read_bytes() for theme in ("light", "dark"))
    assert light.startswith(b"\x89PNG")
    assert dark.startswith(b"\x89PNG")
    assert light != dark

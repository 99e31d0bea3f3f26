"""The documentation as a site: every link leads somewhere, and no page fetches from another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermetic import __version__
from shipping.site import DOCS, build
from tests.browser.chromium import Tab
from tests.sampled_groups import LONG

PHONE = 390


@pytest.fixture(scope="session")
def docs_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with every warning an error: a link or an anchor that leads nowhere is one."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    build(folder)
    return folder


@LONG
def test_every_page_of_docs_is_one_of_the_site(docs_site: Path) -> None:
    pages = {file.stem for file in docs_site.glob("*.html")}

    assert pages == {file.stem for file in DOCS.glob("*.md")} | {"index", "changelog", "404"}
    assert f"Hermetic {__version__}" in (docs_site / "index.html").read_text()
    sections = re.findall(r'md-nav__link" for="__nav_\d+"', (docs_site / "index.html").read_text())
    assert len(sections) >= 5


def test_no_page_names_a_script_or_style_of_another_host(docs_site: Path) -> None:
    for page in docs_site.rglob("*.html"):
        fetched = re.findall(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="([^"]*)"', page.read_text())
        assert [url for url in fetched if re.match(r"(https?:)?//", url)] == [], page.name


@pytest.fixture
def phone(tab: Tab) -> Iterator[Tab]:
    tab.call("Emulation.setDeviceMetricsOverride", width=PHONE, height=780, deviceScaleFactor=1, mobile=True)
    yield tab
    tab.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("page", ["index", "first-audit", "checks", "api"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_fetches_nothing_from_elsewhere(
    phone: Tab, docs_site: Path, page: str, scheme: str
) -> None:
    phone.media(prefers_color_scheme=scheme)
    address = (docs_site / f"{page}.html").as_uri()
    phone.open(address)
    phone.evaluate("localStorage.clear()")  # the scheme of an earlier visit is kept
    phone.open(address)

    assert phone.seen.requests
    assert [url for url in phone.seen.requests if not url.startswith(("file:", "data:"))] == []
    assert phone.seen.problems == []
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE
    assert phone.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
    assert phone.evaluate("document.querySelector('h1').textContent.trim().length") > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_shows_the_pictures_of_its_theme(tab: Tab, docs_site: Path, scheme: str) -> None:
    tab.media(prefers_color_scheme=scheme)
    address = (docs_site / "index.html").as_uri()
    tab.open(address)
    tab.evaluate("localStorage.clear()")  # the scheme of an earlier visit is kept
    tab.open(address)
    files = tab.evaluate(
        "[...document.querySelectorAll('article img')].filter(image => image.checkVisibility() && image.naturalWidth)"
        ".map(image => image.src.split('/').pop())"
    )
    tab.media()
    assert len(files) >= 2
    assert [file for file in files if not re.fullmatch(rf"[a-z]+-{scheme}\.(svg|png)#only-{scheme}", file)] == []


CUT = """
[...document.querySelectorAll("td code")]
    .filter(code => /^\\w+$/.test(code.textContent) && code.getClientRects().length > 1)
    .map(code => code.textContent)
"""


@pytest.mark.parametrize("page", ["observability", "troubleshooting", "configuration"])
def test_no_name_in_a_table_is_cut(phone: Tab, docs_site: Path, page: str) -> None:
    phone.open((docs_site / f"{page}.html").as_uri())

    assert phone.evaluate("document.querySelectorAll('td code').length") > 20
    assert phone.evaluate(CUT) == []
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE

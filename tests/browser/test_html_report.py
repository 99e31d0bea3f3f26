"""The HTML report in a real browser: it fetches nothing, runs nothing foreign, filters, prints, shows egress paths."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from hermetic.audit.report.json_form import document
from hermetic.audit.report.page import as_html
from hermetic.audit.result.report import Report
from tests.audit_reports import (
    SCRIPT,
    a_failing_report,
    a_hostile_report,
    a_sealed_report,
    an_empty_report,
    pages,
)
from tests.browser.chromium import Tab
from tests.browser.conftest import Site
from tests.drawn_paths import hops

Show = Callable[[Report], Tab]
BESIDE_A_NUMBER = 6
"""Pixels of paper between a number of a list and the column on its left."""
VISIBLE = "[...document.querySelectorAll('.finding')].filter(each => !each.hidden)"


@pytest.fixture
def show(tab: Tab, site: Site) -> Show:
    """Opens a report as a web server would serve it."""

    def shown(report: Report) -> Tab:
        site.text = as_html(report, pages())
        tab.open(site.address)
        return tab

    return shown


@pytest.mark.parametrize("report", [a_failing_report(), a_sealed_report(), an_empty_report(), a_hostile_report()])
def test_it_fetches_nothing_and_breaks_no_policy(show, site, report):
    tab = show(report)
    tab.media(media="print", prefers_color_scheme="dark")
    tab.pdf()
    assert site.asked == ["/report.html"]
    assert [url for url in tab.seen.requests if url != "data:,"] == [site.address]
    assert tab.seen.console == []
    assert tab.seen.problems == []


def test_its_policy_is_in_force(show):
    """The same policy that nothing breaks above refuses what others put into the page."""
    tab = show(a_failing_report())
    tab.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"/stolen\" onerror=\"window.broken = 1\">');"
        "const added = document.createElement('script'); added.textContent = 'window.broken = 1';"
        "document.body.append(added);"
        "new Promise(done => fetch('/stolen').catch(done))"
    )
    assert tab.evaluate("window.broken") is None
    assert len(tab.seen.problems) >= 3


def test_a_request_out_of_the_page_never_reaches_a_server(show, site):
    tab = show(a_failing_report())
    tab.evaluate("new Promise(done => fetch('/stolen').then(() => done(1), () => done(2)))")
    assert site.asked == ["/report.html"]


def test_its_own_script_runs(show):
    tab = show(a_failing_report())
    assert tab.evaluate("document.querySelector('.tools').hidden") is False
    assert tab.evaluate("document.getElementById('shown').textContent") == "20 of 20 findings shown"


def test_search_shows_what_holds_every_word(show):
    tab = show(a_failing_report())
    _search(tab, "NAT snet-pods egress")
    assert tab.evaluate(f"{VISIBLE}.map(each => each.dataset.check)") == ["subnet-nat-gateway"]
    assert tab.evaluate("document.getElementById('shown').textContent") == "1 of 20 findings shown"
    _search(tab, "")
    assert tab.evaluate(f"{VISIBLE}.length") == 20


def test_search_finds_what_is_folded_and_unfolds_it(show):
    tab = show(a_failing_report())
    _search(tab, "kubernetes-internal")
    assert tab.evaluate(f"{VISIBLE}.length") == 1
    assert tab.evaluate(f"{VISIBLE}[0].closest('details').open") is True
    assert tab.evaluate(f"{VISIBLE}[0].checkVisibility()") is True


def test_a_search_without_a_hit_says_so(show):
    tab = show(a_failing_report())
    _search(tab, "nothing is called this")
    assert tab.evaluate("document.getElementById('none').hidden") is False
    assert tab.evaluate("document.querySelectorAll('.group:not([hidden])').length") == 0


@pytest.mark.parametrize("verdict", ["Pass", "Fail", "Unknown", "Excepted", "NotApplicable"])
def test_a_verdict_can_be_filtered_away_and_brought_back(show, verdict):
    tab = show(a_failing_report())
    box = f"input[name=verdict][value={verdict}]"
    tab.evaluate(f"document.querySelector('{box}').click()")
    left = set(tab.evaluate(f"{VISIBLE}.map(each => each.dataset.verdict)"))
    assert left == {"Pass", "Fail", "Unknown", "Excepted", "NotApplicable"} - {verdict}
    tab.evaluate(f"document.querySelector('{box}').click()")
    assert tab.evaluate(f"{VISIBLE}.length") == 20


def test_severities_filter_too(show):
    tab = show(a_failing_report())
    for severity in ("critical", "high", "medium"):
        tab.evaluate(f"document.querySelector('input[name=severity][value={severity}]').click()")
    assert set(tab.evaluate(f"{VISIBLE}.map(each => each.dataset.severity)")) == {"low"}


def test_a_slash_leads_to_the_search(show):
    tab = show(a_failing_report())
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key="/", text="/" if kind == "keyDown" else "")
    assert tab.evaluate("document.activeElement.id") == "search"
    assert tab.evaluate("document.activeElement.value") == ""


def test_open_paths_are_red_and_the_thicker_the_graver(show):
    tab = show(a_failing_report())
    red, soft = _colour(tab, "--bad"), _colour(tab, "--soft")
    assert red != soft
    # 4 from the cluster, then 2 of default outbound, 3 of NAT, 3 of the peer, 2 of DNS, 1 of the accepted hub
    assert tab.evaluate("document.querySelectorAll('svg .link').length") == 14
    drawn = tab.evaluate(
        "[...document.querySelectorAll('svg .link.open')].map(each => [getComputedStyle(each).stroke, "
        "parseFloat(getComputedStyle(each).strokeWidth), each.getTotalLength()])"
    )
    assert {colour for colour, _, _ in drawn} == {red}
    assert all(length > 20 for _, _, length in drawn)
    assert {width for _, width, _ in drawn} == {4, 2.5, 1.5}
    strengths = tab.evaluate(
        "[4, 2.5, 1.5].map(width => [...document.querySelectorAll('svg .link.open')].map(getComputedStyle)"
        ".filter(style => parseFloat(style.strokeWidth) === width).map(style => parseFloat(style.strokeOpacity))[0])"
    )
    assert strengths == [1, 0.8, 0.5]
    red_parts = [int(part) for part in red.removeprefix("rgb(").removesuffix(")").split(",")]
    assert red_parts[0] > 2 * max(red_parts[1:])


def test_what_is_open_masked_inbound_and_accepted_is_drawn_in_lines_that_differ(show):
    plain = a_failing_report().findings[0]
    egress_paths = (
        replace(plain, paths=(hops("subnet a -> nat gateway n -> internet"),)),
        replace(plain, paths=(hops("subnet b -> load balancer l -> internet"),), masked=True),
        replace(plain, paths=(hops("internet -> storage"),)),
        *(finding for finding in a_failing_report().findings if finding.exception is not None),
    )
    tab = show(replace(a_failing_report(), findings=egress_paths))
    drawn = tab.evaluate(
        "['open', 'masked', 'inbound', 'accepted'].map(kind => document.querySelector(`svg .link.${kind}`))"
        ".map(each => [getComputedStyle(each).stroke, getComputedStyle(each).strokeDasharray].join())"
    )
    assert len(set(drawn)) == 4
    keys = tab.evaluate("[...document.querySelectorAll('.legend .key')].map(each => each.classList[1])")
    assert keys == ["open", "masked", "inbound", "accepted"]


def test_parallel_paths_are_one_line_of_words_with_a_count(show):
    plain = a_failing_report().findings[0]
    many = tuple(
        replace(plain, resource=f"/s/{number}", paths=(hops(f"subnet snet-{number} -> default outbound -> internet"),))
        for number in range(6)
    )
    tab = show(replace(a_failing_report(), findings=many))
    (text,) = tab.evaluate("[...document.querySelectorAll('.ways li')].map(each => each.innerText)")
    assert "\N{MULTIPLICATION SIGN} 6" in text
    assert tab.evaluate("document.querySelectorAll('svg .place').length") == 4


def test_every_path_in_the_drawing_is_there_in_words(show):
    tab = show(a_failing_report())
    texts = tab.evaluate("[...document.querySelectorAll('.ways li')].map(each => each.innerText.replace(/\\s+/g, ' '))")
    assert "subnet snet-pods → nat gateway nat-egress → public ip pip-egress → internet open critical" in texts
    assert "vnet vnet-spoke → peer vnet vnet-hub accepted high" in texts
    assert tab.evaluate("document.querySelector('svg').getAttribute('role')") == "img"
    assert "each is listed" in tab.evaluate("document.querySelector('svg > title').textContent")


def test_no_label_leaves_its_box(show):
    tab = show(a_failing_report())
    outside = tab.evaluate(
        "[...document.querySelectorAll('svg .place')].filter(place => { const box = place.querySelector('rect')"
        ".getBBox(); return [...place.querySelectorAll('text')].some(text => { const at = text.getBBox();"
        "return at.x + at.width > box.x + box.width || at.y + at.height > box.y + box.height + 1; }); })"
        ".map(place => place.textContent)"
    )
    assert outside == []


def test_a_sealed_estate_shows_no_red_way(show):
    tab = show(a_sealed_report())
    assert tab.evaluate("document.querySelectorAll('svg .link').length") == 0
    assert tab.evaluate("document.querySelector('.verdict strong').textContent") == "Pass"


def test_a_name_that_is_a_script_is_read_not_run(show):
    tab = show(a_hostile_report())
    assert tab.seen.problems == []
    assert tab.evaluate("document.querySelectorAll('script').length") == 2
    assert tab.evaluate("document.querySelectorAll('img').length") == 0
    assert tab.evaluate("document.querySelector('h1').textContent") == SCRIPT
    assert SCRIPT in tab.evaluate("[...document.querySelectorAll('.finding h5')].map(each => each.textContent)")
    assert SCRIPT in tab.evaluate("[...document.querySelectorAll('svg .place title')].map(each => each.textContent)")


@pytest.mark.parametrize("report", [a_failing_report(), a_hostile_report()])
def test_the_embedded_json_is_the_report_and_hashes_to_what_the_page_says(show, report):
    tab = show(report)
    embedded = tab.evaluate("document.getElementById('hermetic-report').textContent")
    assert json.loads(embedded) == document(report, pages())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(show, scheme):
    """4.5 to 1 is what WCAG 2.2 AA asks of text."""
    tab = show(a_failing_report())
    tab.media(prefers_color_scheme=scheme)
    tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    weak = tab.evaluate(CONTRAST)
    assert weak == []
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_everything_is_unfolded_on_paper_and_folded_again_after(show):
    tab = show(a_failing_report())
    folded = "[...document.querySelectorAll('details')].filter(each => !each.open).length"
    before = tab.evaluate(folded)
    assert before > 3
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(folded) == 0
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(folded) == before


def test_paper_shows_findings_and_digests_and_no_controls(show):
    tab = show(a_failing_report())
    tab.media(media="print", prefers_color_scheme="dark")
    assert tab.evaluate("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    digests = "[...document.querySelectorAll('.digest')]"
    evidence_digests = {
        source.sha256 for finding in a_failing_report().findings for source in finding.evidence if source.sha256
    }
    assert tab.evaluate(f"{digests}.length") == len(evidence_digests) + 1, "each once, and that of the whole report"
    assert tab.evaluate(f"{digests}.every(each => each.checkVisibility())") is True
    assert tab.pdf().startswith(b"%PDF-")


@pytest.mark.parametrize("width", [711, 1280])
def test_the_id_in_the_head_ends_a_line_between_segments_alone(show, width):
    report = a_failing_report()
    tab = show(report)
    tab.media(media="print")
    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=1040, deviceScaleFactor=1, mobile=False)
    lines = tab.evaluate(
        "[...document.querySelectorAll('header .segment')].map(each => {"
        "  const range = document.createRange(); range.selectNodeContents(each);"
        "  return new Set([...range.getClientRects()].map(line => line.top)).size })"
    )
    text = tab.evaluate("document.querySelector('header .id').innerText")
    tab.call("Emulation.clearDeviceMetricsOverride")
    tab.media()
    assert (text, len(lines)) == (report.cluster, report.cluster.count("/"))
    assert set(lines) == {1}


def test_a_long_name_in_the_head_breaks_where_a_phone_has_no_space_for_it(show):
    report = a_failing_report()
    tab = show(replace(report, cluster=f"{report.cluster}-{'x' * 63}"))
    tab.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    width = tab.evaluate("document.documentElement.scrollWidth")
    tab.call("Emulation.clearDeviceMetricsOverride")
    assert width <= 390


def test_numbers_of_two_digits_have_space_in_each_column_of_the_ways_in_words(show):
    tab = show(a_failing_report())
    tab.media(media="print")
    tab.call("Emulation.setDeviceMetricsOverride", width=711, height=1040, deviceScaleFactor=1, mobile=False)
    columns, digits = tab.evaluate(
        "(() => { const list = document.querySelector('ol.ways'), item = list.querySelector('li');"
        "  while (list.children.length < 30) list.append(item.cloneNode(true));"
        "  const digits = document.createElement('span'); digits.textContent = '30. '; item.append(digits);"
        "  const columns = {};"
        "  for (const each of list.children) { const box = each.getBoundingClientRect();"
        "    columns[box.left] = Math.max(columns[box.left] || 0, box.right) }"
        "  const width = digits.getBoundingClientRect().width; digits.remove();"
        "  return [[[list.getBoundingClientRect().left], ...Object.entries(columns)], width] })()"
    )
    tab.call("Emulation.clearDeviceMetricsOverride")
    tab.media()
    start, *boxes = columns
    lefts = sorted(float(left) for left, _ in boxes)
    rights = {float(left): right for left, right in boxes}
    ends = [start[0], *(rights[left] for left in lefts[:-1])]
    assert len(lefts) == 2
    assert all(left - end >= digits + BESIDE_A_NUMBER for left, end in zip(lefts, ends, strict=True))


def test_what_is_chosen_stays_in_the_address_and_is_there_again(show):
    tab = show(a_failing_report())
    tab.evaluate(
        "const family = document.getElementById('family'); family.value = 'B. Routes';"
        "const about = document.getElementById('resource'); about.value = 'snet-pods';"
        "document.querySelector('input[name=verdict][value=Pass]').checked = false;"
        "about.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    assert tab.evaluate(f"{VISIBLE}.map(each => each.dataset.check)") == ["route-table-missing"]
    address = tab.evaluate("location.href")
    assert "#~" in address
    tab.open("about:blank")
    tab.open(address)
    assert tab.evaluate(f"{VISIBLE}.map(each => each.dataset.check)") == ["route-table-missing"]
    assert tab.evaluate("document.getElementById('family').value") == "B. Routes"
    assert tab.evaluate("document.querySelector('input[name=verdict][value=Pass]').checked") is False
    assert tab.seen.problems == []


def test_a_link_to_a_folded_finding_unfolds_it(show, site):
    tab = show(a_failing_report())
    folded = tab.evaluate("document.querySelector('.family .finding').id")
    tab.open("about:blank")
    tab.open(f"{site.address}#{folded}")
    assert tab.evaluate(f"document.getElementById('{folded}').checkVisibility()") is True


def test_a_command_is_copied_as_it_is_typed(show):
    tab = show(a_failing_report())
    command = "az network vnet subnet update --ids"
    tab.evaluate(
        "window.taken = []; navigator.clipboard.writeText = async text => window.taken.push(text);"
        f"[...document.querySelectorAll('.command')].find(each => each.innerText.includes('{command}'))"
        ".querySelector('.copy').click()"
    )
    (clicked,) = tab.evaluate("new Promise(done => setTimeout(() => done(window.taken), 50))")
    assert clicked.startswith(command)
    assert "\n" not in clicked
    assert tab.evaluate("[...document.querySelectorAll('.copy')].every(each => !each.hidden)") is True
    assert tab.evaluate("document.querySelector('.copy').textContent") in {"Copy", "Copied"}


def test_without_a_clipboard_the_command_is_copied_the_old_way(show):
    tab = show(a_failing_report())
    tab.evaluate(
        "navigator.clipboard.writeText = async () => { throw new Error('no'); };"
        "document.execCommand = name => { window.taken = [name, document.activeElement.value]; return true; };"
        "document.querySelector('.copy').click()"
    )
    name, text = tab.evaluate("new Promise(done => setTimeout(() => done(window.taken), 50))")
    assert name == "copy"
    assert text == tab.evaluate("document.querySelector('.command pre').textContent")


def test_the_order_of_fixing_leads_to_each_cause(show):
    tab = show(a_failing_report())
    targets = tab.evaluate("[...document.querySelectorAll('.order a')].map(each => each.hash.slice(1))")
    assert len(targets) == 6
    assert tab.evaluate(f"{targets}.every(id => document.getElementById(id).closest('.cause'))") is True


def test_a_narrow_screen_needs_no_sideways_scrolling(show):
    tab = show(a_failing_report())
    tab.call("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=True)
    try:
        tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        broken = tab.evaluate(
            "[...document.querySelectorAll('.chip, .matrix th')].filter(each => each.getClientRects().length > 1 ||"
            "each.scrollWidth > each.clientWidth + 1).map(each => each.textContent)"
        )
        assert [word for word in broken if word != "Not applicable"] == []
    finally:
        tab.call("Emulation.clearDeviceMetricsOverride")


def _search(tab: Tab, query: str) -> None:
    tab.evaluate(
        f"(() => {{ const box = document.getElementById('search'); box.value = {json.dumps(query)};"
        "box.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def _colour(tab: Tab, name: str) -> str:
    return tab.evaluate(
        f"(() => {{ const probe = document.createElement('i'); document.body.append(probe);"
        f"probe.style.setProperty('color', 'var({name})'); const colour = getComputedStyle(probe).color;"
        "probe.remove(); return colour; })()"
    )


# the relative luminance of WCAG; backgrounds are looked for upwards until one is opaque
CONTRAST = """
(() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => {
    const [r, g, b] = parts(colour).slice(0, 3).map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if ((parts(colour)[3] ?? 1) === 1) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const weak = [];
  for (const element of document.body.querySelectorAll('*:not(svg *):not(script)')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const [dark, bright] = [light(getComputedStyle(element).color), light(behind(element))].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < 4.5) weak.push([element.className || element.tagName, element.textContent.slice(0, 30), ratio]);
  }
  return weak;
})()
"""

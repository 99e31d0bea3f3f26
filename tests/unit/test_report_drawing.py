"""The drawing of the egress paths: every open path is in it, and stays in it when there is too much to draw."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hermetic.audit.model.findings import AcceptedException, Finding, Parts, Severity, Verdict
from hermetic.audit.model.hops import Hop, path_of
from hermetic.audit.model.topology import NetworkLink, NetworkPlace, PlaceKind, Topology
from hermetic.audit.report.drawing import MOST_PLACES, drawing_of
from hermetic.audit.report.graph_layout import columns_of
from hermetic.audit.report.paths import bundles_of, drawn_paths, topology_of
from tests.audit_reports import CLUSTER, a_failing_report, a_sealed_report, an_empty_report
from tests.drawn_paths import hops


def places(*names: str) -> tuple[NetworkPlace, ...]:
    return tuple(
        NetworkPlace(name, PlaceKind.INTERNET if name == "internet" else PlaceKind.SUBNET, name) for name in names
    )


def test_a_path_of_a_fail_is_an_open_chain_from_the_cluster():
    links = {(link.source, link.target): link for link in topology_of(a_failing_report()).edges}
    hops = (CLUSTER.lower(), "subnet snet-pods", "nat gateway nat-egress", "public ip pip-egress", "internet")
    assert all(links[hop].open for hop in pairwise(hops))


def test_an_accepted_way_is_drawn_open_and_says_that_it_is_accepted():
    link = next(link for link in topology_of(a_failing_report()).edges if link.target == "peer vnet vnet-hub")
    assert (link.open, link.label) == (True, "accepted")


def test_an_undecided_path_is_not_drawn_open():
    unknown = Finding("x", "/r", Verdict.UNKNOWN, Severity.HIGH, paths=(hops("subnet a -> firewall -> internet"),))
    accepted = replace(
        unknown, verdict=Verdict.EXCEPTED, exception=AcceptedException("r", "o", "2027-01-01", Verdict.UNKNOWN)
    )
    for finding in (unknown, accepted):
        report = replace(a_failing_report(), findings=(finding,))
        assert not any(link.open for link in topology_of(report).edges)
        assert [drawn_path.state for drawn_path in drawn_paths(report)] == ["not decided"]


def test_a_link_that_two_findings_draw_is_open_when_one_of_them_fails():
    path = (hops("subnet a -> internet"),)
    findings = (
        Finding("x", "/r", Verdict.UNKNOWN, Severity.CRITICAL, paths=path),
        Finding("y", "/r", Verdict.FAIL, Severity.LOW, paths=path),
    )
    for order in (findings, findings[::-1]):
        report = replace(a_failing_report(), findings=order)
        assert {drawn_path.state for drawn_path in drawn_paths(report)} == {"open"}
        assert all(link.open for link in topology_of(report).edges)


def test_an_exposure_begins_at_an_internet_of_its_own():
    exposure = Finding(
        "x", "/r", Verdict.FAIL, Severity.HIGH, paths=(hops("internet -> load balancer lb -> service s"),)
    )
    egress = Finding("y", "/r", Verdict.FAIL, Severity.HIGH, paths=(hops("service s -> internet"),))
    report = replace(a_failing_report(), findings=(exposure, egress))
    topology = topology_of(report)
    assert NetworkLink("from internet", "load balancer lb", open=True) in topology.edges
    assert NetworkLink(CLUSTER.lower(), "service s", open=True) in topology.edges
    assert NetworkLink("service s", "internet", open=True) in topology.edges
    assert not any(link.source == "internet" for link in topology.edges)
    columns = columns_of(topology).slots
    assert "from internet" in columns[0]
    assert "internet" in columns[-1]


def test_only_a_pass_draws_the_internet_with_nothing_leading_there():
    assert [node.label for node in topology_of(a_sealed_report()).nodes] == ["aks-gpu", "internet"]
    assert [node.label for node in topology_of(an_empty_report()).nodes] == ["aks-gpu"]


def test_a_link_to_a_place_that_is_not_there_is_not_drawn():
    topology = Topology(
        places("nodes", "internet"), (NetworkLink("nodes", "internet", open=True), NetworkLink("nodes", "gone"))
    )
    assert len(drawing_of(topology).arrows) == 1


def test_what_a_hop_is_decides_how_it_is_drawn_and_not_what_it_is_called():
    named_to_mislead = (Hop(PlaceKind.SUBNET, "internet"), Hop(PlaceKind.OTHER, "nat gateway of registry internet"))
    finding = Finding("x", "/r", Verdict.FAIL, Severity.HIGH, paths=(named_to_mislead,))
    drawing = topology_of(replace(a_failing_report(), findings=(finding,)))
    assert [node.kind for node in drawing.nodes[1:]] == [PlaceKind.SUBNET, PlaceKind.OTHER]
    assert drawing.edges[0].source == CLUSTER.lower()


def test_a_hop_without_a_name_is_left_out():
    finding = Finding("x", "/r", Verdict.FAIL, Severity.HIGH, paths=(path_of("a", " ", ""),))
    assert [drawn_path.hops for drawn_path in drawn_paths(replace(a_failing_report(), findings=(finding,)))] == [
        path_of("a")
    ]
    assert finding.path_texts == ("a ->   -> ",)


def test_every_arrow_points_to_a_later_column_and_the_internet_is_last():
    drawn = topology_of(a_failing_report())
    columns = columns_of(drawn).slots
    at = {slot: number for number, column in enumerate(columns) for slot in column}
    assert all(at[link.source] < at[link.target] for link in drawn.edges)
    assert at["internet"] == len(columns) - 1


def test_boxes_do_not_overlap():
    boxes = drawing_of(topology_of(a_failing_report())).boxes
    for box in boxes:
        for other in boxes:
            apart = (
                abs(box.x - other.x) >= box.width or box.y >= other.y + other.height or other.y >= box.y + box.height
            )
            assert box is other or apart


def test_a_circle_of_links_is_drawn_whole():
    circle = Topology(
        places("a", "b", "c"), (NetworkLink("a", "b"), NetworkLink("b", "c"), NetworkLink("c", "a", open=True))
    )
    assert len(drawing_of(circle).arrows) == 3


def test_what_is_open_is_drawn_when_not_everything_can_be():
    closed = tuple(f"closed-{number}" for number in range(60))
    topology = Topology(
        (*places(*closed), *places("nodes", "internet")),
        (*(NetworkLink(closed[0], other) for other in closed[1:]), NetworkLink("nodes", "internet", open=True)),
    )
    drawing = drawing_of(topology)
    assert len(drawing.boxes) == MOST_PLACES
    assert drawing.left_out == 62 - MOST_PLACES
    assert drawing.arrows[-1].link == NetworkLink("nodes", "internet", open=True)
    assert {box.network_place.id for box in drawing.boxes if box.reached} == {"nodes", "internet"}


def test_of_two_links_between_the_same_places_the_open_one_is_drawn():
    for links in (
        (NetworkLink("a", "b", open=True), NetworkLink("a", "b")),
        (NetworkLink("a", "b"), NetworkLink("a", "b", open=True)),
    ):
        (arrow,) = drawing_of(Topology(places("a", "b", "a"), links)).arrows
        assert arrow.link.open


def test_parallel_paths_are_one_bundle_and_others_stay_apart():
    plain = Finding("x", "/r", Verdict.FAIL, Severity.HIGH)
    findings = (
        *(
            replace(plain, resource=f"/{n}", paths=(hops(f"subnet s{n} -> default outbound -> internet"),))
            for n in range(5)
        ),
        replace(plain, resource="/m", paths=(hops("subnet m -> default outbound -> internet"),), masked=True),
        replace(
            plain, resource="/c", paths=(hops("subnet c -> default outbound -> internet"),), severity=Severity.CRITICAL
        ),
        replace(plain, resource="/n", paths=(hops("nic n -> default outbound -> internet"),)),
        *(
            replace(plain, resource=f"/i{n}", paths=(hops(f"internet -> load balancer lb{n} -> pod"),))
            for n in range(2)
        ),
    )
    drawn = drawn_paths(replace(a_failing_report(), findings=findings))
    bundles = bundles_of(drawn)
    assert sorted(len(bundle.paths) for bundle in bundles) == [1, 1, 1, 2, 5]
    assert sum(len(bundle.paths) for bundle in bundles) == len(drawn) == 10
    assert {bundle.worst.state for bundle in bundles} == {"open", "masked"}
    assert [bundle.hops[1] for bundle in bundles if bundle.worst.inbound] == [
        (*hops("load balancer lb0"), *hops("load balancer lb1"))
    ]


def test_a_masked_way_is_drawn_open_and_says_that_it_is_masked():
    masked = Finding("x", "/r", Verdict.FAIL, Severity.CRITICAL, paths=(hops("subnet a -> internet"),), masked=True)
    links = topology_of(replace(a_failing_report(), findings=(masked,))).edges
    assert {(link.open, link.state, link.weight) for link in links} == {(True, "masked", 3)}


def test_a_way_that_is_open_once_is_not_masked_by_another_finding():
    path = (hops("subnet a -> internet"),)
    masked = Finding("x", "/r", Verdict.FAIL, Severity.CRITICAL, paths=path, masked=True)
    plain = Finding("y", "/r", Verdict.FAIL, Severity.LOW, paths=path)
    for order in ((masked, plain), (plain, masked)):
        assert [drawn_path.state for drawn_path in drawn_paths(replace(a_failing_report(), findings=order))] == ["open"]


def test_what_sums_up_others_draws_nothing_in_their_place():
    path = (hops("nic a -> internet"),)
    part = Finding("x", "/r", Verdict.FAIL, Severity.CRITICAL, paths=path, masked=True)
    parent_finding = Finding("y", "/c", Verdict.FAIL, Severity.CRITICAL, paths=path, derived_from=Parts(("x",)))
    assert [
        drawn_path.state for drawn_path in drawn_paths(replace(a_failing_report(), findings=(parent_finding, part)))
    ] == ["masked"]

"""Resource Graph discovers and ARM decides: what the index leaves out, invents or is late with changes no verdict."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.azure.graph import ScaleSetNicInGraph
from hermetic.audit.estate.questions import Question, UnreadReason
from hermetic.audit.model.findings import Verdict
from testbed.azure.baseline import LAYOUTS, estate_of, sealed_estate
from testbed.azure.estate import Estate
from testbed.azure.faults import Edit, Fault, NotJson, Remove, Reset, Status
from testbed.azure.generator import topology
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited, client_of, ids, question
from tests.sampled_groups import AZURE_AUDITS, LONG

pytestmark = AZURE_AUDITS

KIND = "Microsoft.Network/publicIPAddresses"
GRAPH = "ResourceGraph"
MANY = 30
PAGE = 10


def _large_estate() -> tuple[Estate, str, list[str]]:
    """A subscription with 30 addresses of others in one group, and one of the cluster's network in another."""
    estate = sealed_estate()
    subscription = "/".join(estate.cluster.split("/")[:3])
    foreign_addresses = [
        f"{subscription}/resourceGroups/others/providers/{KIND}/pip-{number:02}" for number in range(MANY)
    ]
    for name in foreign_addresses:
        estate.add(name, {"ipAddress": "192.0.2.1"}, location="swedencentral")
    ours = estate.add(
        f"{subscription}/resourceGroups/zz/providers/{KIND}/ours",
        {"ipConfiguration": {"id": f"{estate.site.vnet}/subnets/x"}},
        location="swedencentral",
    )
    return estate, subscription, [*(name.lower() for name in foreign_addresses), ours.lower()]


def _list(subscription: str) -> Question:
    return question("list", KIND, subscription)


def _vnet(estate: Estate) -> Question:
    return question("get", "Microsoft.Network/virtualNetworks", estate.site.vnet)


def _refused(subscription: str) -> Fault:
    """The list of the subscription is refused; groups and single addresses are not."""
    return Fault(Status(403, code="AuthorizationFailed"), path=f"{subscription}/providers/{KIND}\\?")


async def test_every_page_is_read_from_arm_whatever_the_index_knows() -> None:
    estate, subscription, names = _large_estate()
    with ArmStandIn(estate, page_size=PAGE) as arm:
        async with client_of(arm) as bench:
            answers = await bench.answerer.answers([_vnet(estate), _list(subscription)])
    answer = answers[_list(subscription)]
    assert sorted(ids(answer)) == sorted(names)
    assert answer.problem is None
    assert all(GRAPH not in evidence.request for body in answer.bodies for evidence in body.evidence)
    assert sum(request.path.endswith(KIND) for request in arm.requests) == 4


async def test_a_row_of_a_later_page_counts_though_the_index_has_not_heard_of_it_or_says_it_otherwise() -> None:
    estate, subscription, names = _large_estate()
    estate.in_graph(names[-1], None)
    estate.in_graph(names[-2], {**estate[names[-2]], "properties": {"ipAddress": "203.0.113.7"}})
    with ArmStandIn(estate, page_size=PAGE) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(_list(subscription))
    assert sorted(ids(answer)) == sorted(names)
    by_id = {str(body.value["id"]).lower(): body.value for body in answer.bodies}
    assert by_id[names[-2]]["properties"]["ipAddress"] == "192.0.2.1"


async def test_a_zone_whose_links_the_index_has_not_counted_yet_is_looked_into() -> None:
    estate = sealed_estate()
    [zone, *_] = estate.of_type("Microsoft.Network/privateDnsZones")
    base = str(zone["id"]).rpartition("/")[0]
    for number in range(6):
        estate.add(f"{base}/a{number}.internal", {"numberOfVirtualNetworkLinks": 0}, location="global")
    late = estate.add(f"{base}/zz-late.internal", {"numberOfVirtualNetworkLinks": 1}, location="global")
    link = {"virtualNetwork": {"id": estate.site.vnet}, "resolutionPolicy": "NxDomainRedirect"}
    estate.add(f"{late}/virtualNetworkLinks/l", link, location="global")
    estate.in_graph(late, {**estate[late], "properties": {"numberOfVirtualNetworkLinks": 0}})
    with ArmStandIn(estate, page_size=2) as arm:
        report = await audited(arm)
    assert report.of("privdns-fallthrough")[f"{late}/virtualNetworkLinks/l".lower()].verdict is Verdict.FAIL


async def test_beside_a_refused_list_a_row_that_is_only_later_known_to_be_ours_is_then_read_from_arm() -> None:
    estate, subscription, names = _large_estate()
    with ArmStandIn(estate, page_size=PAGE, faults=[_refused(subscription)]) as arm:
        async with client_of(arm) as bench:
            first = await bench.answerer.answers([_list(subscription)])
            later = await bench.answerer.answers([_vnet(estate)])
    before = {str(body.value["id"]).lower(): body.evidence[0].request for body in first[_list(subscription)].bodies}
    after = {str(body.value["id"]).lower(): body.evidence[0].request for body in later[_list(subscription)].bodies}
    assert sorted(before) == sorted(after) == sorted(names)
    assert GRAPH in before[names[-1]]
    assert after[names[-1]].startswith(f"GET {subscription}/resourceGroups/zz/providers/{KIND}/ours?")
    assert {answers[_list(subscription)].problem is None for answers in (first, later)} == {False}


async def test_many_rows_that_are_ours_are_listed_in_their_group_instead_of_one_by_one() -> None:
    estate, subscription, _ = _large_estate()
    group = f"{subscription}/resourceGroups/zz"
    for number in range(20):
        estate.add(f"{group}/providers/{KIND}/more-{number}", {"x": estate.site.vnet}, location="swedencentral")
    with ArmStandIn(estate, page_size=PAGE, faults=[_refused(subscription)]) as arm:
        async with client_of(arm) as bench:
            answers = await bench.answerer.answers([_vnet(estate), _list(subscription)])
    answer = answers[_list(subscription)]
    assert len(answer.bodies) == MANY + 21
    assert len(set(ids(answer))) == MANY + 21
    assert sum(request.method == "GET" and "/resourceGroups/zz/" in request.path for request in arm.requests) == 3


async def test_rows_that_may_not_be_read_are_not_taken_for_rows_that_are_not_there() -> None:
    estate, subscription, _ = _large_estate()
    estate.deny(subscription, f"{KIND}/read")
    with ArmStandIn(estate, page_size=PAGE) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(_list(subscription))
    assert answer.problem is not None
    assert (answer.problem.reason, answer.problem.permission) == (UnreadReason.FORBIDDEN, f"{KIND}/read")


async def test_a_subscription_that_is_not_ours_to_read_is_forbidden_not_empty() -> None:
    estate, subscription, _ = _large_estate()
    estate.deny(subscription)
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(_list(subscription))
            foreign = await bench.answer(_list("/subscriptions/11111111-2222-3333-4444-555555555555"))
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.FORBIDDEN
    assert foreign.problem is not None


@pytest.mark.parametrize(
    "action",
    [
        Status(400, code="BadRequest"),
        Status(403, code="AuthorizationFailed"),
        Status(404),
        Status(503),
        Reset(),
        NotJson(),
        Remove("data"),
        Edit("data", {"rows": []}),
        Edit("data.0.id", 7),
        Edit("data.0", None),
        Edit("totalRecords", 7),
        Edit("totalRecords", "many"),
        Edit("count", 1),
        Edit("resultTruncated", "true"),
        Edit("$skipToken", "the same for ever"),
        Edit("$skipToken", 7),
    ],
)
async def test_a_result_that_is_not_whole_leaves_the_list_to_arm(action: Any) -> None:
    estate, subscription, names = _large_estate()
    with ArmStandIn(estate, page_size=PAGE, faults=[Fault(action, path=GRAPH)]) as arm:
        async with client_of(arm, retry_budget=5) as bench:
            answer = await bench.answer(_list(subscription))
            assert sorted(ids(answer)) == sorted(names)
            assert answer.problem is None
            assert all(body.evidence[0].request.startswith("GET ") for body in answer.bodies)
            assert any("ARM alone" in sentence for sentence in bench.progress.sentences)


def _hidden(subscription: str) -> Fault:
    """ARM's list of the subscription shows nothing."""
    return Fault(Edit("value", []), path=f"{subscription}/providers/{KIND}\\?")


async def test_a_row_that_arm_does_not_have_any_more_is_gone() -> None:
    estate, subscription, names = _large_estate()
    faults = [Fault(Status(404), path="/zz/"), _hidden(subscription)]
    with ArmStandIn(estate, faults=faults) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(_list(subscription))
    assert sorted(ids(answer)) == sorted(names[:-1])
    assert answer.problem is None


async def test_a_row_that_may_be_seen_in_the_index_but_not_in_arm_is_kept_with_the_problem() -> None:
    estate, subscription, names = _large_estate()
    faults = [Fault(Status(403, code="AuthorizationFailed"), path="/zz/"), _hidden(subscription)]
    with ArmStandIn(estate, faults=faults) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(_list(subscription))
    assert sorted(ids(answer)) == sorted(names)
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.FORBIDDEN


async def test_an_empty_list_of_arm_does_not_hide_what_the_index_has() -> None:
    estate, subscription, names = _large_estate()
    with ArmStandIn(estate, faults=[_hidden(subscription)]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(_list(subscription))
    assert sorted(ids(answer)) == sorted(names)


async def test_more_rows_than_one_page_of_the_index_holds_are_all_read() -> None:
    estate, subscription, names = _large_estate()
    more = [f"{subscription}/resourceGroups/others/providers/{KIND}/more-{number:05}" for number in range(2100)]
    for name in more:
        estate.add(name, {}, location="swedencentral")
    with ArmStandIn(estate, page_size=PAGE, faults=[_refused(subscription)]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(_list(subscription))
    assert len(answer.bodies) == len(names) + 2100
    assert sum(request.is_graph for request in arm.requests) == 3
    assert len(arm.requests) == 4


async def test_under_discovery_list_resource_graph_is_never_asked() -> None:
    estate, subscription, names = _large_estate()
    below = question("list", ScaleSetNicInGraph.TYPE, estate.site.gpu_scale_set, "2024-04-01")
    with ArmStandIn(estate, page_size=PAGE) as arm:
        async with client_of(arm, discovery="list") as bench:
            answers = await bench.answerer.answers([_list(subscription), below])
        assert not any(request.is_graph for request in arm.requests)
    assert sorted(ids(answers[_list(subscription)])) == sorted(names)
    problem = answers[below].problem
    assert problem is not None
    assert problem.reason is UnreadReason.NOT_ASKED


async def test_interfaces_of_scale_sets_come_from_the_table_that_has_them_each_with_its_set() -> None:
    estate = sealed_estate()
    sets = [body["id"] for body in estate.of_type("Microsoft.Compute/virtualMachineScaleSets")]
    questions = [question("list", ScaleSetNicInGraph.TYPE, scale_set, "2024-04-01") for scale_set in sets]
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answers = await bench.answerer.answers(questions)
        assert len(arm.requests) == 1
    assert len(sets) > 1
    for question_asked, answer in answers.items():
        assert answer.problem is None
        assert answer.bodies
        assert all(name.startswith(f"{question_asked.target.lower()}/virtualmachines/") for name in ids(answer))


async def test_a_column_without_a_value_is_a_field_that_is_not_there_and_no_damage() -> None:
    estate = sealed_estate()
    nics_question = question("list", ScaleSetNicInGraph.TYPE, estate.site.gpu_scale_set, "2024-04-01")
    nulls = [Fault(Edit(f"data.0.{column}", None), path=GRAPH) for column in ("kind", "location", "sku", "tags")]
    with ArmStandIn(estate, faults=nulls) as arm:
        async with client_of(arm) as bench:
            answer = (await bench.answerer.answers([nics_question]))[nics_question]
    rows = [ScaleSetNicInGraph.read(body) for body in answer.bodies]
    assert rows
    assert not any(row.is_damaged for row in rows)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
async def test_both_ways_to_discover_come_to_the_same_verdicts_on_every_layout(layout: str) -> None:
    estate = estate_of(layout)
    with ArmStandIn(estate, page_size=3) as arm:
        by_graph = await audited(arm)
        by_list = await audited(arm, discovery="list")
        assert not arm.forbidden_requests
    assert by_graph.claims() ^ by_list.claims() == set()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(8))
async def test_both_ways_to_discover_come_to_the_same_verdicts_with_paths_open(seed: int) -> None:
    estate = topology(seed).estate
    # where Resource Graph alone shows it, a list cannot know it: that is so on purpose
    estate.scale_set_outbound_shown_by = frozenset({"arm", "graph"})
    with ArmStandIn(estate, page_size=3) as arm:
        by_graph = await audited(arm)
        by_list = await audited(arm, discovery="list")
    assert by_graph.claims() ^ by_list.claims() == set()


@LONG
async def test_an_index_that_has_heard_of_nothing_makes_nothing_pass_that_fails() -> None:
    for seed in range(4):
        estate = topology(seed).estate
        with ArmStandIn(estate) as arm:
            honest = await audited(arm)
            for body in list(estate.resources.values()):
                estate.in_graph(body["id"], None)
            blind = await audited(arm)
        fails = {claim[:2] for claim in honest.claims() if claim[2] == Verdict.FAIL.value}
        passes = {claim[:2] for claim in blind.claims() if claim[2] == Verdict.PASS.value}
        assert not fails & passes

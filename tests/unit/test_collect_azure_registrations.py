"""A list refused because nothing of its provider can be there is empty; every other refusal stays what it is."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.estate import Estate as Judged
from hermetic.audit.estate.questions import Question, UnreadReason
from hermetic.audit.estate.snapshot import Snapshot, from_json, to_json
from hermetic.audit.model.findings import Verdict
from testbed.azure.baseline import estate_of, sealed_estate
from testbed.azure.estate import Estate
from testbed.azure.faults import Edit, Fault, NotJson, Remove, Status
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited, client_of, question
from tests.fakes.clocks import START
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

ARC, EXTENSIONS = "Microsoft.Kubernetes", "Microsoft.KubernetesConfiguration"
CONNECTED = f"{ARC}/connectedClusters"
REGISTRATION = f"/providers/{ARC}\\?"


def _estate(state: str = "NotRegistered") -> tuple[Estate, str]:
    estate = sealed_estate()
    subscription = "/".join(estate.cluster.split("/")[:3])
    for namespace in (ARC, EXTENSIONS):
        estate.unregister(subscription.rpartition("/")[2], namespace, state)
    return estate, subscription


def _list(scope: str, kind: str = CONNECTED, version: str = "2024-01-01") -> Question:
    return question("list", kind, scope, version)


@pytest.mark.parametrize("discovery", ["graph", "list"])
@pytest.mark.parametrize("state", ["NotRegistered", "Unregistered"])
async def test_a_subscription_that_never_registered_arc_is_judged_as_one_that_has_nothing_of_it(
    discovery: Any, state: str
) -> None:
    with ArmStandIn(sealed_estate()) as arm:
        usual = await audited(arm, discovery=discovery)
    with ArmStandIn(_estate(state)[0]) as arm:
        report = await audited(arm, discovery=discovery)
        assert not arm.forbidden_requests
    assert report.claims() ^ usual.claims() == set()
    assert report.overall is Verdict.PASS
    saved = to_json(Snapshot(report.cluster, ("azure",), START, START, "0", report.answers))
    assert to_json(from_json(saved)) == saved
    again = Judged(report.cluster, ("azure",), from_json(saved).answers)
    assert not again.wanted


async def test_the_registration_is_asked_for_once_and_both_answers_are_the_evidence() -> None:
    estate, subscription = _estate()
    group = estate.cluster.partition("/providers/")[0]
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answers = await bench.answerer.answers([_list(subscription), _list(group)])
            later = await bench.answer(_list(estate.site.node_group))
        arc_requests = [request for request in arm.requests if request.path.endswith(f"/providers/{ARC}")]
    assert len(arc_requests) == 1
    assert arc_requests[0].action == "Microsoft.Resources/subscriptions/providers/read"
    for answer in (*answers.values(), later):
        assert (answer.bodies, answer.problem) == ((), None)
        assert [evidence.status for evidence in answer.evidence] == [409, 200]
        assert answer.evidence[1].request == f"GET {subscription}/providers/{ARC}?api-version=2021-04-01"
        assert all(evidence.sha256 for evidence in answer.evidence)


async def test_what_is_attached_to_the_cluster_hangs_on_the_provider_of_what_is_attached() -> None:
    estate, _ = _estate()
    attached = _list(estate.cluster, f"{EXTENSIONS}/extensions", "2023-05-01")
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(attached)
    assert (answer.bodies, answer.problem) == ((), None)
    assert f"/providers/{EXTENSIONS}?" in answer.evidence[1].request


@pytest.mark.parametrize("code", ["MissingSubscriptionRegistration", "SubscriptionNotRegistered"])
@pytest.mark.parametrize("state", ["Registered", "Registering", "Unregistering", "", "notRegisteredYet"])
async def test_a_refusal_in_any_other_state_stays_a_refusal(code: str, state: str) -> None:
    estate, subscription = _estate(state)
    refusal = Fault(Status(409, code=code), path=CONNECTED)
    with ArmStandIn(estate, faults=[refusal]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(_list(subscription))
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.REFUSED
    assert code in answer.problem.detail


@pytest.mark.parametrize(
    "action",
    [
        Status(403, code="AuthorizationFailed"),
        Status(404),
        Status(400, code="InvalidResourceNamespace"),
        Status(503),
        NotJson(),
        Remove("registrationState"),
        Remove("namespace"),
        Edit("registrationState", None),
        Edit("registrationState", ["NotRegistered"]),
        Edit("namespace", "Microsoft.Other"),
    ],
)
async def test_a_registration_that_cannot_be_read_decides_nothing(action: Any) -> None:
    estate, subscription = _estate()
    with ArmStandIn(estate, faults=[Fault(action, path=REGISTRATION)]) as arm:
        async with client_of(arm, retry_budget=3) as bench:
            answer = await bench.answer(_list(subscription))
    assert answer.problem is not None
    assert answer.problem.reason is UnreadReason.REFUSED


GATEWAYS = "Microsoft.Network/serviceGateways"


def _without_gateways(code: str) -> tuple[Estate, Question]:
    """A cloud that does not offer service gateways yet, and the list that an audit asks for first."""
    estate = sealed_estate()
    estate.leave_out(GATEWAYS, code)
    return estate, _list("/".join(estate.cluster.split("/")[:3]), GATEWAYS, "2025-05-01")


@pytest.mark.parametrize("code", ["InvalidResourceType", "NoRegisteredProviderFound"])
async def test_a_type_that_the_cloud_does_not_offer_has_no_resources(code: str) -> None:
    estate, gateways_question = _without_gateways(code)
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(gateways_question)
    assert (answer.bodies, answer.problem) == ((), None)
    assert [evidence.status for evidence in answer.evidence][-1] == 200
    assert "/providers/Microsoft.Network?" in answer.evidence[-1].request


@pytest.mark.parametrize("discovery", ["graph", "list"])
async def test_a_cloud_that_lags_behind_is_judged_as_one_that_has_nothing_of_the_new_types(discovery: Any) -> None:
    estate, _ = _without_gateways("NoRegisteredProviderFound")
    with ArmStandIn(sealed_estate()) as arm:
        usual = await audited(arm, discovery=discovery)
    with ArmStandIn(estate) as arm:
        report = await audited(arm, discovery=discovery)
    assert report.claims() ^ usual.claims() == set()


@pytest.mark.parametrize(
    "types",
    [
        Edit("resourceTypes", [{"resourceType": "virtualNetworks"}, {"resourceType": "ServiceGateways"}]),
        Edit("resourceTypes", []),
        Edit("resourceTypes", None),
        Edit("resourceTypes", [{"resourceType": "virtualNetworks"}, {"name": "serviceGateways"}]),
        Edit("resourceTypes", "virtualNetworks"),
        Remove("resourceTypes"),
        Status(403, code="AuthorizationFailed"),
        Status(503),
    ],
)
async def test_a_type_that_its_provider_may_offer_stays_unknown(types: Any) -> None:
    """An api-version that a cloud does not know is refused in the same words."""
    estate, gateways_question = _without_gateways("NoRegisteredProviderFound")
    with ArmStandIn(estate, faults=[Fault(types, path="/providers/Microsoft.Network\\?")]) as arm:
        async with client_of(arm, retry_budget=3) as bench:
            answer = await bench.answer(gateways_question)
    assert answer.problem is not None


async def test_an_api_version_that_a_cloud_does_not_know_leaves_a_type_unknown() -> None:
    """The refusal names versions that would do, so there may be resources, wherever the provider lists the type."""
    estate, gateways_question = _without_gateways("NoRegisteredProviderFound")
    older = question("list", GATEWAYS, gateways_question.target, "1999-01-01")
    estate.not_offered.clear()
    gone = Edit("resourceTypes", [{"resourceType": "virtualNetworks"}])
    with ArmStandIn(estate, faults=[Fault(gone, path="/providers/Microsoft.Network\\?")]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(older)
    assert answer.problem is not None
    assert "supported api-versions are '" in answer.problem.detail


async def test_a_deny_assignment_is_no_missing_permission() -> None:
    estate = estate_of("managed")
    estate.lock(estate.site.node_group)
    with ArmStandIn(estate) as arm:
        audit_report = await audited(arm)
    locked = [finding for finding in audit_report.findings if finding.reason == "DenyAssignment"]
    assert {finding.check for finding in locked} >= {"avnm-connectivity", "avnm-admin-rules"}
    assert {finding.verdict for finding in locked} == {Verdict.UNKNOWN}
    for finding in locked:
        assert "missing permission" not in finding.message
        assert "deny assignment" in finding.remedy
        assert "role in docs" not in finding.remedy


@pytest.mark.parametrize(
    ("status", "code"),
    [(409, "Conflict"), (403, "MissingSubscriptionRegistration"), (404, "SubscriptionNotRegistered")],
)
async def test_other_refusals_ask_for_no_registration(status: int, code: str) -> None:
    estate, subscription = _estate()
    with ArmStandIn(estate, faults=[Fault(Status(status, code=code), path=CONNECTED)]) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(_list(subscription))
        assert not [request for request in arm.requests if request.path.endswith(f"/providers/{ARC}")]
    assert answer.problem is not None


async def test_a_resource_that_is_asked_for_by_its_id_and_what_lies_below_one_are_never_taken_for_nothing() -> None:
    estate = sealed_estate()
    estate.unregister(estate.cluster.split("/")[2], "Microsoft.ContainerRegistry")
    registry = "Microsoft.ContainerRegistry/registries"
    questions = [
        question("get", registry, estate.site.registry, "2025-11-01"),
        question("list", f"{registry}/cacheRules", estate.site.registry, "2025-11-01"),
    ]
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answers = await bench.answerer.answers(questions)
    assert [answer.problem is None for answer in answers.values()] == [False, False]


REGISTRY, PIPELINES = "Microsoft.ContainerRegistry/registries", "Microsoft.ContainerRegistry/registries/exportPipelines"
OTHER_CHILDREN = [{"resourceType": "registries"}, {"resourceType": "registries/cacheRules"}]


def _without_pipelines(code: str) -> tuple[Estate, Question]:
    estate = sealed_estate()
    estate.leave_out(PIPELINES, code)
    return estate, _list(estate.site.registry, PIPELINES, "2026-09-01-preview")


@pytest.mark.parametrize("code", ["InvalidResourceType", "NoRegisteredProviderFound"])
async def test_a_type_below_a_resource_that_the_cloud_does_not_offer_has_no_resources(code: str) -> None:
    estate, pipelines_question = _without_pipelines(code)
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answer = await bench.answer(pipelines_question)
    assert (answer.bodies, answer.problem) == ((), None)
    assert "/providers/Microsoft.ContainerRegistry?" in answer.evidence[-1].request


@pytest.mark.parametrize(
    "types",
    [
        Edit("resourceTypes", [*OTHER_CHILDREN, {"resourceType": "registries/exportpipelines"}]),
        # a list that leaves types below resources out says nothing of them
        Edit("resourceTypes", [{"resourceType": "registries"}, {"resourceType": "operations"}]),
        Edit("resourceTypes", [{"resourceType": "registries"}, {"resourceType": "registriesOfOthers/cacheRules"}]),
        Edit("resourceTypes", [*OTHER_CHILDREN, {"name": "registries/exportPipelines"}]),
        Edit("resourceTypes", []),
        Remove("resourceTypes"),
        Status(403, code="AuthorizationFailed"),
    ],
)
async def test_a_type_below_a_resource_that_may_be_offered_stays_unknown(types: Any) -> None:
    estate, pipelines_question = _without_pipelines("NoRegisteredProviderFound")
    with ArmStandIn(estate, faults=[Fault(types, path="/providers/Microsoft.ContainerRegistry\\?")]) as arm:
        async with client_of(arm, retry_budget=3) as bench:
            answer = await bench.answer(pipelines_question)
    assert answer.problem is not None


async def test_a_preview_that_a_cloud_does_not_know_is_unknown_and_touches_nothing_else() -> None:
    """The refusal names other versions of the type, so it is there; the stable version of the registry is read on."""
    estate = sealed_estate()
    stable, preview = (
        question("get", REGISTRY, estate.site.registry, version) for version in ("2025-11-01", "2030-01-01-preview")
    )
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answers = await bench.answerer.answers([stable, preview])
    assert answers[stable].problem is None
    assert "writableCacheRepos" not in answers[stable].bodies[0].value["properties"]
    problem = answers[preview].problem
    assert problem is not None
    assert problem.reason is UnreadReason.REFUSED


async def test_a_list_that_is_refused_at_a_later_page_keeps_its_problem() -> None:
    estate, subscription = _estate("Registered")
    for number in range(3):
        estate.add(f"{subscription}/resourceGroups/g/providers/{CONNECTED}/c{number}", {}, location="l")
    refusal = Fault(Status(409, code="MissingSubscriptionRegistration"), path=CONNECTED, skip=1)
    with ArmStandIn(estate, page_size=2, faults=[refusal, Fault(Edit("registrationState", "NotRegistered"))]) as arm:
        async with client_of(arm, discovery="list") as bench:
            answer = await bench.answer(_list(subscription))
    assert len(answer.bodies) == 2
    assert answer.problem is not None

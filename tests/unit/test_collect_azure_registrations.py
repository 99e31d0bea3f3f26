"""A list refused because nothing of its provider can be there is empty; every other refusal stays what it is."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.estate import Estate as Judged
from hermetic.audit.estate.questions import Question, Trouble
from hermetic.audit.estate.snapshot import Snapshot, from_json, to_json
from hermetic.audit.findings import Verdict
from testbed.azure.baseline import sealed_estate
from testbed.azure.estate import Estate
from testbed.azure.faults import Edit, Fault, NotJson, Remove, Status
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import START, audited, client_of, question

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
        seen = await audited(arm, discovery=discovery)
        assert not arm.forbidden_requests
    assert seen.claims() ^ usual.claims() == set()
    assert seen.overall is Verdict.PASS
    saved = to_json(Snapshot(seen.cluster, ("azure",), START, START, "0", seen.answers))
    assert to_json(from_json(saved)) == saved
    again = Judged(seen.cluster, ("azure",), from_json(saved).answers)
    assert not again.wanted


async def test_the_registration_is_asked_for_once_and_both_answers_are_the_evidence() -> None:
    estate, subscription = _estate()
    group = estate.cluster.partition("/providers/")[0]
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answers = await bench.answerer.answers([_list(subscription), _list(group)])
            later = await bench.answer(_list(estate.site.node_group))
        asked = [request for request in arm.requests if request.path.endswith(f"/providers/{ARC}")]
    assert len(asked) == 1
    assert asked[0].action == "Microsoft.Resources/subscriptions/providers/read"
    for answer in (*answers.values(), later):
        assert (answer.bodies, answer.problem) == ((), None)
        assert [one.status for one in answer.evidence] == [409, 200]
        assert answer.evidence[1].request == f"GET {subscription}/providers/{ARC}?api-version=2021-04-01"
        assert all(one.sha256 for one in answer.evidence)


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
    assert answer.problem.trouble is Trouble.REFUSED
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
    assert answer.problem.trouble is Trouble.REFUSED


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
    asked = [
        question("get", registry, estate.site.registry, "2025-11-01"),
        question("list", f"{registry}/cacheRules", estate.site.registry, "2025-11-01"),
    ]
    with ArmStandIn(estate) as arm:
        async with client_of(arm) as bench:
            answers = await bench.answerer.answers(asked)
    assert [answer.problem is None for answer in answers.values()] == [False, False]


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

"""What is kept of the rows of a list: nothing that checks read is lost, and what was dropped never counts as unset."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hermetic.audit.estate.azure.vnet import NetworkInterface
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.projection import fields_kept, projected_row
from hermetic.audit.estate.questions import Answer, Body, Question, UnreadReason
from hermetic.audit.estate.resource import Resource, arm
from hermetic.audit.estate.snapshot import Snapshot, from_json, to_json
from hermetic.audit.model.findings import Evidence
from hermetic.audit.result.run import evaluate
from hermetic.errors import FactDamaged
from testbed.azure.baseline import estate_of, filtered_estate, sealed_estate
from testbed.azure.estate import Estate as StandIn
from testbed.azure.plants import PLANTS
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited, policy_of
from tests.stand_in_answers import answers_of

NICS = "Microsoft.Network/networkInterfaces"
GROUP = "/subscriptions/s/resourceGroups/rg"
NIC = f"{GROUP}/providers/{NICS}/nic"
SEEN = (Evidence("GET /nics", 200, "aa"),)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _planted(estate: StandIn, names: Iterable[str]) -> StandIn:
    """The estate with every plant: of plants that exclude each other the first is taken."""
    spots = set[str]()
    for plant in (PLANTS[name] for name in names):
        if spots.isdisjoint(plant.spots) and plant.fits(estate):
            plant.into(estate)
            spots |= plant.spots
    return estate


def _reduced(question: Question, answer: Answer) -> Answer:
    if question.verb != "list":
        return answer
    bodies = tuple(replace(body, value=projected_row(question.kind, body.value)) for body in answer.bodies)
    return replace(answer, bodies=bodies, projection=fields_kept(question.kind))


def _nics(row: dict[str, Any], projection: str = "") -> Estate:
    question = Question("azure", "list", NICS, GROUP, NetworkInterface.API_VERSION)
    return Estate(f"{GROUP}/cluster", ("azure",), {question: Answer((Body(row, SEEN),), SEEN, None, projection)})


@pytest.mark.parametrize(
    "estate",
    [
        pytest.param(sealed_estate, id="sealed"),
        pytest.param(filtered_estate, id="filtered"),
        pytest.param(lambda: _planted(sealed_estate(), PLANTS), id="every plant"),
        pytest.param(lambda: _planted(estate_of("peered"), reversed(PLANTS)), id="every plant, the last first"),
    ],
)
def test_reduced_rows_give_the_same_findings_as_whole_ones(estate: Callable[[], StandIn]) -> None:
    stood_in = estate()
    policy, full_answers = policy_of(stood_in), answers_of(stood_in)
    reduced = {question: _reduced(question, answer) for question, answer in full_answers.items()}
    of_whole = evaluate(Estate(stood_in.cluster, ("azure",), full_answers), policy)
    of_reduced = Estate(stood_in.cluster, ("azure",), reduced)
    assert evaluate(of_reduced, policy) == of_whole
    assert not of_reduced.wanted
    before, after = (
        sum(len(str(body.value)) for a in some.values() for body in a.bodies) for some in (full_answers, reduced)
    )
    assert after < before
    snapshot = Snapshot(stood_in.cluster, ("azure",), NOW, NOW, "1", reduced)
    text = to_json(snapshot)
    again = from_json(text)
    assert to_json(again) == text
    assert evaluate(again.estate(), policy) == of_whole


def test_only_declared_fields_are_kept_and_each_as_it_was_written() -> None:
    subnet = {"id": "subnet", "properties": {"etag": "x"}}
    row = {
        "id": NIC,
        "etag": "x",
        "PROPERTIES": {
            "macAddress": "x",
            "IPConfigurations": [{"name": "one", "etag": "x", "properties": {"Subnet": subnet, "unread": {"a": 1}}}],
            "enableIPForwarding": None,
        },
    }
    assert projected_row(NICS.upper(), row) == {
        "id": NIC,
        "PROPERTIES": {
            "IPConfigurations": [{"name": "one", "properties": {"Subnet": {"id": "subnet", "properties": {}}}}],
            "enableIPForwarding": None,
        },
    }


@pytest.mark.parametrize("properties", [None, "x", 1, [], {"ipConfigurations": "x"}, {"ipConfigurations": [7]}, {}])
def test_what_a_model_takes_for_damage_stays(properties: Any) -> None:
    row = {"id": NIC, "properties": properties, "etag": "x"}
    problems = []
    for body in (row, dict(projected_row(NICS, row))):
        (nic,) = _nics(body).every(NetworkInterface, GROUP)
        with pytest.raises(FactDamaged) as damage:
            _ = [configuration.subnet for configuration in nic.ip_configurations]
        problems.append(damage.value.message)
    assert problems[0] == problems[1]


def test_rows_stay_whole_where_a_model_reads_more_than_its_fields_or_there_is_none() -> None:
    for kind in ("Microsoft.ContainerService/managedClusters", "Microsoft.Example/unknown"):
        row = {"id": "x", "unread": 1, "properties": {"unread": {}}}
        assert projected_row(kind, row) == row
        assert fields_kept(kind) == ""


def test_every_model_of_a_type_has_its_fields_kept() -> None:
    row = {
        "id": "x",
        "properties": {"dhcpOptions": {}, "subnets": [{"id": "s", "properties": {"privateEndpoints": []}}]},
    }
    assert projected_row("Microsoft.Network/virtualNetworks", row) == row


def test_an_answer_that_kept_other_fields_is_none() -> None:
    row = {"id": NIC, "properties": {"ipConfigurations": []}}
    now = fields_kept(NICS)
    assert now
    assert _nics(row, now).every(NetworkInterface, GROUP).problem is None
    estate = _nics(row, "another")
    problem = estate.every(NetworkInterface, GROUP).problem
    assert problem is not None
    assert problem.reason is UnreadReason.NOT_ASKED
    assert "collect again" in problem.detail
    assert len(estate.wanted) == 1


def test_the_name_of_what_is_kept_changes_with_any_field() -> None:
    @arm("Microsoft.Example/things", "2026-01-01")
    class Thing(Resource):
        first: str | None = None

    before = fields_kept(Thing.TYPE)

    @arm("Microsoft.Example/things", "2026-01-01")
    class Larger(Resource):
        second: str | None = None

    assert before
    assert fields_kept(Larger.TYPE) not in {"", before}


async def test_an_audit_keeps_of_rows_what_their_models_read() -> None:
    with ArmStandIn(sealed_estate()) as arm:
        report = await audited(arm)
    lists = [answer for question, answer in report.answers.items() if question.kind == NICS and question.verb == "list"]
    assert {answer.projection for answer in lists} == {fields_kept(NICS)}
    bodies = [body for answer in lists for body in answer.bodies]
    assert bodies
    assert all("type" not in body.value for body in bodies)


def test_no_fact_has_a_map_of_private_attributes() -> None:
    row = {"id": NIC, "properties": {"ipConfigurations": [{"name": "one"}, {"name": 7}]}}
    (nic,) = _nics(row).every(NetworkInterface, GROUP)
    assert nic.evidence == SEEN
    assert nic.__pydantic_private__ is None
    assert nic.ip_configurations[0].__pydantic_private__ is None
    with pytest.raises(FactDamaged):
        _ = nic.ip_configurations[1].name

"""What is kept of long lists: bodies as text, and once what many resources have in common."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from hermetic.audit.estate.azure.vnet import NetworkInterface
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.questions import Answer, Body, PackedBody, Question
from hermetic.audit.findings import Evidence
from hermetic.errors import FactDamaged
from tests.traced_memory import traced_memory

SUBSCRIPTION = "/subscriptions/3c1f6a52-8e0b-4d7a-9b64-2f5c7d10e8a1"
NETWORK = f"{SUBSCRIPTION}/resourceGroups/rg-inference-network/providers/Microsoft.Network"
SEEN = (Evidence("GET /subscriptions/…/networkInterfaces", 200, "ab" * 32),)
MANY = 1_000
MOST_BYTES = 2_900
"""Of one interface, its row and its model together (2,420 as measured; 4,060 where rows are not packed)."""


def _row(number: int, subnet: Any = None) -> dict[str, Any]:
    held = {
        "subnet": subnet if subnet is not None else {"id": f"{NETWORK}/virtualNetworks/vnet/subnets/snet-{number % 4}"},
        "primary": True,
    }
    address = {"name": "ipconfig1", "properties": held | {"privateIPAddress": f"10.0.{number // 250}.{number % 250}"}}
    name = f"nic-{number}"
    properties = {"ipConfigurations": [address], "dnsSettings": {"dnsServers": []}, "enableIPForwarding": False}
    return {"id": f"{NETWORK}/networkInterfaces/{name}", "name": name, "location": "eu", "properties": properties}


def _listing(rows: list[dict[str, Any]], body: type[Body]) -> Listing[NetworkInterface]:
    asked = Question("azure", "list", NetworkInterface.TYPE, SUBSCRIPTION, NetworkInterface.API_VERSION)
    answer = Answer(tuple(body(json.loads(json.dumps(row)), SEEN) for row in rows), SEEN)
    return Estate("/cluster", ("azure",), {asked: answer}).every(NetworkInterface, SUBSCRIPTION)


def test_an_interface_of_a_long_list_takes_little_memory() -> None:
    rows = [_row(number) for number in range(MANY)]
    _listing(rows[:1], PackedBody)  # what the first model costs, later ones do not
    with traced_memory() as memory:
        asked = Question("azure", "list", NetworkInterface.TYPE, SUBSCRIPTION, NetworkInterface.API_VERSION)
        answer = Answer(tuple(PackedBody(json.loads(json.dumps(row)), SEEN) for row in rows), SEEN)
        found = Estate("/cluster", ("azure",), {asked: answer}).every(NetworkInterface, SUBSCRIPTION)
        taken, _ = memory()
    assert len(found) == MANY
    assert taken / MANY <= MOST_BYTES


def test_resources_are_what_they_are_when_read_alone() -> None:
    rows = [_row(number) for number in range(10)]
    for body in (Body, PackedBody):
        for one, row in zip(_listing(rows, body), rows, strict=True):
            alone = NetworkInterface.read(Body(row, SEEN))
            assert one == alone
            assert one.model_fields_set == alone.model_fields_set
            assert one.evidence == alone.evidence


def test_equal_references_of_one_list_are_one() -> None:
    first, _, _, _, again = _listing([_row(number) for number in range(5)], PackedBody)
    assert first.ip_configurations[0].subnet is again.ip_configurations[0].subnet


@pytest.mark.parametrize("broken", [{"id": 7}, {"id": None}, {}, []])
@pytest.mark.parametrize("is_first", [True, False])
def test_damage_of_one_reference_is_not_that_of_another(broken: Any, is_first: bool) -> None:
    rows = [_row(0, broken), _row(4), _row(8)] if is_first else [_row(4), _row(8), _row(0, broken)]
    read = {one.name: one for one in _listing(rows, PackedBody)}
    with pytest.raises(FactDamaged):
        _ = read["nic-0"].subnet_ids
    for name in ("nic-4", "nic-8"):
        assert read[name].subnet_ids == (f"{NETWORK}/virtualNetworks/vnet/subnets/snet-0",)


@pytest.mark.parametrize(
    "value",
    [
        {"id": "x", "properties": {"a": [1, 1.5, -0.0, 1e300, 10**30, True, None, ""]}},
        {"key": "Übergröße \u2028 \x00 \U0001f600", "lone": "\ud800"},
        {"z": 1, "a": {"z": 1, "a": 2}},
        {"": {}, "deep": [[[[{}]]]]},
    ],
)
def test_a_packed_body_gives_back_what_it_was_given(value: dict[str, Any]) -> None:
    packed = PackedBody(value, SEEN)
    assert packed.value == value
    assert json.dumps(packed.value) == json.dumps(value)  # in the same order, each of the same type
    assert packed == Body(value, SEEN)
    assert Body(value, SEEN) == packed
    assert packed != Body(value, ())
    assert pickle.loads(pickle.dumps(packed)) == packed

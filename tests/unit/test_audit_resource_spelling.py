"""Names of fields in any case, keys that are data exactly as written, and damage that never hangs or spreads."""

# ruff: noqa: RUF012 - pydantic copies defaults

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.azure.vnet import NetworkInterface, Subnet
from hermetic.audit.estate.questions import Body
from hermetic.audit.estate.resource import Part, Resource
from hermetic.errors import FactDamaged


class Limit(Part):
    hard_max: int | None = None


class Thing(Resource):
    TYPE: ClassVar[str] = "v1/things"
    WRAPPED: ClassVar[bool] = False

    labels: FreeMap[str] = {}
    maybe: FreeMap[str] | None = None
    limits: FreeMap[Limit] = {}
    loose: dict[str, str] = {}
    node_name: str | None = None


class Needy(Resource):
    TYPE: ClassVar[str] = "v1/needies"
    WRAPPED: ClassVar[bool] = False

    shared: bool


def read(**value: object) -> Thing:
    return Thing.read(Body(value, ()))


def test_keys_of_a_free_map_stay_as_written() -> None:
    thing = read(labels={"App_Name": "x", "properties": "y"}, maybe={"HTTP_PROXY": "z"})
    assert thing.labels == {"App_Name": "x", "properties": "y"}
    assert thing.maybe == {"HTTP_PROXY": "z"}


def test_models_inside_a_free_map_are_read_without_regard_to_case() -> None:
    assert read(limits={"CPU_a": {"HardMax": 3}}).limits["CPU_a"].hard_max == 3


def test_other_maps_and_names_of_fields_are_spelt_in_one_way() -> None:
    thing = read(NODENAME="n", loose={"Some_Key": "v"})
    assert thing.node_name == "n"
    assert thing.loose == {"somekey": "v"}


def test_a_wrong_value_in_a_free_map_damages_that_map_and_nothing_else() -> None:
    thing = read(labels={"a/b": 3, "c": "d"}, nodeName="n")
    assert thing.node_name == "n"
    with pytest.raises(FactDamaged, match="labels"):
        _ = thing.labels


@pytest.mark.parametrize("value", [{}, {"shared": None}, {"shared": "yes"}])
def test_a_required_field_that_nothing_can_stand_in_for_is_damage_and_not_a_loop(value: dict[str, object]) -> None:
    with pytest.raises(FactDamaged):
        _ = Needy.read(Body(value, ())).shared


@pytest.mark.parametrize("properties", ["x", 5, ["a"], None, True])
def test_properties_that_are_no_object_hide_nothing_at_any_level(properties: Any) -> None:
    inner = {"name": "first", "properties": properties}
    nic = NetworkInterface.read(Body({"id": "N", "properties": {"ipConfigurations": [inner]}}, ()))
    (first,) = nic.ip_configurations
    assert first.name == "first"
    with pytest.raises(FactDamaged):
        _ = first.public_ip_address
    with pytest.raises(FactDamaged):
        _ = NetworkInterface.read(Body({"id": "N", "properties": properties}, ())).ip_configurations


def test_a_null_stands_for_a_default_as_an_absent_field_does() -> None:
    nulls = dict.fromkeys(("serviceEndpoints", "serviceEndpointPolicies", "delegations", "addressPrefixes"))
    subnet = Subnet.read(Body({"id": "s", "name": None, "properties": {"addressPrefix": "10.0.0.0/24", **nulls}}, ()))
    absent = Subnet.read(Body({"id": "s", "properties": {"addressPrefix": "10.0.0.0/24"}}, ()))
    assert not subnet.is_damaged
    assert subnet == absent
    damaged_subnet = Subnet.read(Body({"id": "s", "properties": {"serviceEndpoints": [None]}}, ()))
    assert damaged_subnet.is_damaged, "an item that is null says nothing about what it stands for"

"""What is planted in estates: sealed ones are sealed by their own facts, plants change what they say, seeds repeat."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from testbed.azure.baseline import LAYOUTS, estate_of
from testbed.azure.effective_routes import next_hop
from testbed.azure.estate import Estate
from testbed.azure.generator import Topology, every_plant, sealed_topology, topology
from testbed.azure.plants import PLANTS
from testbed.azure.plants.decoys import DECOYS
from testbed.azure.plants.pieces import node_subnets
from testbed.azure.reference_estate import CONTRADICTIONS, owed, reference_estate
from tests.sampled_groups import AZURE_STAND_IN, LONG

pytestmark = AZURE_STAND_IN

SEVERITIES = {"critical", "high", "medium", "low", "info"}


@cache
def topology_of(seed: int) -> Topology:
    """For tests that only read it."""
    return topology(seed)


def state_of(estate: Estate) -> str:
    answers = {"/".join(key): value for key, value in estate.answers.items()}
    return json.dumps([estate.resources, answers], sort_keys=True, default=str)


def test_every_plant_has_a_severity() -> None:
    assert {plant.severity for plant in PLANTS.values()} <= SEVERITIES


@LONG
def test_every_plant_fits_somewhere_and_changes_what_the_estate_says() -> None:
    planted, before = set(), {layout: estate_of(layout) for layout in LAYOUTS}
    for case in every_plant():
        planted.update(case.planted)
        bare = before[case.layout]
        assert (case.estate.resources, case.estate.answers) != (bare.resources, bare.answers), case.name
        assert case.expected, case.name

    assert planted == set(PLANTS)


def mutable_parts(value: Any) -> dict[int, Any]:
    """The objects and lists in it that have something in them, by identity."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    parts = {id(value): value} if inside else {}
    for inner_value in inside:
        parts |= mutable_parts(inner_value)
    return parts


def test_no_plant_gives_two_estates_the_same_object() -> None:
    """A second plant may change it, and the change would show in every later estate."""
    bare = {layout: estate_of(layout) for layout in sorted(LAYOUTS)}
    for name, plant in PLANTS.items():
        layout = next(layout for layout, estate in bare.items() if plant.fits(estate))
        first, second = bare[layout].copy(), bare[layout].copy()
        plant.into(first)
        plant.into(second)
        shared = mutable_parts(first.resources).keys() & mutable_parts(second.resources).keys()
        assert not shared, name


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_sealed_estate_leads_nowhere_by_its_own_facts(name: str) -> None:
    estate = estate_of(name)
    firewall = estate.properties(estate.site.firewall) if estate.site.firewall else None

    for subnet in node_subnets(estate):
        hop = next_hop(estate, subnet, "203.0.113.9")
        if firewall:
            addresses = [
                configuration["properties"]["privateIPAddress"] for configuration in firewall["ipConfigurations"]
            ]
            assert (hop.hop, [hop.address]) == ("VirtualAppliance", addresses)
        else:
            assert hop.hop == "None"
        assert estate.properties(subnet)["defaultOutboundAccess"] is False
        assert next_hop(estate, subnet, "2001:db8::1").hop == "None"
    assert not list(estate.of_type("Microsoft.Network/natGateways"))
    public = [body["id"] for body in estate.of_type("Microsoft.Network/publicIPAddresses")]
    assert bool(public) is bool(firewall)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_site_names_what_is_there(name: str) -> None:
    estate = estate_of(name)
    named = {field: value for field, value in vars(estate.site).items() if value and field != "node_group"}

    assert [field for field, identifier in named.items() if identifier not in estate] == []


def test_references_inside_an_estate_lead_somewhere() -> None:
    for name in LAYOUTS:
        estate = estate_of(name)
        for subnet in estate.properties(estate.site.vnet)["subnets"]:
            for key in ("networkSecurityGroup", "routeTable"):
                assert subnet["properties"][key]["id"] in estate, (name, subnet["name"], key)


def test_seed_decides_everything() -> None:
    for seed in range(40):
        first, second = topology_of(seed), topology(seed)
        assert first.name == second.name
        assert first.expected == second.expected
        assert state_of(first.estate) == state_of(second.estate)


def test_seeds_differ_and_some_are_sealed() -> None:
    many = [topology_of(seed) for seed in range(300)]

    assert len({case.name.partition(":")[2] for case in many}) > 250
    assert 30 <= sum(case.is_sealed for case in many) <= 90
    assert {len(case.planted) for case in many} == {0, 1, 2, 3, 4}
    assert {decoy for case in many for decoy in case.decoys} == set(DECOYS)
    assert all(sealed_topology(seed).expected == () for seed in range(20))


def test_plants_of_one_spot_are_never_together() -> None:
    for seed in range(300):
        spots = [spot for name in topology_of(seed).planted for spot in PLANTS[name].spots]
        assert len(spots) == len(set(spots))


def test_findings_are_told_from_false_alarms() -> None:
    case = next(case for case in map(topology_of, range(500)) if len(case.planted) == 1 and case.expected[0].severity)
    misconfiguration = case.expected[0]
    found_key = (misconfiguration.check, misconfiguration.resource.upper(), misconfiguration.severity or "")
    alarm = ("no-such-check", "/x", "high")

    assert case.missed({found_key}) == [other for other in case.expected if other.resource != misconfiguration.resource]
    assert misconfiguration in case.missed({(misconfiguration.check, "/elsewhere", misconfiguration.severity or "")})
    assert case.false_alarms({found_key, alarm}) == [alarm]


def test_reference_deployment_owes_a_finding_for_each_contradiction() -> None:
    estate = reference_estate()

    assert all(contradiction.owed(estate) for contradiction in CONTRADICTIONS)
    assert all(name in estate for finding in owed(estate) for name in finding.resources)
    assert estate.site.sentinel == ""


def test_stand_in_runs_as_a_process_until_it_is_told_to_end() -> None:
    command = [sys.executable, "-m", "testbed", "azure", "--plant", "nat_gateway_on_the_gpu_subnet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        document = json.loads(process.stdout.readline())
        process.terminate()
        _, progress = process.communicate(timeout=20)

    assert set(document) == {"url", "token", "cluster"}
    assert process.returncode == 0
    assert "stand-in" in progress
    assert "subnet-nat-gateway" in progress

"""Topologies from a seed: a sealed estate, some decoys, up to four plants, and what must be found in it.

    topology(7)                        always the same
    sealed_topology(7)                 the same without plants
    every_plant()                      each plant alone, in every layout that it fits
    last_layouts()                     by plant, the last layout that it fits
    alone("no_dns_policy", "sealed")   one plant alone in a layout

The seed decides the layout, the decoys, the plants, the order of lists and who shows the scale set interfaces' hidden
addresses. Plants that would undo one another are never in one topology.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from hermetic.audit.model.findings import Severity
from testbed.azure.baseline import LAYOUTS, estate_of
from testbed.azure.estate import Estate
from testbed.azure.plants import PLANTS, Expected, Plant
from testbed.azure.plants.decoys import DECOYS
from testbed.azure.plants.plant import FILTERED

MOST_PLANTS = 4
MOST_DECOYS = 3
SHOWN_BY = (frozenset[str](), frozenset({"arm", "graph"}), frozenset({"arm"}), frozenset({"graph"}))
RULES_BEFORE_A_FIREWALL = frozenset({"nsg-internet-deny", "nsg-broad-allow", "nsg-effective"})
# information, never a verdict about a path: what these say of a sealed estate is left open by the facts
INFORMATIVE = frozenset({"nsg-platform-imds", "peering-subnet-scope"})


@dataclass(frozen=True)
class Topology:
    """expected: each must be found as Fail. also: checks that may fail beside them; any other Fail is a false alarm.

    hides: a plant leaves a subscription that is not readable, so that what else is expected may be Unknown.
    """

    seed: int
    layout: str
    estate: Estate
    planted: tuple[str, ...]
    decoys: tuple[str, ...]
    expected: tuple[Expected, ...]
    also: frozenset[str]
    hides: bool

    @property
    def is_sealed(self) -> bool:
        return not self.planted

    @property
    def name(self) -> str:
        return f"{self.seed}: {self.layout}" + "".join(f" + {plant}" for plant in (*self.planted, *self.decoys))

    def missed(
        self, fails: Set[tuple[str, str, str]], doubts: Set[tuple[str, str, str]] = frozenset()
    ) -> list[Expected]:
        """Expected findings that are not among these Fails, or Unknowns where they will do.

        Each is a (check, resource, severity).
        """
        reported = fails | doubts if self.hides else fails
        return [
            expectation
            for expectation in self.expected
            if not any(expectation.is_met_by(*finding) for finding in reported)
        ]

    def false_alarms(self, fails: set[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """Fails that nothing planted explains."""
        explained = self.also | {expectation.check for expectation in self.expected}
        return sorted(fail for fail in fails if fail[0] not in explained)


def topology(seed: int, most: int = MOST_PLANTS) -> Topology:
    """Zero to `most` plants; a fifth of the seeds are sealed."""
    chance = random.Random(seed)
    layout = chance.choice(sorted(LAYOUTS))
    count = 0 if chance.random() < 0.2 else chance.randint(1, most)
    estate = estate_of(layout)
    return _planted(seed, layout, estate, _drawn(chance, estate, count), chance)


def sealed_topology(seed: int) -> Topology:
    chance = random.Random(seed)
    layout = chance.choice(sorted(LAYOUTS))
    return _planted(seed, layout, estate_of(layout), [], chance)


def every_plant() -> Iterator[Topology]:
    """Each plant alone, without decoys, in every layout that has what it changes."""
    for layout in sorted(LAYOUTS):
        base = estate_of(layout)
        for plant in PLANTS.values():
            if plant.fits(base):
                yield _planted(0, layout, base.copy(), [plant], None)


def last_layouts() -> dict[str, str]:
    """By name of a plant, the last layout that has what it changes."""
    bases = {layout: estate_of(layout) for layout in sorted(LAYOUTS)}
    return {name: layout for layout, base in bases.items() for name, plant in PLANTS.items() if plant.fits(base)}


def alone(name: str, layout: str) -> Topology:
    """A layout with this plant and without decoys."""
    return _planted(0, layout, estate_of(layout), [PLANTS[name]], None)


def _drawn(chance: random.Random, estate: Estate, count: int) -> list[Plant]:
    fitting = [plant for _, plant in sorted(PLANTS.items()) if plant.fits(estate)]
    chance.shuffle(fitting)
    chosen: list[Plant] = []
    occupied: set[str] = set()
    for plant in fitting:
        if len(chosen) == count:
            break
        if occupied.isdisjoint(plant.spots):
            chosen.append(plant)
            occupied |= plant.spots
    return chosen


def _planted(seed: int, layout: str, estate: Estate, plants: list[Plant], chance: random.Random | None) -> Topology:
    decoys = _disguise(chance, estate, plants) if chance else []
    expected = [
        _as_expected(expectation, plant, len(plants) > 1) for plant in plants for expectation in plant.into(estate)
    ]
    also = INFORMATIVE.union(*(plant.also for plant in plants), *(_unfiltered(plant, estate) for plant in plants))
    if chance:
        _shuffle_lists(chance, estate)
    names = tuple(plant.name for plant in plants)
    hides = any(plant.hides for plant in plants)
    return Topology(seed, layout, estate, names, tuple(decoys), _most_severe(expected), also, hides)


def _most_severe(expected: list[Expected]) -> tuple[Expected, ...]:
    """A check says of a resource what is worst: two plants on one resource are one finding."""
    return tuple(finding for finding in expected if not any(_outranks(other, finding) for other in expected))


def _outranks(other: Expected, expected: Expected) -> bool:
    if other.severity is None or expected.severity is None:
        return False
    same = other.check == expected.check and not set(other.resources).isdisjoint(expected.resources)
    return same and Severity(other.severity).rank < Severity(expected.severity).rank


def _as_expected(expected: Expected, plant: Plant, has_company: bool) -> Expected:
    return replace(expected, severity=None) if plant.depends and has_company else expected


def _unfiltered(plant: Plant, estate: Estate) -> frozenset[str]:
    """Behind a firewall, groups may let the web out as long as every default route leads there."""
    moves_routes = "effective-routes" in {plant.check, *plant.also}
    return RULES_BEFORE_A_FIREWALL if estate.profile == FILTERED and moves_routes else frozenset()


def _disguise(chance: random.Random, estate: Estate, plants: list[Plant]) -> list[str]:
    """Decoys go in before the plants: a plant may undo one, never the other way round."""
    planted = {plant.name for plant in plants}
    fitting = [
        name for name, decoy in sorted(DECOYS.items()) if decoy.fits(estate) and planted.isdisjoint(decoy.settles)
    ]
    chosen = chance.sample(fitting, chance.randint(0, MOST_DECOYS))
    for name in chosen:
        DECOYS[name].change(estate)
    estate.scale_set_outbound_shown_by = chance.choice(SHOWN_BY)
    return chosen


def _shuffle_lists(chance: random.Random, estate: Estate) -> None:
    """Azure promises no order of these."""
    for kind, key in (
        ("Microsoft.Network/virtualNetworks", "subnets"),
        ("Microsoft.Network/routeTables", "routes"),
        ("Microsoft.Network/networkSecurityGroups", "securityRules"),
        ("Microsoft.ContainerService/managedClusters", "agentPoolProfiles"),
    ):
        for body in estate.of_type(kind):
            chance.shuffle(body["properties"].get(key) or [])

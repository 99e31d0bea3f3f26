"""Two thousand estates, each of a seed, behind the stand-in for Azure: what is planted is found, and nothing else.

The whole way is taken but for the socket. A chunk of seeds is one test, so that the chunks share the processors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from hermetic.audit.findings import Finding, Verdict
from hermetic.collect.azure.answering import How
from testbed.azure.generator import Topology, every_plant, topology
from tests.azure_audits import audited

SEEDS = 2000
CHUNK = 50
DECIDES = {"critical", "high"}


@dataclass
class Tally:
    """What a run of topologies came to."""

    topologies: int = 0
    planted: int = 0
    missed: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    def take(self, one: Topology, findings: tuple[Finding, ...]) -> None:
        """Hold the findings of one estate against what was planted there."""
        fails, doubts = told(findings, Verdict.FAIL), told(findings, Verdict.UNKNOWN)
        self.topologies += 1
        self.planted += len(one.expected)
        self.missed += [f"{one.name}: {wanted}" for wanted in one.missed(fails, doubts)]
        self.alarms += [f"{one.name}: {found}" for found in one.false_alarms(fails) if found[2] in DECIDES]
        if one.is_sealed:
            undecided = [f for f in findings if f.verdict is Verdict.UNKNOWN and f.severity.decides]
            self.alarms += [f"{one.name}: {f.check} on {f.resource}: {f.message}" for f in undecided]

    def hold(self, record_property: Callable[[str, object], None]) -> None:
        """Nothing was missed and nothing is a false alarm; the figures go into the summary of the run."""
        record_property("audit topologies", self.topologies)
        record_property("paths planted", self.planted)
        record_property("planted paths missed", len(self.missed))
        record_property("false alarms", len(self.alarms))
        assert self.planted > 0
        assert self.missed == []
        assert self.alarms == []


def told(findings: tuple[Finding, ...], verdict: Verdict) -> set[tuple[str, str, str]]:
    return {(f.check, f.resource, f.severity.value) for f in findings if f.verdict is verdict}


def judged(topologies: Iterator[Topology], discovery: How) -> Tally:
    tally = Tally()
    for one in topologies:
        tally.take(one, asyncio.run(audited(one.estate, discovery)))
    return tally


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_what_is_planted_is_found_and_nothing_else(first: int, record_property: Callable[[str, object], None]) -> None:
    judged((topology(seed) for seed in range(first, first + CHUNK)), "graph").hold(record_property)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", range(8))
def test_every_plant_alone_is_found(share: int, record_property: Callable[[str, object], None]) -> None:
    alone = {one.planted: one for one in every_plant()}  # each in the last layout that it fits
    judged((one for number, one in enumerate(alone.values()) if number % 8 == share), "list").hold(record_property)

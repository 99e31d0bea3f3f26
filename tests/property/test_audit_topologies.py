"""Two thousand estates, each of a seed, behind the stand-in for Azure: what is planted is found, and nothing else.

Every plant alone, and every tenth seed, is collected by the product's own client: the whole way but for the socket. The
same answers are then taken from the stand-in in one step, and every finding must say the same: the other seeds take
that shorter way. A chunk of seeds is one test, so that the chunks share the processors. The commit draws the quarter
that CI tries; `make test-every-case` tries all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import pytest

from hermetic.audit.estate.questions import Question
from hermetic.audit.model.findings import Finding, Verdict
from hermetic.collect.azure.answering import How
from testbed.azure.baseline import estate_of
from testbed.azure.generator import Topology, alone, last_layouts, topology
from testbed.azure.plants.plant import FILTERED
from tests.azure_audits import audited
from tests.sampling import Sample
from tests.stand_in_answers import answers_of, judged

SEEDS = 2000
CHUNK = 50
SAMPLE, SAMPLE_IN_CI = 2, 13  # of each chunk
SHARES = 8
SAMPLE_OF_PLANTS, SAMPLE_OF_PLANTS_IN_CI = 2, 10  # of each share; test_checks_against_plants finds each without HTTP
WHOLE_WAY = 10
DECIDES = {"critical", "high"}


@dataclass
class Tally:
    """What a run of topologies came to."""

    topologies: int = 0
    sealed: int = 0
    planted: int = 0
    planted_behind_a_firewall: int = 0
    missed: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    def take(self, chosen: Topology, findings: tuple[Finding, ...]) -> None:
        """Hold the findings of one estate against what was planted there."""
        fails, doubts = findings_with(findings, Verdict.FAIL), findings_with(findings, Verdict.UNKNOWN)
        self.topologies += 1
        self.planted += len(chosen.expected)
        self.planted_behind_a_firewall += len(chosen.expected) if chosen.estate.profile == FILTERED else 0
        self.missed += [f"{chosen.name}: {path}" for path in chosen.missed(fails, doubts)]
        self.alarms += [f"{chosen.name}: {alarm}" for alarm in chosen.false_alarms(fails) if alarm[2] in DECIDES]
        if chosen.is_sealed:
            self.sealed += 1
            undecided = [f for f in findings if f.verdict is Verdict.UNKNOWN and f.severity.decides]
            self.alarms += [f"{chosen.name}: {f.check} on {f.resource}: {f.message}" for f in undecided]

    def hold(self, record_property: Callable[[str, object], None]) -> None:
        """Nothing was missed and nothing is a false alarm; the figures go into the summary of the run."""
        record_property("audit topologies", self.topologies)
        record_property("paths planted", self.planted)
        record_property("paths planted with the profile filtered", self.planted_behind_a_firewall)
        record_property("planted paths missed", len(self.missed))
        record_property("false alarms", len(self.alarms))
        assert self.planted > 0 or self.sealed == self.topologies
        assert self.missed == []
        assert self.alarms == []


def findings_with(findings: tuple[Finding, ...], verdict: Verdict) -> set[tuple[str, str, str]]:
    return {(f.check, f.resource, f.severity.value) for f in findings if f.verdict is verdict}


@cache
def questions_of(layout: str) -> tuple[Question, ...]:
    """What the checks ask about a layout without plants: asked at once, it saves rounds of judging."""
    return tuple(answers_of(estate_of(layout)))


def collected(chosen: Topology, discovery: How) -> tuple[Finding, ...]:
    """The findings of the whole way but for the socket."""
    return asyncio.run(audited(chosen.estate, discovery))


def seen(chosen: Topology) -> tuple[Finding, ...]:
    """The findings by what the stand-in answers, without HTTP; every tenth seed must have the same the whole way."""
    findings = judged(chosen.estate, questions_of(chosen.layout))
    if chosen.seed % WHOLE_WAY == 0:
        assert claims(collected(chosen, "graph")) == claims(findings), chosen.name
    return findings


def claims(findings: tuple[Finding, ...]) -> list[tuple[str, ...]]:
    """What each finding says, without its evidence: an operation has another id each time."""
    fields = ((f.check, f.resource, f.verdict.value, f.severity.value, f.reason, f.message, f.remedy) for f in findings)
    return sorted(fields)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_what_is_planted_is_found_and_nothing_else(
    first: int, sample: Sample, record_property: Callable[[str, object], None]
) -> None:
    tally = Tally()
    seeds = sample.of("seeds of topologies", range(first, first + CHUNK), SAMPLE, in_ci=SAMPLE_IN_CI)
    for chosen in map(topology, seeds):
        tally.take(chosen, seen(chosen))
    tally.hold(record_property)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", range(SHARES))
def test_every_plant_alone_is_found(share: int, sample: Sample, record_property: Callable[[str, object], None]) -> None:
    tally = Tally()
    plants = list(last_layouts().items())[share::SHARES]
    for name, layout in sample.of("plants alone", plants, SAMPLE_OF_PLANTS, in_ci=SAMPLE_OF_PLANTS_IN_CI):
        chosen = alone(name, layout)
        tally.take(chosen, collected(chosen, "list"))
    tally.hold(record_property)

"""Doubtful rounds of the probe: how soon they are repeated, and when the last good round stops counting."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from hermetic.api.egressaudit import Probe
from hermetic.audit.estate.questions import Answer, Body
from hermetic.audit.model.findings import Verdict
from hermetic.collect.probe.job import ProbedNode, probed_nodes
from hermetic.controller.audit.probe_scheduler import (
    DOUBTS_IN_A_ROW,
    FinishedRound,
    Prober,
    _cause_digest,
    retry_after_seconds,
)

IMAGE = "contoso.azurecr.io/hermetic/hermetic@sha256:" + "a" * 64
PROBE = Probe(image=IMAGE)
PLACES = tuple(ProbedNode(f"pool{number}", "nodes", f"node-{number}") for number in range(20))
RESOURCES = tuple(f"agentPools/{node.pool}/subnets/{node.subnet}" for node in PLACES)
BODIES = tuple(
    Body({"pool": node.pool, "subnet": node.subnet, "hostNetwork": host}, ())
    for node in PLACES
    for host in (False, True)
)
ROUND_SECONDS = 10.0
YEARS = 3
YEAR = timedelta(days=365)
SEEDS = range(1, 4)


@dataclass
class SimulatedClock:
    """Both clocks of an operator, moved by the test."""

    at: datetime = datetime(2026, 9, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class Rounds:
    """A prober whose rounds end as the test says."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.prober = Prober(None, self.clock, "hermetic-probe")  # type: ignore[arg-type]  # no round is started
        self.prober._probe, self.prober._cause = PROBE, "cause"

    def end(self, verdict: Verdict, unknown: frozenset[str] = frozenset()) -> FinishedRound:
        self.clock.move(ROUND_SECONDS)
        finished = FinishedRound(f"{self.clock.at:%s}-{_cause_digest('cause')}", self.clock.at, PLACES, Answer(BODIES))
        self.prober._newest, self.prober._verdict = finished, None
        self.prober.judge(finished, verdict, unknown)
        return finished


def test_one_doubtful_round_leaves_the_good_one_and_is_repeated_at_once():
    rounds = Rounds()
    good = rounds.end(Verdict.PASS)
    rounds.end(Verdict.UNKNOWN, frozenset(RESOURCES[:1]))

    assert rounds.prober.counted is good
    assert rounds.prober.next_step_in() < 10


def test_a_leak_counts_at_once_and_no_good_round_hides_it():
    rounds = Rounds()
    rounds.end(Verdict.PASS)
    leak = rounds.end(Verdict.FAIL)
    assert rounds.prober.counted is leak
    doubtful = rounds.end(Verdict.UNKNOWN, frozenset(RESOURCES[:1]))

    assert rounds.prober.counted is doubtful


def test_a_place_that_stays_doubtful_closes_and_different_places_do_not():
    same, different = Rounds(), Rounds()
    good = different.end(Verdict.PASS)
    same.end(Verdict.PASS)
    for number in range(DOUBTS_IN_A_ROW):
        last = same.end(Verdict.UNKNOWN, frozenset(RESOURCES[:1]))
        different.end(Verdict.UNKNOWN, frozenset({RESOURCES[number]}))

    assert same.prober.counted is last
    assert different.prober.counted is good


def test_a_good_round_stops_counting_when_it_is_two_intervals_old():
    rounds = Rounds()
    good = rounds.end(Verdict.PASS)
    rounds.end(Verdict.UNKNOWN, frozenset(RESOURCES[:1]))
    rounds.clock.at = good.at + timedelta(seconds=2 * PROBE.interval_seconds - 1)
    assert rounds.prober.counted is good
    rounds.clock.move(1)

    assert rounds.prober.counted is not good


def test_retries_start_at_once_and_back_off():
    assert [retry_after_seconds(count) for count in range(1, 7)] == [0, 30, 60, 120, 240, 480]


def test_a_round_covers_only_places_with_both_answers():
    finished = Rounds().end(Verdict.PASS)
    ready = frozenset((node.pool, node.subnet) for node in PLACES)

    assert finished.as_evidence(ready).uncovered == ()
    assert finished.as_evidence(ready | {("burst", "other")}).uncovered == ("pool burst, subnet other",)
    partial = FinishedRound(finished.run, finished.at, PLACES, Answer(finished.answer.bodies[1:]))
    assert partial.as_evidence(ready).uncovered == ("pool pool0, subnet nodes",)


@pytest.mark.parametrize(
    ("turn", "again", "name"), [(0, "", "a"), (1, "", "b"), (2, "", "a"), (3, "", "c"), (5, "", "b"), (2, "c", "c")]
)
def test_nodes_are_asked_in_turn_and_the_oldest_in_every_second_round(turn, again, name):
    nodes = [
        {
            "metadata": {"name": job_name, "creationTimestamp": f"2026-08-0{day}T00:00:00Z"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        for day, job_name in enumerate("abc", start=1)
    ]

    assert [node.node for node in probed_nodes(nodes, turn, frozenset({again}))] == [name]


@dataclass(frozen=True)
class Bursts:
    """Losses that several places share: how many begin in a year, how many places each has, and for how long."""

    in_a_year: float = 0
    places: int = 0
    seconds: float = 0

    def starts_in(self, seconds: float, chance: random.Random) -> bool:
        return chance.random() < self.in_a_year * seconds / YEAR.total_seconds()


def closings(doubt_of_place: float, seed: int, bursts: Bursts) -> int:
    """How often a good cluster of 20 places loses its Pass in YEARS of hourly rounds."""
    chance, rounds, count, is_open = random.Random(seed), Rounds(), 0, True
    ends_at = rounds.clock.at + YEARS * YEAR
    rounds.end(Verdict.PASS)
    any_doubt = 1 - (1 - doubt_of_place) ** len(PLACES)
    burst_ends_at, in_burst, pause = rounds.clock.at, frozenset[str](), 0.0
    while rounds.clock.at < ends_at:
        doubtful = frozenset(chance.sample(RESOURCES, 1)) if chance.random() < any_doubt else frozenset()
        if bursts.starts_in(pause + ROUND_SECONDS, chance):
            in_burst = frozenset(chance.sample(RESOURCES, bursts.places))
            burst_ends_at = rounds.clock.at + timedelta(seconds=bursts.seconds)
        if rounds.clock.at < burst_ends_at:
            doubtful |= in_burst
        rounds.end(Verdict.UNKNOWN if doubtful else Verdict.PASS, doubtful)
        was_open, counted = is_open, rounds.prober.counted
        is_open = counted is rounds.prober._last_good
        count += was_open and not is_open
        pause = rounds.prober.next_step_in()
        rounds.clock.move(pause)
    return count


def lost_packets() -> float:
    """Of one place: two pods with two controls, each two tries of a handshake of two packets, 0.1 % lost."""
    lost_handshake = 1 - (1 - 0.001) ** 2
    return 1 - (1 - lost_handshake**2) ** 4


def lost_packets_and_throttled_metadata() -> float:
    """The same, and one in a thousand requests to the metadata service answered 429."""
    return 1 - (1 - lost_packets()) * (1 - 0.001) ** 3


LOSS = lost_packets()
THROTTLED = lost_packets_and_throttled_metadata()
DAILY = Bursts(in_a_year=365, places=10, seconds=90)


@pytest.mark.parametrize(
    ("name", "doubt_of_place", "bursts"),
    [
        ("0.1 % loss", LOSS, Bursts()),
        ("0.1 % loss, throttled metadata", THROTTLED, Bursts()),
        ("0.1 % loss, 90 s without half of the places each day", LOSS, DAILY),
        ("1 % doubt of each place in each round", 0.01, Bursts()),
    ],
)
def test_a_good_cluster_closes_less_than_once_a_year(name, doubt_of_place, bursts, record_property):
    counts = [closings(doubt_of_place, seed, bursts) for seed in SEEDS]
    record_property(f"false closings a year, 20 places, {name}", f"{sum(counts) / YEARS / len(SEEDS):.2f}")

    assert sum(counts) / YEARS / len(SEEDS) < 1


def test_a_pool_that_stays_silent_closes_each_time():
    """Five minutes without ten places are more rounds in a row than a good round bridges."""
    assert closings(0, 1, Bursts(in_a_year=12, places=10, seconds=300)) >= YEARS

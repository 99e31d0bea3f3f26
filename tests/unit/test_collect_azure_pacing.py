"""Nothing is asked faster than Azure allows: against the stand-in's meter, with every request delayed as it likes."""

from __future__ import annotations

import asyncio
import random

import pytest

from hermetic.collect.azure.rate_limits import Bucket, Pacing, Window
from testbed.azure.quota import Meter, Quota
from testbed.azure.refusals import Refusal
from tests.fakes.clocks import SleepersClock
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

SUBSCRIPTION = "0000"
READS, ACTIONS, GRAPH = ("reads", SUBSCRIPTION), ("actions", SUBSCRIPTION), ("graph", "")
HEADERS = {"reads": "x-ms-ratelimit-remaining-subscription-reads"}


class Azure:
    """The stand-in's meter at the far end of a line with delays; counts what it refused, and may keep what is left."""

    def __init__(self, simulation: SleepersClock, seed: int, *, tells: bool = True) -> None:
        self.simulation, self.random, self.tells = simulation, random.Random(seed), tells
        self.meter = Meter(Quota(), simulation.monotonic)
        self.refused = 0
        self.asked = 0

    async def ask(self, pacing: Pacing, lane: tuple[str, str], slowest: float) -> None:
        async with pacing.turn(lane) as headers:
            await self.simulation.sleep(self.random.uniform(0.001, slowest))
            self.asked += 1
            try:
                refusal_found = self.meter.graph() if lane == GRAPH else self.meter.arm(_method(lane), SUBSCRIPTION)
            except Refusal as refusal:
                self.refused += 1
                refusal_found = refusal.headers
            if self.tells:
                headers.update({name.lower(): value for name, value in refusal_found.items()})
            await self.simulation.sleep(self.random.uniform(0.001, slowest))


def _method(lane: tuple[str, str]) -> str:
    return "GET" if lane[0] == "reads" else "POST"


def _pacing(simulation: SleepersClock) -> Pacing:
    return Pacing(simulation, simulation.sleep, connections=8, reads_per_second=25.0, waits=lambda _: None)


async def _asked(
    lane: tuple[str, str], times: int, *, seed: int, slowest: float, used: int = 0, tells: bool = True
) -> Azure:
    simulation = SleepersClock()
    azure, pacing = Azure(simulation, seed, tells=tells), _pacing(simulation)
    for _ in range(used):
        azure.meter.arm(_method(lane), SUBSCRIPTION)
    await simulation.run([asyncio.create_task(azure.ask(pacing, lane, slowest)) for _ in range(times)])
    return azure


@pytest.mark.parametrize("slowest", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(4))
async def test_reads_are_never_refused_and_hardly_slower_than_the_quota(seed: int, slowest: float) -> None:
    azure = await _asked(READS, 900, seed=seed, slowest=slowest)
    assert (azure.asked, azure.refused) == (900, 0)
    quota_bound = (900 - 250) / 25
    # a slow line may be the limit itself: eight connections
    line_bound = 900 * slowest / 8
    assert azure.simulation.seconds <= 1.05 * max(quota_bound, line_bound) + 1


@pytest.mark.parametrize("lane", [READS, ACTIONS])
@pytest.mark.parametrize("slowest", [0.01, 0.3, 3.0])
async def test_an_azure_that_does_not_say_what_is_left_refuses_nothing_either(
    lane: tuple[str, str], slowest: float
) -> None:
    azure = await _asked(lane, 600, seed=1, slowest=slowest, tells=False)
    assert (azure.asked, azure.refused) == (600, 0)


async def test_what_was_held_up_on_a_full_bucket_does_not_overfill_it() -> None:
    simulation = SleepersClock()
    azure, pacing = Azure(simulation, 1, tells=False), _pacing(simulation)

    async def held_up() -> None:
        async with pacing.turn(READS):
            await simulation.sleep(25.0)
            azure.meter.arm("GET", SUBSCRIPTION)

    first = [asyncio.create_task(held_up()) for _ in range(8)]
    later_tasks = [asyncio.create_task(azure.ask(pacing, READS, 0.001)) for _ in range(400)]
    await simulation.run([*first, *later_tasks])
    assert azure.refused == 0


@pytest.mark.parametrize("seed", range(3))
async def test_actions_and_queries_are_never_refused(seed: int) -> None:
    actions = await _asked(ACTIONS, 500, seed=seed, slowest=0.2)
    assert actions.refused == 0
    assert actions.simulation.seconds <= 1.1 * (500 - 200) / 10 + 2
    queries = await _asked(GRAPH, 100, seed=seed, slowest=0.2)
    assert queries.refused == 0
    assert queries.simulation.seconds <= 1.15 * (99 // 15) * 5 + 1


@pytest.mark.parametrize("used", [200, 240, 249])
async def test_quota_used_by_other_clients_is_learnt_from_the_first_answers(used: int) -> None:
    azure = await _asked(READS, 400, seed=1, slowest=0.05, used=used)
    # those that left before the first answer came back cannot know
    assert azure.refused <= 8 - min(8, 250 - used)


async def test_one_subscription_that_is_used_up_does_not_hold_up_another() -> None:
    simulation = SleepersClock()
    azure, pacing = Azure(simulation, 1), _pacing(simulation)
    pacing.close(READS, 60)
    other = asyncio.create_task(azure.ask(pacing, ("reads", "1111"), 0.01))
    many = [asyncio.create_task(azure.ask(pacing, READS, 0.01)) for _ in range(20)]
    await simulation.run([other])
    assert simulation.seconds < 1
    await simulation.run(many)
    assert 60 <= simulation.seconds < 70


def test_what_is_left_is_believed_when_it_is_less_and_not_when_it_is_more() -> None:
    bucket = Bucket(250, 25, HEADERS["reads"], most_on_the_way=8, now=0.0)
    bucket.sent(0.0)
    bucket.landed(0.0, {HEADERS["reads"]: "11999"})
    bucket.sent(0.0)
    bucket.landed(0.0, {HEADERS["reads"]: "0"})
    assert 0 < bucket.wait(0.0) < 0.1
    bucket.sent(0.1)
    bucket.landed(0.1, {HEADERS["reads"]: "many"})
    assert bucket.wait(0.1) < 0.1


def test_a_window_waits_for_as_long_as_the_other_side_says() -> None:
    window = Window(15, 5.0)
    window.sent(0.0)
    window.landed(0.1, {"x-ms-user-quota-remaining": "0", "x-ms-user-quota-resets-after": "00:00:04"})
    assert window.wait(0.1) == pytest.approx(4)
    assert window.wait(4.2) == 0

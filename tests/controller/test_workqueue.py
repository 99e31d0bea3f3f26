"""The queue: one key in one hand, people first, patience that grows and ends, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hermetic.controller.workqueue import LONGEST_DELAY, WorkQueue
from tests.fakes.clocks import HandClock
from tests.fakes.virtual_loop import virtually
from tests.traced_memory import traced_memory


def a_queue(jitter: Callable[[], float] = lambda: 1.0) -> WorkQueue[str]:
    return WorkQueue(asyncio.get_running_loop().time, jitter)


def now() -> float:
    return asyncio.get_running_loop().time()


async def nothing_comes(queue: WorkQueue[str], within: float) -> bool:
    try:
        await asyncio.wait_for(queue.get(), within)
    except TimeoutError:
        return True
    return False


def test_a_key_that_is_asked_for_often_is_handed_out_once() -> None:
    async def scenario() -> None:
        queue = a_queue()
        for _ in range(5):
            queue.add("a")
        assert await queue.get() == "a"
        queue.done("a")
        assert await nothing_comes(queue, 1000)

    virtually(scenario)


def test_a_key_in_work_is_never_in_two_hands_and_comes_again_afterwards() -> None:
    async def scenario() -> None:
        queue = a_queue()
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a")
        assert await nothing_comes(queue, 1000)
        queue.done("a")
        assert await queue.get() == "a"

    virtually(scenario)


def test_wishes_that_were_overtaken_are_not_kept_until_they_would_be_due() -> None:
    async def scenario() -> None:
        queue = a_queue()
        queue.add_after("other", 3600)
        with traced_memory() as memory_use:
            for _ in range(1000):
                queue.add_after("a", 86_400)
                queue.add_after("a", 0.5)
                assert await queue.get() == "a"
                queue.done("a")
            bytes_kept, _ = memory_use()
        assert bytes_kept < 32 * 1024, "less than 1,000 entries take"
        assert await queue.get() == "other"
        assert now() == pytest.approx(3600)

    virtually(scenario)


def test_what_people_changed_goes_before_routine() -> None:
    async def scenario() -> None:
        queue = a_queue()
        queue.add("resync-1", routine=True)
        queue.add("resync-2", routine=True)
        queue.add("changed")
        assert [await queue.get() for _ in range(3)] == ["changed", "resync-1", "resync-2"]

    virtually(scenario)


def test_routine_stays_routine_when_its_time_has_come() -> None:
    async def scenario() -> None:
        queue = a_queue()
        queue.add_after("told", 1, routine=True)
        queue.add_after("wished", 1)
        await asyncio.sleep(2)
        assert [await queue.get() for _ in range(2)] == ["wished", "told"]

    virtually(scenario)


def test_a_key_that_waits_as_routine_moves_up_when_a_person_changes_it() -> None:
    async def scenario() -> None:
        queue = a_queue()
        for key in ("resync-1", "resync-2", "a"):
            queue.add(key, routine=True)
        queue.add("a")
        assert await queue.get() == "a"
        assert [await queue.get() for _ in range(2)] == ["resync-1", "resync-2"]
        assert len(queue) == 0

    virtually(scenario)


def test_pauses_double_to_five_minutes_and_start_over_after_a_success() -> None:
    async def scenario() -> None:
        queue = a_queue()
        delays = [queue.add_failed("a") for _ in range(14)]
        assert delays[:4] == [0.5, 1.0, 2.0, 4.0]
        assert delays[-1] == LONGEST_DELAY == 300.0
        queue.forget_failures("a")
        assert queue.add_failed("a") == 0.5

    virtually(scenario)


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 0.25), (1.0, 0.5)])
def test_pauses_are_spread_so_that_a_thousand_keys_do_not_return_together(chance: float, delay: float) -> None:
    async def scenario() -> None:
        assert a_queue(lambda: chance).add_failed("a") == delay

    virtually(scenario)


def test_the_earliest_of_several_wishes_counts_and_only_once() -> None:
    async def scenario() -> None:
        queue = a_queue()
        queue.add_after("a", 60)
        queue.add_after("a", 10)
        queue.add_after("a", 30)
        assert await queue.get() == "a"
        assert now() == pytest.approx(10)
        queue.done("a")
        assert await nothing_comes(queue, 1000)

    virtually(scenario)


def test_nothing_is_handed_out_while_the_api_server_asks_for_patience() -> None:
    async def scenario() -> None:
        queue = a_queue()
        queue.add("a")
        queue.pause(7)
        queue.pause(3)  # a shorter pause does not shorten a longer one
        assert await queue.get() == "a"
        assert now() == pytest.approx(7)

    virtually(scenario)


def test_the_queue_says_how_long_its_oldest_key_has_waited_or_been_worked_on() -> None:
    async def scenario() -> None:
        queue = a_queue()
        assert queue.oldest_age() == 0.0
        queue.add("a")
        await asyncio.sleep(5)
        assert queue.oldest_age() == pytest.approx(5)
        await queue.get()
        await asyncio.sleep(2)
        assert queue.oldest_age() == pytest.approx(2)
        queue.done("a")
        assert queue.oldest_age() == 0.0
        assert (len(queue), queue.in_progress) == (0, 0)

    virtually(scenario)


def test_a_stop_waits_for_what_is_in_hand_and_begins_nothing_new() -> None:
    async def scenario() -> None:
        queue = a_queue()
        queue.add("a")
        queue.add("b")
        assert await queue.get() == "a"
        queue.pause(float("inf"))
        free = asyncio.ensure_future(queue.all_done())
        assert await nothing_comes(queue, 1000)
        assert not free.done()
        queue.done("a")
        await free
        assert len(queue) == 1

    virtually(scenario)


def test_many_workers_empty_it_without_losing_a_key() -> None:
    async def scenario() -> None:
        queue, handled_keys, everything = a_queue(), list[str](), asyncio.Event()

        async def worker() -> None:
            while True:
                key = await queue.get()
                await asyncio.sleep(0.01)
                handled_keys.append(key)
                queue.done(key)
                if len(handled_keys) == 500:
                    everything.set()

        workers = [asyncio.ensure_future(worker()) for _ in range(8)]
        for number in range(500):
            queue.add(str(number), routine=number % 2 == 0)
        await everything.wait()
        for running_worker in workers:
            running_worker.cancel()
        assert sorted(handled_keys, key=int) == [str(number) for number in range(500)]
        assert now() == pytest.approx(500 * 0.01 / 8, abs=0.2)

    virtually(scenario)


def test_a_parked_key_comes_at_the_end_of_its_time_although_it_is_added_again() -> None:
    """The earlier request must not replace the end of the pause: it would be refused, and nothing would be left."""

    async def scenario() -> None:
        queue = a_queue()
        queue.park("a", 100)
        queue.add("a")
        queue.add_after("a", 0.5)
        queue.add_failed("a")
        queue.add_after("a", 99.9)
        assert await nothing_comes(queue, 99)
        assert await queue.get() == "a"
        assert now() == pytest.approx(100)
        queue.done("a")
        assert await nothing_comes(queue, 1000)

    virtually(scenario)


async def test_work_that_begins_ends_the_gathering_of_what_it_sees() -> None:
    clock = HandClock()
    queue: WorkQueue[str] = WorkQueue(clock.monotonic)
    queue.gather("a", 0.5)
    queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    clock.seconds = 1.0
    queue.add("b")
    assert await queue.get() == "b", "the change of 'a' was seen already"
    assert len(queue) == 0


async def test_a_change_during_the_work_is_gathered_anew() -> None:
    clock = HandClock()
    queue: WorkQueue[str] = WorkQueue(clock.monotonic)
    queue.add("a")
    assert await queue.get() == "a"
    queue.gather("a", 0.5)
    queue.done("a")
    clock.seconds = 1.0
    assert await queue.get() == "a"


async def test_work_that_begins_does_not_end_an_earlier_deadline_that_is_no_gathering() -> None:
    clock = HandClock()
    queue: WorkQueue[str] = WorkQueue(clock.monotonic)
    queue.add_after("a", 0.3)
    queue.gather("a", 0.5)
    queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    clock.seconds = 1.0
    assert await queue.get() == "a"


async def test_an_earlier_deadline_takes_the_place_of_a_gathering() -> None:
    clock = HandClock()
    queue: WorkQueue[str] = WorkQueue(clock.monotonic)
    queue.gather("a", 0.5)
    queue.add_after("a", 0.3)
    queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    clock.seconds = 1.0
    assert await queue.get() == "a"


async def test_a_gathering_by_itself_queues_the_key() -> None:
    clock = HandClock()
    queue: WorkQueue[str] = WorkQueue(clock.monotonic)
    queue.gather("a", 0.5)
    clock.seconds = 0.5
    assert await queue.get() == "a"

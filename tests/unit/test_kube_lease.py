"""Who leads, in virtual time: an in-memory Lease with resourceVersions, a clock and a sleep that the test moves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermetic.errors import Unreachable
from hermetic.kube.lease import LeaderLease, LeaseTiming
from hermetic.kube.transport import Timeouts
from tests.fakes.clocks import SleepersClock, settle
from tests.fakes.lease_in_memory import LeaseInMemory

Manifest = dict[str, Any]


def candidate(api: LeaseInMemory, time: SleepersClock, identity: str = "one") -> LeaderLease:
    return LeaderLease(api, namespace="ops", identity=identity, clock=time, sleep=time.sleep)


async def leading(api: LeaseInMemory, time: SleepersClock) -> tuple[LeaderLease, asyncio.Task[None]]:
    """A candidate that has acquired the Lease and keeps it."""
    lease = candidate(api, time)
    await lease.acquire()
    keeper = asyncio.create_task(lease.keep())
    await settle()
    return lease, keeper


async def finish(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_first_candidate_creates_the_lease_and_holds_it() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease = candidate(api, time)
    assert not lease.held
    await lease.acquire()
    assert lease.held
    assert api.lease == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "ops", "name": "hermetic", "resourceVersion": "1"},
        "spec": {
            "holderIdentity": "one",
            "leaseDurationSeconds": 40,
            "acquireTime": "2026-11-21T12:16:40.000000Z",
            "renewTime": "2026-11-21T12:16:40.000000Z",
            "leaseTransitions": 0,
        },
    }


async def test_of_two_candidates_that_start_together_one_leads() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    both = [candidate(api, time, identity) for identity in ("one", "two")]
    tasks = [asyncio.create_task(lease.acquire()) for lease in both]
    await time.pass_by(3)
    assert sorted(lease.held for lease in both) == [False, True]
    await finish(*tasks)


async def test_a_second_candidate_takes_over_as_soon_as_it_looks_after_a_release() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    first, keeper = await leading(api, time)
    second = candidate(api, time, "two")
    waiting = asyncio.create_task(second.acquire())
    await time.pass_by(120)
    assert (first.held, second.held) == (True, False)
    await finish(keeper)
    await first.release()
    assert (first.held, api.spec["holderIdentity"]) == (False, "")
    await time.pass_by(2)
    assert waiting.done()
    assert (second.held, api.spec["holderIdentity"], api.spec["leaseTransitions"]) == (True, "two", 1)


@pytest.mark.parametrize("wall_clock_error", [-7200.0, 0.0, 7200.0])
async def test_a_silent_holder_is_followed_after_its_term_whatever_the_clocks_say(wall_clock_error: float) -> None:
    api, time, skewed = LeaseInMemory(), SleepersClock(1000.0), SleepersClock(1000.0, wall_clock_error)
    _, keeper = await leading(api, time)
    await finish(keeper)  # the process is gone without a word
    second = candidate(api, skewed, "two")
    waiting = asyncio.create_task(second.acquire())
    await skewed.pass_by(39)
    assert not second.held
    await skewed.pass_by(3)
    assert second.held
    await finish(waiting)


async def test_a_candidate_counts_from_when_it_first_saw_the_last_renewal() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    await candidate(api, time).acquire()
    second = candidate(api, time, "two")
    waiting = asyncio.create_task(second.acquire())
    await time.pass_by(25)
    api.touch(renewTime="2026-11-21T12:17:05.000000Z")
    await time.pass_by(39)
    assert not second.held
    await time.pass_by(4)
    assert second.held
    await finish(waiting)


async def test_a_label_on_the_lease_is_no_sign_of_life() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    await candidate(api, time).acquire()
    second = candidate(api, time, "two")
    waiting = asyncio.create_task(second.acquire())
    for _ in range(22):
        api.touch()
        await time.pass_by(2)
    assert second.held
    await finish(waiting)


async def test_a_restarted_container_of_the_same_pod_does_not_wait_for_itself() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    await candidate(api, time).acquire()
    again = candidate(api, time)
    await again.acquire()
    assert again.held
    assert api.spec["leaseTransitions"] == 0


async def test_a_candidate_outlives_an_api_server_that_is_away() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    api.trouble = lambda: Unreachable("away")
    lease = candidate(api, time)
    waiting = asyncio.create_task(lease.acquire())
    await time.pass_by(300)
    assert not lease.held
    api.trouble = lambda: None
    await time.pass_by(2)
    assert lease.held
    await waiting


async def test_a_quiet_day_costs_one_write_every_ten_seconds() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    await time.pass_by(3600)
    assert lease.held
    assert api.writes == 1 + 360
    await finish(keeper)


async def test_what_others_wrote_into_the_lease_survives_a_renewal() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    assert api.lease is not None
    api.lease["metadata"]["labels"] = {"team": "platform"}
    api.touch(preferredHolder="somebody")
    await time.pass_by(11)
    assert lease.held
    assert api.lease["metadata"]["labels"] == {"team": "platform"}
    assert api.spec["preferredHolder"] == "somebody"
    await finish(keeper)


async def test_a_deleted_lease_is_made_again() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    api.lease = None
    await time.pass_by(11)
    assert lease.held
    assert api.spec["holderIdentity"] == "one"
    await finish(keeper)


async def test_an_outage_shorter_than_the_deadline_changes_nothing() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    api.trouble = lambda: Unreachable("restarting")
    await time.pass_by(17)
    assert lease.held
    api.trouble = lambda: None
    await time.pass_by(13)
    assert lease.held
    assert not lease.lost.is_set()
    await finish(keeper)


async def test_a_renewal_whose_answer_got_lost_is_recognised_as_our_own() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    api.touch(renewTime="2026-11-21T12:16:50.000000Z")  # landed, but we only saw a timeout
    await time.pass_by(30)
    assert lease.held
    await finish(keeper)


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_leader_that_cannot_renew_stops_writing_before_its_lease_can_be_taken(hangs: bool) -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    api.trouble, api.hangs = lambda: Unreachable("away"), hangs
    await time.pass_by(19.9)
    assert lease.held
    await time.pass_by(0.2)
    assert not lease.held
    assert lease.lost.is_set()
    await keeper


async def test_a_rivals_name_in_the_lease_ends_the_turn_at_once() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    api.touch(holderIdentity="two")
    await time.pass_by(10.1)
    assert lease.lost.is_set()
    assert api.spec["holderIdentity"] == "two"
    await keeper


@pytest.mark.parametrize("holder_meanwhile", ["one", "two"])
async def test_a_paused_leader_finds_the_lease_lost_before_it_writes_again(holder_meanwhile: str) -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    api.touch(holderIdentity=holder_meanwhile)
    time.stand_still_for(60)
    assert not lease.held  # the first thing that runs on waking is a worker, not the keeper
    await time.pass_by(1)
    assert lease.lost.is_set()
    assert api.spec["holderIdentity"] == holder_meanwhile
    await keeper


async def test_at_no_moment_do_two_candidates_hold_the_lease() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    first, keeper = await leading(api, time)
    second = candidate(api, time, "two")
    waiting = asyncio.create_task(second.acquire())
    await time.pass_by(15)
    real_replace = api.replace_lease

    async def cut_off(lease: Manifest) -> Manifest:
        if lease["spec"]["holderIdentity"] == "one":
            raise Unreachable("the first is cut off")
        return await real_replace(lease)

    api.replace_lease = cut_off  # type: ignore[method-assign]
    states = []
    for _ in range(600):
        await time.pass_by(0.1)
        states.append((first.held, second.held))
    assert (True, True) not in states
    assert states[0] == (True, False)
    assert (False, True) in states
    await finish(keeper, waiting)


async def test_a_release_looks_first_and_takes_nothing_from_a_rival() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    api.touch(holderIdentity="two")
    writes = api.writes
    await finish(keeper)
    await lease.release()
    assert (api.spec["holderIdentity"], api.writes) == ("two", writes)


@pytest.mark.parametrize("trouble", [Unreachable("away"), KeyError("a defect")], ids=["away", "defect"])
async def test_a_release_that_fails_or_finds_nothing_lets_the_process_end(trouble: Exception) -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    await finish(keeper)
    api.trouble = lambda: trouble
    await lease.release()
    assert not lease.held
    api.lease = None
    await lease.release()


async def test_a_release_is_given_up_after_five_seconds() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    await finish(keeper)
    api.hangs = True
    releasing = asyncio.create_task(lease.release())
    await time.pass_by(4.9)
    assert not releasing.done()
    await time.pass_by(0.2)
    assert releasing.done()


async def test_a_candidate_stopped_while_waiting_leaves_the_lease_alone() -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    _, keeper = await leading(api, time)
    second = candidate(api, time, "two")
    waiting = asyncio.create_task(second.acquire())
    await time.pass_by(5)
    await finish(waiting)
    await second.release()
    assert api.spec["holderIdentity"] == "one"
    await finish(keeper)


def test_a_write_has_ended_before_another_process_can_take_the_lease() -> None:
    timing = LeaseTiming()
    assert Timeouts().write < timing.duration - timing.deadline


@pytest.mark.parametrize("seconds", [14, 3600])
async def test_a_defect_in_a_renewal_is_tried_again_and_costs_the_lease_only_where_it_lasts(seconds: int) -> None:
    api, time = LeaseInMemory(), SleepersClock(1000.0)
    lease, keeper = await leading(api, time)
    api.trouble = lambda: KeyError("a defect")
    await time.pass_by(seconds)
    lasts = seconds > 60
    assert (lease.held, lease.lost.is_set(), keeper.done()) == (not lasts, lasts, lasts)
    api.trouble = lambda: None
    await time.pass_by(60)
    assert lease.held is not lasts
    await asyncio.wait_for(keeper, 0) if lasts else await finish(keeper)

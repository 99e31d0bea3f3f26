"""What is given back when the operator stops: the Lease only when no write of its own can still land."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermetic.controller.composition import DRAIN_SECONDS, FLUSH_SECONDS, drain, release_lease
from hermetic.kube.recorder import CUT_OFF, EventRecorder
from tests.fakes.virtual_loop import VirtualClock, virtually


class AnOperator:
    """Its last write takes this many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def stop_taking(self) -> None:
        """Nothing was taken."""

    async def drained(self) -> None:
        await asyncio.sleep(self._seconds)


class AnEndpoint:
    """It takes this many seconds for an Event."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begun = self.posted = 0

    async def create_event(self, _event: Any) -> None:
        self.begun += 1
        await asyncio.sleep(self._seconds)
        self.posted += 1


class ALease:
    def __init__(self) -> None:
        self.released = False

    async def release(self) -> None:
        self.released = True


@pytest.mark.parametrize(("seconds", "released"), [(DRAIN_SECONDS / 2, True), (DRAIN_SECONDS * 2, False)])
def test_the_lease_is_given_back_when_the_last_write_ended(seconds: float, released: bool) -> None:
    async def scenario() -> None:
        operator: Any = AnOperator(seconds)
        lease: Any = ALease()
        work = [asyncio.create_task(asyncio.sleep(1e6))]
        ended = await drain(operator, EventRecorder(AnEndpoint(0), instance="tests", clock=VirtualClock()), work)
        assert ended == released
        assert work[0].cancelled()
        await release_lease(lease, [] if ended else ["cut"])
        assert lease.released == released

    virtually(scenario)


@pytest.mark.parametrize(
    ("seconds", "ended", "posted"),
    [
        pytest.param(FLUSH_SECONDS / 10, True, 3, id="all are posted"),
        pytest.param(FLUSH_SECONDS * 0.75, True, 2, id="what waits is dropped"),
        pytest.param(DRAIN_SECONDS * 2, False, 0, id="one may still land, and the Lease is kept"),
    ],
)
def test_events_are_posted_before_the_lease_is_given_back(seconds: float, *, ended: bool, posted: int) -> None:
    async def scenario() -> None:
        operator: Any = AnOperator(0)
        endpoint, lost = AnEndpoint(seconds), list[str]()
        recorder = EventRecorder(endpoint, instance="tests", clock=VirtualClock(), on_loss=lost.append)
        regarding = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "uid": "u"}}
        for note in ("1", "2", "3"):
            recorder.record(regarding, severity="Normal", reason="Ready", action="Reconcile", note=note)
        assert await drain(operator, recorder, [asyncio.create_task(recorder.run())]) is ended
        assert endpoint.posted == posted
        assert lost == [CUT_OFF] * (3 - endpoint.begun)

    virtually(scenario)

"""What is given back when the operator stops: the Lease only when no write of its own can still land."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermetic.controller.wiring import DRAIN_SECONDS, _drain, _let_go
from tests.controller.virtual_time import virtually


class AnOperator:
    """Its last write takes this many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def stop_taking(self) -> None:
        """Nothing was taken."""

    async def drained(self) -> None:
        await asyncio.sleep(self._seconds)


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
        ended = await _drain(operator, work)
        assert ended == released
        assert work[0].cancelled()
        await _let_go(lease, [] if ended else ["cut"])
        assert lease.released == released

    virtually(scenario)

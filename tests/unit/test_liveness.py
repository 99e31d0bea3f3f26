"""Liveness of the operator: a loop that is slow passes the probe, a loop that is stuck fails it."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from hermetic.controller.heartbeat import SILENT_SECONDS, Heartbeat
from hermetic.controller.http import serving_health
from hermetic.kube.lease import LeaseTiming
from testbed.processes import free_port
from tests.fakes.clocks import HandClock

TIMEOUT = 30.0
OFTEN = 0.001
Answer = tuple[int, str]


class Probed:
    """A process with a heartbeat, whose clock stands still unless a test moves it."""

    def __init__(self, port: int) -> None:
        self.clock = HandClock()
        self.state = ""
        self.heartbeat = Heartbeat(lambda: self.state, self.clock.monotonic)
        self._port = port
        self._pool = ThreadPoolExecutor(1)

    def ask(self, path: str = "/healthz") -> Future[Answer]:
        """What the kubelet is answered; it asks from outside the event loop."""
        return self._pool.submit(self._get, path)

    def ask_while_blocked(self, seconds: float, path: str = "/healthz") -> Answer:
        """The answer while the loop runs this call and nothing else, `seconds` after its last beat."""
        self.clock.seconds += seconds
        return self.ask(path).result(TIMEOUT)  # blocks the loop until the probe is answered

    def _get(self, path: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()


@asynccontextmanager
async def probed(*, metrics: Callable[[], bytes] = lambda: b"") -> AsyncIterator[Probed]:
    port = free_port()
    process = Probed(port)
    beating = asyncio.create_task(process.heartbeat.run(OFTEN))
    try:
        async with serving_health(port, failure=process.heartbeat.failure, ready=lambda: True, metrics=metrics):
            yield process
    finally:
        beating.cancel()


async def test_a_loop_that_is_blocked_shorter_than_the_tolerance_passes_the_probe() -> None:
    async with probed() as process:
        process.heartbeat.beat()
        assert process.ask_while_blocked(SILENT_SECONDS) == (200, "ok")


async def test_a_loop_that_is_stuck_fails_the_probe_and_says_for_how_long() -> None:
    async with probed() as process:
        process.heartbeat.beat()
        status, message = process.ask_while_blocked(SILENT_SECONDS + 1)
    assert status == 500
    assert message == "the event loop has not run for 41 s (tolerated: 40 s)"


async def test_a_starved_loop_that_runs_rarely_passes_every_probe() -> None:
    async with probed() as process:
        for _ in range(20):
            process.heartbeat.beat()
            assert process.ask_while_blocked(SILENT_SECONDS - 1) == (200, "ok")


async def test_a_loop_that_runs_again_passes_the_probe_again() -> None:
    async with probed() as process:
        process.heartbeat.beat()
        assert process.ask_while_blocked(10 * SILENT_SECONDS)[0] == 500
        answer = await until(process, (200, "ok"))
    assert answer == (200, "ok")


async def test_a_failure_of_the_operator_fails_the_probe_while_the_loop_runs() -> None:
    async with probed() as process:
        process.state = "the oldest piece of work is 400 s old"
        assert await until(process, (500, process.state)) == (500, process.state)
        process.state = ""
        assert await until(process, (200, "ok")) == (200, "ok")


async def test_a_heartbeat_that_ends_by_a_defect_fails_the_probe() -> None:
    async with probed() as process:

        def defect() -> str:
            raise RuntimeError("not expected")

        heartbeat = Heartbeat(defect, process.clock.monotonic)
        with pytest.raises(RuntimeError, match="not expected"):
            await heartbeat.run(OFTEN)
        process.clock.seconds += SILENT_SECONDS + 1
        assert "has not run for 41 s" in heartbeat.failure()


async def test_readiness_is_answered_while_the_loop_is_blocked() -> None:
    async with probed() as process:
        assert process.ask_while_blocked(1, "/readyz") == (200, "ok")


async def test_metrics_are_rendered_in_the_loop_of_the_operator() -> None:
    threads: list[threading.Thread] = []

    def render() -> bytes:
        threads.append(threading.current_thread())
        return b"hermetic_leader 1\n"

    async with probed(metrics=render) as process:
        assert await asyncio.wrap_future(process.ask("/metrics")) == (200, "hermetic_leader 1\n")
    assert threads == [threading.current_thread()]


async def test_no_thread_is_left_when_the_server_ends() -> None:
    async with serving_health(free_port(), failure=str, ready=lambda: True, metrics=bytes):
        assert "health" in {thread.name for thread in threading.enumerate()}
    assert "health" not in {thread.name for thread in threading.enumerate()}


def test_the_tolerance_is_the_time_for_which_the_lease_is_granted() -> None:
    timing = LeaseTiming()
    assert timing.duration == SILENT_SECONDS
    assert timing.deadline < SILENT_SECONDS, "a loop that is silent for longer has lost the Lease"


async def until(process: Probed, expected: Answer) -> Answer:
    """The first answer that is the expected one; the last one after many."""
    answer: Answer = (0, "")
    for _ in range(200):
        answer = await asyncio.wrap_future(process.ask())
        if answer == expected:
            break
    return answer

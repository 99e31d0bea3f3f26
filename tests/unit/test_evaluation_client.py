"""Judging in another process: the same findings, and any failure of that process is an error and nothing more."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from bench.evaluation import Loop, SimulatedApi
from bench.large_cluster import large_cluster
from hermetic.audit.estate.kubernetes.all_kinds import question
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.collect.kube.cache import LIST_REQUESTS, ClusterObservations
from hermetic.collect.kube.list_requests import ListRequest, identity
from hermetic.collect.kube.listing import Listed, kept, packed
from hermetic.controller.audit.cluster_cache import ClusterCache
from hermetic.controller.audit.evaluation_case import (
    LENGTH_BYTES,
    OBJECTS_AT_ONCE,
    Case,
    packed_case,
    unpacked,
    unpacked_case,
)
from hermetic.controller.audit.evaluation_client import EvaluationClient, EvaluationFailed
from hermetic.controller.audit.evaluation_process import evaluated
from hermetic.controller.audit.faults import AuditFaults
from hermetic.controller.clock import SystemClock
from tests.kubernetes_estates import CLUSTER, POLICY, pod, sealed_cluster
from tests.sampled_groups import LONG

T = TypeVar("T")
LARGE, LONGEST_STEP_MS = 10_000, 100
NO_FAULTS = AuditFaults(SystemClock(), count=lambda _part: None)
PODS = 2 * OBJECTS_AT_ONCE + 3


def a_case(pods: int = PODS) -> Case:
    """A sealed cluster with more pods than are sent at once."""
    manifests = [*sealed_cluster(), *(pod(f"app-{number}") for number in range(pods))]
    for number, manifest in enumerate(manifests):
        manifest["metadata"] |= {"uid": f"u{number}", "resourceVersion": str(number + 1)}
    observations = ClusterObservations()
    for request in LIST_REQUESTS:
        of_kind = (manifest for manifest in manifests if _belongs(manifest, request))
        observations.take(
            request, Listed({identity(manifest): packed(kept(request, manifest)) for manifest in of_kind}, "9")
        )
    return Case(CLUSTER, POLICY, observations.observed(), None)


def _belongs(manifest: dict[str, Any], request: ListRequest) -> bool:
    kind = (manifest["apiVersion"], manifest["kind"]) == (request.kind.api_version, request.kind.kind)
    return kind and (not request.scope or request.scope == "/".join(identity(manifest)))


def run(scenario: Callable[[], Awaitable[T]]) -> T:
    async def client_run() -> T:
        return await scenario()

    return asyncio.run(client_run())


def test_the_findings_are_those_of_judging_here() -> None:
    case, judged = a_case(), EvaluationClient()

    async def scenario() -> None:
        first = await judged(case)
        process = judged.pid
        assert first == case.findings()
        assert await judged(a_case(1)) == a_case(1).findings()
        assert judged.pid == process, "one process judges case after case"
        await judged.close()

    run(scenario)


def test_a_case_is_the_same_at_the_other_end_and_no_frame_holds_a_whole_cluster() -> None:
    case = a_case()
    sent = [unpacked(frame[LENGTH_BYTES:]) for frame in packed_case(case)]
    bare, *parts, end = sent
    assert end is None
    assert unpacked_case(bare, parts) == case
    assert max(len(some) for _, some in parts) <= OBJECTS_AT_ONCE
    assert not any(observed_list.bodies for observed_list in bare.observed.lists.values())


def test_everything_else_goes_on_while_it_judges() -> None:
    """Counted in turns of the loop, of which judging in one piece would leave two or three."""

    async def scenario() -> None:
        judged, turns = EvaluationClient(), 0
        judging = asyncio.ensure_future(judged(a_case()))
        while not judging.done():
            await asyncio.sleep(0.001)
            turns += 1
        await judged.close()
        assert turns > 50

    run(scenario)


@LONG
def test_no_step_of_the_loop_is_long_while_a_large_cluster_is_listed_and_judged() -> None:
    """By processor time, so that other programs of the machine do not count; the figures have it by the clock too."""

    async def scenario() -> float:
        cluster_cache = ClusterCache(
            SimulatedApi(large_cluster(LARGE)), SystemClock(), on_change=lambda: None, faults=NO_FAULTS
        )
        judged = EvaluationClient()
        gc.collect()
        gc.freeze()  # what the tests hold is not the operator's
        async with Loop() as loop:
            cluster_cache.start()
            following = asyncio.create_task(cluster_cache.run())
            while cluster_cache.seen_at is None:  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)
            await cluster_cache.cause()
            assert await judged(Case(CLUSTER, POLICY, cluster_cache.observed(), None))
        gc.unfreeze()
        following.cancel()
        await judged.close()
        longest: float = loop.figures()["longest_step_cpu_ms"]
        return longest

    # The longest step has a collection of garbage in it, most of it of the simulated API server.
    assert any(run(scenario) <= LONGEST_STEP_MS for _ in range(3))


def test_a_check_that_raises_is_told_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr("hermetic.controller.audit.evaluation_case.evaluate", broken)
    (frame,) = evaluated(a_case(0), iter(()))
    message, trace = unpacked(frame[LENGTH_BYTES:])
    assert message == "KeyError('a defect')"
    assert "in broken" in trace


FAULT = (
    "import sys; from hermetic.controller.audit.evaluation_case import packed_fault\n"
    "sys.stdin.buffer.read(9)\n"
    "sys.stdout.buffer.write(packed_fault('KeyError()', 'where')); sys.stdout.buffer.flush(); sys.stdin.read(9)"
)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; sys.exit(3)", "the evaluation process ended"),
        ("import os, sys; sys.stdin.buffer.read(9); os.kill(os.getpid(), 9)", "the evaluation process ended"),
        ("import sys; sys.stdin.buffer.read(9); sys.stdout.write('torn')", "the evaluation process ended"),
        ("import time; time.sleep(3600)", "no findings after 1 s"),
        (FAULT, "KeyError()"),
    ],
    ids=["ends at once", "is killed", "answers half", "never answers", "says what is wrong"],
)
def test_whatever_the_process_does_is_an_error(program: str, message: str) -> None:
    async def scenario() -> None:
        judged = EvaluationClient((sys.executable, "-c", program), longest=1.0 if "sleep" in program else 60.0)
        with pytest.raises(EvaluationFailed) as caught:
            await judged(a_case(0))
        assert message in str(caught.value)
        assert judged.pid is None

    run(scenario)


@LONG
def test_after_a_process_that_was_killed_another_one_judges() -> None:
    async def scenario() -> None:
        judged, case = EvaluationClient(), a_case(1)
        await judged(case)
        assert judged.pid is not None
        os.kill(judged.pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, judged.pid, os.WEXITED | os.WNOWAIT)
        assert await judged(case) == case.findings()
        await judged.close()

    run(scenario)


@LONG
def test_a_look_that_is_cancelled_leaves_no_answer_for_the_next() -> None:
    async def scenario() -> None:
        judged, case = EvaluationClient(), a_case()
        judging = asyncio.ensure_future(judged(case))
        await asyncio.sleep(0.2)
        judging.cancel()
        await asyncio.wait({judging})
        less = a_case(1)
        assert await judged(less) == less.findings()
        await judged.close()

    run(scenario)


def test_what_could_not_be_listed_is_so_at_the_other_end() -> None:
    case = a_case(0)
    lists = dict(case.observed.lists)
    look = next(look for look in lists if look.question == question(Pod, ""))
    lists[look] = replace(lists[look], was_settled=False)
    case = replace(case, observed=replace(case.observed, lists=lists))
    bare, *parts, _ = [unpacked(frame[LENGTH_BYTES:]) for frame in packed_case(case)]
    assert unpacked_case(bare, parts).findings() == case.findings()

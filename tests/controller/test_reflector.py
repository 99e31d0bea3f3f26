"""One reflector: whatever the API server answers, it goes on, asks within bounds and reports its silent time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hermetic.errors import Forbidden, HermeticError, NotFound, ServerError, Throttled, Unreachable
from hermetic.kinds import POD
from hermetic.kube.paging import Selection
from hermetic.kube.reflector import Reflector
from tests.fakes.virtual_loop import virtually

Event = tuple[str, dict[str, Any]]
Lasting = tuple[float, Exception]
MALFORMED: tuple[dict[str, Any], ...] = ({}, {"metadata": {}}, {"metadata": "x"}, {"kind": "Pod"})


def at(version: int) -> Event:
    return "MODIFIED", {"kind": "Pod", "metadata": {"name": "x", "resourceVersion": str(version)}}


@dataclass
class Api:
    """Each watch gives the next part of its script: events, exceptions, or seconds and then an exception."""

    script: list[list[Event | Exception | Lasting]]
    since: list[str] = field(default_factory=list)

    async def watch(self, _kind: object, *, since: str, **_selection: Any) -> AsyncIterator[Event]:
        self.since.append(since)
        for part in self.script.pop(0) if self.script else []:
            if isinstance(part, Exception):
                raise part
            if isinstance(part[0], float):
                await asyncio.sleep(part[0])
                raise part[1]  # type: ignore[misc]
            yield part  # type: ignore[misc]
        if not self.script:
            await asyncio.Event().wait()


@dataclass
class Filled:
    """A target whose lists follow a script: a version, "" for none, or an exception; the last part stays."""

    lists: list[str | Exception]
    anew: bool = False
    listed_at: list[float] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    failures: list[tuple[float, float]] = field(default_factory=list)
    selection: Selection = field(default_factory=lambda: Selection(POD))

    async def list(self) -> str:
        self.listed_at.append(round(asyncio.get_running_loop().time(), 1))
        part = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        if isinstance(part, Exception):
            raise part
        return part

    def take(self, event: str, manifest: dict[str, Any]) -> None:
        self.taken.append(f"{event} {manifest['metadata']['resourceVersion']}")

    def failed(self, error: HermeticError, *, watched_for: float, failing_for: float) -> bool:  # noqa: ARG002
        self.failures.append((round(watched_for, 1), round(failing_for, 1)))
        return self.anew


def reflected(api: Api, target: Filled, seconds: float = 60.0, **options: Any) -> None:
    async def scenario() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await Reflector(api, target, **options).run()  # type: ignore[arg-type]

    virtually(scenario)


def test_it_lists_and_watches_from_there() -> None:
    api, target = Api([[at(8), at(9)], []]), Filled(["7"])
    reflected(api, target)
    assert target.taken == ["MODIFIED 8", "MODIFIED 9"]
    assert api.since == ["7", "9"]
    assert target.listed_at == [0.0]


@pytest.mark.parametrize(
    "error", [ServerError("gone", status=410), NotFound("no kind", status=404), Forbidden("no role", status=403)]
)
def test_what_a_watch_cannot_go_on_after_is_listed_anew(error: Exception) -> None:
    api, target = Api([[at(8), error], []]), Filled(["7", "20"])
    reflected(api, target)
    assert api.since == ["7", "20"]


@pytest.mark.parametrize("malformed", MALFORMED, ids=str)
def test_an_event_that_is_no_object_ends_nothing_and_is_no_storm(malformed: dict[str, Any]) -> None:
    """Each watch begins with it: lists are few, and further apart each time."""
    api, target = Api([[("ADDED", malformed)] for _ in range(1000)]), Filled(["7"])
    reflected(api, target, seconds=60)
    assert 6 <= len(target.listed_at) <= 15


def test_a_watch_that_ends_at_once_is_opened_once_a_second() -> None:
    api, target = Api([[] for _ in range(1000)]), Filled(["7"])
    reflected(api, target, seconds=60)
    assert 55 <= len(api.since) <= 61
    assert target.listed_at == [0.0]


def test_a_defect_is_told_and_ends_nothing() -> None:
    recorded: list[Exception] = []
    target = Filled([KeyError("spec"), "7"])  # type: ignore[list-item]
    api = Api([[at(8)], []])
    reflected(api, target, on_fault=recorded.append)
    assert [type(error) for error in recorded] == [KeyError]
    assert target.taken == ["MODIFIED 8"]


def test_a_server_that_asks_for_patience_gets_it() -> None:
    target = Filled([Throttled("slow down", retry_after=20.0), "7"])
    reflected(Api([[]]), target)
    assert target.listed_at == [0.0, 20.0]


def test_a_kind_that_cannot_be_had_is_tried_again_within_a_minute() -> None:
    target = Filled(["", "7"])
    api = Api([[at(8)], []])
    reflected(api, target, seconds=100)
    assert len(target.listed_at) == 2
    assert 48 <= target.listed_at[1] <= 60
    assert target.taken == ["MODIFIED 8"]


def test_how_long_nothing_is_known_counts_from_the_first_failure() -> None:
    """A watch of five minutes was right until it broke: only what follows counts."""
    api = Api([[(300.0, Unreachable("cut"))], []])
    target = Filled(["7", Unreachable("away"), Unreachable("away"), "9"], anew=True)
    reflected(api, target, seconds=400)
    watched, *lists = target.failures
    assert watched == (300.0, 0.0)
    assert [watched_for for watched_for, _ in lists] == [0.0, 0.0]
    assert 0 < lists[0][1] < lists[1][1] < 20


def test_an_event_ends_a_time_of_failures() -> None:
    api = Api([[Unreachable("cut")], [Unreachable("cut")], [at(8), Unreachable("cut")], []])
    target = Filled(["7"])
    reflected(api, target)
    assert [failing for _, failing in target.failures][2] == 0.0
    assert target.failures[1][1] > 0


def test_a_list_is_due_again_after_its_time() -> None:
    api = Api([[(50.0, Unreachable("cut"))] for _ in range(10)])
    target = Filled(["7"])
    reflected(api, target, seconds=400, relist_seconds=120.0)
    assert len(target.listed_at) in {3, 4}

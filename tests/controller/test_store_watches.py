"""Following children and machines: nothing is missed, whatever breaks, and nothing is asked for too often."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.errors import HermeticError, ServerError, Throttled, Unreachable
from hermetic.kinds import DEPLOYMENT, NODE, Kind
from hermetic.kube.owners import Key
from hermetic.kube.store import Store
from hermetic.kube.store_watches import StoreWatches
from hermetic.kube.watch_specs import STORE_WATCHES, WatchSpec
from tests.fakes.virtual_loop import virtually

Event = tuple[str, dict[str, Any]]
Script = list[list[Event | Exception]]


def an_event(version: int, event_type: str = "MODIFIED") -> Event:
    return event_type, {"kind": "Deployment", "metadata": {"name": f"at-{version}", "resourceVersion": str(version)}}


@dataclass
class Server:
    """Each watch of Deployments gives the next part of the script, and stays open after the last; others stay open."""

    script: Script
    asked: list[tuple[float, str]] = field(default_factory=list)
    scopes: list[tuple[str, str | None]] = field(default_factory=list)

    async def watch(
        self,
        kind: Kind,
        *,
        since: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[Event]:
        self.scopes.append((kind.plural, namespace))
        if kind is DEPLOYMENT:
            assert label_selector == "app.kubernetes.io/managed-by=hermetic"
            assert not field_selector
            self.asked.append((round(asyncio.get_running_loop().time(), 3), since))
            for event in self.script.pop(0) if self.script else ():
                if isinstance(event, Exception):
                    raise event
                yield event
            if self.script:
                return
        await asyncio.Event().wait()


@dataclass
class Follower:
    """What came of following."""

    server: Server
    namespaces: tuple[str, ...] = ()
    outages: int = 0  # lists that fail before one succeeds
    seen: list[tuple[str, bool]] = field(default_factory=list)
    relisted: list[str] = field(default_factory=list)
    store: Store = field(default_factory=lambda: Store(Configuration()))

    def see(self, manifest: dict[str, Any], *, gone: bool) -> None:
        if manifest["metadata"]["name"] == "at-666":
            raise KeyError("spec")
        self.seen.append((manifest["metadata"]["name"], gone))

    async def relist(self, watched: WatchSpec) -> None:
        if self.outages:
            self.outages -= 1
            raise Unreachable("away")
        self.relisted.append(watched.kind.plural)
        self._note(watched.kind, "100")

    def listed(self, kind: Kind, concerned: frozenset[Key]) -> None:
        raise AssertionError(f"nothing feeds {kind.plural}, which concerns {concerned}")

    def _note(self, kind: Kind, version: str) -> None:
        for namespace in self.namespaces or (None,):
            self.store.note_listed(kind, namespace if kind.namespaced else None, version)

    async def follow(self, seconds: float) -> None:
        for watched in STORE_WATCHES:
            self._note(watched.kind, "7")
        following = StoreWatches(
            self.server, self.store, see=self.see, relist=self.relist, listed=self.listed, namespaces=self.namespaces
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await following.run()


def followed(script: Script, *, seconds: float = 60, namespaces: tuple[str, ...] = (), outages: int = 0) -> Follower:
    follower = Follower(Server(script), namespaces, outages)
    virtually(lambda: follower.follow(seconds))
    return follower


def test_it_takes_up_where_everything_was_listed_and_tells_what_came_and_went() -> None:
    store_run = followed([[an_event(8, "ADDED"), an_event(9), an_event(10, "BOOKMARK"), an_event(11, "DELETED")]])
    assert store_run.seen == [("at-8", False), ("at-9", False), ("at-11", True)]
    assert store_run.server.asked == [(0, "7")]
    assert not store_run.relisted


def test_every_namespace_is_followed_and_machines_once() -> None:
    store_run = followed([], namespaces=("team-a", "team-b"))
    assert {scope for scope in store_run.server.scopes if scope[0] == DEPLOYMENT.plural} == {
        (DEPLOYMENT.plural, "team-a"),
        (DEPLOYMENT.plural, "team-b"),
    }
    assert [scope for scope in store_run.server.scopes if scope[0] == NODE.plural] == [(NODE.plural, None)]


@pytest.mark.parametrize("last", ["MODIFIED", "BOOKMARK"])
def test_a_broken_watch_goes_on_after_the_last_thing_it_told(last: str) -> None:
    store_run = followed([[an_event(8), an_event(9, last), Unreachable("cut off")], [an_event(10)]])
    assert [since for _, since in store_run.server.asked] == ["7", "9"]
    assert not store_run.relisted
    assert store_run.seen[-1] == ("at-10", False)


def test_a_place_that_the_server_forgot_is_found_again_by_a_full_look() -> None:
    forgotten = ServerError("too old resource version", status=410, reason="Expired")
    store_run = followed([[an_event(8), forgotten], [an_event(101)]])
    assert store_run.relisted == [DEPLOYMENT.plural]
    assert [since for _, since in store_run.server.asked] == ["7", "100"]
    assert store_run.seen[-1] == ("at-101", False)


def test_a_look_that_fails_is_taken_again() -> None:
    store_run = followed([[ServerError("gone", status=410)], [an_event(101)]], outages=1)
    assert store_run.relisted == [DEPLOYMENT.plural]
    assert store_run.seen == [("at-101", False)]


def pauses(follower: Follower) -> Iterator[float]:
    moments = [moment for moment, _ in follower.server.asked]
    return (later - earlier for earlier, later in itertools.pairwise(moments))


def test_a_watch_that_ends_as_soon_as_it_opens_is_opened_once_a_second() -> None:
    store_run = followed([[] for _ in range(1000)], seconds=30)
    assert len(store_run.server.asked) == pytest.approx(30, abs=1)


def test_a_server_that_stays_away_is_asked_less_and_less_but_always_again() -> None:
    store_run = followed([[Unreachable("away")] for _ in range(1000)], seconds=3600)
    assert max(pauses(store_run)) <= 10
    assert 3600 / 10 <= len(store_run.server.asked) <= 3600 / 5 + 5


def test_the_server_may_ask_for_patience() -> None:
    store_run = followed([[Throttled("later", retry_after=42)], []])
    assert list(pauses(store_run)) == [42]


@pytest.mark.parametrize("bad", [an_event(666), an_event(666, "ADDED")])
def test_a_malformed_object_hides_no_other(bad: Event) -> None:
    store_run = followed([[bad, an_event(667)]])
    assert store_run.seen == [("at-667", False)]


def test_a_burst_leaves_room_for_the_writes() -> None:
    turns: list[int] = []

    async def scenario() -> None:
        follower = Follower(Server([[an_event(number) for number in range(8, 108)]]))
        following = asyncio.ensure_future(follower.follow(1))
        while len(follower.seen) < 100:
            turns.append(len(follower.seen))
            await asyncio.sleep(0)
        await following

    virtually(scenario)
    assert len(set(turns)) > 50


def test_it_ends_only_when_it_is_told_to() -> None:
    store_run = followed([[HermeticError("what is this")], [an_event(8)]])
    assert store_run.seen == [("at-8", False)]

"""kopf's watches: no faster than once a second, and never started over without a word."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from yarl import URL

from hermetic.controller.kopf_runtime import RetryPauses, watched_paths
from hermetic.controller.kopf_throttle import Pace
from tests.fakes.virtual_loop import virtually

PODS = "https://10.0.0.1/api/v1/namespaces/team-a/pods"


async def ask(pace: Pace, url: str) -> None:
    (hook,) = pace.trace().on_request_start
    request: Any = SimpleNamespace(url=URL(url))
    await hook(None, SimpleNamespace(), request)


def test_a_stream_that_breaks_at_once_is_opened_once_a_second() -> None:
    async def scenario() -> None:
        pace, opened = Pace(lambda _path: None), []
        while asyncio.get_running_loop().time() < 60:
            await ask(pace, f"{PODS}?watch=true&resourceVersion=7")
            opened.append(asyncio.get_running_loop().time())
        assert 59 <= len(opened) <= 62

    virtually(scenario)


def test_an_api_server_behind_a_prefix_is_watched_as_any_other() -> None:
    paths = watched_paths(("team-a",), prefix="/k8s/clusters/c-1")
    assert paths.keys() == {f"/k8s/clusters/c-1{path}" for path in watched_paths(("team-a",))}
    assert "/k8s/clusters/c-1/apis/hermetic.dev/v1alpha1/namespaces/team-a/modeldeployments" in paths


def test_an_ordinary_reconnect_does_not_wait() -> None:
    async def scenario() -> None:
        pace = Pace(lambda _path: None)
        for url in (f"{PODS}?limit=500", f"{PODS}?limit=500&continue=abc", f"{PODS}?watch=true"):
            await ask(pace, url)
        await asyncio.sleep(290)
        before = asyncio.get_running_loop().time()
        await ask(pace, f"{PODS}?watch=true&resourceVersion=9")
        assert asyncio.get_running_loop().time() - before < 0.01

    virtually(scenario)


def test_a_watch_that_follows_a_list_is_news_and_one_that_goes_on_is_none() -> None:
    """What was deleted between our own list and kopf's shows in neither: it is listed again once the watch is open."""

    async def scenario() -> None:
        heard: list[str] = []
        pace = Pace(heard.append)
        beginning = (f"{PODS}?limit=500", f"{PODS}?limit=500&continue=abc")
        for url in beginning:
            await ask(pace, url)
        assert heard == []
        for url in (f"{PODS}?watch=true", f"{PODS}?watch=true"):
            await ask(pace, url)
        assert heard == ["/api/v1/namespaces/team-a/pods"]
        for url in (*beginning, f"{PODS}?watch=true"):
            await ask(pace, url)
        assert len(heard) == 2

    virtually(scenario)


def test_attempts_never_end_and_never_come_more_than_ten_seconds_apart() -> None:
    pauses = [pause for _, pause in zip(range(1000), RetryPauses(), strict=False)]

    assert len(pauses) == 1000
    assert max(pauses) <= 10
    assert pauses[0] <= 0.2

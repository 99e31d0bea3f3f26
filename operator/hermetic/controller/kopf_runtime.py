"""Runs kopf, which watches and delivers every event to the handlers. Decides, awaits and writes nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import kopf

from hermetic import __version__
from hermetic.controller.kopf_throttle import Pace
from hermetic.controller.kopf_watch_errors import WatchAnswers
from hermetic.kinds import Kind
from hermetic.kube.connection import Connection
from hermetic.kube.keepalive import socket_factory
from hermetic.kube.watch_specs import PRIMARY_WATCHES, WatchSpec

See = Callable[..., None]

LAST_SECONDS = 1.0


class NoProgress(kopf.ProgressStorage):
    """Progress storage of kopf that stores nothing: no handler has progress, and nothing is written into objects."""

    def fetch(self, *, key: Any, body: Any) -> None:
        """Nothing is stored."""

    def store(self, *, key: Any, record: Any, body: Any, patch: Any) -> None:
        """Nothing is stored."""

    def purge(self, *, key: Any, body: Any, patch: Any) -> None:
        """Nothing is stored."""

    def touch(self, *, body: Any, patch: Any, value: Any) -> None:
        """Nothing is stored."""

    def clear(self, *, essence: Any) -> Any:
        """Nothing to clear."""
        return essence


class NoDiffBase(kopf.DiffBaseStorage):
    """Diff-base storage of kopf that stores nothing: reconciling is level-triggered. Saves a deep copy per object."""

    def build(self, *, body: Any, extra_fields: Any = None) -> Any:  # noqa: ARG002
        """Empty: no essence is compared."""
        return {}

    def fetch(self, *, body: Any) -> None:
        """Nothing is stored."""

    def store(self, *, body: Any, patch: Any, essence: Any) -> None:
        """Nothing is stored."""


class RetryPauses:
    """Unlimited pauses between attempts to list or watch: short at first, then up to ten seconds, jittered.

    kopf ends the process when the pauses are used up; an outage or a missing permission must not end it.
    """

    def __iter__(self) -> Iterator[float]:
        for pause in itertools.chain((0.2, 1.0, 3.0), itertools.repeat(10.0)):
            yield pause * random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret about it


@dataclasses.dataclass(frozen=True, slots=True)
class EventHandlers:
    """Callbacks: after kopf's start, for every event (`see(manifest, gone=...)`), when the watch of a kind
    started over from a list, and before kopf ends."""

    started: Callable[[], Awaitable[None]]
    see: See
    started_over: Callable[[Kind], None]
    stopping: Callable[[], Awaitable[None]]


async def watch(
    audience: EventHandlers, connection: Connection, *, namespaces: Collection[str], stop: asyncio.Event
) -> None:
    """Run kopf until `stop` is set or a signal comes."""
    registry, stopped = kopf.OperatorRegistry(), asyncio.Event()
    _register(registry, audience, connection, namespaces)

    @kopf.on.cleanup(registry=registry)
    async def stopping(**_: Any) -> None:
        await audience.stopping()
        stopped.set()

    running = asyncio.ensure_future(
        kopf.operator(
            registry=registry,
            settings=_settings(),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
            stop_flag=stop,
        )
    )
    await _ended(running, stopped)


async def _ended(running: asyncio.Future[None], stopped: asyncio.Event) -> None:
    """Wait for kopf's end. An unanswered request of kopf would delay it by five seconds more."""
    cleaned_up: asyncio.Future[Any] = asyncio.ensure_future(stopped.wait())
    await asyncio.wait((running, cleaned_up), return_when=asyncio.FIRST_COMPLETED)
    cleaned_up.cancel()
    await asyncio.wait((running,), timeout=LAST_SECONDS)
    if not running.done():
        running.cancel()
        await asyncio.wait((running,))
    if not running.cancelled():
        running.result()


def _register(
    registry: kopf.OperatorRegistry, audience: EventHandlers, connection: Connection, namespaces: Collection[str]
) -> None:
    kinds = watched_paths(namespaces, prefix=urlsplit(connection.server).path.rstrip("/"))
    pace, answers = _pace(audience, kinds), WatchAnswers(kinds)

    @kopf.on.startup(registry=registry)
    async def started(**_: Any) -> None:
        await audience.started()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        return await _session(connection, pace, answers)

    for watched in PRIMARY_WATCHES:
        _register_kind(registry, audience.see, watched)


def _register_kind(registry: kopf.OperatorRegistry, see: See, watched: WatchSpec) -> None:
    kind = watched.kind

    @kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=f"see-{kind.plural}")
    async def seen(event: Any, **_: Any) -> None:
        # Async, although it awaits nothing: a plain function would run in a thread. Returns None: kopf would write
        # anything else into the object's status.
        manifest = {**event["object"], "apiVersion": kind.api_version, "kind": kind.kind}
        see(manifest, gone=event["type"] == "DELETED")


def watched_paths(namespaces: Collection[str], *, prefix: str = "") -> dict[str, Kind]:
    """URL path of each watched collection; an API server may be behind a prefix, as in Rancher or a proxy."""
    places = [*namespaces, None]
    return {f"{prefix}{watched.kind.path(place)}": watched.kind for watched in PRIMARY_WATCHES for place in places}


def _pace(audience: EventHandlers, kinds: Mapping[str, Kind]) -> Pace:
    def started_over(path: str) -> None:
        if path in kinds:
            audience.started_over(kinds[path])

    return Pace(started_over)


async def _session(connection: Connection, pace: Pace, answers: WatchAnswers) -> kopf.AiohttpSession:
    """A session as kopf would make it from the same credentials, with `kopf_throttle` and `kopf_watch_errors`."""
    authorization = await connection.authorization()
    scheme, _, token = authorization.partition(" ")
    credentials = kopf.ConnectionInfo(
        server=connection.server,
        ca_path=connection.ca_file,
        insecure=not connection.verify,
        scheme=scheme or None,
        token=token or None,
        certificate_path=connection.certificate_file,
        private_key_path=connection.key_file,
    )
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=credentials.as_ssl_context(), socket_factory=socket_factory()),
        headers={**credentials.as_http_headers(), "User-Agent": f"hermetic/{__version__} (watch)"},
        proxy=connection.proxy,
        trace_configs=[pace.trace()],
        middlewares=[answers],
    )
    return kopf.AiohttpSession(aiohttp_session=session, server=connection.server)


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.persistence.progress_storage = NoProgress()
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.chunk_size = 100
    # kopf holds the last event of each object for these seconds, 5 by default: after a list, every object of it.
    settings.queueing.idle_timeout = 0.5
    settings.watching.connect_timeout = 5
    settings.watching.server_timeout = 290
    settings.watching.client_timeout = 300
    settings.networking.connect_timeout = 5
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = RetryPauses()
    settings.process.ultimate_exiting_timeout = 20
    for watched in PRIMARY_WATCHES:
        resource = (watched.kind.group, watched.kind.version, watched.kind.plural)
        if watched.label_selector:
            settings.watching.label_selectors[resource] = watched.label_selector
        if watched.field_selector:
            settings.watching.field_selectors[resource] = watched.field_selector
    return settings

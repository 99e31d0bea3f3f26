"""kopf as the shell: it watches, and hands every event on. Nothing is decided, awaited or written here."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import kopf

from hermetic.kube.connection import Connection
from hermetic.kube.relist import WATCHED, Watched

See = Callable[..., None]


class NoProgress(kopf.ProgressStorage):
    """Stores nothing: there are no handlers whose progress could matter, and nothing is written into objects."""

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
    """Remembers no last configuration: work is level-triggered. It also spares a deep copy of every object seen."""

    def build(self, *, body: Any, extra_fields: Any = None) -> Any:  # noqa: ARG002
        """No essence is ever compared."""
        return {}

    def fetch(self, *, body: Any) -> None:
        """Nothing is stored."""

    def store(self, *, body: Any, patch: Any, essence: Any) -> None:
        """Nothing is stored."""


@dataclasses.dataclass(frozen=True, slots=True)
class Lifecycle:
    """What the shell calls when kopf has started, and before it ends."""

    started: Callable[[], Awaitable[None]]
    stopping: Callable[[], Awaitable[None]]


async def watch(
    see: See, lifecycle: Lifecycle, connection: Connection, *, namespaces: Collection[str], stop: asyncio.Event
) -> None:
    """Run kopf until `stop` is set or a signal comes; `see(manifest, gone=...)` gets every event of every kind."""
    registry = kopf.OperatorRegistry()
    _register(registry, see, lifecycle, connection)
    await kopf.operator(
        registry=registry,
        settings=_settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
        stop_flag=stop,
    )


def _register(registry: kopf.OperatorRegistry, see: See, lifecycle: Lifecycle, connection: Connection) -> None:
    @kopf.on.startup(registry=registry)
    async def started(**_: Any) -> None:
        await lifecycle.started()

    @kopf.on.cleanup(registry=registry)
    async def stopping(**_: Any) -> None:
        await lifecycle.stopping()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await _credentials(connection)

    for watched in WATCHED:
        _register_kind(registry, see, watched)


def _register_kind(registry: kopf.OperatorRegistry, see: See, watched: Watched) -> None:
    kind = watched.kind

    @kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=f"see-{kind.plural}")
    async def seen(event: Any, **_: Any) -> None:
        # Async, although it awaits nothing: a plain function would run in a thread. Returns None: kopf would write
        # anything else into the object's status.
        manifest = {**event["object"], "apiVersion": kind.api_version, "kind": kind.kind}
        see(manifest, gone=event["type"] == "DELETED")


async def _credentials(connection: Connection) -> kopf.ConnectionInfo:
    authorization = await connection.authorization()
    scheme, _, token = authorization.partition(" ")
    return kopf.ConnectionInfo(
        server=connection.server,
        ca_path=connection.ca_file,
        insecure=not connection.verify,
        scheme=scheme or None,
        token=token or None,
        certificate_path=connection.certificate_file,
        private_key_path=connection.key_file,
        default_namespace=connection.namespace or None,
    )


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.persistence.progress_storage = NoProgress()
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.connect_timeout = 5
    settings.watching.server_timeout = 290
    settings.watching.client_timeout = 300
    settings.networking.connect_timeout = 5
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = (0.2, 1, 3)
    settings.process.ultimate_exiting_timeout = 20
    for watched in WATCHED:
        resource = (watched.kind.group, watched.kind.version, watched.kind.plural)
        if watched.label_selector:
            settings.watching.label_selectors[resource] = watched.label_selector
        if watched.field_selector:
            settings.watching.field_selectors[resource] = watched.field_selector
    return settings

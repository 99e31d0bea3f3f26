"""What the controller asks of the outside, as Protocols.

Adapters live in `kube/`; tests put an in-memory one in their place. Bodies are plain dicts, exactly as the API server
sends and accepts them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Protocol

from hermetic.kinds import Kind

Manifest = dict[str, Any]


class KubeApi(Protocol):
    """The verbs that Hermetic needs of a Kubernetes API server. Every method raises the leaves of `errors`."""

    def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """List in pages; yields (items, resourceVersion of the list). Items carry apiVersion and kind."""
        ...

    async def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply as field manager `hermetic`, force; returns the live object."""
        ...

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Server-side apply of /status as field manager `hermetic-status`, force; returns the live object."""
        ...

    async def delete(
        self, kind: Kind, *, namespace: str | None, name: str, uid: str, resource_version: str = ""
    ) -> None:
        """Delete with preconditions; an object that is already gone is a success."""
        ...

    async def create_event(self, event: Manifest) -> None:
        """POST one events.k8s.io/v1 Event."""
        ...

    async def server_version(self) -> tuple[int, int]:
        """(major, minor) of the API server."""
        ...


class Clock(Protocol):
    """Wall time (UTC, aware) and a monotonic reading in seconds."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

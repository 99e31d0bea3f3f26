"""What the controller and the audit ask of the outside, as Protocols.

Adapters live in `kube/`; tests put an in-memory one in their place. Bodies are plain dicts, exactly as the API server
sends and accepts them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
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

    async def patch(self, patch: Manifest) -> Manifest:
        """Merge patch as field manager `hermetic` of the uid and version that it names; returns the live object."""
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

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server serves a kind at all, by what every account may discover."""
        ...

    async def server_version(self) -> tuple[int, int]:
        """(major, minor) of the API server."""
        ...


class ClusterReader(Protocol):
    """What an audit of the cluster needs: any kind listed and watched, and what is served at all. Reads only."""

    def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """As `KubeApi.pages`. When the resourceVersion changes between pages, the list began anew."""
        ...

    def watch(
        self,
        kind: Kind,
        *,
        since: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncGenerator[tuple[str, Manifest], None]:
        """(type, object) of every event after resourceVersion `since`, BOOKMARK included, until it ends.

        ServerTrouble with status 410 when the server has forgotten `since`. Close it to close its connection.
        """
        ...

    async def discovered(self, path: str) -> Manifest:
        """A discovery document: "/apis", or "/apis/GROUP/VERSION". NotFound where nothing of that name is served.

        "/apis" is an APIGroupDiscoveryList where the server can give one, with all resources, else an APIGroupList.
        """
        ...


class Clock(Protocol):
    """Wall time (UTC, aware) and a monotonic reading in seconds."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


class AuditProgress(Protocol):
    """Told what an audit does while it collects, to draw it. Called from the event loop: must not block or raise."""

    def asks(self, questions: int) -> None:
        """A round begins with so many questions."""
        ...

    def answered(self, request: str, seconds: float) -> None:
        """One request came back, or failed, after so many seconds."""
        ...

    def saw(self, resources: int) -> None:
        """So many more resources were read."""
        ...

    def waits(self, why: str, seconds: float) -> None:
        """The audit is about to wait: for its quota, or before it tries again."""
        ...

    def says(self, sentence: str) -> None:
        """Something that a person should know and that changes no verdict."""
        ...

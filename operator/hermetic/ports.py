"""Protocols of the API server and the clock, as the controller and the audit use them.

`kube/` implements them; tests use an in-memory implementation. Bodies are plain dicts, as the API server sends and
accepts them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from datetime import datetime
from typing import Any, Protocol

from hermetic.kinds import Kind

Manifest = dict[str, Any]


class Lister(Protocol):
    """Lists of the API server. Raises the leaves of `errors`."""

    def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """List in pages; yields (items, resourceVersion of the list). Items carry apiVersion and kind.

        A resourceVersion that differs from the last page's means that the list started again.
        """
        ...


class KubeApi(Lister, Protocol):
    """The verbs of the Kubernetes API server that Hermetic uses. Every method raises the leaves of `errors`."""

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
        """Whether the API server serves a kind at all, by discovery, which every account may read."""
        ...

    async def server_version(self) -> tuple[int, int]:
        """(major, minor) of the API server."""
        ...


class ClusterReader(Lister, Protocol):
    """Read access for an audit of the cluster: list and watch of any kind, and discovery."""

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

        Raises ServerError with status 410 when `since` has expired. Close the generator to close the connection.
        """
        ...

    async def discovered(self, path: str) -> Manifest:
        """A discovery document: "/apis", or "/apis/GROUP/VERSION". NotFound where that is not served.

        "/apis" is an APIGroupDiscoveryList where the server can give one, with all resources, else an APIGroupList.
        """
        ...


class Clock(Protocol):
    """Wall time (UTC, aware) and a monotonic reading in seconds."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


class AuditProgress(Protocol):
    """Callbacks for a progress display of the collection. Called from the event loop: must not block or raise."""

    def asks(self, questions: int) -> None:
        """A round starts with this number of questions."""
        ...

    def answered(self, request: str, seconds: float) -> None:
        """One request was answered or failed, after so many seconds."""
        ...

    def saw(self, resources: int) -> None:
        """This number of further resources was read."""
        ...

    def waits(self, why: str, seconds: float) -> None:
        """The audit starts to wait, for its quota or before a retry."""
        ...

    def note(self, sentence: str) -> None:
        """A notice for the user that changes no verdict."""
        ...

"""The API server behind `ports.KubeApi`: raw JSON over `transport`.

One request per call and no retries: the callers' work queue backs off. Objects come back without
`metadata.managedFields`, which is not read here and is often the larger half of an object.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Self

from hermetic.errors import NotFound, ServerError
from hermetic.kinds import BY_KIND, EVENT, LEASE, POD, Kind
from hermetic.kube.connection import Connection
from hermetic.kube.metadata import lean_metadata, names_its_writer
from hermetic.kube.transport import (
    APPLY_PATCH,
    JSON,
    WATCH_SECONDS,
    Request,
    RequestCounter,
    Timeouts,
    TooLarge,
    Transport,
)
from hermetic.ports import Manifest

FIRST_PAGE, MOST_OF_A_PAGE = 20, 500
"""Objects of the first page of a list, and of any."""
PAGE_BYTES = 768 * 2**10
"""The size that the next page is meant to have. The process does not return the memory of a parsed page, ten times as
large, and a page of more than a MiB is parsed item by item (`list_json`)."""
LARGEST_PAGE = 16 * 2**20  # bytes: a tenant's Events may hold a megabyte each
FIELD_MANAGER = "hermetic"
STATUS_FIELD_MANAGER = "hermetic-status"
LIST_RESTARTS = 3
LONGEST_LOG_END = 16 * 2**10  # bytes

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
DISCOVERY = ",".join((_AGGREGATED.format("v2"), _AGGREGATED.format("v2beta1"), JSON))
"""All groups with their resources in one document; an older server answers with the groups only."""
MERGE_PATCH = "application/merge-patch+json"


class KubernetesApi:
    """The verbs of `ports.KubeApi` and `lease.LeaseApi` on a real API server; `close()` it when done.

    `limit` bounds the requests in flight (20 by default). Requests for the Lease are exempt: a leader whose writes
    are slow must still renew in time. Every method raises the leaves of `errors`.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        limit: asyncio.Semaphore | None = None,
        on_request: RequestCounter | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._transport = Transport(connection, limit, on_request, timeouts)

    def ask_before_writing(self, check: Callable[[], None]) -> None:
        """Call `check` before every write but the Lease's, once a slot is free; if it raises, nothing is sent."""
        self._transport.ask_before_writing(check)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; requests in flight fail as Unreachable."""
        await self._transport.close()

    async def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """List in pages of some 768 KiB; yields (items, resourceVersion of the list).

        The size of a page follows from the objects of the page before. One of more than 16 MiB is abandoned and
        requested again in smaller ones.

        When the continuation has expired (410), the list starts again; its resourceVersion, which all pages of one list
        share, is then a new one.
        """
        selectors = (("labelSelector", label_selector), ("fieldSelector", field_selector))
        continuation, restarts, limit = "", 0, FIRST_PAGE
        while True:
            query = (("limit", str(limit)), *selectors, ("continue", continuation))
            request = Request("GET", "list", kind.plural, kind.path(namespace), query)
            try:
                page, size = await self._transport.page(request, most=LARGEST_PAGE if limit > 1 else None)
            except TooLarge:
                limit = max(1, limit // 8)
                continue
            except ServerError as error:
                if error.status != 410 or not continuation or restarts == LIST_RESTARTS:
                    raise
                continuation, restarts = "", restarts + 1
                continue
            items, version, continuation = _page(kind, str(request), page)
            yield items, version
            if not continuation:
                return
            limit = _next_limit(limit, len(items), size)

    async def watch(
        self,
        kind: Kind,
        *,
        since: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncGenerator[tuple[str, Manifest], None]:
        """Events after resourceVersion `since` as (type, object), BOOKMARK included; ends after five minutes at most.

        Raises ServerError with status 410 when `since` has expired and the kind must be listed anew.
        """
        query = (
            ("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(WATCH_SECONDS)),
            ("resourceVersion", since), ("labelSelector", label_selector), ("fieldSelector", field_selector),
        )  # fmt: skip
        request = Request("GET", "watch", kind.plural, kind.path(namespace), query)
        async with contextlib.aclosing(self._transport.events(request)) as events:
            async for event_type, manifest in events:
                yield event_type, _as_listed(kind, manifest)

    async def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply as `hermetic`, force; returns the live object.

        A field that the API server does not know is Rejected, never dropped.
        """
        kind, path = _coordinates(manifest)
        return await self._apply(kind.plural, path, FIELD_MANAGER, manifest)

    async def patch(self, patch: Manifest) -> Manifest:
        """Merge patch as `hermetic`: lists are replaced, null removes; Conflict when uid or version have changed.

        This removes the fields of other managers, which an apply cannot.
        """
        kind, path = _coordinates(patch)
        return await self._patch(kind.plural, path, MERGE_PATCH, (("fieldManager", FIELD_MANAGER),), patch)

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Server-side apply of /status as `hermetic-status`, force; NotFound when the object is gone.

        A field that the CRD does not know is Rejected as well: the CRDs must be upgraded before the operator.
        """
        kind, path = _coordinates(manifest)
        return await self._apply(f"{kind.plural}/status", f"{path}/status", STATUS_FIELD_MANAGER, manifest)

    async def dry_run(self, kind: Kind, manifest: Manifest) -> None:
        """Ask whether the API server would apply this object; nothing is stored. Raises what an apply would."""
        query = (("dryRun", "All"), ("fieldManager", FIELD_MANAGER), ("force", "true"), ("fieldValidation", "Strict"))
        path = _object_path(kind, manifest["metadata"].get("namespace"), manifest["metadata"]["name"])
        # `exchange`: no write that the Lease protects
        await self._transport.exchange(Request("PATCH", "patch", kind.plural, path, query, manifest, APPLY_PATCH))

    async def delete(
        self, kind: Kind, *, namespace: str | None, name: str, uid: str, resource_version: str = ""
    ) -> None:
        """Delete exactly this object, dependents in the background.

        Already gone is a success, if the 404 is the API server's own: one of a proxy in between proves nothing.
        Conflict means that another object now has the name, or that it changed since `resource_version`.
        """
        preconditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": preconditions,
        }
        path = _object_path(kind, namespace, name)
        try:
            await self._transport.send(Request("DELETE", "delete", kind.plural, path, body=options))
        except NotFound as missing:
            if missing.reason != "NotFound":
                raise

    async def create_event(self, event: Manifest) -> None:
        """POST one events.k8s.io/v1 Event into the namespace that its metadata names."""
        path = EVENT.path(event["metadata"]["namespace"])
        await self._transport.send(Request("POST", "create", EVENT.plural, path, body=event))

    async def discovered(self, path: str) -> Manifest:
        """What is served: "/apis" names all groups, "/apis/GROUP/VERSION" the resources of one version."""
        return await self._transport.send(Request("GET", "get", path, path, accept=DISCOVERY))

    async def log_end(self, namespace: str, pod: str, container: str) -> str:
        """The last lines of a container's log, LONGEST_LOG_END bytes at most, for commands: the operator may read none.

        Source: kubernetes.io, API reference, "Read Pod log" (`tailLines`, `limitBytes`).
        """
        path = f"{POD.path(namespace, pod)}/log"
        query = (("container", container), ("tailLines", "20"), ("limitBytes", str(LONGEST_LOG_END)))
        request = Request("GET", "get", f"{POD.plural}/log", path, query, accept="*/*")
        return await self._transport.text(request, most=2 * LONGEST_LOG_END)

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server serves a kind at all, by discovery, which every account may read."""
        try:
            document = await self.discovered(f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}")
        except NotFound:
            return False
        return any(resource.get("name") == kind.plural for resource in document.get("resources") or ())

    async def may(self, group: str, resource: str, verb: str, namespace: str = "") -> bool:
        """Whether the caller may do this, in one namespace or in the whole cluster; nothing is stored."""
        attributes = {"group": group, "resource": resource, "verb": verb, "namespace": namespace}
        version, kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
        body = {"apiVersion": version, "kind": kind, "spec": {"resourceAttributes": attributes}}
        path = f"/apis/{version}/selfsubjectaccessreviews"
        answer = await self._transport.exchange(Request("POST", "create", "selfsubjectaccessreviews", path, body=body))
        return (answer.get("status") or {}).get("allowed") is True

    async def server_version(self) -> tuple[int, int]:
        """(major, minor) of the API server; providers write minors such as "34+"."""
        version = await self._transport.send(Request("GET", "get", "version", "/version"))
        major, minor = (re.match(r"\d+", str(version.get(part, ""))) for part in ("major", "minor"))
        if not major or not minor:
            raise ServerError(f"GET /version: no version in the answer: {version}", status=200)
        return int(major[0]), int(minor[0])

    async def get_lease(self, namespace: str, name: str) -> Manifest:
        """The Lease; NotFound when there is none."""
        request = Request("GET", "get", LEASE.plural, _object_path(LEASE, namespace, name))
        return _lean(await self._transport.exchange(request))

    async def create_lease(self, lease: Manifest) -> Manifest:
        """POST the Lease; Conflict when there is one already."""
        path = LEASE.path(lease["metadata"]["namespace"])
        return _lean(await self._transport.exchange(Request("POST", "create", LEASE.plural, path, body=lease)))

    async def replace_lease(self, lease: Manifest) -> Manifest:
        """PUT the Lease over its resourceVersion; Conflict when that is not the latest."""
        _, path = _coordinates(lease)
        return _lean(await self._transport.exchange(Request("PUT", "update", LEASE.plural, path, body=lease)))

    async def _apply(self, resource: str, path: str, field_manager: str, manifest: Manifest) -> Manifest:
        query = (("fieldManager", field_manager), ("force", "true"))
        return await self._patch(resource, path, APPLY_PATCH, query, manifest)

    async def _patch(
        self, resource: str, path: str, how: str, query: tuple[tuple[str, str], ...], body: Manifest
    ) -> Manifest:
        strict = (*query, ("fieldValidation", "Strict"))
        return _lean(await self._transport.send(Request("PATCH", "patch", resource, path, strict, body, how)))


def _next_limit(limit: int, count: int, size: int) -> int:
    """Objects of the next page, after one with this limit, so many objects and bytes; the next ones may be larger."""
    return max(1, min(MOST_OF_A_PAGE, 4 * limit, max(count, 1) * PAGE_BYTES // max(size, 1)))


def _coordinates(manifest: Manifest) -> tuple[Kind, str]:
    kind, metadata = BY_KIND[manifest["kind"]], manifest["metadata"]
    if manifest["apiVersion"] != kind.api_version:
        raise ValueError(f"{manifest['apiVersion']} {kind.kind} is not a kind that Hermetic writes")
    return kind, _object_path(kind, metadata.get("namespace"), metadata["name"])


def _object_path(kind: Kind, namespace: str | None, name: str) -> str:
    # Without a name the URL is the collection's, and DELETE would empty the namespace.
    if not name or (kind.namespaced and not namespace):
        raise ValueError(f"one {kind.kind} needs a name{' and a namespace' if kind.namespaced else ''}")
    return kind.path(namespace, name)


def _page(kind: Kind, request: str, page: Manifest) -> tuple[list[Manifest], str, str]:
    """Items, resourceVersion and continuation of one page. An aggregated API server may answer anything."""
    try:
        items = [_as_listed(kind, item) for item in page.get("items") or ()]
        return items, page["metadata"]["resourceVersion"], page["metadata"].get("continue") or ""
    except (AttributeError, KeyError, TypeError) as error:
        raise ServerError(f"{request}: the answer is not a list of objects: {error!r}", status=200) from error


def _as_listed(kind: Kind, item: Manifest) -> Manifest:
    """One item as a GET returns it: items of a list have no apiVersion and kind."""
    item["apiVersion"], item["kind"] = kind.api_version, kind.kind
    return _lean(item)


def _lean(manifest: Manifest) -> Manifest:
    pod = manifest.get("kind") == POD.kind
    manifest["metadata"] = lean_metadata(manifest["metadata"], say_who=names_its_writer(manifest), pod=pod)
    return manifest

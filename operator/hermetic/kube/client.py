"""The API server behind `ports.KubeApi`: raw JSON over the official client's transport.

One request per call and no retries: the callers' work queue backs off. Objects come back without
`metadata.managedFields`, which is not read here and is often the larger half of an object.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import aiohttp

from hermetic import __version__
from hermetic.errors import HermeticError, NotFound, ServerTrouble, Unreachable
from hermetic.kinds import BY_KIND, EVENT, LEASE, POD, Kind
from hermetic.kube.api_errors import refusal
from hermetic.kube.connection import Connection
from hermetic.kube.list_json import parsed_list
from hermetic.kube.metadata import lean_metadata, names_its_writer
from hermetic.ports import Manifest

PAGE_SIZE = 100  # a parsed page of pods takes ten megabytes, and the process does not return freed memory
SMALL_PAGES = {("apiextensions.k8s.io", "customresourcedefinitions"): 20}
"""Objects per page, for kinds whose objects are often hundreds of KiB."""
LARGEST_PAGE = 16 * 2**20  # bytes: a tenant's Events may hold a megabyte each
FIELD_MANAGER = "hermetic"
STATUS_FIELD_MANAGER = "hermetic-status"
REQUESTS_IN_FLIGHT = 20
LIST_RESTARTS = 3
WATCH_SECONDS = 290
NO_ANSWER = 0

JSON = "application/json"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_PRIVATE = "that of a private cluster has its name and address only inside its virtual network and what is linked to it"
DISCOVERY = ",".join((_AGGREGATED.format("v2"), _AGGREGATED.format("v2beta1"), JSON))
"""All groups with their resources in one document; an older server answers with the groups only."""
APPLY_PATCH = "application/apply-patch+yaml"  # every JSON document is a YAML document
MERGE_PATCH = "application/merge-patch+json"

RequestCounter = Callable[[str, str, int], None]
"""Called once per request with the RBAC verb, the resource ("deployments", "modeldeployments/status") and the HTTP
status (0 when no answer came)."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds: for a TLS connection, for a whole read, for a whole write, and between two lines of a watch
    (the API server sends a bookmark every minute).

    A write that is sent while the Lease is held must end before another process can take the Lease.
    """

    connect: float = 5.0
    request: float = 30.0
    write: float = 15.0
    silence: float = 75.0


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    verb: str
    resource: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Manifest | None = None
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class _TooLarge(Exception):
    """A page of a list exceeds LARGEST_PAGE."""


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
        timeouts = timeouts or Timeouts()
        self._connection = connection
        self._http = _transport(connection)
        self._limit = limit or asyncio.Semaphore(REQUESTS_IN_FLIGHT)
        self._on_request = on_request or (lambda _verb, _resource, _status: None)
        self._before_writing: Callable[[], None] = lambda: None
        self._timeout = aiohttp.ClientTimeout(total=timeouts.request, connect=timeouts.connect)
        self._write_timeout = aiohttp.ClientTimeout(total=timeouts.write, connect=timeouts.connect)
        self._watch_timeout = aiohttp.ClientTimeout(
            total=WATCH_SECONDS + 10, connect=timeouts.connect, sock_read=timeouts.silence
        )

    def ask_before_writing(self, check: Callable[[], None]) -> None:
        """Call `check` before every write but the Lease's, once a slot is free; if it raises, nothing is sent."""
        self._before_writing = check

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; requests in flight fail as Unreachable."""
        await self._http.close()

    async def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """List in pages of 100 objects and 16 MiB at most; yields (items, resourceVersion of the list).

        CustomResourceDefinitions come in pages of 20. A page that exceeds the limit of bytes is abandoned and requested
        again in smaller ones.

        When the continuation has expired (410), the list starts again; its resourceVersion, which all pages of one list
        share, is then a new one.
        """
        selectors = (("labelSelector", label_selector), ("fieldSelector", field_selector))
        most = SMALL_PAGES.get((kind.group, kind.plural), PAGE_SIZE)
        continuation, restarts, limit = "", 0, most
        while True:
            query = (("limit", str(limit)), *selectors, ("continue", continuation))
            request = _Request("GET", "list", kind.plural, kind.path(namespace), query)
            try:
                page = await self._send(request, most=LARGEST_PAGE if limit > 1 else None)
            except _TooLarge:
                limit = max(1, limit // 8)
                continue
            except ServerTrouble as trouble:
                if trouble.status != 410 or not continuation or restarts == LIST_RESTARTS:
                    raise
                continuation, restarts = "", restarts + 1
                continue
            items, version, continuation = _page(kind, str(request), page)
            yield items, version
            if not continuation:
                return
            limit = min(most, 2 * limit)

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

        Raises ServerTrouble with status 410 when `since` has expired and the kind must be listed anew.
        """
        query = (
            ("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(WATCH_SECONDS)),
            ("resourceVersion", since), ("labelSelector", label_selector), ("fieldSelector", field_selector),
        )  # fmt: skip
        request = _Request("GET", "watch", kind.plural, kind.path(namespace), query)
        answer = await self._ask(request, within=self._watch_timeout)
        try:
            async for line in _lines(answer.response.content):
                what, manifest = _event(request, answer.status, line)
                if what == "ERROR":
                    words = json.dumps(manifest).encode()
                    raise refusal(str(request), manifest.get("code", 0), answer.headers, words)
                yield what, _as_listed(kind, manifest)
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(request, self._connection.server, error) from error
        finally:
            answer.response.close()

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
            await self._send(_Request("DELETE", "delete", kind.plural, path, body=options))
        except NotFound as missing:
            if missing.reason != "NotFound":
                raise

    async def create_event(self, event: Manifest) -> None:
        """POST one events.k8s.io/v1 Event into the namespace that its metadata names."""
        path = EVENT.path(event["metadata"]["namespace"])
        await self._send(_Request("POST", "create", EVENT.plural, path, body=event))

    async def discovered(self, path: str) -> Manifest:
        """What is served: "/apis" names all groups, "/apis/GROUP/VERSION" the resources of one version."""
        return await self._send(_Request("GET", "get", path, path, accept=DISCOVERY))

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server serves a kind at all, by discovery, which every account may read."""
        try:
            found = await self.discovered(f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}")
        except NotFound:
            return False
        return any(one.get("name") == kind.plural for one in found.get("resources") or ())

    async def may(self, group: str, resource: str, verb: str, namespace: str = "") -> bool:
        """Whether the caller may do this, in one namespace or in the whole cluster; nothing is stored."""
        wanted = {"group": group, "resource": resource, "verb": verb, "namespace": namespace}
        version, kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
        body = {"apiVersion": version, "kind": kind, "spec": {"resourceAttributes": wanted}}
        path = f"/apis/{version}/selfsubjectaccessreviews"
        answer = await self._exchange(_Request("POST", "create", "selfsubjectaccessreviews", path, body=body))
        return (answer.get("status") or {}).get("allowed") is True

    async def server_version(self) -> tuple[int, int]:
        """(major, minor) of the API server; providers write minors such as "34+"."""
        version = await self._send(_Request("GET", "get", "version", "/version"))
        major, minor = (re.match(r"\d+", str(version.get(part, ""))) for part in ("major", "minor"))
        if not major or not minor:
            raise ServerTrouble(f"GET /version: no version in the answer: {version}", status=200)
        return int(major[0]), int(minor[0])

    async def get_lease(self, namespace: str, name: str) -> Manifest:
        """The Lease; NotFound when there is none."""
        return _lean(await self._exchange(_Request("GET", "get", LEASE.plural, _object_path(LEASE, namespace, name))))

    async def create_lease(self, lease: Manifest) -> Manifest:
        """POST the Lease; Conflict when there is one already."""
        path = LEASE.path(lease["metadata"]["namespace"])
        return _lean(await self._exchange(_Request("POST", "create", LEASE.plural, path, body=lease)))

    async def replace_lease(self, lease: Manifest) -> Manifest:
        """PUT the Lease over its resourceVersion; Conflict when that is not the latest."""
        _, path = _coordinates(lease)
        return _lean(await self._exchange(_Request("PUT", "update", LEASE.plural, path, body=lease)))

    async def _apply(self, resource: str, path: str, field_manager: str, manifest: Manifest) -> Manifest:
        query = (("fieldManager", field_manager), ("force", "true"))
        return await self._patch(resource, path, APPLY_PATCH, query, manifest)

    async def _patch(
        self, resource: str, path: str, how: str, query: tuple[tuple[str, str], ...], body: Manifest
    ) -> Manifest:
        strict = (*query, ("fieldValidation", "Strict"))
        return _lean(await self._send(_Request("PATCH", "patch", resource, path, strict, body, how)))

    async def _send(self, request: _Request, *, most: int | None = None) -> Manifest:
        async with self._limit:
            if request.method != "GET":
                # After the wait: the Lease may have been lost meanwhile.
                self._before_writing()
            return await self._exchange(request, most=most)

    async def _exchange(self, request: _Request, *, most: int | None = None) -> Manifest:
        """One request and its whole answer; raises _TooLarge, without reading the rest, beyond `most` bytes."""
        within = self._timeout if request.method == "GET" else self._write_timeout
        answer = await self._ask(request, within=within)
        try:
            body = await answer.read() if most is None else await _read_at_most(answer.response, most)
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(request, self._connection.server, error) from error
        if request.verb == "list":
            return await _decoded_list(request, answer.status, body)
        return _decoded(request, answer.status, body)

    async def _ask(self, request: _Request, *, within: aiohttp.ClientTimeout) -> Any:
        """One request, counted also when it fails; returns the answer, whose body is still to be read."""
        status = NO_ANSWER
        try:
            answer = await self._http.call_api(
                request.method,
                self._url(request),
                header_params=await self._headers(request),
                body=request.body,
                _request_timeout=within,
            )
            status = answer.status
            refused = None if 200 <= status < 300 else await answer.read()
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise _unreachable(request, self._connection.server, error) from error
        finally:
            self._on_request(request.verb, request.resource, status)
        if refused is not None:
            raise refusal(str(request), status, answer.headers, refused)
        return answer

    def _url(self, request: _Request) -> str:
        query = urlencode([pair for pair in request.query if pair[1]], quote_via=quote)
        return f"{self._connection.server}{request.path}" + (f"?{query}" if query else "")

    async def _headers(self, request: _Request) -> dict[str, str]:
        authorization = await self._connection.authorization()
        return {
            "Accept": request.accept,
            "Content-Type": request.content_type,
            "User-Agent": f"hermetic/{__version__}",
        } | ({"Authorization": authorization} if authorization else {})


def _transport(connection: Connection) -> Any:
    """The official client's HTTP layer, without its retries and its reading of proxy variables."""
    # Imported here: 20 MiB and 0.2 s, which only a process with a connection should pay.
    from kubernetes.aio.client import ApiClient, Configuration

    configuration = Configuration(
        host=connection.server,
        ssl_ca_cert=connection.ca_file,
        cert_file=connection.certificate_file,
        key_file=connection.key_file,
        verify_ssl=connection.verify,
        tls_server_name=connection.tls_server_name,
        proxy=connection.proxy,
        connection_pool_maxsize=0,  # unbounded: `limit` is the one bound; waiting for it is not connect time
        client_session_kwargs={"trust_env": False},
    )
    try:
        return ApiClient(configuration)
    except OSError as error:  # ssl.SSLError is one
        raise Unreachable(
            f"the certificates for {connection.server} cannot be used: {error}",
            fix="check the CA and the client certificate that the connection names",
        ) from error


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


def _decoded(request: _Request, status: int, body: bytes) -> Manifest:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    return _object(request, status, answer)


async def _decoded_list(request: _Request, status: int, body: bytes) -> Manifest:
    try:
        answer = await parsed_list(body)
    except ValueError:
        answer = None
    return _object(request, status, answer)


def _object(request: _Request, status: int, answer: Any) -> Manifest:
    if not isinstance(answer, dict):
        raise ServerTrouble(f"{request}: HTTP {status}, but the answer is not a JSON object", status=status)
    return answer


async def _read_at_most(response: aiohttp.ClientResponse, most: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            response.close()
            raise _TooLarge
    return bytes(body)


def _page(kind: Kind, request: str, page: Manifest) -> tuple[list[Manifest], str, str]:
    """Items, resourceVersion and continuation of one page. An aggregated API server may answer anything."""
    try:
        items = [_as_listed(kind, item) for item in page.get("items") or ()]
        return items, page["metadata"]["resourceVersion"], page["metadata"].get("continue") or ""
    except (AttributeError, KeyError, TypeError) as error:
        raise ServerTrouble(f"{request}: the answer is not a list of objects: {error!r}", status=200) from error


def _event(request: _Request, status: int, line: bytes) -> tuple[str, Manifest]:
    """Type and object of one line of a watch; ServerTrouble where it is neither an event nor an error."""
    event = _decoded(request, status, line)
    what, manifest = event.get("type"), event.get("object")
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    is_object = isinstance(metadata, dict) and isinstance(metadata.get("resourceVersion"), str)
    if not isinstance(what, str) or not isinstance(manifest, dict) or not (is_object or what == "ERROR"):
        raise ServerTrouble(f"{request}: a line of the watch is not an event", status=status)
    return what, manifest


def _as_listed(kind: Kind, item: Manifest) -> Manifest:
    """One item as a GET returns it: items of a list have no apiVersion and kind."""
    item["apiVersion"], item["kind"] = kind.api_version, kind.kind
    return _lean(item)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Whole lines; bytes after the last line break are an incomplete line and are dropped."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


def _lean(manifest: Manifest) -> Manifest:
    pod = manifest.get("kind") == POD.kind
    manifest["metadata"] = lean_metadata(manifest["metadata"], say_who=names_its_writer(manifest), pod=pod)
    return manifest


def _unreachable(request: _Request, server: str, error: Exception) -> HermeticError:
    if isinstance(error, TimeoutError):
        cause = "no answer in time"
        fix = f"check that the API server is healthy and that nothing drops its packets; {_PRIVATE}"
    elif isinstance(error, aiohttp.ClientSSLError):
        cause, fix = (
            f"TLS failed: {getattr(error, 'certificate_error', None) or error}",
            "check the CA and the server name of the kubeconfig against its certificate",
        )
    elif isinstance(error, aiohttp.ClientConnectorDNSError):
        cause, fix = f"the name {error.host} is not known here", f"check the name; {_PRIVATE}"
    elif isinstance(error, aiohttp.ClientConnectorError):
        code = error.os_error.errno
        cause = os.strerror(code).lower() if code else "no connection to any address of the name"
        fix = f"check that the API server is up and reachable from here; {_PRIVATE}"
    else:
        cause, fix = str(error) or type(error).__name__, "check that the API server is up and reachable from here"
    return Unreachable(f"{request} at {server}: {cause}", fix=fix)

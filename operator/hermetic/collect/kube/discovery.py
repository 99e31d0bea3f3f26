"""API discovery: the kinds that the API server serves, in one request where the server supports that.

Kubernetes answers GET /apis with all groups, versions and resources at once (aggregated discovery, on by default since
1.27). An older server names the groups only, and each version is requested.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hermetic.audit.estate.questions import Answer, Body, Problem, UnreadReason
from hermetic.audit.model.findings import Evidence
from hermetic.collect.kube.list_errors import PASSING
from hermetic.collect.kube.list_requests import ListRequest, digest_of
from hermetic.errors import ApiRefused, Forbidden, HermeticError, ServerError
from hermetic.ports import ClusterReader

ALL_GROUPS = "/apis"
AGGREGATED = "APIGroupDiscoveryList"


@dataclass(slots=True)
class Group:
    """Kinds by plural name: (kind, versions). `stale` are versions whose server did not answer."""

    kinds: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    read_by: list[Evidence] = field(default_factory=list)

    def serve(self, plural: str, kind: str, version: str) -> None:
        """Add a kind, or a version of it."""
        self.kinds.setdefault(plural, (kind, []))[1].append(version)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All kinds outside of the core group that are served, and the documents that show it."""

    groups: Mapping[str, Group]
    evidence: Evidence

    def shows_absence(self, group: str, plural: str) -> tuple[Evidence, ...]:
        """The documents which together show that no version of the kind is served; none when they do not."""
        served_group = self.groups.get(group)
        if served_group is None:
            return (self.evidence,)
        if plural in served_group.kinds or served_group.stale:
            return ()
        return (self.evidence, *served_group.read_by)

    def version_of(self, group: str, plural: str, versions: Iterable[str]) -> str:
        """The first of these versions in which the kind is served; "" where none is."""
        served_group = self.groups.get(group)
        served = served_group.kinds[plural][1] if served_group is not None and plural in served_group.kinds else []
        return next((version for version in versions if version in served), "")

    @property
    def documents(self) -> tuple[Evidence, ...]:
        return (self.evidence, *(exchange for group in self.groups.values() for exchange in group.read_by))

    @property
    def bodies(self) -> Iterator[dict[str, Any]]:
        """The groups as answers, in one order."""
        for name, group in sorted(self.groups.items()):
            kinds = [
                {"plural": plural, "kind": kind, "versions": sorted(versions)}
                for plural, (kind, versions) in sorted(group.kinds.items())
            ]
            yield {"id": name, "kinds": kinds, "stale": sorted(group.stale)}


async def catalogue(api: ClusterReader) -> Catalogue:
    """What is served now. Raises the leaves of `errors`; a document of another shape is a ServerError."""
    document = await api.discovered(ALL_GROUPS)
    try:
        if document.get("kind") == AGGREGATED:
            groups = {entry["metadata"]["name"]: _aggregated(entry) for entry in document["items"]}
        else:
            groups = {entry["name"]: await _by_version(api, entry) for entry in document["groups"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise ServerError(f"not a discovery document: {error!r}", status=200) from error
    return Catalogue(groups, Evidence(f"GET {ALL_GROUPS}", 200, digest_of((document,))))


def _aggregated(entry: Mapping[str, Any]) -> Group:
    group = Group()
    for version in entry["versions"]:
        if version.get("freshness", "Current") != "Current":
            group.stale.append(version["version"])
        for served in version.get("resources") or ():
            group.serve(served["resource"], (served.get("responseKind") or {}).get("kind", ""), version["version"])
    return group


async def _by_version(api: ClusterReader, entry: Mapping[str, Any]) -> Group:
    group = Group()
    for version in entry["versions"]:
        path = f"{ALL_GROUPS}/{entry['name']}/{version['version']}"
        try:
            document = await api.discovered(path)
        except HermeticError:
            group.stale.append(version["version"])
            continue
        group.read_by.append(Evidence(f"GET {path}", 200, digest_of((document,))))
        for served in document["resources"]:
            if "/" not in served["name"]:
                group.serve(served["name"], served.get("kind", ""), version["version"])
    return group


class ServedKinds:
    """What the API server serves: read at first use, and again when older than `lasts` seconds.

    Transient errors (429, 5xx, a broken connection) are retried after each of `pauses`, in seconds.

    A refused list proves nothing about the kind: with 404 it may be served in another version, and with 403 the API
    server refuses before it resolves the kind. Every authenticated caller may read discovery.
    """

    def __init__(self, api: ClusterReader, *, lasts: float = math.inf, pauses: tuple[float, ...] = ()) -> None:
        self._api = api
        self._lasts = lasts
        self._pauses = pauses
        self._known: Catalogue | HermeticError | None = None
        self._read_at = 0.0
        self._one_at_a_time = asyncio.Lock()

    async def shows_absence(self, request: ListRequest, *, anew: bool = False) -> tuple[Evidence, ...]:
        """The documents which together show that no version of the kind is served; none when they do not show it."""
        if not request.kind.group:  # the core group is served everywhere
            return ()
        served_kinds = await self._read(anew=anew)
        return (
            served_kinds.shows_absence(request.kind.group, request.kind.plural)
            if isinstance(served_kinds, Catalogue)
            else ()
        )

    async def as_served(self, request: ListRequest) -> ListRequest:
        """The list request in a version that is served, where the model has more than one."""
        other_versions = request.model.ALSO_SERVED_AS
        if not other_versions:
            return request
        served_kinds = await self._read(anew=False)
        if not isinstance(served_kinds, Catalogue):
            return request
        own = replace(request, served_as="").kind
        return replace(
            request, served_as=served_kinds.version_of(own.group, own.plural, (own.version, *other_versions))
        )

    async def answer(self) -> Answer:
        """The served kinds, by group."""
        return answer_of(await self._read(anew=False))

    async def _read(self, *, anew: bool) -> Catalogue | HermeticError:
        now = asyncio.get_running_loop().time
        asked_at = now()
        async with self._one_at_a_time:
            is_known = isinstance(self._known, Catalogue)
            oldest = asked_at if anew or not is_known else asked_at - self._lasts
            if self._known is None or self._read_at < oldest:
                self._known, self._read_at = await self._read_at_last(), now()
            return self._known

    async def _read_at_last(self) -> Catalogue | HermeticError:
        served_kinds = await self._read_once()
        for pause in self._pauses:
            if not isinstance(served_kinds, PASSING):
                break
            await asyncio.sleep(pause)
            served_kinds = await self._read_once()
        return served_kinds

    async def _read_once(self) -> Catalogue | HermeticError:
        try:
            return await catalogue(self._api)
        except HermeticError as error:
            return error


def answer_of(served_kinds: Catalogue | HermeticError) -> Answer:
    """The answer to the question which kinds are served."""
    if isinstance(served_kinds, Catalogue):
        bodies = tuple(Body(body, served_kinds.documents) for body in served_kinds.bodies)
        return Answer(bodies, served_kinds.documents)
    evidence = Evidence(f"GET {ALL_GROUPS}", served_kinds.status if isinstance(served_kinds, ApiRefused) else None)
    message = f"GET {ALL_GROUPS}: {served_kinds.message}"
    problem = (
        Problem(UnreadReason.UNAVAILABLE, message)
        if isinstance(served_kinds, PASSING)
        else _refused(served_kinds, message)
    )
    return Answer((), (evidence,), problem)


def _refused(error: HermeticError, message: str) -> Problem:
    if isinstance(error, Forbidden):
        return Problem(UnreadReason.FORBIDDEN, message, permission="get /apis")
    return Problem(UnreadReason.UNREADABLE, message)

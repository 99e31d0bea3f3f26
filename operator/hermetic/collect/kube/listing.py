"""Reads one complete list, projected page by page: at most one page of full objects is in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.questions import fixed_json
from hermetic.collect.kube.list_requests import ListRequest, identity
from hermetic.errors import HermeticError, ServerError
from hermetic.kube.paging import list_each
from hermetic.ports import ClusterReader, Manifest

if TYPE_CHECKING:  # the evaluation process and the command need no reflector
    from hermetic.kube.reflector import Feed

Name = tuple[str, str]
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Kept:
    """Identity and projection of one object. `version` is its resourceVersion."""

    uid: str
    version: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Packed:
    """The same with the body as canonical JSON: a tenth of the memory, and no objects for the garbage collector."""

    uid: str
    version: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Listed(Generic[K]):
    """A list as of resourceVersion `version`; with an error, as far as it was read."""

    items: Mapping[Name, K]
    version: str
    error: HermeticError | None = None


async def listed(api: ClusterReader, request: ListRequest) -> Listed[Kept]:
    """All objects of a list. An error of the API server is returned, with the objects that came before it."""
    return await _gathered(api, request, lambda entry: entry)


async def listed_packed(api: ClusterReader, request: ListRequest, feed: Feed | None) -> Listed[Packed]:
    """The same, packed page by page; `feed` gets every object as well."""
    return await _gathered(api, request, packed, feed)


async def _gathered(
    api: ClusterReader, request: ListRequest, pack: Callable[[Kept], K], feed: Feed | None = None
) -> Listed[K]:
    entries: dict[Name, K] = {}
    as_of = ""

    def begin(version: str) -> None:
        nonlocal as_of
        as_of = version
        entries.clear()
        if feed is not None:
            feed.begin(version)

    def add(item: Manifest) -> None:
        if feed is not None:
            feed.add(item)
        name, entry = identity(item), kept(request, item)
        if request.model.is_relevant(entry.body):
            entries[name] = pack(entry)

    try:
        await list_each(api, request.selection, begin=begin, add=add)
    except HermeticError as error:
        return Listed(entries, as_of, error)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        # An aggregated API server may answer anything.
        return Listed(entries, as_of, ServerError(f"not a list of objects: {error!r}", status=200))
    return Listed(entries, as_of)


def kept(request: ListRequest, manifest: Manifest) -> Kept:
    """The projection of one object."""
    metadata = manifest["metadata"]
    body = projected(request.model, manifest)
    return Kept(str(metadata.get("uid", "")), str(metadata.get("resourceVersion", "")), body)


def packed(entry: Kept) -> Packed:
    """The object in its packed form."""
    return Packed(entry.uid, number(entry.version), fixed_json(entry.body).encode())


def number(version: str) -> int:
    """A resourceVersion as a number; 0 for an invalid one."""
    return int(version) if version.isdigit() else 0

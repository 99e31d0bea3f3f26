"""One list, whole: projected page by page, so that no more than a page of full objects is ever held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.collect.kube.coordinates import Look, identity
from hermetic.errors import HermeticError, ServerTrouble
from hermetic.ports import ClusterReader, Manifest

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of one object, and which one it is. `version` is its resourceVersion."""

    uid: str
    version: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listed:
    """A list as of resourceVersion `version`; with an error, as far as it came."""

    items: Mapping[Name, Kept]
    version: str
    error: HermeticError | None = None


async def listed(api: ClusterReader, look: Look) -> Listed:
    """All objects of a list. Never raises what the API server answers: what came before an error is kept."""
    found: dict[Name, Kept] = {}
    as_of = ""
    try:
        async for items, version in api.pages(look.kind, namespace=look.namespace, field_selector=look.field_selector):
            if version != as_of:  # the server forgot the list, and it was begun anew
                found, as_of = {}, version
            found |= {identity(item): kept(look, item) for item in items}
    except HermeticError as error:
        return Listed(found, as_of, error)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        # An aggregated API server may answer anything.
        return Listed(found, as_of, ServerTrouble(f"not a list of objects: {error!r}", status=200))
    return Listed(found, as_of)


def kept(look: Look, manifest: Manifest) -> Kept:
    """What is kept of one object."""
    metadata = manifest["metadata"]
    body = projected(look.model, manifest)
    return Kept(str(metadata.get("uid", "")), str(metadata.get("resourceVersion", "")), body)

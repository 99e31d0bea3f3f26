"""Whether a kind is not served at all: shown by the API server's own list of what it serves, never assumed.

A list that is refused says nothing about the kind: with 404 it may be served in another version, and with 403 the API
server refuses before it looks whether there is such a kind. Discovery is open to everybody who may log in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.audit.findings import Evidence
from hermetic.collect.kube.coordinates import Look, digest_of
from hermetic.errors import HermeticError
from hermetic.ports import ClusterReader

ALL_GROUPS = "/apis"


class Served:
    """What the API server serves, asked for as far as it is needed, and each document once."""

    def __init__(self, api: ClusterReader) -> None:
        self._api = api
        self._documents: dict[str, Mapping[str, Any]] = {}

    async def shows_absence(self, look: Look) -> tuple[Evidence, ...]:
        """The documents which together show that no version of the kind is served; none when they do not show it."""
        group, plural = look.kind.group, look.kind.plural
        if not group:  # the core group is served everywhere
            return ()
        try:
            versions = _versions(await self._read(ALL_GROUPS), group)
            paths = [f"{ALL_GROUPS}/{group}/{version}" for version in versions]
            served = [_serves(await self._read(path), plural) for path in paths]
        except (HermeticError, KeyError, TypeError, AttributeError):
            return ()  # a document that cannot be had or understood shows nothing
        return tuple(self._evidence(path) for path in (ALL_GROUPS, *paths)) if not any(served) else ()

    async def _read(self, path: str) -> Mapping[str, Any]:
        if path not in self._documents:
            self._documents[path] = await self._api.discovered(path)
        return self._documents[path]

    def _evidence(self, path: str) -> Evidence:
        return Evidence(f"GET {path}", 200, digest_of((self._documents[path],)))


def _versions(groups: Mapping[str, Any], wanted: str) -> tuple[str, ...]:
    named = {group["name"]: group["versions"] for group in groups["groups"]}
    return tuple(version["version"] for version in named.get(wanted, ()))


def _serves(resources: Mapping[str, Any], plural: str) -> bool:
    return any(resource["name"] == plural for resource in resources["resources"])

"""An API server of dicts for units of the collector: what it holds, which groups it serves, and what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from hermetic.audit.estate.kubernetes.served import ALWAYS_SERVED
from hermetic.errors import Forbidden, NotFound
from hermetic.kinds import Kind

Manifest = dict[str, Any]


class Served:
    """An API server of dicts: what it holds, which groups it serves, and what it refuses. Watches end by a queue."""

    def __init__(self, manifests: list[Manifest], *, page: int = 3) -> None:
        self.objects: dict[tuple[str, str, str, str], Manifest] = {}
        self.version = 0
        self.page = page
        self.groups: dict[str, dict[str, list[str]]] = {"apps": {"v1": ["deployments"]}}
        self.documents: list[str] = []
        self.refusals: dict[str, list[Exception | None]] = {}
        self.lists: list[str] = []
        self.watches: dict[str, asyncio.Queue[tuple[str, Manifest] | Exception | None]] = {}
        for one in manifests:
            self.put(one)

    def put(self, one: Manifest) -> Manifest:
        """Create or change an object; whoever watches hears of it."""
        self.version += 1
        key = _key(one)
        uid = self.objects[key]["metadata"]["uid"] if key in self.objects else f"uid-{self.version}"
        metadata = {**one["metadata"], "uid": uid, "resourceVersion": str(self.version)}
        kind = "MODIFIED" if key in self.objects else "ADDED"
        self.objects[key] = {**one, "metadata": metadata}
        self._tell(kind, self.objects[key])
        return self.objects[key]

    def drop(self, one: Manifest) -> None:
        """Delete an object; whoever watches hears of it."""
        self.version += 1
        gone = self.objects.pop(_key(one))
        metadata = {**gone["metadata"], "resourceVersion": str(self.version)}
        self._tell("DELETED", {**gone, "metadata": metadata})

    def refuse(self, plural: str, *errors: Exception | None) -> None:
        """Answer the next lists of this resource so; the last one for ever."""
        self.refusals[plural] = list(errors)

    def _tell(self, what: str, one: Manifest) -> None:
        for path, queue in self.watches.items():
            kind = path.partition("?")[0]
            if kind == f"{one['apiVersion']}/{one['kind']}":
                queue.put_nowait((what, one))

    # ------------------------------------------------------------------ ClusterReader

    async def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """As the port says."""
        assert not label_selector
        self.lists.append(kind.plural)
        planned = self.refusals.get(kind.plural)
        if planned:
            error = planned.pop(0) if len(planned) > 1 else planned[0]
            if error is not None:
                raise error
        if kind.group not in ALWAYS_SERVED and kind.plural not in self._served(kind):
            raise NotFound("the server could not find the requested resource", status=404, reason="NotFound")
        found = [one for one in self.objects.values() if _is_of(one, kind, namespace, field_selector)]
        for start in range(0, max(len(found), 1), self.page):
            yield found[start : start + self.page], str(self.version)

    async def watch(
        self,
        kind: Kind,
        *,
        since: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncGenerator[tuple[str, Manifest], None]:
        """As the port says, from now on: tests change things only while it is watched."""
        assert since
        assert not label_selector
        name = f"{kind.api_version}/{kind.kind}?{namespace or ''}{field_selector}"
        queue = self.watches.setdefault(name, asyncio.Queue())
        while (event := await queue.get()) is not None:
            if isinstance(event, Exception):
                raise event
            if _is_of(event[1], kind, namespace, field_selector):
                yield event

    async def discovered(self, path: str) -> Manifest:
        """As the port says, as a server without aggregated discovery."""
        self.documents.append(path)
        if path == "/apis":
            return {
                "groups": [
                    {"name": name, "versions": [{"version": version} for version in versions]}
                    for name, versions in self.groups.items()
                ]
            }
        _, _, group, version = path.split("/")
        return {"resources": [{"name": plural} for plural in self.groups[group][version]]}

    def _served(self, kind: Kind) -> list[str]:
        return self.groups.get(kind.group, {}).get(kind.version, [])


def _key(one: Manifest) -> tuple[str, str, str, str]:
    return (one["apiVersion"], one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])


def _is_of(one: Manifest, kind: Kind, namespace: str | None, field_selector: str) -> bool:
    version, name, where, bare = _key(one)
    selected = not field_selector or field_selector == f"metadata.name={bare}"
    return (version, name) == (kind.api_version, kind.kind) and namespace in (None, where) and selected


def forbidden(status: int = 403) -> Forbidden:
    return Forbidden('pods is forbidden: User "auditor" cannot list it', status=status, reason="Forbidden")

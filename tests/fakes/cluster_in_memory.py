"""A KubeApi for units of queue, store, reconciler and auditor: one process, no HTTP, no controllers but a test's own.

It has of a real API server what the reconciler relies on: uids, growing resourceVersions, generations that follow the
spec, server-side apply of one manager that leaves foreign fields alone, preconditions, list selectors on labels and
names, and watches. Everything about schemas, admission and RBAC is the business of the tests on a real one.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from hermetic.audit.estate.kubernetes.all_kinds import KINDS
from hermetic.errors import Conflict, NotFound
from hermetic.kinds import BY_KIND, ROUTES, Kind

Manifest = dict[str, Any]
Coordinates = tuple[str, str, str]  # (kind, namespace or "", name)
See = Callable[..., None]
Fault = Callable[[str, Coordinates], Awaitable[None]]


LATE: ContextVar[float | None] = ContextVar("LATE", default=0.0)
"""How late the watches of clusters are that do not say so themselves; None where such a cluster is a mistake."""


def _late() -> float:
    late = LATE.get()
    assert late is not None, "this test runs with one kind of watch: tests/controller/conftest.py sees no cluster in it"
    return late


def _unwatched(_manifest: Manifest, *, gone: bool) -> None:
    """No watch is open."""


def _as_it_is(_manifest: Manifest) -> None:
    """Nothing is changed on admission."""


async def _no_fault(_verb: str, _where: Coordinates) -> None:
    """Everything goes well."""


@dataclass
class ClusterInMemory:
    """`see` hears every change, as a watch would; `fault(verb, where)` runs before a write and may raise or wait.

    `done` runs after a write is stored and before the caller hears of it: raising there is an unknown outcome. `admit`
    may change what is about to be stored, as a mutating webhook does. `late`: by how many seconds an event follows the
    answer to the write that caused it: a real watch is never ahead of it.
    """

    see: See = _unwatched
    fault: Fault = _no_fault
    done: Fault = _no_fault
    admit: Callable[[Manifest], None] = _as_it_is
    late: float = field(default_factory=_late)
    version: tuple[int, int] = (1, 36)
    unserved: frozenset[Kind] = frozenset()
    objects: dict[Coordinates, Manifest] = field(default_factory=dict)
    writes: list[tuple[str, Coordinates]] = field(default_factory=list)
    lists: Counter[str] = field(default_factory=Counter)
    events: list[Manifest] = field(default_factory=list)
    happened: list[tuple[str, Manifest]] = field(default_factory=list)
    watching: Counter[str] = field(default_factory=Counter)
    _applied: dict[Coordinates, Manifest] = field(default_factory=dict)
    _versions: Any = field(default_factory=lambda: itertools.count(2))  # as etcd's first write
    _uids: Any = field(default_factory=lambda: itertools.count(1))
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _happened_at: list[float] = field(default_factory=list)

    # ------------------------------------------------------------------ KubeApi

    async def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        self.lists[_name_of(kind)] += 1
        await self.fault("list", (kind.kind, namespace or "", ""))
        items = [
            copy.deepcopy(manifest)
            for (_, home, _), manifest in sorted(self.objects.items())
            if _is_of(manifest, kind)
            and namespace in (None, home)
            and matches_labels(manifest, label_selector)
            and matches_fields(manifest, field_selector)
        ]
        yield items, str(next(self._versions))

    async def apply(self, manifest: Manifest) -> Manifest:
        where = coordinates(manifest)
        await self._before("patch", where)
        self._demand(where, manifest["metadata"])
        ours = copy.deepcopy(manifest)
        for precondition in ("uid", "resourceVersion"):
            ours["metadata"].pop(precondition, None)
        live = _without(self.objects.get(where, {}), self._applied.get(where, {}))
        self._applied[where] = ours
        merged = _merged(live, ours)
        self.admit(merged)
        return await self._after("patch", where, merged)

    async def patch(self, patch: Manifest) -> Manifest:
        where = coordinates(patch)
        await self._before("patch", where)
        if where not in self.objects:
            raise NotFound("not found", status=404, reason="NotFound")
        self._demand(where, patch["metadata"])
        merged = merge_patched(self.objects[where], patch)
        self.admit(merged)
        return await self._after("patch", where, merged)

    async def apply_status(self, manifest: Manifest) -> Manifest:
        where = coordinates(manifest)
        await self._before("patch status", where)
        if where not in self.objects:
            raise NotFound("not found", status=404, reason="NotFound")
        self._demand(where, manifest["metadata"])
        live = {**self.objects[where], "status": copy.deepcopy(manifest["status"])}
        return await self._after("patch status", where, live)

    async def delete(
        self, kind: Kind, *, namespace: str | None, name: str, uid: str, resource_version: str = ""
    ) -> None:
        where = (kind.kind, namespace or "", name)
        await self._before("delete", where)
        live = self.objects.get(where)
        if live is None:
            return
        if live["metadata"]["uid"] != uid or resource_version not in ("", live["metadata"]["resourceVersion"]):
            raise Conflict("precondition failed", status=409, reason="Conflict")
        self.remove(*where)
        await self.done("delete", where)

    async def create_event(self, event: Manifest) -> None:
        await self.fault("create", ("Event", event["metadata"]["namespace"], event["metadata"]["name"]))
        self.events.append(event)

    async def serves(self, kind: Kind) -> bool:
        await self.fault("discover", (kind.kind, "", ""))
        return kind not in self.unserved

    async def server_version(self) -> tuple[int, int]:
        return self.version

    # ------------------------------------------------------------------ ClusterReader

    async def watch(
        self,
        kind: Kind,
        *,
        since: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[tuple[str, Manifest]]:
        """Never ends by itself; `watching` counts the watches that are open, by path.

        What leaves the selection is DELETED, as it was before, at the version of the change: a real API server does so.
        """
        path, read = f"{kind.path()} {kind.part}".rstrip(), 0
        selected: dict[Coordinates, Manifest] = {}
        self.watching[path] += 1
        try:
            while True:
                for event_type, manifest in self.happened[read:]:
                    if (
                        self.late
                        and (wait := self._happened_at[read] + self.late - asyncio.get_running_loop().time()) > 0
                    ):
                        await asyncio.sleep(wait)
                    read += 1
                    home = manifest["metadata"].get("namespace", "")
                    if not _is_of(manifest, kind) or namespace not in (None, home):
                        continue
                    event = _as_selected(event_type, manifest, selected, label_selector, field_selector)
                    if event is not None and int(event[1]["metadata"]["resourceVersion"]) > int(since):
                        yield event
                if read < len(self.happened):
                    continue  # it happened while an event was taken
                if self._news.is_set():
                    self._news = asyncio.Event()
                await self._news.wait()
        finally:
            self.watching[path] -= 1

    async def discovered(self, path: str) -> Manifest:
        """Every kind that an audit reads is served, in one document."""
        assert path == "/apis"
        groups: dict[str, list[Manifest]] = {}
        for kind in KINDS:
            *group, version, plural = kind.TYPE.split("/")
            served = {"resource": plural, "responseKind": {"kind": kind.KIND}}
            groups.setdefault("/".join(group), []).append({"version": version, "resources": [served]})
        items = [{"metadata": {"name": name}, "versions": versions} for name, versions in groups.items() if name]
        return {"kind": "APIGroupDiscoveryList", "items": items}

    # ------------------------------------------------------------------ what others do

    def put(self, manifest: Manifest, *, seen: bool = True) -> Manifest:
        """Another client creates an object or replaces it; with `seen=False` the watch misses it."""
        where = coordinates(manifest)
        return self._store(where, copy.deepcopy(manifest), seen=seen)

    def edit(self, where: Coordinates, change: Callable[[Manifest], object], *, seen: bool = True) -> Manifest:
        """Another client edits an object."""
        edited = copy.deepcopy(self.objects[where])
        change(edited)
        return self._store(where, edited, seen=seen)

    def remove(self, kind: str, namespace: str, name: str, *, seen: bool = True) -> None:
        """Another client deletes an object."""
        gone = self.objects.pop((kind, namespace, name))
        self._applied.pop((kind, namespace, name), None)
        gone["metadata"]["resourceVersion"] = str(next(self._versions))
        if seen:
            self._emit("DELETED", gone)

    def of_kind(self, kind: str) -> list[Manifest]:
        """The objects of a kind, by name."""
        return [manifest for (name, _, _), manifest in sorted(self.objects.items()) if name == kind]

    # ------------------------------------------------------------------ inside

    async def _before(self, verb: str, where: Coordinates) -> None:
        self.writes.append((verb, where))
        await asyncio.sleep(0.001)
        await self.fault(verb, where)

    async def _after(self, verb: str, where: Coordinates, live: Manifest) -> Manifest:
        stored = self._store(where, live)
        await self.done(verb, where)
        return copy.deepcopy(stored)

    def _demand(self, where: Coordinates, metadata: Manifest) -> None:
        live = self.objects.get(where, {}).get("metadata", {})
        if "resourceVersion" in metadata and live and live["resourceVersion"] != metadata["resourceVersion"]:
            raise Conflict("the object has been modified", status=409, reason="Conflict")
        if "uid" in metadata and live.get("uid") != metadata["uid"]:
            raise Conflict("uid mismatch", status=409, reason="Conflict")

    def _store(self, where: Coordinates, manifest: Manifest, *, seen: bool = True) -> Manifest:
        before = self.objects.get(where)
        old = before["metadata"] if before else {}
        metadata = manifest["metadata"]
        metadata["uid"] = old.get("uid") or f"uid-{next(self._uids)}"
        metadata["creationTimestamp"] = old.get("creationTimestamp") or self._creation_time()
        same_spec = before is not None and before.get("spec") == manifest.get("spec")
        metadata["generation"] = old.get("generation", 0) + (0 if same_spec else 1)
        metadata["resourceVersion"] = old.get("resourceVersion", "0")
        if before == manifest:
            return before
        metadata["resourceVersion"] = str(next(self._versions))
        self.objects[where] = manifest
        if seen:
            self._emit("MODIFIED" if before else "ADDED", copy.deepcopy(manifest))
        return manifest

    def _creation_time(self) -> str:
        """Of an object that is stored for the first time, as in `metadata.creationTimestamp`."""
        return "2026-11-21T12:00:00Z"

    def _emit(self, event_type: str, manifest: Manifest) -> None:
        self.happened.append((event_type, manifest))
        self._happened_at.append(_now())
        self._news.set()
        if manifest["kind"] not in BY_KIND or self.see is _unwatched:
            return
        if self.late:
            asyncio.get_running_loop().call_later(self.late, lambda: self.see(manifest, gone=event_type == "DELETED"))
        else:
            self.see(manifest, gone=event_type == "DELETED")


def coordinates(manifest: Manifest) -> Coordinates:
    kind, metadata = BY_KIND.get(manifest["kind"]), manifest["metadata"]
    is_clusters = kind is not None and not kind.namespaced
    return (manifest["kind"], "" if is_clusters else metadata.get("namespace", ""), metadata["name"])


def matches_labels(manifest: Manifest, selector: str) -> bool:
    labels = manifest["metadata"].get("labels") or {}
    terms = (term.partition("=") for term in selector.split(",") if term)
    return all((labels.get(key.rstrip("!")) == value) is not key.endswith("!") for key, _, value in terms)


def matches_fields(manifest: Manifest, selector: str) -> bool:
    """Whether every `path=value` and `path!=value` holds; what is not set is ""."""
    for term in filter(None, selector.split(",")):
        path, _, value = term.partition("=")
        field_value: Any = manifest
        for part in path.rstrip("!").split("."):
            field_value = (field_value or {}).get(part, "")
        if (str(field_value) == value) is path.endswith("!"):
            return False
    return True


def _is_of(manifest: Manifest, kind: Kind) -> bool:
    """NetworkPolicies are a kind of Kubernetes and one of Calico. Events are served in both of their groups."""
    group, _, _ = manifest.get("apiVersion", kind.api_version).rpartition("/")
    return manifest["kind"] == kind.kind and (kind.kind == "Event" or group == kind.group)


def _as_selected(
    event_type: str, manifest: Manifest, selected: dict[Coordinates, Manifest], labels: str, fields: str
) -> tuple[str, Manifest] | None:
    """The event that a watch with these selectors brings; `selected`: objects that it has shown, by coordinates."""
    before = selected.pop(coordinates(manifest), None)
    matches = matches_labels(manifest, labels) and matches_fields(manifest, fields)
    if matches and event_type != "DELETED":
        selected[coordinates(manifest)] = manifest
        return "MODIFIED" if before else "ADDED", copy.deepcopy(manifest)
    if not before and not matches:
        return None
    gone = copy.deepcopy(before or manifest)
    gone["metadata"]["resourceVersion"] = manifest["metadata"]["resourceVersion"]
    return "DELETED", gone


def _now() -> float:
    """The time of the loop; 0 where none runs yet."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0


def _name_of(kind: Kind) -> str:
    return f"{kind.plural}.{kind.version}" if kind in ROUTES else f"{kind.part} {kind.plural}".lstrip()


def _merged(live: Any, ours: Any) -> Any:
    """Maps are merged, everything else is replaced."""
    if isinstance(live, dict) and isinstance(ours, dict):
        return {**live, **{key: _merged(live.get(key), value) for key, value in ours.items()}}
    return copy.deepcopy(ours)


def merge_patched(live: Any, patch: Any) -> Any:
    """RFC 7386: null removes a key, a list is replaced."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    live_fields = live if isinstance(live, dict) else {}
    result = {key: value for key, value in live_fields.items() if key not in patch}
    return result | {
        key: merge_patched(live_fields.get(key), value) for key, value in patch.items() if value is not None
    }


def _without(live: Any, dropped: Any) -> Any:
    """What remains of the live object when what we applied last time is taken out."""
    if not isinstance(live, dict):
        return live
    remaining_fields = {key: _without(value, dropped[key]) if key in dropped else value for key, value in live.items()}
    return {
        key: value
        for key, value in remaining_fields.items()
        if key not in dropped or (isinstance(dropped[key], dict) and value)
    }

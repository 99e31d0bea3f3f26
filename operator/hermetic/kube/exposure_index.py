"""Index of the objects, of any owner, that lead traffic to a model's pods; few fields of each are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.kinds import BY_API_VERSION, BY_KIND, ENDPOINT_SLICE, GATEWAY, ROUTES, SERVICE, Kind
from hermetic.kube.owners import Key
from hermetic.objects.names import MODEL_LABEL, Owner
from hermetic.plan.exposing_objects import ExposingObject, Name, address_of, exposing_object
from hermetic.plan.snapshot import Exposure

EXPOSING_KINDS = frozenset((*BY_API_VERSION.values(), *(BY_KIND[kind.kind] for kind in ROUTES)))
SMALL = 2**10
ROOM = 2**20
"""Bytes that the objects larger than SMALL may take together, per namespace."""
DEEPEST = 4
"""How many ExternalName references are followed in a chain."""


class ExposureIndex:
    """Services, EndpointSlices, Ingresses, Gateways and routes by the models they lead to. Not thread-safe; no I/O."""

    def __init__(self, policy: Configuration) -> None:
        self._policy = policy
        self._known: dict[Kind, dict[Name, tuple[str, int, ExposingObject]]] = defaultdict(dict)
        self._services: dict[str, dict[str, ExposingObject]] = defaultdict(dict)
        self._selecting: dict[tuple[str, tuple[str, str] | None], set[str]] = defaultdict(set)
        self._leading_to: dict[Name, set[tuple[Kind, Name]]] = defaultdict(set)
        self._vague: dict[str, set[tuple[Kind, Name]]] = defaultdict(set)
        self._pods: dict[str, tuple[Key, Mapping[str, str], tuple[str, ...]]] = {}
        self._pods_of: dict[Key, set[str]] = defaultdict(set)
        self._keys_in: dict[str, set[Key]] = defaultdict(set)
        self._at: dict[str, tuple[set[str], set[Name]]] = {}
        self._taken: dict[str, int] = defaultdict(int)
        self._over_limit: set[Name] = set()

    # ------------------------------------------------------------------ updates

    def put(self, manifest: Mapping[str, Any]) -> frozenset[Key]:
        """Add or update an object; returns the models to which it leads or led."""
        kind, metadata = _kind(manifest), manifest["metadata"]
        name, version = (metadata.get("namespace") or "", metadata["name"]), int(metadata["resourceVersion"])
        known = self._known[kind].get(name)
        if known is not None and known[1] >= version:
            return frozenset()
        found = self._within_bounds(exposing_object(manifest, self._policy), known[2] if known is not None else None)
        if known is not None and known[2] == found:
            self._known[kind][name] = (metadata["uid"], version, found)
            return frozenset()
        before = self._models(kind, known[2]) if known is not None else frozenset()
        self._out(kind, name)
        self._known[kind][name] = (metadata["uid"], version, found)
        self._in(kind, name, found)
        return before | self._models(kind, found)

    def drop(self, manifest: Mapping[str, Any]) -> frozenset[Key]:
        """Remove a deleted object; returns the models to which it led."""
        kind, metadata = _kind(manifest), manifest["metadata"]
        name = (metadata.get("namespace") or "", metadata["name"])
        known = self._known[kind].get(name)
        if known is None or known[0] != metadata["uid"] or known[1] > int(metadata["resourceVersion"]):
            return frozenset()
        return self._forget(kind, name)

    def sweep(self, kind: Kind, listed: set[str], version: int) -> frozenset[Key]:
        """After a full list at `version`: remove objects that it lacks, unless they are newer."""
        known = self._known[kind].items()
        stale = [name for name, (uid, since, _) in known if uid not in listed and since <= version]
        return frozenset(key for name in stale for key in self._forget(kind, name))

    def put_pod(self, pod: Mapping[str, Any], key: Key) -> None:
        """Add or update a pod: objects that select it or name its addresses lead to its model."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        uid = metadata["uid"]
        if status.get("phase") in ("Succeeded", "Failed"):  # its address may be another pod's by now
            self.drop_pod(uid)
            return
        given = (status.get("podIP"), *(one.get("ip") for one in status.get("podIPs") or ()))
        addresses = tuple(sorted({address_of(address) for address in given if address}))
        if uid in self._pods and self._pods[uid] == (key, metadata.get("labels") or {}, addresses):
            return
        self.drop_pod(uid)
        self._pods[uid] = (key, dict(metadata.get("labels") or {}), addresses)
        self._pods_of[key].add(uid)
        self._keys_in[key[0]].add(key)
        for address in addresses:
            if address not in self._at:
                self._at[address] = (set(), self._slices_with(address))
            self._at[address][0].add(uid)

    def drop_pod(self, uid: str) -> None:
        known = self._pods.pop(uid, None)
        if known is None:
            return
        self._pods_of[known[0]].discard(uid)
        if not self._pods_of[known[0]]:
            del self._pods_of[known[0]]
            self._keys_in[known[0][0]].discard(known[0])
        for address in known[2]:
            here, _ = self._at[address]  # pods of the host's network share its address
            here.discard(uid)
            if not here:
                del self._at[address]

    # ------------------------------------------------------------------ queries

    def into(self, owner: Owner, templates: Iterable[Mapping[str, str]] = ()) -> tuple[Exposure, ...]:
        """Everything that leads to a model's pods and is not known to be private; sorted."""
        services = self._services_of(owner, tuple(templates))
        found = {self._exposure_of(one) for one in services.values() if one.opens and not _is_own(one, owner)}
        found |= {self._exposure_of(one) for one in self._slices_of(owner)}
        exposing = {where for name in services for where in self._leading_to.get(name, ())}
        for kind, name in sorted(exposing | self._vague.get(owner.namespace, set()), key=str):
            one = self._known[kind][name][2]
            why = self._why_open(one)
            if kind not in (SERVICE, ENDPOINT_SLICE) and why:
                found.add(self._exposure_of(one, why))
        return tuple(sorted(found))

    def _services_of(self, owner: Owner, templates: tuple[Mapping[str, str], ...]) -> dict[Name, ExposingObject]:
        """Every Service that leads to the model's pods: by its selector, by an EndpointSlice or by an ExternalName."""
        labels = [*templates, *(self._pods[uid][1] for uid in self._pods_of.get(owner.key, ()))]
        found = {
            (owner.namespace, name): one
            for name, one in self._candidates(owner, labels)
            if _is_own(one, owner) or one.everything or any(_selects(one, some) for some in labels)
        }
        slices = self._slices_with_pods(owner.key) | self._over_limit
        names = {name for where in slices for name in self._slice(where).services}
        for _ in range(DEEPEST):
            for name in names:
                if (one := self._services.get(name[0], {}).get(name[1])) is not None:
                    found.setdefault(name, one)
            aliases = {where for name in found for kind, where in self._leading_to.get(name, ()) if kind is SERVICE}
            if not (names := aliases - found.keys()):
                break
        return found

    def _candidates(self, owner: Owner, labels: list[Mapping[str, str]]) -> Iterator[tuple[str, ExposingObject]]:
        """The Services of the namespace that may lead to pods with one of these labels; not all of them do."""
        services = self._services.get(owner.namespace, {})
        terms = {None, *(term for some in labels for term in some.items())}
        names = {owner.name}.union(*(self._selecting.get((owner.namespace, term), ()) for term in terms))
        yield from ((name, services[name]) for name in names if name in services)

    def _slices_of(self, owner: Owner) -> Iterator[ExposingObject]:
        """Unmanaged EndpointSlices with the model's pods that are in its namespace or known to be open."""
        for where in self._slices_with_pods(owner.key) | self._over_limit:
            one = self._slice(where)
            if one.opens or where[0] == owner.namespace:
                yield one

    def _slices_with_pods(self, key: Key) -> set[Name]:
        pods = (self._pods[uid][2] for uid in self._pods_of.get(key, ()))
        found = {where for addresses in pods for one in addresses for where in self._at[one][1]}
        return {where for where in found if not self._is_kept(self._slice(where))}

    def _is_kept(self, one: ExposingObject) -> bool:
        """Whether the EndpointSlice controller manages it: then it adds nothing to the selector of its Service."""
        if not one.kept:
            return False
        behind = [self._services.get(namespace, {}).get(name) for namespace, name in one.services]
        return all(service is None or service.selector or service.everything for service in behind)

    def _why_open(self, one: ExposingObject) -> str:
        if one.gateways is None or one.opens:
            return one.opens
        for name in sorted(one.gateways):
            gateway = self._known[GATEWAY].get(name)
            why = gateway[2].opens if gateway is not None else "is not there, or not to be seen"
            if why:
                return f"is served by Gateway '{name[0]}/{name[1]}', which {why}"
        return ""

    @staticmethod
    def _exposure_of(one: ExposingObject, why: str = "") -> Exposure:
        over_limit = "names more addresses than are read" if one.everything and not one.addresses else ""
        slices = (
            ", ".join(word for word in (one.opens, over_limit) if word)
            if one.kind == ENDPOINT_SLICE.kind
            else one.opens
        )
        words = why or slices or "was not made by the controller of EndpointSlices"
        return Exposure(one.kind, one.namespace, one.name, words, one.writer)

    # ------------------------------------------------------------------ models concerned

    def _models(self, kind: Kind, one: ExposingObject) -> frozenset[Key]:
        if kind is GATEWAY:
            where = (one.namespace, one.name)
            routes = (known[2] for of in self._known for known in self._known[of].values() if known[2].gateways)
            return frozenset(key for r in routes if where in (r.gateways or ()) for key in self._models(SERVICE, r))
        if kind is ENDPOINT_SLICE and self._is_kept(one):
            return frozenset()
        if kind is ENDPOINT_SLICE:
            return frozenset(self._pods_of) if one.everything else self._holding(one)
        return frozenset(self._behind(one, DEEPEST))

    def _behind(self, one: ExposingObject, depth: int) -> Iterator[Key]:
        """The models whose pods an object leads to."""
        if (model := dict(one.selector or ()).get(MODEL_LABEL)) is not None:
            yield (one.namespace, model)
        elif one.everything:
            yield from self._models_in(one.namespace)
        elif one.selector:
            keys = self._keys_in.get(one.namespace, ())
            yield from (key for key in keys if any(_selects(one, self._pods[uid][1]) for uid in self._pods_of[key]))
        if one.kind == SERVICE.kind:
            for kind, where in self._leading_to.get((one.namespace, one.name), ()):
                if kind is ENDPOINT_SLICE:
                    yield from self._holding(self._slice(where))
        for namespace, name in one.services if depth else ():
            if (service := self._services.get(namespace, {}).get(name)) is not None:
                yield from self._behind(service, depth - 1)

    def _models_in(self, namespace: str) -> frozenset[Key]:
        """Every model of a namespace that has pods, or a Service for them."""
        services = self._services.get(namespace, {}).values()
        named = (dict(service.selector or ()).get(MODEL_LABEL) for service in services)
        return frozenset({*self._keys_in.get(namespace, ()), *((namespace, name) for name in named if name)})

    def _holding(self, one: ExposingObject) -> frozenset[Key]:
        if not one.addresses:
            return frozenset()
        here = (self._at[address][0] for address in one.addresses.split(",") if address in self._at)
        return frozenset(self._pods[uid][0] for uids in here for uid in uids)

    # ------------------------------------------------------------------ bookkeeping

    def _within_bounds(self, found: ExposingObject, known: ExposingObject | None) -> ExposingObject:
        """The object; without its details where they would exceed ROOM for its namespace."""
        taken = self._taken.get(found.namespace, 0) - (_large(known) if known is not None else 0)
        return found if taken + _large(found) <= ROOM else found.without_details()

    def _in(self, kind: Kind, name: Name, one: ExposingObject) -> None:
        if kind is SERVICE:
            self._services[name[0]][name[1]] = one
            if one.selector or one.everything:
                self._selecting[name[0], _indexed_term(one)].add(name[1])
        for service in one.services:
            self._leading_to[service].add((kind, name))
        if one.everything and kind is ENDPOINT_SLICE and not one.kept:
            self._over_limit.add(name)
        elif one.everything and kind is not SERVICE:
            self._vague[name[0]].add((kind, name))
        self._taken[name[0]] += _large(one)
        for address in one.addresses.split(",") if one.addresses else ():
            if address in self._at:
                self._at[address][1].add(name)

    def _out(self, kind: Kind, name: Name) -> None:
        known = self._known[kind].pop(name, None)
        if known is None:
            return
        if kind is SERVICE:
            self._services[name[0]].pop(name[1], None)
            term = (name[0], _indexed_term(known[2]))
            self._selecting[term].discard(name[1])
            if not self._selecting[term]:
                del self._selecting[term]
        for service in known[2].services:
            self._leading_to[service].discard((kind, name))
            if not self._leading_to[service]:
                del self._leading_to[service]
        self._vague[name[0]].discard((kind, name))
        if kind is ENDPOINT_SLICE:
            self._over_limit.discard(name)
        self._taken[name[0]] -= _large(known[2])
        if not self._taken[name[0]]:
            del self._taken[name[0]]
        for address in known[2].addresses.split(",") if known[2].addresses else ():
            if address in self._at:
                self._at[address][1].discard(name)

    def _forget(self, kind: Kind, name: Name) -> frozenset[Key]:
        concerned = self._models(kind, self._known[kind][name][2])
        self._out(kind, name)
        return concerned

    def _slice(self, name: Name) -> ExposingObject:
        return self._known[ENDPOINT_SLICE][name][2]

    def _slices_with(self, address: str) -> set[Name]:
        return {name for name, known in self._known[ENDPOINT_SLICE].items() if f",{address}," in known[2].addresses}


def _kind(manifest: Mapping[str, Any]) -> Kind:
    return BY_API_VERSION.get((manifest.get("apiVersion", ""), manifest["kind"]), BY_KIND[manifest["kind"]])


def _large(one: ExposingObject) -> int:
    return one.size if one.size > SMALL else 0


def _indexed_term(one: ExposingObject) -> tuple[str, str] | None:
    """The term of the selector by which a Service is found; None for one whose pods are not known."""
    terms = one.selector or ()
    return next((term for term in terms if term[0] == MODEL_LABEL), next(iter(terms), None))


def _selects(one: ExposingObject, labels: Mapping[str, str]) -> bool:
    return one.selector is not None and all(labels.get(name) == value for name, value in one.selector)


def _is_own(one: ExposingObject, owner: Owner) -> bool:
    return (one.namespace, one.name, one.owner) == (owner.namespace, owner.name, owner.uid)

"""Index of the objects, of any owner, that lead traffic to a model's pods; few fields of each are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.api.gateway import DataPlane
from hermetic.kinds import BY_API_VERSION, BY_KIND, ENDPOINT_SLICE, GATEWAY, HTTP_ROUTE, ROUTES, SERVICE, Kind
from hermetic.kube.owners import Key
from hermetic.objects.names import MODEL_LABEL, Owner
from hermetic.plan.exposure.exposing_objects import ExposingObject, Name, address_of, exposing_object
from hermetic.plan.snapshot import Exposure

EXPOSING_KINDS = frozenset((*BY_API_VERSION.values(), *(BY_KIND[kind.kind] for kind in ROUTES)))
SMALL = 2**10
ROOM = 2**20
"""Bytes that the objects larger than SMALL may take together, per namespace."""
DEEPEST = 4
"""How many ExternalName references are followed in a chain."""


class ExposureIndex:
    """Services, EndpointSlices, Ingresses, Gateways and routes by the models they lead to. Not thread-safe; no I/O."""

    def __init__(
        self, policy: Configuration, users_of: Callable[[Name], frozenset[Key]] = lambda _: frozenset()
    ) -> None:
        """`users_of`: the models that ask for a Gateway."""
        self._policy = policy
        self._users_of = users_of
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
        previous_entry = self._known[kind].get(name)
        if previous_entry is not None and previous_entry[1] >= version:
            return frozenset()
        exposer = self._within_bounds(
            exposing_object(manifest, self._policy), previous_entry[2] if previous_entry is not None else None
        )
        if previous_entry is not None and previous_entry[2] == exposer:
            self._known[kind][name] = (metadata["uid"], version, exposer)
            return frozenset()
        before = self._models(kind, previous_entry[2]) if previous_entry is not None else frozenset()
        self._out(kind, name)
        self._known[kind][name] = (metadata["uid"], version, exposer)
        self._in(kind, name, exposer)
        return before | self._models(kind, exposer)

    def drop(self, manifest: Mapping[str, Any]) -> frozenset[Key]:
        """Remove a deleted object; returns the models to which it led."""
        kind, metadata = _kind(manifest), manifest["metadata"]
        name = (metadata.get("namespace") or "", metadata["name"])
        entry = self._known[kind].get(name)
        if entry is None or entry[0] != metadata["uid"] or entry[1] > int(metadata["resourceVersion"]):
            return frozenset()
        return self._forget(kind, name)

    def sweep(self, kind: Kind, listed: set[str], version: int) -> frozenset[Key]:
        """After a full list at `version`: remove objects that it lacks, unless they are newer."""
        entries = self._known[kind].items()
        stale = [name for name, (uid, since, _) in entries if uid not in listed and since <= version]
        return frozenset(key for name in stale for key in self._forget(kind, name))

    def put_pod(self, pod: Mapping[str, Any], key: Key) -> None:
        """Add or update a pod: objects that select it or name its addresses lead to its model."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        uid = metadata["uid"]
        if status.get("phase") in ("Succeeded", "Failed"):  # its address may be another pod's by now
            self.drop_pod(uid)
            return
        pod_addresses = (status.get("podIP"), *(pod_ip.get("ip") for pod_ip in status.get("podIPs") or ()))
        addresses = tuple(sorted({address_of(address) for address in pod_addresses if address}))
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
        pod_entry = self._pods.pop(uid, None)
        if pod_entry is None:
            return
        self._pods_of[pod_entry[0]].discard(uid)
        if not self._pods_of[pod_entry[0]]:
            del self._pods_of[pod_entry[0]]
            self._keys_in[pod_entry[0][0]].discard(pod_entry[0])
        for address in pod_entry[2]:
            here, _ = self._at[address]  # pods of the host's network share its address
            here.discard(uid)
            if not here:
                del self._at[address]

    # ------------------------------------------------------------------ queries

    def into(
        self, owner: Owner, templates: Iterable[Mapping[str, str]] = (), gateway: Name | None = None
    ) -> tuple[Exposure, ...]:
        """Everything that leads to a model's pods and is not known to be private; sorted.

        Its own route by the `gateway` that it asks for is left out: what is known of that Gateway is told by itself.
        """
        services = self._services_of(owner, tuple(templates))
        exposures = {
            self._exposure_of(service) for service in services.values() if service.opens and not _is_own(service, owner)
        }
        exposures |= {self._exposure_of(endpoint_slice) for endpoint_slice in self._slices_of(owner)}
        exposing = {where for name in services for where in self._leading_to.get(name, ())}
        for kind, name in sorted(exposing | self._vague.get(owner.namespace, set()), key=str):
            exposer = self._known[kind][name][2]
            why = "" if _is_own_route(exposer, owner, gateway) else self._why_open(exposer)
            if kind not in (SERVICE, ENDPOINT_SLICE) and why:
                exposures.add(self._exposure_of(exposer, why))
        return tuple(sorted(exposures))

    def exposed_by(self, gateway: Name) -> str:
        """What may lead to the pods of an allowed Gateway and is not private, and why; "" for nothing."""
        planes = [allowed.data_plane for allowed in self._policy.gateways if allowed.key == gateway]
        for plane in planes:
            for name, service in sorted(self._services.get(plane.namespace, {}).items()):
                if not _leads_to(service, plane):
                    continue
                is_known = _selects_by_known_label(service, plane)
                if service.opens:
                    why = service.opens if is_known else f"{service.opens}, and selects by none of their known labels"
                    return f"has the Service '{plane.namespace}/{name}' in front of its pods, which {why}"
                if is_known and (exposure := self._exposure_of_service((plane.namespace, name))):
                    return f"has the {exposure}"
        return ""

    def _exposure_of_service(self, service: Name) -> str:
        """An Ingress or a route to a Service that is not private, and why; "" for none."""
        for kind, where in sorted(self._leading_to.get(service, ()), key=str):
            why = "" if kind in (SERVICE, ENDPOINT_SLICE) else self._opens_by_itself(self._known[kind][where][2])
            if why:
                return f"{kind.kind} '{where[0]}/{where[1]}' in front of its Service '{service[1]}', which {why}"
        return ""

    def _services_of(self, owner: Owner, templates: tuple[Mapping[str, str], ...]) -> dict[Name, ExposingObject]:
        """Every Service that leads to the model's pods: by its selector, by an EndpointSlice or by an ExternalName."""
        labels = [*templates, *(self._pods[uid][1] for uid in self._pods_of.get(owner.key, ()))]
        services = {
            (owner.namespace, name): service
            for name, service in self._candidates(owner, labels)
            if _is_own(service, owner) or service.everything or any(_selects(service, some) for some in labels)
        }
        slices = self._slices_with_pods(owner.key) | self._over_limit
        names = {name for where in slices for name in self._slice(where).services}
        for _ in range(DEEPEST):
            for name in names:
                if (service := self._services.get(name[0], {}).get(name[1])) is not None:
                    services.setdefault(name, service)
            aliases = {where for name in services for kind, where in self._leading_to.get(name, ()) if kind is SERVICE}
            if not (names := aliases - services.keys()):
                break
        return services

    def _candidates(self, owner: Owner, labels: list[Mapping[str, str]]) -> Iterator[tuple[str, ExposingObject]]:
        """The Services of the namespace that may lead to pods with one of these labels; not all of them do."""
        services = self._services.get(owner.namespace, {})
        terms = {None, *(term for some in labels for term in some.items())}
        names = {owner.name}.union(*(self._selecting.get((owner.namespace, term), ()) for term in terms))
        yield from ((name, services[name]) for name in names if name in services)

    def _slices_of(self, owner: Owner) -> Iterator[ExposingObject]:
        """Unmanaged EndpointSlices with the model's pods that are in its namespace or known to be open."""
        for where in self._slices_with_pods(owner.key) | self._over_limit:
            endpoint_slice = self._slice(where)
            if endpoint_slice.opens or where[0] == owner.namespace:
                yield endpoint_slice

    def _slices_with_pods(self, key: Key) -> set[Name]:
        pods = (self._pods[uid][2] for uid in self._pods_of.get(key, ()))
        slices = {where for addresses in pods for address in addresses for where in self._at[address][1]}
        return {where for where in slices if not self._is_kept(self._slice(where))}

    def _is_kept(self, endpoint_slice: ExposingObject) -> bool:
        """Whether the EndpointSlice controller manages it: then it adds nothing to the selector of its Service."""
        if not endpoint_slice.kept:
            return False
        behind = [self._services.get(namespace, {}).get(name) for namespace, name in endpoint_slice.services]
        return all(service is None or service.selector or service.everything for service in behind)

    def _why_open(self, exposer: ExposingObject) -> str:
        """Why an Ingress or a route is not private, what leads to the pods of its Gateways among it; "" if it is."""
        if why := self._opens_by_itself(exposer):
            return why
        for name in sorted(exposer.gateways or ()):
            if why := self.exposed_by(name):
                return f"is served by Gateway '{name[0]}/{name[1]}', which {why}"
        return ""

    def _opens_by_itself(self, exposer: ExposingObject) -> str:
        """The same by the object and by the addresses of its Gateways."""
        if exposer.gateways is None or exposer.opens:
            return exposer.opens
        for name in sorted(exposer.gateways):
            gateway = self._known[GATEWAY].get(name)
            why = gateway[2].opens if gateway is not None else "is not there, or not to be seen"
            if why:
                return f"is served by Gateway '{name[0]}/{name[1]}', which {why}"
        return ""

    @staticmethod
    def _exposure_of(exposer: ExposingObject, why: str = "") -> Exposure:
        over_limit = "names more addresses than are read" if exposer.everything and not exposer.addresses else ""
        slices = (
            ", ".join(word for word in (exposer.opens, over_limit) if word)
            if exposer.kind == ENDPOINT_SLICE.kind
            else exposer.opens
        )
        explanation = why or slices or "was not made by the controller of EndpointSlices"
        return Exposure(exposer.kind, exposer.namespace, exposer.name, explanation, exposer.writer)

    # ------------------------------------------------------------------ models concerned

    def _models(self, kind: Kind, exposer: ExposingObject) -> frozenset[Key]:
        if kind is GATEWAY:
            routes = self._routes_by((exposer.namespace, exposer.name))
            return frozenset(key for of, route in routes for key in self._models(of, route))
        if kind is ENDPOINT_SLICE and self._is_kept(exposer):
            return frozenset()
        if kind is ENDPOINT_SLICE:
            return frozenset(self._pods_of) if exposer.everything else self._holding(exposer)
        named = (self._services.get(namespace, {}).get(name) for namespace, name in exposer.services)
        services = [exposer] if kind is SERVICE else [service for service in named if service is not None]
        fronts = {
            allowed.key
            for allowed in self._policy.gateways
            if any(_leads_to(service, allowed.data_plane) for service in services)
        }
        models = set(self._behind(exposer, DEEPEST)).union(*map(self._users_of, fronts))
        for gateway in fronts:
            models.update(*(self._behind(route, DEEPEST) for _, route in self._routes_by(gateway)))
        return frozenset(models)

    def _routes_by(self, gateway: Name) -> list[tuple[Kind, ExposingObject]]:
        """The routes that name a Gateway."""
        entries = ((of, entry[2]) for of in self._known for entry in self._known[of].values())
        return [(of, exposer) for of, exposer in entries if gateway in (exposer.gateways or ())]

    def _behind(self, exposer: ExposingObject, depth: int) -> Iterator[Key]:
        """The models whose pods an object leads to."""
        if (model := dict(exposer.selector or ()).get(MODEL_LABEL)) is not None:
            yield (exposer.namespace, model)
        elif exposer.everything:
            yield from self._models_in(exposer.namespace)
        elif exposer.selector:
            keys = self._keys_in.get(exposer.namespace, ())
            yield from (key for key in keys if any(_selects(exposer, self._pods[uid][1]) for uid in self._pods_of[key]))
        if exposer.kind == SERVICE.kind:
            for kind, where in self._leading_to.get((exposer.namespace, exposer.name), ()):
                if kind is ENDPOINT_SLICE:
                    yield from self._holding(self._slice(where))
        for namespace, name in exposer.services if depth else ():
            if (service := self._services.get(namespace, {}).get(name)) is not None:
                yield from self._behind(service, depth - 1)

    def _models_in(self, namespace: str) -> frozenset[Key]:
        """Every model of a namespace that has pods, or a Service for them."""
        services = self._services.get(namespace, {}).values()
        named = (dict(service.selector or ()).get(MODEL_LABEL) for service in services)
        return frozenset({*self._keys_in.get(namespace, ()), *((namespace, name) for name in named if name)})

    def _holding(self, endpoint_slice: ExposingObject) -> frozenset[Key]:
        if not endpoint_slice.addresses:
            return frozenset()
        here = (self._at[address][0] for address in endpoint_slice.addresses.split(",") if address in self._at)
        return frozenset(self._pods[uid][0] for uids in here for uid in uids)

    # ------------------------------------------------------------------ bookkeeping

    def _within_bounds(self, exposer: ExposingObject, previous: ExposingObject | None) -> ExposingObject:
        """The object; without its details where they would exceed ROOM for its namespace."""
        used_bytes = self._taken.get(exposer.namespace, 0) - (_large(previous) if previous is not None else 0)
        return exposer if used_bytes + _large(exposer) <= ROOM else exposer.without_details()

    def _in(self, kind: Kind, name: Name, exposer: ExposingObject) -> None:
        if kind is SERVICE:
            self._services[name[0]][name[1]] = exposer
            if exposer.selector or exposer.everything:
                self._selecting[name[0], _indexed_term(exposer)].add(name[1])
        for service in exposer.services:
            self._leading_to[service].add((kind, name))
        if exposer.everything and kind is ENDPOINT_SLICE and not exposer.kept:
            self._over_limit.add(name)
        elif exposer.everything and kind is not SERVICE:
            self._vague[name[0]].add((kind, name))
        self._taken[name[0]] += _large(exposer)
        for address in exposer.addresses.split(",") if exposer.addresses else ():
            if address in self._at:
                self._at[address][1].add(name)

    def _out(self, kind: Kind, name: Name) -> None:
        entry = self._known[kind].pop(name, None)
        if entry is None:
            return
        if kind is SERVICE:
            self._services[name[0]].pop(name[1], None)
            term = (name[0], _indexed_term(entry[2]))
            self._selecting[term].discard(name[1])
            if not self._selecting[term]:
                del self._selecting[term]
        for service in entry[2].services:
            self._leading_to[service].discard((kind, name))
            if not self._leading_to[service]:
                del self._leading_to[service]
        self._vague[name[0]].discard((kind, name))
        if kind is ENDPOINT_SLICE:
            self._over_limit.discard(name)
        self._taken[name[0]] -= _large(entry[2])
        if not self._taken[name[0]]:
            del self._taken[name[0]]
        for address in entry[2].addresses.split(",") if entry[2].addresses else ():
            if address in self._at:
                self._at[address][1].discard(name)

    def _forget(self, kind: Kind, name: Name) -> frozenset[Key]:
        concerned = self._models(kind, self._known[kind][name][2])
        self._out(kind, name)
        return concerned

    def _slice(self, name: Name) -> ExposingObject:
        return self._known[ENDPOINT_SLICE][name][2]

    def _slices_with(self, address: str) -> set[Name]:
        return {name for name, entry in self._known[ENDPOINT_SLICE].items() if f",{address}," in entry[2].addresses}


def _kind(manifest: Mapping[str, Any]) -> Kind:
    return BY_API_VERSION.get((manifest.get("apiVersion", ""), manifest["kind"]), BY_KIND[manifest["kind"]])


def _large(exposer: ExposingObject) -> int:
    return exposer.size if exposer.size > SMALL else 0


def _indexed_term(service: ExposingObject) -> tuple[str, str] | None:
    """The term of the selector by which a Service is found; None for one whose pods are not known."""
    terms = service.selector or ()
    return next((term for term in terms if term[0] == MODEL_LABEL), next(iter(terms), None))


def _selects(exposer: ExposingObject, labels: Mapping[str, str]) -> bool:
    return exposer.selector is not None and all(labels.get(name) == value for name, value in exposer.selector)


def _leads_to(service: ExposingObject, plane: DataPlane) -> bool:
    """Whether a Service may lead to pods of a data plane, of which not all labels are known."""
    if service.namespace != plane.namespace:
        return False
    return all(plane.pod_labels.get(name, value) == value for name, value in service.selector or ())


def _selects_by_known_label(service: ExposingObject, plane: DataPlane) -> bool:
    """Whether its selector has a label of the data plane, as that of a Gateway's Service has."""
    return any(name in plane.pod_labels for name, _ in service.selector or ())


def _is_own_route(exposer: ExposingObject, owner: Owner, gateway: Name | None) -> bool:
    """Whether it is the HTTPRoute of the model, or of its group, that leads by its Gateway to Services alone."""
    return (
        exposer.kind == HTTP_ROUTE.kind
        and exposer.namespace == owner.namespace
        and owner.uid in exposer.owner.split()
        and gateway is not None
        and exposer.gateways == frozenset({gateway})
        and all(namespace == owner.namespace for namespace, _ in exposer.services)
        and not (exposer.opens or exposer.everything)
    )


def _is_own(exposer: ExposingObject, owner: Owner) -> bool:
    return (exposer.namespace, exposer.name, exposer.owner) == (owner.namespace, owner.name, owner.uid)

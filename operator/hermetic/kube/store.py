"""Store of the objects last seen of the cluster, by kind and name; fed by lists, watches and answers to writes.

Objects are kept as compressed JSON: a thousand deployments with their children fit in some ten megabytes, and a
reconcile parses only its own. An object is stored only if its resourceVersion is newer than the known one of its
name, and not older than its deletion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.kinds import (
    CORE_EVENT,
    EGRESS_AUDIT,
    GATEWAY,
    HTTP_ROUTE,
    MODEL_DEPLOYMENT,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    SERVICE,
    UNLABELLED_POD,
    Kind,
)
from hermetic.kube.departures import Departures
from hermetic.kube.deployment_index import DeploymentIndex
from hermetic.kube.expected_statuses import ExpectedStatuses
from hermetic.kube.exposure_index import EXPOSING_KINDS, ExposureIndex
from hermetic.kube.observed_gateways import ObservedGateways
from hermetic.kube.owners import PODS, Key, Manifest, Name, kind_of, name_of, other_part, owners_of
from hermetic.kube.pod_bounds import EVERY, Admission, PodBounds
from hermetic.kube.pod_warnings import PodWarnings
from hermetic.kube.projections import evidence, listed_gateway, node
from hermetic.kube.route_index import RouteIndex
from hermetic.kube.store_entry import StoredObject
from hermetic.kube.unowned_objects import Unclaimed
from hermetic.kube.unseen_kinds import UnseenKinds
from hermetic.kube.watch_specs import SHARED
from hermetic.objects.names import Owner
from hermetic.objects.workloads.registry import WORKLOAD_KINDS
from hermetic.plan.exposure.address_claims import Claim, addresses_of, holder, requested_address
from hermetic.plan.pod_gate import enforcement_of
from hermetic.plan.snapshot import ChildKey, ClusterSnapshot, IsolationEvidence, NodeFacts


class Store:
    """The cluster as last seen. Not thread-safe; no I/O."""

    def __init__(self, policy: Configuration) -> None:
        self.server_version: tuple[int, int] = (0, 0)
        self._policy = policy
        self._unseen = UnseenKinds()
        self._listed_at: dict[tuple[Kind, str | None], str] = {}
        self._entries: dict[Kind, dict[Name, StoredObject]] = defaultdict(dict)
        self._owned: dict[Key, set[tuple[Kind, Name]]] = defaultdict(set)
        self._nodes: dict[str, NodeFacts] = {}
        self._evidence: IsolationEvidence | None = None
        self._was_evaluated = False
        self._confirmed_at: datetime | None = None
        self._warnings = PodWarnings()
        self._departures = Departures()
        self._swept: set[tuple[Kind, str | None]] = set()
        self._unclaimed = Unclaimed(policy.model_metadata)
        self._pod_bounds = PodBounds()
        self._routes = RouteIndex()
        self._ways = ExposureIndex(policy, self._routes.users_of)
        self._gateways = ObservedGateways(policy, self._routes, self._ways, self._entries, self._owned_by)
        self._deployments = DeploymentIndex()
        self.expected_statuses = ExpectedStatuses()

    def put(self, manifest: Manifest) -> frozenset[Key]:
        """Store an object; returns the ModelDeployments to reconcile (none when nothing changed)."""
        kind = kind_of(manifest)
        if kind is CORE_EVENT:
            return self._warnings.put(manifest)
        exposed = self._ways.put(manifest) if kind in EXPOSING_KINDS else frozenset()
        return exposed if self._is_of_others(kind, manifest) else exposed | self._put(kind, manifest)

    def _put(self, kind: Kind, manifest: Manifest) -> frozenset[Key]:
        metadata = manifest["metadata"]
        name, version = name_of(metadata), int(metadata["resourceVersion"])
        stored_object = self._entries[kind].get(name)
        # Versions grow across objects of one kind: a late event of a predecessor has a lower version.
        if self._departures.follow(metadata["uid"], version):
            return frozenset()
        if stored_object is not None and stored_object.version >= version and not self._completes(kind, name, version):
            return frozenset()
        if stored_object is not None and stored_object.uid != metadata["uid"]:
            self._depart(stored_object, name, version)
        if kind in PODS and not self._leaves_the_other_part(kind, name, version):
            return frozenset()
        if kind is NODE:
            return self._put_node(manifest, name, version)
        if kind is GATEWAY:
            manifest = listed_gateway(manifest)
        if kind in PODS:
            return self._put_pod(kind, name, manifest, version)
        return self._put_entry(kind, name, manifest, version)

    def _completes(self, kind: Kind, name: Name, version: int) -> bool:
        """Whether an object of this version may replace its entry, of which only the head is kept."""
        return self._entries[kind][name].version == version and self._unclaimed.is_cut(kind, name)

    def incomplete(self, key: Key) -> tuple[tuple[Kind, Name], ...]:
        """The children of a model of which only the head is kept, because they were seen before the model."""
        if key not in self._entries[MODEL_DEPLOYMENT]:
            return ()
        return tuple(child for child in self._owned_by(key) if self._unclaimed.is_cut(*child))

    def drop(self, manifest: Manifest) -> frozenset[Key]:
        """Remove a deleted object; returns the ModelDeployments to reconcile."""
        kind, metadata = kind_of(manifest), manifest["metadata"]
        if kind is CORE_EVENT:
            return frozenset()
        exposed = self._ways.drop(manifest) if kind in EXPOSING_KINDS else frozenset()
        name, version = name_of(metadata), int(metadata["resourceVersion"])
        stored_object = self._entries[kind].get(name)
        if stored_object is not None or not self._is_of_others(kind, manifest):
            self._departures.remember(metadata["uid"], version)
        if stored_object is None and kind in PODS:
            kind = other_part(kind)
            stored_object = self._entries[kind].get(name)
            if stored_object is not None and stored_object.version == version:  # it has only changed its part
                return exposed
        if stored_object is None or stored_object.uid != metadata["uid"] or stored_object.version > version:
            return exposed
        return exposed | self._forget(kind, name, version)

    def holds(self, manifest: Manifest) -> bool:
        """Whether an object of this name is stored; a pod, in either part."""
        kind, name = kind_of(manifest), name_of(manifest["metadata"])
        return any(name in self._entries[part] for part in (PODS if kind in PODS else (kind,)))

    def sweep(
        self, kind: Kind, listed: set[str], version: int, *, namespace: str | None = None, is_listed: bool = True
    ) -> frozenset[Key]:
        """After a full list at `version` (of a namespace, or of all): remove objects that it lacks, unless newer.

        `is_listed`: False where the kind may not be listed, or is not served: none of its objects need be deleted.
        """
        if kind is CORE_EVENT:
            return frozenset()
        # A pod that a list of one part lacks may have changed its part before: what is known of that must still count.
        stale = {
            name: entry.version if kind in PODS or not is_listed else version
            for name, entry in self._entries[kind].items()
            if namespace in (None, name[0]) and entry.uid not in listed and entry.version <= version
        }
        self._swept.add((kind, namespace))
        exposed = self._ways.sweep(kind, listed, version) if kind in EXPOSING_KINDS else frozenset()
        if kind in PODS:
            ended = self._pod_bounds.listed(kind, namespace)
            exposed |= ended | {key for key in self.deployments() if (key[0], EVERY) in ended}
        return exposed.union(key for name, since in stale.items() for key in self._forget(kind, name, since))

    def note_listed(self, kind: Kind, namespace: str | None, version: str) -> None:
        """Record the resourceVersion of a full list of a kind (in a namespace; None: everywhere)."""
        self._listed_at[kind, namespace] = version

    def note_served(self, kind: Kind, *, may_be_listed: bool, is_served: bool = True) -> frozenset[Key]:
        """Record whether an optional kind may be listed; one that is not served counts as listable and empty."""
        is_news = self._unseen.note_granted(kind, is_granted=may_be_listed, is_served=is_served)
        return frozenset(self.deployments() if is_news else ())

    def note_malformed(self, kind: Kind, version: int) -> frozenset[Key]:
        """Record an object at this version that could not be stored: one of an exposing kind may lead to any pod."""
        is_news = kind in EXPOSING_KINDS and self._unseen.note_malformed(kind, version)
        return frozenset(self.deployments() if is_news else ())

    def note_understood(self, kind: Kind, version: int) -> frozenset[Key]:
        """Record a full list of a kind, at this version, of which every object was stored."""
        return frozenset(self.deployments() if self._unseen.note_understood(kind, version) else ())

    def listed_at(self, kind: Kind, namespace: str | None) -> str:
        """The resourceVersion of the newest full list; "" before the first."""
        return self._listed_at.get((kind, namespace), "")

    def listed_everywhere(self, kind: Kind) -> bool:
        """Whether a kind was listed to the end in every namespace that is watched."""
        return all((kind, namespace) in self._swept for namespace in self._policy.watch_namespaces or (None,))

    def enforcements(self) -> Iterator[tuple[str, str, str]]:
        """(namespace, name, enforcement that it asks for) of every ModelDeployment."""
        for namespace, name in self._entries[MODEL_DEPLOYMENT]:
            yield namespace, name, enforcement_of(self.manifest((namespace, name)) or {})

    def deployments(self) -> Iterator[Key]:
        """The key of every ModelDeployment."""
        yield from self._entries[MODEL_DEPLOYMENT]

    def versions(self, kind: Kind) -> dict[str, int]:
        """The resourceVersion of every cluster-scoped object of a kind, by name."""
        return {name: entry.version for (_, name), entry in sorted(self._entries[kind].items())}

    def object(self, kind: Kind, name: str) -> dict[str, Any] | None:
        """A cluster-scoped object as last seen."""
        entry = self._entries[kind].get(("", name))
        return None if entry is None else entry.manifest

    def manifest(self, key: Key) -> dict[str, Any] | None:
        """The ModelDeployment as last seen."""
        entry = self._entries[MODEL_DEPLOYMENT].get(key)
        return None if entry is None else entry.manifest

    def snapshot(
        self, key: Key, *, backed_off: Mapping[ChildKey, frozenset[str]] | None = None
    ) -> ClusterSnapshot | None:
        """One frozen snapshot of everything that concerns this ModelDeployment; None when it is gone."""
        manifest = self.manifest(key)
        if manifest is None:
            return None
        metadata = manifest["metadata"]
        owned = [(kind, self._entries[kind][name].manifest) for kind, name in self._owned_by(key)]
        pods = tuple(body for kind, body in owned if kind in PODS)
        owner = Owner(key[0], key[1], metadata["uid"])
        templates = (body.get("spec", {}).get("template", {}) for of, body in owned if of in WORKLOAD_KINDS)
        return ClusterSnapshot(
            owner=owner,
            generation=metadata.get("generation", 0),
            resource_version=metadata.get("resourceVersion", ""),
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            policy=self._policy,
            deleting=bool(metadata.get("deletionTimestamp")),
            status=manifest.get("status") or {},
            children=self._gateways.shared_route(key)
            | {(kind.kind, body["metadata"]["name"]): body for kind, body in owned if kind not in PODS},
            pods=pods,
            warnings=self._warnings.of(pods),
            nodes=tuple(self._nodes.values()),
            evidence=self.evidence,
            address_holder=self._address_holder(manifest),
            server_version=self.server_version,
            backed_off=backed_off or {},
            exposures=self._ways.into(
                owner,
                (template.get("metadata", {}).get("labels") or {} for template in templates),
                self._routes.gateway_of(key),
            ),
            gateway=self._gateways.facts(key),
            unseen=self._unseen.refused,
            absent=self._unseen.absent,
            malformed=self._unseen.malformed,
            pods_truncated=self._pod_bounds.is_truncated(key),
        )

    def volumes(self) -> Iterator[dict[str, Any]]:
        """Our PersistentVolumes for watched namespaces; owners in other namespaces are not visible."""
        watched = self._policy.watch_namespaces
        for entry in self._entries[PERSISTENT_VOLUME].values():
            if entry.owner is not None and (not watched or entry.owner[0] in watched):
                yield entry.manifest

    def claim_uid(self, namespace: str, name: str) -> str | None:
        """The uid of one claim of ours."""
        entry = self._entries[PERSISTENT_VOLUME_CLAIM].get((namespace, name))
        return None if entry is None else entry.uid

    def keys_by_uid(self) -> dict[str, Key]:
        """The key of every ModelDeployment, by its uid."""
        return {entry.uid: key for key, entry in self._entries[MODEL_DEPLOYMENT].items()}

    def count(self, kind: Kind) -> int:
        """How many objects of a kind are known."""
        return len(self._entries[kind])

    # ------------------------------------------------------------------ the verdict of this process

    @property
    def evidence(self) -> IsolationEvidence | None:
        """The evidence in the EgressAudit's status, and when this process last confirmed it."""
        return self._evidence and replace(self._evidence, confirmed_at=self._confirmed_at)

    @property
    def awaits_evaluation(self) -> bool:
        """Whether the EgressAudit's verdict is Pass and this process has not evaluated it yet."""
        return self._evidence is not None and self._evidence.verdict == "Pass" and not self._was_evaluated

    def record_evaluation(self, *, confirmed_at: datetime | None) -> frozenset[Key]:
        """Record that this process confirmed a Pass at this time, or (None) did not.

        Returns the ModelDeployments to reconcile because an unconfirmed Pass counts from now on.
        """
        is_news = self._confirmed_at is None and confirmed_at is not None
        self._was_evaluated, self._confirmed_at = True, confirmed_at
        return frozenset(self.deployments()) if is_news else frozenset()

    # ------------------------------------------------------------------ updates

    def _put_entry(self, kind: Kind, name: Name, manifest: Manifest, version: int) -> frozenset[Key]:
        owners = owners_of(kind, manifest)
        if kind in SHARED and not owners:
            # All Services and routes are watched; a watch that selects by labels would send DELETED now.
            return self._forget(kind, name, version)
        owner = next(iter(owners), None)
        before = self._entries[kind].get(name)
        body = self._unclaimed.kept(kind, manifest, owner, owner in self._entries[MODEL_DEPLOYMENT])
        # A label that a person adds to a ModelDeployment is reason enough to look again.
        compared = before if kind not in {MODEL_DEPLOYMENT, EGRESS_AUDIT} else None
        if compared is not None and compared.is_same(manifest, version, body, owners):
            self._entries[kind][name] = StoredObject.of(manifest, version, body, owners)
            return frozenset()
        concerned = frozenset() if before is None else self._concerned(kind, name, before)
        if before is not None and before.owners != owners:
            self._disown(before, kind, name)
        self._entries[kind][name] = StoredObject.of(manifest, version, body, owners)
        if kind is MODEL_DEPLOYMENT:
            self._deployments.put(name, manifest)
            self._routes.put(name, manifest)
            if before is not None and self.expected_statuses.includes(name, before, self._entries[kind][name]):
                return concerned - {name}
        if kind is EGRESS_AUDIT:
            return self._see_evidence(evidence(manifest))
        for owner_key in owners if kind is not MODEL_DEPLOYMENT else ():
            self._owned[owner_key].add((kind, name))
        return concerned | self._concerned(kind, name, self._entries[kind][name])

    def _put_pod(self, kind: Kind, name: Name, manifest: Manifest, version: int) -> frozenset[Key]:
        """Store a pod of a model unless `PodBounds` refuses it; a pod of no model is not stored."""
        owners = owners_of(kind, manifest)
        admission = self._pod_bounds.admit((kind, name), manifest, owners) if owners else Admission(None)
        concerned = admission.truncated.union(
            *(self._forget(of, gone, self._entries[of][gone].version) for of, gone in admission.dropped)
        )
        before = self._entries[kind].get(name)
        if admission.body is None:
            return concerned | (self._forget(kind, name, version) if before is not None else frozenset())
        if before is None or not before.is_same(manifest, version, admission.body, owners):
            concerned |= frozenset(owners if before is None else (*before.owners, *owners))
        if before is not None and before.owners != owners:
            self._disown(before, kind, name)
        self._entries[kind][name] = StoredObject.of(manifest, version, admission.body, owners)
        for owner_key in owners:
            self._owned[owner_key].add((kind, name))
        self._warnings.put_pod(manifest, owners[0])
        self._ways.put_pod(manifest, owners[0])
        return concerned

    def _put_node(self, manifest: Manifest, name: Name, version: int) -> frozenset[Key]:
        node_facts = node(manifest)
        self._entries[NODE][name] = StoredObject(manifest["metadata"]["uid"], version, b"", ())
        before = self._nodes.get(node_facts.name)
        if before == node_facts:  # a heartbeat
            return frozenset()
        self._nodes[node_facts.name] = node_facts
        # A model that serves has pods on the node, whose status names its faults.
        is_of_all = node_facts.faults != (before.faults if before is not None else ())
        return frozenset(self.deployments()) if is_of_all else self._deployments.waiting

    def _see_evidence(self, isolation_evidence: IsolationEvidence | None) -> frozenset[Key]:
        if isolation_evidence == self._evidence:
            return frozenset()
        self._evidence = isolation_evidence
        return frozenset(self.deployments())

    # ------------------------------------------------------------------ removals

    def _forget(self, kind: Kind, name: Name, version: int) -> frozenset[Key]:
        entry = self._entries[kind].pop(name)
        self._unclaimed.forget(kind, name)
        if kind in PODS:
            self._pod_bounds.forget((kind, name))
        self._depart(entry, name, version)
        if kind is NODE:
            self._nodes.pop(name[1], None)
            return self._deployments.waiting
        if kind is EGRESS_AUDIT:
            return self._see_evidence(None)
        concerned = self._concerned(kind, name, entry)
        if kind is MODEL_DEPLOYMENT:
            self._deployments.drop(name)
            self._routes.drop(name)
        self._disown(entry, kind, name)
        return concerned

    def _leaves_the_other_part(self, kind: Kind, name: Name, version: int) -> bool:
        """Whether the pod is newer than its entry in the other part (labelled, unlabelled); if so, drop that entry.

        When the label is added or removed, the watches of the two parts report it in any order.
        """
        other = other_part(kind)
        stored_object = self._entries[other].get(name)
        if stored_object is not None and stored_object.version >= version:
            return False
        if stored_object is not None:
            self._forget(other, name, stored_object.version)
        return True

    def _disown(self, entry: StoredObject, kind: Kind, name: Name) -> None:
        for owner in entry.owners if kind is not MODEL_DEPLOYMENT else ():
            self._owned[owner].discard((kind, name))
            if not self._owned[owner]:
                del self._owned[owner]

    def _depart(self, entry: StoredObject, name: Name, version: int) -> None:
        self._departures.remember(entry.uid, version)
        if self._warnings.drop_pod((entry.uid, *name)):
            self._ways.drop_pod(entry.uid)

    # ------------------------------------------------------------------ ModelDeployments concerned

    def _is_of_others(self, kind: Kind, manifest: Manifest) -> bool:
        """Whether the object is of no interest here, except to the exposure index."""
        if kind is GATEWAY:
            return name_of(manifest["metadata"]) not in {allowed.key for allowed in self._policy.gateways}
        if kind in SHARED:
            return not owners_of(kind, manifest) and name_of(manifest["metadata"]) not in self._entries[kind]
        if kind is UNLABELLED_POD:
            return not owners_of(kind, manifest)
        return kind in EXPOSING_KINDS

    def _concerned(self, kind: Kind, name: Name, entry: StoredObject) -> frozenset[Key]:
        if kind is GATEWAY:
            return self._routes.users_of(name)
        if not entry.owners:
            return frozenset()
        if kind is MODEL_DEPLOYMENT:
            return frozenset({*entry.owners, *self._deployments.rivals_of(name), *self._routes.rivals_of(name)})
        if kind is HTTP_ROUTE:
            return frozenset({*entry.owners, *self._routes.members_of_route(name)})
        waiting = addresses_of(entry.manifest) if kind is SERVICE and self._deployments.has_addresses else ()
        concerned = {*entry.owners, *(key for address in waiting for key in self._deployments.asking_for(address))}
        if kind is SERVICE or kind in WORKLOAD_KINDS:
            concerned |= {member for owner in entry.owners for member in self._routes.members(owner)}
        return frozenset(concerned)

    def _owned_by(self, key: Key) -> list[tuple[Kind, Name]]:
        return sorted(self._owned.get(key, ()), key=lambda item: (item[0].kind, item[1]))

    def _address_holder(self, manifest: Manifest) -> str:
        address, key = requested_address(manifest), name_of(manifest["metadata"])
        if not address:
            return ""
        rivals = (self._claim(address, rival) for rival in self._deployments.rivals_of(key))
        return holder(self._claim(address, key), rivals, address)

    def _claim(self, address: str, key: Key) -> Claim:
        services = (self._entries[kind][name].manifest for kind, name in self._owned_by(key) if kind is SERVICE)
        return Claim(self.manifest(key) or {}, tuple(services), self._policy.allows_address(address, key[0]))

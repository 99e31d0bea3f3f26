"""The state of every child of one ModelDeployment: what is live, whose it is, and how it differs from what is desired.

Each child is classified once. The plan and the status decide from these states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from hermetic.api.reasons import Reason
from hermetic.kinds import HTTP_ROUTE, MODEL_DEPLOYMENT, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, SERVICE
from hermetic.objects.children import CHILDREN, Child
from hermetic.objects.http_route import is_of_group, members_of
from hermetic.objects.names import OWNER_UID_LABEL, Owner, is_controlled_by
from hermetic.plan.exposure.addresses import public_addresses
from hermetic.plan.exposure.public_side import was_given_a_public_address
from hermetic.plan.gate_results import Blocks
from hermetic.plan.snapshot import ChildKey, ClusterSnapshot
from hermetic.plan.tampering.drift import differences, has_drifted, intent, is_of_another_intent
from hermetic.plan.tampering.field_owners import Steps, spelled, writers
from hermetic.plan.tampering.foreign_fields import foreign, whole
from hermetic.plan.volume_sweep import may_be_mounted
from hermetic.plan.writes import Change, Contested

Manifest = Mapping[str, Any]
Ownership = Literal["absent", "ours", "earlier", "others"]
Difference = Literal["absent", "changed", "drifted"]


@dataclass(frozen=True, slots=True)
class ChildState:
    """One child; `live` is None where it does not exist, `desired` where the spec does not ask for it.

    `ownership` "earlier": the object belongs to an earlier ModelDeployment of this name. `difference`: why the desired
    manifest is applied; None where live and desired are the same, the live one is of another owner or it is being
    deleted. `foreign`: what other managers added and the apply removes. `is_exposed`: it has a public address or,
    absent, had one in this generation of the spec; `public_address`: that address, "" for none. `is_mounted`: a
    claim that pods may mount. `backed_off`: the digests of manifests that are not applied again during drift back-off.
    `is_imperative`: it is applied all the same.
    """

    key: ChildKey
    live: Manifest | None
    ownership: Ownership
    desired: Manifest | None = None
    difference: Difference | None = None
    foreign: tuple[Steps, ...] = ()
    is_exposed: bool = False
    public_address: str = ""
    is_mounted: bool = False
    backed_off: frozenset[str] = frozenset()
    is_imperative: bool = False

    @property
    def child(self) -> Child:
        """Its row in the table of children."""
        return CHILDREN[self.key[0]]

    @property
    def is_deleting(self) -> bool:
        """Whether the live object is being deleted."""
        return self.live is not None and bool(self.live["metadata"].get("deletionTimestamp"))

    @property
    def is_contested(self) -> bool:
        """Whether the desired manifest is due and was corrected too often: others change it back."""
        if self.is_imperative or self.desired is None or self.difference is None:
            return False
        return intent(self.desired) in self.backed_off

    def wanting(self, manifest: Manifest) -> ChildState:
        """The same child, compared with another manifest than the spec renders."""
        if manifest is self.desired:
            return self
        if self.live is None:
            return replace(self, desired=manifest, difference="absent", foreign=())
        if self.is_deleting or self.ownership != "ours":
            return replace(self, desired=manifest, difference=None, foreign=())
        added = foreign(manifest, self.live)
        if is_of_another_intent(manifest, self.live):
            return replace(self, desired=manifest, difference="changed", foreign=added)
        has_changed = bool(added) or has_drifted(manifest, self.live)
        return replace(self, desired=manifest, difference="drifted" if has_changed else None, foreign=added)

    def writing(self, manifest: Manifest, difference: Difference, *, is_imperative: bool) -> ChildState:
        """The same child, whose live object is to be this manifest."""
        added = foreign(manifest, self.live) if self.live is not None else ()
        return replace(self, desired=manifest, difference=difference, foreign=added, is_imperative=is_imperative)

    def change(self) -> Change | None:
        """What to apply; None where nothing differs."""
        if self.desired is None or self.difference is None:
            return None
        if self.live is None:
            return Change(self.desired, self.difference)
        # An apply that drops a field leaves it in place if another manager owns it too.
        is_shared = self.foreign or self.live["metadata"].get("managedFields")
        return Change(self.desired, self.difference, whole(self.desired, self.live) if is_shared else None)

    def contested(self) -> Contested:
        """Which field others change back, and its writers."""
        if self.live is None or self.desired is None:
            return Contested(self.key)
        steps = next(iter((*self.foreign, *differences(self.desired, self.live))), None)
        return Contested(self.key) if steps is None else Contested(self.key, spelled(steps), writers(self.live, steps))


def child_states(desired: tuple[Manifest, ...], snapshot: ClusterSnapshot) -> tuple[ChildState, ...]:
    """The states of the desired children in their order, then of the live ones that are not desired."""
    manifests = {_key(manifest): manifest for manifest in desired}
    desired_states = (_state(key, snapshot).wanting(manifest) for key, manifest in manifests.items())
    return (*desired_states, *(_state(key, snapshot) for key in snapshot.children if key not in manifests))


def _state(key: ChildKey, snapshot: ClusterSnapshot) -> ChildState:
    live = snapshot.children.get(key)
    is_service = key == (SERVICE.kind, snapshot.owner.name)
    is_claim = key[0] == PERSISTENT_VOLUME_CLAIM.kind
    public = public_addresses(live, snapshot.policy) if is_service and live is not None else ()
    return ChildState(
        key,
        live,
        ownership=_ownership(live, snapshot.owner),
        is_exposed=bool(public) or (is_service and live is None and was_given_a_public_address(snapshot)),
        public_address=public[0] if public else "",
        is_mounted=is_claim and live is not None and may_be_mounted(live, snapshot),
        backed_off=snapshot.backed_off.get(key, frozenset()),
    )


def first_obstacle(states: tuple[ChildState, ...], owner: Owner) -> Blocks | None:
    """The first object that has the name of a desired child and is not owned by this ModelDeployment."""
    occupied = (
        state.live for state in states if state.desired is not None and state.ownership in ("earlier", "others")
    )
    return next((obstacle(live, owner) for live in occupied if live is not None), None)


def obstacle(live: Manifest, owner: Owner) -> Blocks:
    """Reason and message for such an object: it is never overwritten; one of an earlier owner is being removed."""
    subject = f"{live['kind']} '{live['metadata']['name']}'"
    if _ownership(live, owner) == "earlier":
        return Blocks(
            Reason.PROGRESSING_WITH_RETRY,
            f"{subject} belongs to an earlier ModelDeployment of this name and is still being removed: the garbage "
            "collector of Kubernetes may pause for up to 17 minutes after an outage of the API server; "
            "wait, or delete it",
        )
    return Blocks(
        Reason.CHILD_NOT_OWNED,
        f"{subject} exists and is not owned by this ModelDeployment; rename the ModelDeployment or remove that object",
    )


def is_ours(live: Manifest, owner: Owner) -> bool:
    """Whether the object belongs to this ModelDeployment by uid, not to another one of the same name."""
    if live["kind"] == HTTP_ROUTE.kind and is_of_group(live["metadata"]["name"]):
        # Written for one member at a time, and owned by all.
        return bool(members_of(live))
    if live["kind"] == PERSISTENT_VOLUME.kind:
        return bool((live["metadata"].get("labels") or {}).get(OWNER_UID_LABEL) == owner.uid)
    return is_controlled_by(live, owner)


def _ownership(live: Manifest | None, owner: Owner) -> Ownership:
    if live is None:
        return "absent"
    if is_ours(live, owner):
        return "ours"
    earlier = (MODEL_DEPLOYMENT.kind, owner.name)
    is_earlier = any((reference.get("kind"), reference.get("name")) == earlier for reference in _controllers(live))
    return "earlier" if is_earlier else "others"


def _controllers(live: Manifest) -> Iterator[Mapping[str, Any]]:
    return (reference for reference in live["metadata"].get("ownerReferences") or () if reference.get("controller"))


def _key(manifest: Manifest) -> ChildKey:
    return (manifest["kind"], manifest["metadata"]["name"])

"""A cluster in memory with faults by a seed, with the controllers that an operator's children meet.

Everything that goes wrong is drawn from one random generator and happens in virtual time: the same seed is the same
schedule. What is drawn: refusals (403 of a quota or a policy, 409, 422, 429, 5xx), requests and answers that are lost,
slow writes, stale lists, watches that are cut, forgotten (410) or silent, and what rivals do.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import AsyncIterator
from typing import Any

from hermetic.errors import Conflict, Forbidden, Rejected, ServerError, Throttled, Unreachable
from hermetic.kinds import Kind
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest, matches_fields, matches_labels

QUOTA = 'serviceaccounts "llama" is forbidden: exceeded quota: small, requested: count/serviceaccounts=1'
POLICY = "admission webhook denied the request: not today"
TERMINATING = "unable to create new content in namespace team-a because it is being terminated"
GONE = 410
CONTROLLERS_SECONDS = 0.5


class FaultyCluster(ClusterInMemory):
    """`trouble` is the chance that a fault affects one request; 0 from when the schedule is over."""

    def __init__(self, seed: int) -> None:
        super().__init__(late=0.0)
        self.chance = random.Random(seed)
        self.trouble = 0.0
        self.epoch = 0
        self.forgets = False
        self.silent_until = 0.0
        self.terminating = False
        self.faults_injected: dict[str, int] = {}
        self.lies: list[str] = []
        self._past: list[dict[Coordinates, Manifest]] = []
        self.fault = self._before_request
        self.done = self._after_write

    # ------------------------------------------------------------------ faults of requests

    async def _before_request(self, verb: str, where: Coordinates) -> None:
        if self.terminating and verb == "patch" and where not in self.objects and where[1]:
            raise Forbidden(TERMINATING, status=403, reason="Forbidden", causes=(("NamespaceTerminating", ""),))
        await asyncio.sleep(self.chance.uniform(0.001, 0.05))
        if self.chance.random() >= self.trouble:
            return
        trouble = self.chance.choice(list(_TROUBLES if verb != "list" else _READING))
        self._note(trouble)
        if trouble == "slow":
            await asyncio.sleep(self.chance.uniform(1, 12))
            return
        raise _TROUBLES[trouble](self.chance)

    def _store(self, where: Coordinates, manifest: Manifest, *, seen: bool = True) -> Manifest:
        before = self.objects.get(where) or {}
        after = super()._store(where, manifest, seen=seen)
        self.lies += lies_of(before, after)
        return after

    async def _after_write(self, _verb: str, _where: Coordinates) -> None:
        await asyncio.sleep(self.chance.uniform(0.0, 0.02))
        if self.chance.random() < self.trouble / 3:
            self._note("lost answer")
            raise Unreachable("the answer was lost")

    def _note(self, fault: str) -> None:
        self.faults_injected[fault] = self.faults_injected.get(fault, 0) + 1

    # ------------------------------------------------------------------ reading

    async def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """As the cluster is, or as it was a moment ago."""
        now = self.objects
        if self._past and self.chance.random() < self.trouble:
            self._note("stale list")
            self.objects = self.chance.choice(self._past)
        newest = max((int(manifest["metadata"]["resourceVersion"]) for manifest in self.objects.values()), default=1)
        # The version is that of the moment at which the list was read: what is written meanwhile is younger.
        as_of = newest if self.objects is not now else next(self._versions)
        try:
            selected = self._selected_of(kind, namespace, label_selector, field_selector)
        finally:
            self.objects = now
        self.lists[kind.plural] += 1
        await self._before_request("list", (kind.kind, namespace or "", ""))
        yield selected, str(as_of)

    def _selected_of(self, kind: Kind, namespace: str | None, labels: str, fields: str) -> list[Manifest]:
        return [
            copy.deepcopy(stored)
            for (name, home, _), stored in sorted(self.objects.items())
            if name == kind.kind
            and namespace in (None, home)
            and matches_labels(stored, labels)
            and matches_fields(stored, fields)
        ]

    async def watch(self, kind: Kind, *, since: str, **how: Any) -> AsyncIterator[tuple[str, Manifest]]:
        """Late, silent for a while, cut, or forgotten."""
        if self.chance.random() < self.trouble:
            self._note("watch refused")
            refused = ServerError("no", status=500), ServerError("gone", status=GONE), Unreachable("no")
            raise self.chance.choice(refused)
        epoch = self.epoch
        async for event in super().watch(kind, since=since, **how):
            await asyncio.sleep(self.chance.uniform(0.0, 0.05))
            await asyncio.sleep(max(0.0, self.silent_until - asyncio.get_running_loop().time()))
            if epoch != self.epoch:
                raise ServerError("too old", status=GONE) if self.forgets else Unreachable("the watch was cut")
            yield event

    def cut_watches(self, *, forgets: bool) -> None:
        """Every open watch ends; with `forgets` the API server does not know where they were."""
        self._note("watches forgotten" if forgets else "watches cut")
        self.epoch, self.forgets = self.epoch + 1, forgets

    # ------------------------------------------------------------------ the cluster's own controllers

    async def control(self) -> None:
        """Garbage collector and volume controller, until cancelled."""
        while True:
            await asyncio.sleep(CONTROLLERS_SECONDS)
            if self.trouble:
                self._past = [*self._past[-8:], _as_of_now(self.objects)]
            self._collect()
            self._bind()

    def _collect(self) -> None:
        living = {stored["metadata"]["uid"] for stored in self.objects.values()}
        for where, stored in list(self.objects.items()):
            owners = stored["metadata"].get("ownerReferences") or ()
            if owners and not any(owner["uid"] in living for owner in owners):
                self.remove(*where)

    def _bind(self) -> None:
        for where, volume in list(self.objects.items()):
            if where[0] != "PersistentVolume":
                continue
            claim = volume["spec"].get("claimRef") or {}
            live = self.objects.get(("PersistentVolumeClaim", claim.get("namespace", ""), claim.get("name", "")))
            phase = (volume.get("status") or {}).get("phase")
            if live is not None and phase is None:
                self.edit(where, lambda volume_claim, uid=live["metadata"]["uid"]: _bound(volume_claim, uid))  # type: ignore[misc]
                self.edit(_where(live), lambda volume_claim: volume_claim.update(status={"phase": "Bound"}))
            elif phase == "Bound" and (live is None or live["metadata"]["uid"] != claim.get("uid")):
                self.edit(where, lambda volume: volume.update(status={"phase": "Released"}))


def _as_of_now(objects: dict[Coordinates, Manifest]) -> dict[Coordinates, Manifest]:
    """The objects as they are: of a stored one only the metadata change in their place."""
    return {where: {**stored, "metadata": {**stored["metadata"]}} for where, stored in objects.items()}


def lies_of(before: Manifest, after: Manifest) -> list[str]:
    """What a write of a status says against the contract of conditions."""
    if after["kind"] != "ModelDeployment" or not after.get("status"):
        return []
    old = {condition["type"]: condition for condition in (before.get("status") or {}).get("conditions", ())}
    generation, lies = after["metadata"]["generation"], []
    for condition in after["status"].get("conditions", ()):
        was = old.get(condition["type"])
        moved = was is not None and was["lastTransitionTime"] != condition["lastTransitionTime"]
        if moved and was is not None and was["status"] == condition["status"]:
            lies.append(f"{condition['type']}: its time moved and its status did not")
        if condition["observedGeneration"] > generation:
            lies.append(f"{condition['type']}: about a generation that is not there")
    return lies


def _bound(volume: Manifest, uid: str) -> None:
    volume["status"] = {"phase": "Bound"}
    volume["spec"]["claimRef"]["uid"] = uid


def _where(manifest: Manifest) -> Coordinates:
    return (manifest["kind"], manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])


_TROUBLES: dict[str, Any] = {
    "slow": None,
    "lost request": lambda _: Unreachable("no answer"),
    "409": lambda _: Conflict("the object has been modified", status=409, reason="Conflict"),
    "429": lambda chance: Throttled("too many requests", retry_after=chance.choice([1.0, 5.0, 60.0])),
    "500": lambda _: ServerError("etcdserver: leader changed", status=500),
    "503": lambda _: ServerError("unavailable", status=503),
    "quota": lambda _: Forbidden(QUOTA, status=403, reason="Forbidden"),
    "policy": lambda _: Rejected(POLICY, status=422, reason="Invalid"),
}
_READING = ("slow", "lost request", "429", "500", "503")

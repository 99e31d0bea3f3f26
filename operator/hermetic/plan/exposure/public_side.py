"""The state of a Service that the load balancer gave a public address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import Reason
from hermetic.plan.exposure.addresses import public_addresses
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.writes import Plan


@dataclass(frozen=True, slots=True)
class PublicSide:
    """The public address, and whether the Service that had it is gone.

    `address` is "" where an earlier release wrote the status without that field; `given` is then its message.
    """

    address: str
    removed: bool
    given: str = ""

    @property
    def message(self) -> str:
        """What happened, and how far the removal is."""
        cause = self.given or f"the load balancer gave the public address '{self.address}'"
        return f"{cause}; {'Service removed' if self.removed else 'the Service is being removed'}"

    def as_status(self) -> dict[str, Any]:
        return {"address": self.address, "serviceRemoved": self.removed}


def public_side(service: Mapping[str, Any] | None, snapshot: ClusterSnapshot, plan: Plan) -> PublicSide | None:
    """None where no public address was given. `service` is the model's own; None means that it was removed."""
    if service is not None:
        public = public_addresses(service, snapshot.policy)
        return PublicSide(public[0], removed=False) if public else None
    if deletions := [gone for gone in plan.delete if gone.public_address]:
        return PublicSide(deletions[0].public_address, removed=True)
    return _remembered(snapshot) if was_given_a_public_address(snapshot) else None


def _remembered(snapshot: ClusterSnapshot) -> PublicSide:
    if recorded := snapshot.status.get("publicAddress"):
        return PublicSide(str(recorded.get("address", "")), removed=True)
    before = snapshot.condition(ConditionType.ENDPOINT_PRIVATE) or {}
    return PublicSide("", removed=True, given=str(before.get("message", "")).partition(";")[0])


def was_given_a_public_address(snapshot: ClusterSnapshot) -> bool:
    """Whether this generation of the spec already led to a public address."""
    condition = snapshot.condition(ConditionType.ENDPOINT_PRIVATE)
    return (
        condition is not None
        and condition.get("reason") == Reason.PUBLIC_ADDRESS
        and condition.get("observedGeneration") == snapshot.generation
    )

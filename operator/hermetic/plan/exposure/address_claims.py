"""Which ModelDeployment a load balancer address belongs to, of those that ask for it.

Order: the one whose Service has the address, then the one first accepted with it, then the oldest of those that could
be accepted. A request that was never accepted blocks no other, however old it is: `address` may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.api.condition_updates import condition_of
from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import Reason
from hermetic.objects.service import ADDRESS
from hermetic.plan.exposure.addresses import load_balancer_addresses

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """One deployment that asks for the address, with its live Services; `allowed`: the configuration permits it."""

    manifest: Manifest
    services: tuple[Manifest, ...]
    allowed: bool

    @property
    def name(self) -> str:
        metadata = self.manifest["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"

    def rank(self, address: str) -> tuple[int, str, str, str] | None:
        """Sort key, smallest first; None for a claim that blocks no other."""
        created = self.manifest["metadata"].get("creationTimestamp", "")
        if any(address in load_balancer_addresses(service) for service in self.services):
            return 0, created, created, self.name
        if self.manifest["metadata"].get("deletionTimestamp") or not self.allowed:
            return None
        accepted = [one["metadata"].get("creationTimestamp", "") for one in self.services if asked_for(one) == address]
        if accepted:
            return 1, min(accepted), created, self.name
        return None if _is_refused(self.manifest) else (2, created, created, self.name)


def holder(asking: Claim, rivals: Iterable[Claim], address: str) -> str:
    """The name of the deployment that the address belongs to; "" when it belongs to `asking`."""
    ranked = [(rank, claim) for claim in (asking, *rivals) if (rank := claim.rank(address)) is not None]
    first = min(ranked, key=lambda one: one[0])[1] if ranked else asking
    return "" if first is asking else first.name


def requested_address(manifest: Manifest) -> str:
    """The address that a ModelDeployment asks for; "" for any."""
    endpoint = (manifest.get("spec") or {}).get("endpoint") or {}
    return str((endpoint.get("internalLoadBalancer") or {}).get("address") or "")


def asked_for(service: Manifest) -> str:
    """The address that a Service of ours asks for: its deployment was accepted with it."""
    return str((service["metadata"].get("annotations") or {}).get(ADDRESS) or "")


def addresses_of(service: Manifest) -> frozenset[str]:
    """Every address that a Service has or asks for."""
    return frozenset({asked_for(service), *load_balancer_addresses(service)} - {""})


def _is_refused(manifest: Manifest) -> bool:
    """Whether something other than the address itself keeps the deployment from being served."""
    stalled = condition_of(manifest.get("status") or {}, ConditionType.STALLED) or {}
    return stalled.get("status") == "True" and stalled.get("reason") != Reason.ENDPOINT_CONFLICT

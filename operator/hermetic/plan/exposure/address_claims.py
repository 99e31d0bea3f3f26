"""Which ModelDeployment a port of a load balancer address belongs to, of those that ask for it.

Order: the one whose Service has the address, then the one first accepted with it, then the oldest of those that could
be accepted. A request that was never accepted blocks no other, however old it is: `address` may change.

Several Services may have one internal address with different ports (cloud-provider-azure, docs: topics/shared-ip;
pkg/provider/azure_loadbalancer.go: serviceOwnsFrontendIP). Not where one of them limits its clients: the rule of the
network security group that denies all others is for the whole address (loadbalancer/accesscontrol.go:
PatchSecurityGroup), and is removed with the rules of another Service of the address (CleanSecurityGroup).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermetic.api.condition_updates import condition_of
from hermetic.api.conditions import ConditionType
from hermetic.api.endpoint import Endpoint
from hermetic.api.spec_reasons import SpecReason
from hermetic.objects.service import ADDRESS
from hermetic.plan.exposure.addresses import load_balancer_addresses

Manifest = Mapping[str, Any]
DEFAULT_PORT: int = Endpoint.model_fields["port"].default


@dataclass(frozen=True, slots=True)
class AddressUse:
    """How a ModelDeployment, or a Service, uses an address. `is_limited`: some ranges of clients may connect alone."""

    port: int
    is_limited: bool

    def excludes(self, other: AddressUse) -> bool:
        """Whether only one of them can have the address."""
        return self.port == other.port or self.is_limited or other.is_limited


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

    @property
    def use(self) -> AddressUse:
        """How the ModelDeployment would use the address."""
        endpoint = (self.manifest.get("spec") or {}).get("endpoint") or {}
        ranges = (endpoint.get("internalLoadBalancer") or {}).get("allowedSourceRanges")
        return AddressUse(requested_port(endpoint), bool(ranges))

    def at(self, address: str) -> Iterator[Manifest]:
        """Its Services that have or ask for the address."""
        return (service for service in self.services if address in addresses_of(service))

    def rank(self, address: str, services: Sequence[Manifest]) -> tuple[int, str, str, str] | None:
        """Sort key, smallest first; None for a claim that blocks no other. `services`: those of it that count."""
        created = self.manifest["metadata"].get("creationTimestamp", "")
        if any(address in load_balancer_addresses(service) for service in services):
            return 0, created, created, self.name
        if self.manifest["metadata"].get("deletionTimestamp") or not self.allowed:
            return None
        accepted = [
            service["metadata"].get("creationTimestamp", "") for service in services if asked_for(service) == address
        ]
        if accepted:
            return 1, min(accepted), created, self.name
        return None if _is_refused(self.manifest) else (2, created, created, self.name)


def holder(asking: Claim, rivals: Iterable[Claim], address: str) -> str:
    """The name of the deployment that the address belongs to; "" when `asking` may have it."""
    use = asking.use
    # A Service counts for the port and the limits that it has: a deployment that changes them asks anew.
    counting = [(asking, [service for service in asking.at(address) if _use_of(service) == use])]
    for rival in rivals:
        services = [service for service in rival.at(address) if _use_of(service).excludes(use)]
        if services or rival.use.excludes(use):
            counting.append((rival, services))
    ranked = [(rank, claim) for claim, services in counting if (rank := claim.rank(address, services)) is not None]
    first = min(ranked, key=lambda rank_and_claim: rank_and_claim[0])[1] if ranked else asking
    return "" if first is asking else first.name


def requested_port(endpoint: Manifest) -> int:
    """The port of `spec.endpoint` that clients connect to."""
    port = endpoint.get("servicePort") or endpoint.get("port")
    return port if isinstance(port, int) else DEFAULT_PORT


def _use_of(service: Manifest) -> AddressUse:
    """As a live Service of ours is: it has one port."""
    spec = service.get("spec") or {}
    port = next((entry.get("port") for entry in spec.get("ports") or ()), DEFAULT_PORT)
    return AddressUse(port if isinstance(port, int) else DEFAULT_PORT, bool(spec.get("loadBalancerSourceRanges")))


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
    return stalled.get("status") == "True" and stalled.get("reason") != SpecReason.ENDPOINT_CONFLICT

"""Which ModelDeployment a path, or a model's name, of a gateway leads to, of those that ask for it.

Order: the one whose route has it, then the oldest of those that could be accepted. Two that name different hosts never
meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.api.condition_updates import condition_of
from hermetic.api.conditions import ConditionType
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.reasons import Reason
from hermetic.objects.http_route import model_names_of, paths_of
from hermetic.objects.names import Owner
from hermetic.objects.workloads.workload_kind import Workload
from hermetic.plan.exposure.address_claims import requested_port
from hermetic.plan.snapshot import GroupMember

Manifest = Mapping[str, Any]
Name = tuple[str, str]  # (namespace, name)
OF_WRITES = frozenset(
    {
        Reason.PERMISSION_LOST,
        Reason.ADMISSION_DENIED,
        Reason.OBJECT_REFUSED,
        Reason.CHILD_NOT_OWNED,
        Reason.QUOTA_EXCEEDED,
        GatewayReason.GATEWAY_API_TOO_OLD,
    }
)
"""Reasons of a refused write. That of the route itself may be refused, and then of every member: it stays with one."""


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """What a ModelDeployment asks of a gateway, as it is stored: a spec that cannot be read asks all the same.

    `group`: NAMESPACE/GROUP, "" without one. `port`: that clients connect to.
    """

    gateway: Name
    hostname: str
    path: str
    model_name: str
    group: str = ""
    weight: int = 1
    port: int = 0

    def meets(self, other: RouteRequest) -> bool:
        """Whether a request to the gateway could be for both, of which each has a route."""
        if self.group and self.group == other.group:
            return False
        names = {self.hostname, other.hostname}
        return self.gateway == other.gateway and (len(names) == 1 or "" in names)


@dataclass(frozen=True, slots=True)
class RouteClaim:
    """One deployment that asks for a route, with its live HTTPRoute; `allowed`: the configuration permits it."""

    manifest: Manifest
    request: RouteRequest
    route: Manifest | None
    allowed: bool

    @property
    def name(self) -> str:
        """NAMESPACE/NAME."""
        metadata = self.manifest["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"

    def rank(self, *, has_it: bool) -> tuple[int, str, str] | None:
        """Sort key, smallest first; None for a claim that keeps nothing from others."""
        metadata = self.manifest["metadata"]
        created = str(metadata.get("creationTimestamp") or "")
        if has_it:
            return (0, created, self.name)
        if metadata.get("deletionTimestamp") or not self.allowed or _is_refused(self.manifest):
            return None
        return (1, created, self.name)


def requested_route(manifest: Manifest) -> RouteRequest | None:
    """What a ModelDeployment asks of a gateway; None where it asks for none."""
    spec, metadata = manifest.get("spec") or {}, manifest["metadata"]
    route = (spec.get("endpoint") or {}).get("gateway")
    if not isinstance(route, Mapping) or not route.get("name"):
        return None
    namespace, group, endpoint = metadata["namespace"], str(route.get("group") or ""), spec["endpoint"]
    return RouteRequest(
        gateway=(str(route.get("namespace") or namespace), str(route["name"])),
        hostname=str(route.get("hostname") or ""),
        path=str(route.get("path") or f"/{namespace}/{group or metadata['name']}"),
        model_name=str((spec.get("model") or {}).get("name") or ""),
        group=f"{namespace}/{group}" if group else "",
        weight=route["weight"] if isinstance(route.get("weight"), int) else 1,
        port=requested_port(endpoint),
    )


def path_holder(asking: RouteClaim, rivals: Iterable[RouteClaim]) -> str:
    """The name of the other deployment that the path leads to; "" when it leads to `asking`."""
    path = asking.request.path
    same = (rival for rival in rivals if rival.request.path == path)
    return _holder(asking, same, lambda route: path in paths_of(route))


def model_name_holder(asking: RouteClaim, rivals: Iterable[RouteClaim]) -> str:
    """The name of the other deployment that the model's name leads to; "" when it leads to `asking`."""
    name = asking.request.model_name
    same = (rival for rival in rivals if rival.request.model_name == name)
    return _holder(asking, same, lambda route: name in model_names_of(route))


def _holder(asking: RouteClaim, rivals: Iterable[RouteClaim], has_it: Callable[[Manifest], bool]) -> str:
    claims = (asking, *(rival for rival in rivals if rival.request.meets(asking.request)))
    ranks = {claim.name: claim.rank(has_it=claim.route is not None and has_it(claim.route)) for claim in claims}
    ranked = [(rank, name) for name, rank in ranks.items() if rank is not None]
    first = min(ranked)[1] if ranked else asking.name
    return "" if first == asking.name else first


def _is_refused(manifest: Manifest) -> bool:
    """Whether something other than the path itself keeps the deployment from being served."""
    stalled = condition_of(manifest.get("status") or {}, ConditionType.STALLED) or {}
    return stalled.get("status") == "True" and stalled.get("reason") != GatewayReason.ROUTE_CONFLICT


def group_member(manifest: Manifest, request: RouteRequest, workload: Workload, *, has_service: bool) -> GroupMember:
    """A ModelDeployment that asks to be in a group, as far as the others must know it."""
    metadata = manifest["metadata"]
    is_deleting = bool(metadata.get("deletionTimestamp"))
    stalled = condition_of(manifest.get("status") or {}, ConditionType.STALLED) or {}
    return GroupMember(
        owner=Owner(metadata["namespace"], metadata["name"], metadata["uid"]),
        weight=request.weight,
        port=request.port,
        asks=("/".join(request.gateway), request.hostname, request.path, request.model_name),
        serves=workload.serving_replicas > 0,
        has_service=has_service,
        may_write=workload.live is not None and not is_deleting,
        is_blocked=stalled.get("status") == "True" and stalled.get("reason") not in OF_WRITES,
        is_deleting=is_deleting,
    )

"""Whether the endpoint is private, and where clients find it: the condition EndpointPrivate and `status.endpoint`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.engines.registry import engine_of
from hermetic.kinds import SERVICE
from hermetic.plan.child_states import is_ours
from hermetic.plan.exposure.addresses import load_balancer_addresses, public_addresses
from hermetic.plan.exposure.exposing_objects import exposure
from hermetic.plan.exposure.public_side import public_side
from hermetic.plan.gateway_route import gateway_endpoint, gateway_is_private
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.writes import Plan


def endpoint_private(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, plan: Plan) -> ConditionUpdate:
    """The condition EndpointPrivate: what is public comes before what is not known."""
    kind, service = ConditionType.ENDPOINT_PRIVATE, own_service(snapshot)
    if (public := public_side(service, snapshot, plan)) is not None:
        return ConditionUpdate(kind, "False", Reason.PUBLIC_ADDRESS, public.message)
    gateway = gateway_is_private(spec, snapshot)
    if gateway is not None and gateway.status == "False":
        return gateway
    if (exposed := exposure(service, snapshot)) is not None:
        return ConditionUpdate(kind, "False", Reason.ENDPOINT_EXPOSED, exposed)
    if service is None:
        return ConditionUpdate(kind, "Unknown", Reason.ENDPOINT_NOT_CREATED, "the Service does not exist yet")
    return _as_asked(spec, snapshot, service, gateway)


def _as_asked(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, service: Mapping[str, Any], gateway: ConditionUpdate | None
) -> ConditionUpdate:
    """For a Service that nothing public leads to: whether all kinds could be listed, and whether it has its address."""
    kind = ConditionType.ENDPOINT_PRIVATE
    if snapshot.unseen:
        sentence = (
            f"the operator may not list {', '.join(snapshot.unseen)}, of which one may lead to the pods from outside"
        )
        return ConditionUpdate(kind, "Unknown", Reason.PERMISSION_LOST, f"{sentence}; apply the RBAC of manifests/")
    if snapshot.malformed:
        kinds = ", ".join(snapshot.malformed)
        sentence = f"an object among {kinds} is not understood and may lead to the pods from outside"
        fix = "correct or delete it: the operator's log names it (`event not understood`, `object not understood`)"
        return ConditionUpdate(kind, "Unknown", Reason.PERMISSION_LOST, f"{sentence}; {fix}")
    keyless = f"; {engine_of(spec).without_a_key}" if spec.endpoint.api_key is not None else ""
    if spec.endpoint.gateway is not None:
        private = ConditionUpdate(kind, "True", Reason.PRIVATE_ADDRESS, "the gateway's addresses are private" + keyless)
        return gateway or private
    if spec.endpoint.internal_load_balancer is None:
        return ConditionUpdate(kind, "True", Reason.CLUSTER_INTERNAL, "reachable inside the cluster only" + keyless)
    if _private_address(spec, service) is None:
        return ConditionUpdate(kind, "Unknown", Reason.LOAD_BALANCER_PENDING, _awaited(spec, service))
    return ConditionUpdate(kind, "True", Reason.PRIVATE_ADDRESS, "the load balancer's address is private" + keyless)


def endpoint_of(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> dict[str, str] | None:
    """`status.endpoint`: URL and address for clients; None while there is none, or where it is public."""
    service = own_service(snapshot)
    if service is None or public_addresses(service, snapshot.policy):
        return None
    if spec.endpoint.gateway is not None:
        return gateway_endpoint(spec, snapshot)
    address = f"{snapshot.owner.name}.{snapshot.owner.namespace}.svc"
    if spec.endpoint.internal_load_balancer is not None:
        private_address = _private_address(spec, service)
        if private_address is None:
            return None
        address = private_address
    scheme = "https" if spec.endpoint.tls is not None else "http"
    return {"url": f"{scheme}://{address}:{spec.endpoint.client_port}/v1", "address": address}


def _private_address(spec: ModelDeploymentSpec, service: Mapping[str, Any]) -> str | None:
    """The load balancer's address: the one that the spec names, else the first. None until it has been given."""
    requested = _requested_address(spec)
    addresses = load_balancer_addresses(service)
    return next((address for address in addresses if requested in (None, address)), None)


def _requested_address(spec: ModelDeploymentSpec) -> str | None:
    balancer = spec.endpoint.internal_load_balancer
    return balancer.address if balancer is not None else None


def _awaited(spec: ModelDeploymentSpec, service: Mapping[str, Any]) -> str:
    addresses = load_balancer_addresses(service)
    if not addresses:
        return "the internal load balancer has no address yet"
    return f"the internal load balancer has the address '{addresses[0]}', not yet '{_requested_address(spec)}' as asked"


def own_service(snapshot: ClusterSnapshot) -> Mapping[str, Any] | None:
    """The live Service of the model; None for one of another owner."""
    live = snapshot.child(SERVICE)
    return live if live is not None and is_ours(live, snapshot.owner) else None

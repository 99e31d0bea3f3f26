"""Which gateways a namespace may use, and which host names and paths of them."""

from __future__ import annotations

from hermetic.api.conditions import ConditionType
from hermetic.api.gateway import GatewayRoute
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.kinds import GATEWAY, HTTP_ROUTE
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.snapshot import ClusterSnapshot

_FIELD = "spec.endpoint.gateway"


def gateway_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The Gateway is one that this namespace may use."""
    route, namespace = spec.endpoint.gateway, snapshot.owner.namespace
    if route is None or snapshot.policy.gateways_for(route.gateway(namespace), namespace):
        return HOLDS
    of, name = route.gateway(namespace)
    line = f"{{name: {name}, namespace: {of}, namespaces: [{namespace}], dataPlane: {{namespace: …, podLabels: …}}}}"
    return _blocks(
        GatewayReason.GATEWAY_NOT_ALLOWED,
        f"`endpoint.gateway` names the Gateway '{of}/{name}', which may not be used in namespace '{namespace}'; name "
        f"another one, or the operator's configuration would need, under `gateways`: - {line}",
        _FIELD,
    )


def route_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """Host name and path are ones that this namespace may have, by one line of the configuration."""
    route, owner = spec.endpoint.gateway, snapshot.owner
    if route is None:
        return HOLDS
    lines = snapshot.policy.gateways_for(route.gateway(owner.namespace), owner.namespace)
    named = [line for line in lines if line.allows_hostname(route.hostname)]
    if lines and not named:
        return _hostname_refused(route, sorted({name for line in lines for name in line.hostnames}))
    path = route.path_of(owner.namespace, owner.name)
    if not named or any(line.allows_path(path, owner.namespace) for line in named):
        return HOLDS
    return _blocks(
        GatewayReason.ROUTE_NOT_ALLOWED,
        f"`endpoint.gateway.path` '{path}' may not be used in namespace '{owner.namespace}'; choose one below "
        f"'/{owner.namespace}/', or the operator's configuration would need '{path}' under `gateways[].paths`",
        f"{_FIELD}.path",
    )


def _hostname_refused(route: GatewayRoute, names: list[str]) -> Blocks:
    problem = f"'{route.hostname}' may not be used" if route.hostname is not None else "must be set"
    return _blocks(
        GatewayReason.ROUTE_NOT_ALLOWED,
        f"`endpoint.gateway.hostname` {problem}: the operator's configuration allows {', '.join(names)}",
        f"{_FIELD}.hostname",
    )


def gateway_api_is_served(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The cluster has the kinds of the Gateway API."""
    missing = [kind.kind for kind in (GATEWAY, HTTP_ROUTE) if kind.plural in snapshot.absent]
    if spec.endpoint.gateway is None or not missing:
        return HOLDS
    return _blocks(
        GatewayReason.GATEWAY_API_MISSING,
        f"the cluster does not serve {' and '.join(missing)} of {GATEWAY.api_version}: install the CRDs of the Gateway "
        "API and a controller for them, or remove `endpoint.gateway`",
        _FIELD,
    )


def path_is_free(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The path leads to no other ModelDeployment."""
    route, owner = spec.endpoint.gateway, snapshot.owner
    if route is None or not snapshot.gateway.path_holder:
        return HOLDS
    return _blocks(
        GatewayReason.ROUTE_CONFLICT,
        f"`endpoint.gateway.path` '{route.path_of(owner.namespace, owner.name)}' leads to the ModelDeployment "
        f"'{snapshot.gateway.path_holder}', which had it first; choose another one or leave it out",
        f"{_FIELD}.path",
    )


def _blocks(reason: GatewayReason, message: str, field: str) -> Blocks:
    return Blocks(reason, message, ConditionType.ENDPOINT_PRIVATE, field=field)

"""Whether the Gateway of a model is private, and whether it serves the route to the model, in its controller's words.

Conditions of a route: Accepted (a listener takes it), ResolvedRefs (its backends may be used); of a Gateway: Programmed
(it is in effect). Source: kubernetes-sigs/gateway-api, apis/v1/shared_types.go and apis/v1/gateway_types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.api.condition_updates import ConditionReason, ConditionUpdate, condition_of
from hermetic.api.conditions import ConditionType
from hermetic.api.gateway import GatewayRoute
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.ip_ranges import is_private
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.api.strictness import covers
from hermetic.api.text import first_of, one_line
from hermetic.kinds import GATEWAY, HTTP_ROUTE
from hermetic.objects.http_route import (
    MODEL_NAME_HEADER,
    PLAIN_ROUTE,
    RouteSettings,
    gateways_of,
    hostnames_of,
    paths_of,
    route_name,
    sections_of,
)
from hermetic.plan.gateway_listeners import attachment, listeners_for, preferred_listeners, refusals, sections
from hermetic.plan.route_group import backends, is_written_here, share
from hermetic.plan.snapshot import ClusterSnapshot

Manifest = Mapping[str, Any]
LONGEST_ADDRESS = 253


def route_settings(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> RouteSettings:
    """What configuration and cluster add to `endpoint.gateway`.

    No route is made before the Gateway is shown to be private, and one that is there goes when it is shown not to be.
    While a Gateway has no address, or is being replaced, a route by it that is there stays.
    """
    route = spec.endpoint.gateway
    if route is None:
        return PLAIN_ROUTE
    gateway = route.gateway(snapshot.owner.namespace)
    lines = snapshot.policy.gateways_for(gateway, snapshot.owner.namespace)
    live = live_route(route, snapshot)
    is_there = live is not None and gateways_of(live) == {gateway}
    return RouteSettings(
        data_planes=tuple(line.data_plane for line in lines),
        is_withheld=not lines or bool(not_private(snapshot)) or not (is_there or _addresses(snapshot)),
        has_model_name=not snapshot.gateway.model_name_holder,
        is_written_here=is_written_here(snapshot),
        backends=backends(snapshot),
        sections=_sections(route, snapshot),
    )


def _sections(route: GatewayRoute, snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """The listeners that the route names: those with TLS; none of them, and so all, where the Gateway has no TLS.

    While a Gateway is being replaced, a route that is there keeps its own: it must not open plain HTTP for a moment.
    """
    gateway = snapshot.gateway.manifest
    if gateway is None:
        return sections_of(live_route(route, snapshot) or {})
    return sections(listeners_for(gateway, snapshot.owner.namespace), route.hostname)


def live_route(route: GatewayRoute, snapshot: ClusterSnapshot) -> Manifest | None:
    """The HTTPRoute that leads to the model, as it is live; None where there is none."""
    return snapshot.child(HTTP_ROUTE, route_name(route, snapshot.owner))


def why_not_as_it_is(live: Manifest, snapshot: ClusterSnapshot, named: tuple[str, str] | None) -> str:
    """Why a live route must not stay as it is, because its Gateway is not private or not allowed; "" where it may.

    It is asked of routes that are not rewritten. `named`: the Gateway that the spec names, None where it is not known.
    """
    namespace, parents = snapshot.owner.namespace, gateways_of(live)
    lines = [
        line
        for line in snapshot.policy.gateways
        if parents == {line.key}
        and covers(line.namespaces, namespace)
        and all(map(line.allows_hostname, hostnames_of(live)))
        and all(line.allows_path(path, namespace) for path in paths_of(live))
    ]
    if not lines:
        return "may not be used in this way"
    if named is not None and parents != {named}:
        return "is not the one that the spec names"
    return not_private(snapshot)


def not_private(snapshot: ClusterSnapshot) -> str:
    """Why the Gateway is not private; "" where nothing shows it."""
    gateway = snapshot.gateway.manifest or {}
    requested = (str(entry.get("value") or "") for entry in (gateway.get("spec") or {}).get("addresses") or ())
    addresses = (*_addresses(snapshot), *filter(None, requested))
    public = [address for address in addresses if not is_private(address, snapshot.policy.additional_private_ranges)]
    if public:
        shown = first_of([one_line(address[:LONGEST_ADDRESS]) for address in public], 1)
        return f"has the address '{shown}', which is not known to be private"
    return snapshot.gateway.exposed_by


def gateway_is_private(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> ConditionUpdate | None:
    """The condition EndpointPrivate where the Gateway keeps it from being True; None where the Gateway is private."""
    kind, route = ConditionType.ENDPOINT_PRIVATE, spec.endpoint.gateway
    if route is None:
        return None
    subject = _subject(route, snapshot)
    if why := not_private(snapshot):
        live = live_route(route, snapshot)
        done = "there is no route to the model" if live is None else "the route to the model is being removed"
        return ConditionUpdate(kind, "False", GatewayReason.GATEWAY_NOT_PRIVATE, f"{subject} {why}; {done}")
    return _not_known(kind, subject, snapshot)


def route_served(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> ConditionUpdate | None:
    """The condition RouteServed; None for a spec without a gateway."""
    kind, route = ConditionType.ROUTE_SERVED, spec.endpoint.gateway
    if route is None:
        return None
    if (withheld := gateway_is_private(spec, snapshot)) is not None:
        return ConditionUpdate(kind, withheld.status, withheld.reason, withheld.message)
    refused = next(_objections(route, snapshot), None)
    if refused is not None:
        return ConditionUpdate(kind, *refused)
    message = f"{_subject(route, snapshot)} serves HTTPRoute '{route_name(route, snapshot.owner)}'{share(snapshot)}"
    if not _is_reported(route, snapshot):
        message += "; its controller has not reported about the present version of it yet"
    if other := snapshot.gateway.model_name_holder:
        message += f"; the header {MODEL_NAME_HEADER} leads to '{other}', which had the name '{spec.model.name}' first"
    return ConditionUpdate(kind, "True", GatewayReason.ROUTE_ACCEPTED, message)


def gateway_endpoint(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> dict[str, str] | None:
    """URL and address of the model behind its Gateway; None while it has none."""
    route, owner, gateway = spec.endpoint.gateway, snapshot.owner, snapshot.gateway.manifest
    addresses = _addresses(snapshot)
    if route is None or gateway is None or not addresses or not_private(snapshot):
        return None
    attached = attachment(gateway, listeners_for(gateway, owner.namespace), route.hostname)
    if attached is None:
        return None
    path = route.path_of(owner.namespace, owner.name).removesuffix("/")
    return {"url": attached.url(addresses[0], f"{path}/v1"), "address": addresses[0]}


Objection = tuple[str, ConditionReason, str]


def _objections(route: GatewayRoute, snapshot: ClusterSnapshot) -> Iterator[Objection]:
    """Why the Gateway does not serve the route, the first cause first: its listeners, itself, the route."""
    gateway, subject = snapshot.gateway.manifest or {}, _subject(route, snapshot)
    listener_objections = list(_of_the_listeners(route, snapshot))
    yield from (objection for is_cause, objection in listener_objections if is_cause)
    for name in ("Accepted", "Programmed"):
        condition = condition_of(gateway.get("status") or {}, name)
        if condition is not None and condition.get("status") == "False":
            yield "False", GatewayReason.GATEWAY_NOT_PROGRAMMED, f"{subject} is not in effect: {_quoted(condition)}"
    yield from (objection for _, objection in listener_objections)
    yield from _of_the_route(route, snapshot)


def _of_the_listeners(route: GatewayRoute, snapshot: ClusterSnapshot) -> Iterator[tuple[bool, Objection]]:
    """Why no listener serves the route, and whether that is a cause: a listener may only wait for its Gateway."""
    gateway, namespace, subject = snapshot.gateway.manifest, snapshot.owner.namespace, _subject(route, snapshot)
    if gateway is None:
        return
    listeners = listeners_for(gateway, namespace)
    attached = attachment(gateway, listeners, route.hostname)
    if not listeners:
        message = f"no listener of {subject} takes HTTP routes of namespace '{namespace}' (allowedRoutes)"
        causes = first_of([one_line(refusal) for refusal in refusals(gateway, namespace)], 3, "; ")
        message += f": {causes}" if causes else ""
        yield True, ("False", GatewayReason.NO_LISTENER_FOR_NAMESPACE, message)
    elif attached is None:
        preferred = preferred_listeners(listeners, route.hostname)
        names = first_of(sorted({one_line(str(listener.get("hostname"))) for listener in preferred}), 3)
        wish = f"'{route.hostname}'" if route.hostname is not None else "every host name"
        message = f"no listener of {subject} is for {wish}, but for {names}"
        yield True, ("False", GatewayReason.NO_LISTENER_FOR_HOSTNAME, message)
    elif attached.problem is not None:
        kind, status = attached.problem.get("type"), attached.problem.get("status")
        message = f"listener '{attached.name}' of {subject} is not in effect: {kind} {status}: "
        message += _quoted(attached.problem)
        yield kind != "Programmed", ("False", GatewayReason.LISTENER_NOT_PROGRAMMED, message)


def _of_the_route(route: GatewayRoute, snapshot: ClusterSnapshot) -> Iterator[Objection]:
    live, subject = live_route(route, snapshot), _subject(route, snapshot)
    if live is None:
        yield "Unknown", GatewayReason.ROUTE_PENDING, "the HTTPRoute does not exist yet"
        return
    parents = [
        parent
        for parent in (live.get("status") or {}).get("parents") or ()
        if _names(parent.get("parentRef") or {}, route, snapshot.owner.namespace)
    ]
    served = [parent for parent in parents if not any(_refused(parent))]
    if not parents:
        yield (
            "Unknown",
            GatewayReason.ROUTE_PENDING,
            f"the controller of {subject} has not reported about the HTTPRoute",
        )
    elif not served:
        yield next(_refused(parents[0]))


def _is_reported(route: GatewayRoute, snapshot: ClusterSnapshot) -> bool:
    """Whether a controller has reported about the present generation of the route.

    An edit of a weight changes the generation. What was accepted before stays accepted until the controller says
    otherwise: a model would not be Ready for a moment at every step of a promotion.
    """
    live = live_route(route, snapshot) or {}
    generation = (live.get("metadata") or {}).get("generation", 0)
    return any(
        condition.get("type") == "Accepted" and condition.get("observedGeneration", generation) >= generation
        for parent in (live.get("status") or {}).get("parents") or ()
        if _names(parent.get("parentRef") or {}, route, snapshot.owner.namespace)
        for condition in parent.get("conditions") or ()
    )


def _refused(parent: Manifest) -> Iterator[Objection]:
    """What a controller reports against the route."""
    for name, reason in (
        ("Accepted", GatewayReason.ROUTE_REFUSED),
        ("ResolvedRefs", GatewayReason.ROUTE_BACKEND_REFUSED),
    ):
        condition = condition_of(parent, name)
        if condition is not None and condition.get("status") == "False":
            yield "False", reason, f"the Gateway's controller reports {name} False: {_quoted(condition)}"
        elif condition is None or condition.get("status") != "True":
            yield "Unknown", GatewayReason.ROUTE_PENDING, f"the Gateway's controller has not reported {name} yet"


def _not_known(kind: ConditionType, subject: str, snapshot: ClusterSnapshot) -> ConditionUpdate | None:
    """The condition where nothing shows that the Gateway is private; None where its addresses do."""
    unseen = [kind.plural for kind in (GATEWAY, HTTP_ROUTE) if kind.plural in snapshot.unseen]
    if unseen:
        message = f"the operator may not list {', '.join(unseen)}; apply the RBAC of manifests/"
        return ConditionUpdate(kind, "Unknown", Reason.PERMISSION_LOST, message)
    if snapshot.gateway.manifest is None:
        return ConditionUpdate(kind, "Unknown", GatewayReason.GATEWAY_NOT_FOUND, f"{subject} does not exist")
    if not _addresses(snapshot):
        message = f"{subject} has no address yet that would show it to be private"
        return ConditionUpdate(kind, "Unknown", GatewayReason.GATEWAY_ADDRESS_PENDING, message)
    return None


def _addresses(snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """The addresses that the Gateway has been given."""
    status = (snapshot.gateway.manifest or {}).get("status") or {}
    return tuple(str(entry["value"]) for entry in status.get("addresses") or () if entry.get("value"))


def _names(reference: Manifest, route: GatewayRoute, namespace: str) -> bool:
    kind = reference.get("kind") or GATEWAY.kind
    named = (str(reference.get("namespace") or namespace), str(reference.get("name")))
    return kind == GATEWAY.kind and named == route.gateway(namespace)


def _subject(route: GatewayRoute, snapshot: ClusterSnapshot) -> str:
    namespace, name = route.gateway(snapshot.owner.namespace)
    return f"Gateway '{namespace}/{name}'"


def _quoted(condition: Manifest) -> str:
    return one_line(f"{condition.get('reason')}: {condition.get('message')}")

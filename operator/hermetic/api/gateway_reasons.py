"""What can be wrong between a model and its gateway: one word for programs, its meaning, and what to do about it."""

from __future__ import annotations

from hermetic.signing.explained import ExplainedReason

_OR_ALLOWED = "Or ask the platform team to change `gateways` in the operator's configuration."


class GatewayReason(ExplainedReason):
    """Of a model with `endpoint.gateway`."""

    # what a spec may ask for
    GATEWAY_NOT_ALLOWED = (
        "GatewayNotAllowed",
        "The operator's configuration does not allow the Gateway for this namespace.",
        f"Name an allowed Gateway. {_OR_ALLOWED}",
        True,
    )
    ROUTE_NOT_ALLOWED = (
        "RouteNotAllowed",
        "The operator's configuration does not allow the path or the host name for this namespace.",
        f"Remove `path` or choose one below /NAMESPACE/, or name an allowed `hostname`. {_OR_ALLOWED}",
        True,
    )
    ROUTE_CONFLICT = (
        "RouteConflict",
        "Another ModelDeployment has the same path on the Gateway, and had it first.",
        "Choose another `path`, or remove it: the default is the model's own.",
        True,
    )
    ROUTE_GROUP_MISMATCH = (
        "RouteGroupMismatch",
        "The ModelDeployment differs from the others of its group, or the group has too many members.",
        "Give all members of a group the same gateway, host name, path and `model.name`, or choose another `group`.",
        True,
    )
    GATEWAY_API_MISSING = (
        "GatewayApiMissing",
        "The cluster does not have the kinds Gateway and HTTPRoute of the Gateway API.",
        "Ask the platform team to install the CRDs of the Gateway API and a controller for them.",
        True,
    )
    GATEWAY_API_TOO_OLD = (
        "GatewayApiTooOld",
        "The CRD HTTPRoute of the cluster lacks a field that Hermetic writes.",
        "Ask the platform team to install the CRDs of the Gateway API v1.1 or a later release, standard channel.",
        True,
    )

    # the Gateway
    GATEWAY_NOT_FOUND = (
        "GatewayNotFound",
        "The Gateway does not exist.",
        "Correct `endpoint.gateway`, or ask the platform team to create the Gateway.",
    )
    GATEWAY_ADDRESS_PENDING = (
        "GatewayAddressPending",
        "The Gateway has no address yet, so nothing shows that it is private.",
        "Wait. If it stays, read the conditions of the Gateway: 'kubectl describe gateway NAME'.",
    )
    GATEWAY_NOT_PRIVATE = (
        "GatewayNotPrivate",
        "The Gateway has an address that is not private, or a Service in front of its pods is not. Hermetic removed "
        "the route to the model.",
        "Ask the platform team for a Gateway with private addresses and internal load balancers alone.",
        True,
    )
    GATEWAY_NOT_PROGRAMMED = (
        "GatewayNotProgrammed",
        "The Gateway's controller has not put the Gateway into effect.",
        "Read the message: it has the controller's own words.",
    )
    NO_LISTENER_FOR_NAMESPACE = (
        "NoListenerForNamespace",
        "No listener of the Gateway takes HTTP routes of this namespace.",
        "Ask the platform team to set `allowedRoutes` of a listener, or name another Gateway.",
        True,
    )
    NO_LISTENER_FOR_HOSTNAME = (
        "NoListenerForHostname",
        "No listener of the Gateway is for this host name.",
        "Set `endpoint.gateway.hostname` to a name that the message lists.",
        True,
    )
    LISTENER_NOT_PROGRAMMED = (
        "ListenerNotProgrammed",
        "The listener of the Gateway that is for the model is not in effect, for example without its certificate.",
        "Ask the platform team to mend the listener. The message has the controller's own words.",
    )

    # the route
    ROUTE_PENDING = (
        "RoutePending",
        "The HTTPRoute does not exist yet, or the Gateway's controller has not reported about it.",
        "Wait. If it stays, check that the controller of the Gateway runs.",
    )
    ROUTE_REFUSED = (
        "RouteRefused",
        "The Gateway does not serve the HTTPRoute.",
        "Read the message: it has the controller's own words.",
    )
    ROUTE_BACKEND_REFUSED = (
        "RouteBackendRefused",
        "The Gateway does not send requests to the model's Service.",
        "Read the message: it has the controller's own words.",
    )
    ROUTE_ACCEPTED = "RouteAccepted", "The Gateway serves the HTTPRoute.", "Nothing to do."

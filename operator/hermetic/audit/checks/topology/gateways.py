"""VPN and ExpressRoute gateways: their presence, connections, clients and learned routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.gateways import connections_of, distant_networks, gateways_in
from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.egress.relay_routes import public_prefixes, without_a_list
from hermetic.audit.estate.arm_ids import name_of, parent_of
from hermetic.audit.estate.azure.routing import LearnedRoutes, VirtualNetworkGateway, VirtualNetworkGatewayConnection
from hermetic.audit.estate.azure.vnet import VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.audit.evaluation.each_resource import each_network, whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import Space, union
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, ON_PREMISES, Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.subnet_context import network_space


def _each_gateway(
    estate: Estate,
    policy: Policy,
    evaluate: Callable[[VirtualNetworkGateway], Iterable[CheckResult]],
    *,
    with_peers: bool = False,
) -> Iterator[CheckResult]:
    """Apply `evaluate` to the gateways of each network; with `with_peers`, also to those used through a peering."""

    def of_network(network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
        near = gateways_in(estate, network)
        distant = distant_networks(estate, policy, network.target) if with_peers else []
        far = [gateways_in(estate, distant_network) for distant_network in distant]
        gateways = [gateway for listing in (near, *far) for gateway in listing]
        for gateway in gateways:
            yield from evaluate(gateway)
        if gateways:
            yield from whole_or_unknown(network.target, "its gateways", near, *far)
        else:
            yield does_not_apply(network.target, "NoGateway", "no gateway exists", network, near, *far)

    yield from each_network(estate, policy, of_network)


@check_each("vnet-gateway", each_network)
def vnet_gateway(estate: Estate, _policy: Policy, network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
    """A gateway in the cluster's network: medium by itself, high with a connection that is not known to be down."""
    gateways = gateways_in(estate, network)
    for gateway in gateways:
        yield _present(estate, gateway)
    if gateways.items:
        yield from whole_or_unknown(network.target, "its gateways", gateways)
    else:
        yield passes(network.target, "NoGateway", "no gateway is in the network", network, gateways)


def _present(estate: Estate, gateway: VirtualNetworkGateway) -> CheckResult:
    up = [connection for connection in connections_of(estate, gateway) if not _is_down(connection)]
    message = f"{gateway.gateway_type or 'a'} gateway with {len(up)} connection(s) that may be up"
    path = path_of(hops.vnet("of the cluster"), hops.gateway(f"gateway {gateway.name}"), ON_PREMISES)
    severity = Severity.HIGH if up else Severity.MEDIUM
    return fails(gateway.id, "GatewayPresent", message, gateway, paths=(path,), severity=severity)


def _is_down(connection: Lookup[VirtualNetworkGatewayConnection]) -> bool:
    return connection.value is not None and (connection.value.connection_status or "").lower() == "notconnected"


@check_each("gateway-connections", _each_gateway)
def gateway_connections(estate: Estate, _policy: Policy, gateway: VirtualNetworkGateway) -> Iterator[CheckResult]:
    """Each connection of each gateway in the cluster's network."""
    listing = connections_of(estate, gateway)
    for connection in listing:
        yield _connection(gateway, connection)
    if listing.items:
        yield from whole_or_unknown(gateway.id, "its connections", listing)
    else:
        yield passes(gateway.id, "NoConnection", "the gateway has no connection", gateway, listing)


def _connection(gateway: VirtualNetworkGateway, connection: Lookup[VirtualNetworkGatewayConnection]) -> CheckResult:
    status = connection.value.connection_status if connection.value is not None else None
    if (status or "").lower() == "connected":
        path = path_of(
            hops.vnet("of the cluster"),
            hops.gateway(f"gateway {gateway.name}"),
            Hop(PlaceKind.ON_PREMISES, f"on-prem by {name_of(connection.target)}"),
        )
        return fails(connection.target, "Connected", "the connection is up", connection, paths=(path,))
    if connection.value is not None and _is_down(connection):
        return passes(connection.target, "NotConnected", "the connection is down", connection)
    return unknown(
        connection.target, "StatusUnknown", f"connection status {status!r} is neither up nor down", connection
    )


@check_each("gateway-p2s", _each_gateway)
def gateway_p2s(_estate: Estate, _policy: Policy, gateway: VirtualNetworkGateway) -> Iterator[CheckResult]:
    """Point-to-site: client machines in the network, each with an internet connection of its own."""
    configuration = gateway.vpn_client_configuration
    pool = configuration.vpn_client_address_pool if configuration is not None else None
    if pool is not None and pool.address_prefixes:
        message = f"clients get addresses of {', '.join(pool.address_prefixes)}"
        path = path_of(hops.vnet("of the cluster"), hops.gateway(f"gateway {gateway.name}"), "vpn client", INTERNET)
        yield fails(gateway.id, "PointToSite", message, gateway, paths=(path,))
    else:
        yield passes(gateway.id, "NoClients", "no client address pool is set", gateway)


@check_each("gateway-forced-tunnel", partial(_each_gateway, with_peers=True))
def gateway_forced_tunnel(estate: Estate, _policy: Policy, gateway: VirtualNetworkGateway) -> Iterator[CheckResult]:
    """A default site, or a public prefix learned by BGP, routes internet traffic through the gateway."""
    learned = estate.asked(LearnedRoutes, gateway.id)
    path = path_of(hops.vnet("of the cluster"), hops.gateway(f"gateway {gateway.name}"), ON_PREMISES, INTERNET)
    site = gateway.gateway_default_site
    public = public_prefixes(learned, _own_space(estate, gateway))
    if site is not None:
        yield fails(gateway.id, "DefaultSite", f"gatewayDefaultSite is {site.id}", gateway, learned, paths=(path,))
    elif public:
        message = f"the gateway has learned {', '.join(public)}"
        yield fails(gateway.id, "PublicRouteLearned", message, gateway, learned, paths=(path,))
    elif (gap := without_a_list(learned)) is not None:
        yield unknown(gateway.id, "RoutesNotSeen", "learned routes were not seen", gap, learned)
    else:
        yield passes(gateway.id, "NoPublicRoute", "no default and no public prefix is learned", gateway, learned)


def _own_space(estate: Estate, gateway: VirtualNetworkGateway) -> Space:
    """Address space of the cluster's networks, of the gateway's, and of the peers of both."""
    networks = (*network_ids_of(estate), *map(parent_of, gateway.subnet_ids))
    return union(span for network_id in networks for span in network_space(estate, network_id))

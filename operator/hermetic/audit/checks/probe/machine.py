"""Routes of the machines themselves."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.checks.probe.vantages import Doubt, OpenPath, on_each_machine, start_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.evaluation import Judgement
from hermetic.audit.hops import Hop, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.topology import PlaceKind


@check("node-routes")
def node_routes(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Azure gives every machine an IPv4 default route, sealed or not; an IPv6 default route was configured."""

    def ways(run: ProbeRun) -> Iterator[OpenPath]:
        for route in run.said.v6_defaults or ():
            yield OpenPath(
                f"{run.node} has an IPv6 default route by {route}",
                path_of(*start_of(run), route, Hop(PlaceKind.INTERNET, "::/0")),
            )

    return on_each_machine(estate, "V6DefaultRoute", ways, _routes_unknown, "no IPv6 default route")


@check("node-v6-default-route")
def node_v6_default_route(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """An IPv6 default route leads out once the machine has an IPv6 address."""

    def ways(run: ProbeRun) -> Iterator[OpenPath]:
        addresses = run.said.v6_addresses
        for route in run.said.v6_defaults or ():
            if addresses:
                message = f"{run.node} has the address {addresses[0]} and an IPv6 default route by {route}"
                yield OpenPath(message, path_of(*start_of(run), route, Hop(PlaceKind.INTERNET, "::/0")))

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        yield from _routes_unknown(run)
        if run.said.v6_addresses is None:
            yield Doubt("AddressesUnknown", f"the IPv6 addresses of {run.node} could not be read")
        elif run.said.v6_defaults:
            message = f"{run.node} has an IPv6 default route, and no address to use it with yet"
            yield Doubt("RouteWithoutAddress", message)

    return on_each_machine(estate, "V6DefaultRoute", ways, doubts, "no IPv6 default route with an address to use it")


def _routes_unknown(run: ProbeRun) -> Iterator[Doubt]:
    if run.said.v6_defaults is None:
        yield Doubt("RoutesUnknown", f"the IPv6 routes of {run.node} could not be read")

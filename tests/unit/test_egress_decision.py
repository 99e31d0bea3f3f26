"""The decision for one interface: methods, routes and default outbound access on one side, masks on the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermetic.audit.cluster.members import subnets_of
from hermetic.audit.egress.decision import Decision, Egress, internet_egress
from hermetic.audit.egress.service_endpoints import storage_path
from hermetic.audit.estate.azure.vnet import ScaleSetNic
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.hops import written
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.subnet_context import surroundings
from tests.audit_estates import NETWORK, NODES, ROUTES, RULES, SCALE_SET, SUBSCRIPTION, FakeAzure, route, small_cluster
from tests.outbound_methods import BALANCER, balancer, balancing, node_in_pool

Change = Callable[[FakeAzure], object]
NAT = {"id": f"{NETWORK}/natGateways/out"}


def decided(azure: FakeAzure, is_reported: bool | None) -> Decision:
    def decide(estate: Estate) -> Decision:
        nic = next((interface for interface in estate.every(ScaleSetNic, SCALE_SET)), ScaleSetNic())
        return internet_egress(estate, Policy(), nic, is_reported)

    return decide(azure.settled(decide))


def unmasked() -> FakeAzure:
    return small_cluster().change(ROUTES, routes=[]).change(RULES, securityRules=[])


def without_rules() -> FakeAzure:
    return small_cluster().change(RULES, securityRules=[])


def behind_a_balancer(azure: FakeAzure, **frontend: Any) -> FakeAzure:
    balancer(BALANCER, public=bool(frontend.get("public")), rules=[balancing(BALANCER)])(azure)
    node_in_pool(f"{BALANCER}/backendAddressPools/n")(azure)
    return azure


APPLIANCE = [route("v4", "0.0.0.0/0", "VirtualAppliance", "10.0.9.9")]

TABLE: list[tuple[str, Callable[[], FakeAzure], bool | None, Egress]] = [
    ("sealed", small_cluster, False, Egress.CLOSED),
    ("private, nothing masks, no method", unmasked, False, Egress.CLOSED),
    ("a stale address, masked", small_cluster, True, Egress.MASKED),
    ("a stale address", unmasked, True, Egress.OPEN),
    ("default outbound access", lambda: unmasked().change(NODES, defaultOutboundAccess=None), False, Egress.OPEN),
    ("a NAT gateway", lambda: unmasked().change(NODES, natGateway=NAT), False, Egress.OPEN),
    ("a NAT gateway behind rules", lambda: small_cluster().change(NODES, natGateway=NAT), False, Egress.MASKED),
    (
        "a NAT gateway behind a route to nowhere",
        lambda: without_rules().change(NODES, natGateway=NAT),
        False,
        Egress.MASKED,
    ),
    ("a default route to an appliance", lambda: unmasked().change(ROUTES, routes=APPLIANCE), False, Egress.OPEN),
    (
        "a default route to the internet, and nothing carries it",
        lambda: unmasked().change(ROUTES, routes=[route("v4", "0.0.0.0/0", "Internet")]),
        False,
        Egress.CLOSED,
    ),
    ("public translation", lambda: behind_a_balancer(unmasked(), public=True), False, Egress.OPEN),
    ("a stale address behind an internal balancer", lambda: behind_a_balancer(unmasked()), True, Egress.MASKED),
    (
        "a NAT gateway behind an internal balancer",
        lambda: behind_a_balancer(unmasked().change(NODES, natGateway=NAT)),
        False,
        Egress.OPEN,
    ),
    ("not known", small_cluster, None, Egress.UNSURE),
    (
        "methods that may be hidden",
        lambda: small_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/natGateways"),
        False,
        Egress.UNSURE,
    ),
    ("a table that was not seen", lambda: small_cluster().refuse(ROUTES), False, Egress.UNSURE),
    ("a subnet that was not seen", lambda: small_cluster().refuse(NODES), False, Egress.UNSURE),
    (
        "an interface that was not seen",
        lambda: small_cluster().refuse(SCALE_SET, UnreadReason.REFUSED),
        False,
        Egress.UNSURE,
    ),
]


@pytest.mark.parametrize(
    ("azure", "is_reported", "egress"),
    [pytest.param(azure, is_reported, egress, id=title) for title, azure, is_reported, egress in TABLE],
)
def test_whether_a_packet_leaves(azure: Callable[[], FakeAzure], is_reported: bool | None, egress: Egress) -> None:
    decision = decided(azure(), is_reported)
    assert decision.egress is egress
    assert bool(decision.paths) is (egress in {Egress.OPEN, Egress.MASKED})
    assert bool(decision.masks) is (egress is Egress.MASKED)


def test_every_way_is_drawn() -> None:
    azure = unmasked().change(NODES, natGateway=NAT, defaultOutboundAccess=None)
    assert tuple(map(written, decided(azure, is_reported=True).paths)) == (
        "subnet nodes -> nat gateway out -> internet",
        "subnet nodes -> default outbound -> internet",
    )


STORAGE = [{"service": "Microsoft.Storage"}]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda w: w, ""),
        (lambda w: w.change(RULES, securityRules=[]), ""),
        (lambda w: w.change(ROUTES, routes=[]), ""),
        (
            lambda w: w.change(RULES, securityRules=[]).change(ROUTES, routes=[]),
            "subnet nodes -> same-region storage of any account",
        ),
        (
            lambda w: w.change(NODES, serviceEndpoints=STORAGE),
            "subnet nodes -> service endpoint -> storage of any account",
        ),
        (
            lambda w: w.change(NODES, serviceEndpoints=STORAGE, serviceEndpointPolicies=[{"id": "/subscriptions/x"}]),
            "subnet nodes -> service endpoint -> what its policy allows",
        ),
    ],
)
def test_storage_of_the_region_is_reached_unless_a_rule_or_a_route_stops_it(change: Change, path: str) -> None:
    azure = small_cluster()
    change(azure)

    def decide(estate: Estate) -> str:
        scoped = next((subnet for subnet in subnets_of(estate)[0] if subnet.id == NODES), None)
        if scoped is None or scoped.observation.value is None:
            return ""
        around = surroundings(estate, scoped, scoped.observation.value)
        return written(storage_path(around, around.combinations[0]))

    assert decide(azure.settled(decide)) == path

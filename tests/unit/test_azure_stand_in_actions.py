"""Read-like actions of the stand-in: what a packet would meet is computed, and polled for where Azure's is."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline import estate_of, sealed_estate
from testbed.azure.baseline.network import rule
from testbed.azure.estate import Estate
from testbed.azure.faults import EndsFailed, Fault, NeverEnds
from testbed.azure.plants.pieces import change_rules, gateway, set_route
from testbed.azure.refusals import Refusal
from tests.sampled_groups import AZURE_STAND_IN
from tests.unit.azure_stand_in import Caller, calling, code_of

pytestmark = AZURE_STAND_IN

ANYWHERE = "203.0.113.9"


def active_routes(caller: Caller, estate: Estate) -> dict[str, tuple[str, str]]:
    """prefix -> (source, next hop type) of the sentinel's active routes."""
    table = caller.act(f"{estate.site.sentinel}/effectiveRouteTable")["value"]
    return {
        prefix: (route["source"], route["nextHopType"])
        for route in table
        if route["state"] == "Active"
        for prefix in route["addressPrefix"]
    }


def next_hop(caller: Caller, estate: Estate, destination: str = ANYWHERE) -> Any:
    machine = estate.properties(estate.site.sentinel)["virtualMachine"]["id"]
    body = {"targetResourceId": machine, "sourceIPAddress": "10.40.1.200", "destinationIPAddress": destination}
    return caller.act(f"{estate.site.watcher}/nextHop", body)


def test_sealed_subnet_leads_nowhere() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        routes = active_routes(caller, estate)
        hop = next_hop(caller, estate)

    assert routes["0.0.0.0/0"] == ("User", "None")
    assert routes["10.40.8.5/32"] == ("Default", "InterfaceEndpoint")
    assert {kind for _, kind in routes.values()} == {"VnetLocal", "None", "InterfaceEndpoint"}
    assert hop["nextHopType"] == "None"
    assert hop["routeTableId"] == estate.site.route_table


def test_without_a_route_table_the_system_route_leads_to_the_internet() -> None:
    estate = sealed_estate()
    estate.properties(estate.site.gpu_subnet)["routeTable"] = None
    with calling(estate) as caller:
        assert active_routes(caller, estate)["0.0.0.0/0"] == ("Default", "Internet")
        assert next_hop(caller, estate)["nextHopType"] == "Internet"


def test_longest_prefix_wins_over_the_route_to_nowhere() -> None:
    estate = sealed_estate()
    set_route(estate, "half", "128.0.0.0/1", "VirtualAppliance", "10.40.12.200")
    with calling(estate) as caller:
        hop = next_hop(caller, estate)
        low = next_hop(caller, estate, "1.2.3.4")

    assert (hop["nextHopType"], hop["nextHopIpAddress"]) == ("VirtualAppliance", "10.40.12.200")
    assert low["nextHopType"] == "None"


def test_learned_default_loses_to_the_users_and_wins_over_azures() -> None:
    estate = sealed_estate()
    identifier = gateway(estate)
    estate.answer(identifier, "getLearnedRoutes", {"value": [{"network": "0.0.0.0/0"}, {"network": "10.99.0.0/16"}]})
    table = estate.properties(estate.site.route_table)
    with calling(estate) as caller:
        assert "10.99.0.0/16" not in active_routes(caller, estate)
        table["disableBgpRoutePropagation"] = False
        assert active_routes(caller, estate)["0.0.0.0/0"] == ("User", "None")
        assert active_routes(caller, estate)["10.99.0.0/16"] == ("VirtualNetworkGateway", "VirtualNetworkGateway")
        table["routes"] = []
        assert active_routes(caller, estate)["0.0.0.0/0"] == ("VirtualNetworkGateway", "VirtualNetworkGateway")


def test_service_endpoint_routes_cannot_be_overridden() -> None:
    estate = sealed_estate()
    estate.properties(estate.site.gpu_subnet)["serviceEndpoints"] = [{"service": "Microsoft.Storage"}]
    with calling(estate) as caller:
        routes = active_routes(caller, estate)
        prefix = next(prefix for prefix, (_, kind) in routes.items() if kind == "VirtualNetworkServiceEndpoint")
        set_route(estate, "same", prefix, "None")
        assert active_routes(caller, estate)
        again = caller.act(f"{estate.site.sentinel}/effectiveRouteTable")["value"]

    states = {(r["nextHopType"], r["state"]) for r in again if r["addressPrefix"] == [prefix]}
    assert ("VirtualNetworkServiceEndpoint", "Active") in states


def test_peering_brings_the_peers_space() -> None:
    estate = estate_of("peered")
    with calling(estate) as caller:
        assert active_routes(caller, estate)["10.10.0.0/22"] == ("Default", "VNetPeering")


def test_effective_rules_merge_own_and_default_rules_by_priority() -> None:
    estate = sealed_estate()
    change_rules(estate, estate.site.node_rules, plus=rule("AllowStorage", 150, "Allow", "Storage"))
    with calling(estate) as caller:
        groups = caller.act(f"{estate.site.sentinel}/effectiveNetworkSecurityGroups")["value"]

    assert [group["networkSecurityGroup"]["id"] for group in groups] == [estate.site.node_rules]
    outbound = [
        security_rule["name"]
        for security_rule in groups[0]["effectiveSecurityRules"]
        if security_rule["direction"] == "Outbound"
    ]
    assert outbound == [
        "securityRules/AllowOwnNetwork",
        "securityRules/AllowStorage",
        "securityRules/DenyInternet",
        "defaultSecurityRules/AllowVnetOutBound",
        "defaultSecurityRules/AllowInternetOutBound",
        "defaultSecurityRules/DenyAllOutBound",
    ]


def test_interface_without_a_machine_is_refused() -> None:
    estate = sealed_estate()
    nics = estate.of_type("Microsoft.Network/networkInterfaces")
    endpoint = next(nic["id"] for nic in nics if nic["properties"].get("privateEndpoint"))
    with calling(estate) as caller:
        for action in ("effectiveRouteTable", "effectiveNetworkSecurityGroups"):
            assert caller.post(f"{endpoint}/{action}").status_code == 400


def test_estate_can_say_what_an_action_answers() -> None:
    estate = sealed_estate()
    estate.answer(estate.site.sentinel, "effectiveRouteTable", {"value": []})
    estate.answer(estate.site.watcher, "nextHop", Refusal(500, "InternalServerError", "no"))
    with calling(estate) as caller:
        assert caller.act(f"{estate.site.sentinel}/effectiveRouteTable") == {"value": []}
        assert code_of(caller.post(f"{estate.site.watcher}/nextHop")) == (500, "InternalServerError")


def test_action_that_is_not_granted_is_refused_though_reading_is() -> None:
    estate = sealed_estate()
    estate.deny(estate.site.sentinel, "Microsoft.Network/networkInterfaces/effectiveRouteTable/action")
    with calling(estate) as caller:
        assert code_of(caller.post(f"{estate.site.sentinel}/effectiveRouteTable")) == (403, "AuthorizationFailed")
        assert caller.get(estate.site.sentinel).status_code == 200


def test_network_managers_lists_page_by_a_token_in_the_body() -> None:
    estate = sealed_estate()
    action = "listNetworkManagerEffectiveConnectivityConfigurations"
    estate.answer(estate.site.vnet, action, {"value": [{"id": str(number)} for number in range(5)]})
    with calling(estate, page_size=2) as caller:
        ids, token = [], ""
        while True:
            page = caller.post(f"{estate.site.vnet}/{action}", {"skipToken": token} if token else {}).json()
            ids += [row["id"] for row in page["value"]]
            token = page.get("skipToken", "")
            if not token:
                break

    assert ids == ["0", "1", "2", "3", "4"]


def test_linked_dns_policies_are_those_with_a_link() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        linked = caller.post(f"{estate.site.vnet}/listDnsResolverPolicies").json()
        estate.remove(f"{estate.site.dns_policy}/virtualNetworkLinks/inference")
        unlinked = caller.post(f"{estate.site.vnet}/listDnsResolverPolicies").json()

    assert linked == {"value": [{"id": estate.site.dns_policy}]}
    assert unlinked == {"value": []}


def test_action_may_never_end_or_end_as_failed() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        caller.arm.inject(Fault(NeverEnds(), path="effectiveRouteTable"))
        stuck = caller.post(f"{estate.site.sentinel}/effectiveRouteTable").headers
        assert {caller.client.get(stuck["Location"]).status_code for _ in range(5)} == {202}
        assert caller.client.get(stuck["Azure-AsyncOperation"]).json()["status"] == "InProgress"
        caller.arm.lift()
        caller.arm.inject(Fault(EndsFailed(), path="effectiveRouteTable"))
        failed = caller.post(f"{estate.site.sentinel}/effectiveRouteTable").headers
        caller.client.get(failed["Azure-AsyncOperation"])
        assert caller.client.get(failed["Azure-AsyncOperation"]).json()["status"] == "Failed"

"""Table C: what the cluster's networks are joined to. Each id both ways, and what cannot be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, NETWORK, NODES, ROUTES, SUBSCRIPTION, VNET, route
from tests.audit_services import (
    FAR_PEERING,
    HUB,
    HUB_GROUP,
    OTHER_SUBSCRIPTION,
    PEERING,
    FakeServices,
    add_hub,
    only,
    peer,
    served_cluster,
    verdicts,
)

ALLOWED = Policy(allowed_peerings=(HUB,))
CONNECTIVITY = "listNetworkManagerEffectiveConnectivityConfigurations"
ADMIN_RULES = "listNetworkManagerEffectiveSecurityAdminRules"
TOOLS_RULES = f"{NETWORK}/networkSecurityGroups/tools"
FIREWALL = f"{NETWORK}/azureFirewalls/wall"
PUBLIC = {"publicIPAddress": {"id": f"{NETWORK}/publicIPAddresses/tools"}}

IDS = (
    "peering-any", "peering-remote-gateway", "peering-forwarded", "peering-gateway-transit", "peering-subnet-scope",
    "avnm-connectivity", "avnm-admin-rules", "vnet-gateway", "gateway-forced-tunnel", "gateway-p2s",
    "gateway-connections", "vwan-connection", "firewall-in-path", "vm-pivot", "subnet-sharing", "nsg-flowlogs",
)  # fmt: skip
PEERING_CHECKS = IDS[:5]


@pytest.mark.parametrize("check", IDS)
def test_a_sealed_network_passes(check: str) -> None:
    findings = served_cluster().findings(check)
    assert findings
    assert {finding.verdict for finding in findings.values()} <= {Verdict.PASS, Verdict.NOT_APPLICABLE}
    assert all(finding.evidence for finding in findings.values())


@pytest.mark.parametrize("check", IDS)
def test_a_cluster_that_cannot_be_read_never_passes(check: str) -> None:
    azure = served_cluster().refuse(CLUSTER)
    assert {finding.verdict for finding in azure.findings(check).values()} == {Verdict.UNKNOWN}


@pytest.mark.parametrize("check", sorted({*IDS} - {"subnet-sharing", "firewall-in-path", "vm-pivot"}))
def test_a_network_that_cannot_be_read_never_passes(check: str) -> None:
    azure = served_cluster().refuse(VNET, verb="get")
    assert Verdict.UNKNOWN in {finding.verdict for finding in azure.findings(check).values()} or check in {
        "firewall-in-path", "vm-pivot",
    }  # fmt: skip


class TestPeerings:
    def test_a_connected_peering_that_no_policy_allows_fails(self) -> None:
        finding = only(peer(served_cluster()), "peering-any")
        assert (finding.verdict, finding.severity, finding.resource) == (Verdict.FAIL, Severity.HIGH, PEERING)
        assert finding.path_texts == ("vnet ai -> peer vnet hub",)
        assert [hop.kind for hop in finding.paths[0]] == [PlaceKind.VNET, PlaceKind.PEER_VNET]

    @pytest.mark.parametrize("listed", [HUB, HUB.upper(), PEERING])
    def test_an_allowed_peering_passes_by_either_id(self, listed: str) -> None:
        assert verdicts(peer(served_cluster()), "peering-any", Policy(allowed_peerings=(listed,))) == {
            PEERING.lower(): "Pass"
        }

    @pytest.mark.parametrize("check", PEERING_CHECKS)
    def test_one_left_over_from_a_network_that_is_gone_passes(self, check: str) -> None:
        open_to = {"allowForwardedTraffic": True, "useRemoteGateways": True, "allowGatewayTransit": True}
        azure = peer(served_cluster(), peeringState="Disconnected", localSubnetNames=["nodes"], **open_to)
        azure.refuse(HUB).refuse(OTHER_SUBSCRIPTION).refuse(HUB_GROUP)
        assert verdicts(azure, check) == {PEERING.lower(): "Pass"}

    @pytest.mark.parametrize("check", ["vm-pivot", "firewall-in-path", "vwan-connection", "pe-foreign-target"])
    def test_nothing_is_looked_for_behind_one_that_does_not_connect(self, check: str) -> None:
        azure = peer(served_cluster()).refuse(HUB).refuse(OTHER_SUBSCRIPTION).refuse(HUB_GROUP)
        assert "Unknown" in verdicts(azure, check).values()
        assert "Unknown" not in verdicts(peer(azure, peeringState="Disconnected"), check).values()

    @pytest.mark.parametrize("check", ["gateway-forced-tunnel", "route-bgp-propagation"])
    def test_no_gateway_is_used_by_one_that_does_not_connect(self, check: str) -> None:
        azure = peer(served_cluster(), useRemoteGateways=True).refuse(HUB)
        azure.change(ROUTES, disableBgpRoutePropagation=False)
        assert not {"Pass", "NotApplicable"} >= set(verdicts(azure, check).values())
        azure.change(PEERING, peeringState="Disconnected")
        assert {"Pass", "NotApplicable"} >= set(verdicts(azure, check).values())

    @pytest.mark.parametrize(
        ("state", "verdict"), [("Disconnected", "Pass"), ("Initiated", "Pass"), ("Odd", "Unknown")]
    )
    def test_only_known_states_tell_that_nothing_passes(self, state: str, verdict: str) -> None:
        assert verdicts(peer(served_cluster(), peeringState=state), "peering-any") == {PEERING.lower(): verdict}

    def test_an_unread_list_of_peerings_is_unknown_on_the_network(self) -> None:
        azure = served_cluster().refuse(VNET, kind="Microsoft.Network/virtualNetworks/virtualNetworkPeerings")
        assert verdicts(azure, "peering-any") == {VNET.lower(): "Unknown"}

    def test_a_peering_that_only_the_network_names_is_unknown(self) -> None:
        azure = served_cluster().change(VNET, virtualNetworkPeerings=[{"id": PEERING, "name": "to-hub"}])
        assert verdicts(azure, "peering-any") == {VNET.lower(): "Unknown"}

    def test_a_list_that_was_cut_keeps_its_fails_and_leaves_the_network_open(self) -> None:
        azure = peer(served_cluster()).refuse(
            VNET, UnreadReason.TRUNCATED, kind="Microsoft.Network/virtualNetworks/virtualNetworkPeerings"
        )
        assert verdicts(azure, "peering-any") == {PEERING.lower(): "Fail", VNET.lower(): "Unknown"}

    @pytest.mark.parametrize(
        ("check", "field"),
        [
            ("peering-remote-gateway", "useRemoteGateways"),
            ("peering-gateway-transit", "allowGatewayTransit"),
            ("peering-forwarded", "allowForwardedTraffic"),
        ],
    )
    def test_each_switch_fails_when_on_and_is_unknown_when_not_said(self, check: str, field: str) -> None:
        azure = peer(served_cluster())
        assert verdicts(azure, check)[PEERING.lower()] == "Pass"
        assert verdicts(peer(served_cluster(), **{field: True}), check)[PEERING.lower()] == "Fail"
        silent = peer(served_cluster()).drop(PEERING, field)
        assert verdicts(silent, check)[PEERING.lower()] == "Unknown"

    def test_the_far_side_is_named_where_it_forwards(self) -> None:
        azure = peer(served_cluster()).change(FAR_PEERING, allowForwardedTraffic=True)
        assert verdicts(azure, "peering-forwarded") == {PEERING.lower(): "Pass", FAR_PEERING.lower(): "Fail"}

    def test_a_far_side_that_is_not_seen_is_unknown(self) -> None:
        azure = peer(served_cluster()).refuse(HUB, kind="Microsoft.Network/virtualNetworks/virtualNetworkPeerings")
        assert verdicts(azure, "peering-forwarded") == {PEERING.lower(): "Unknown"}
        assert verdicts(peer(served_cluster()).drop(FAR_PEERING), "peering-forwarded") == {PEERING.lower(): "Unknown"}

    def test_a_partial_peering_is_told(self) -> None:
        azure = peer(served_cluster(), peerCompleteVnets=False, localSubnetNames=["nodes"])
        finding = only(azure, "peering-subnet-scope")
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.INFO)
        assert "nodes" in finding.message

    def test_the_far_gateway_counts_when_it_is_used(self) -> None:
        azure = peer(served_cluster(), useRemoteGateways=True)
        home, gateway = (
            f"{HUB}/subnets/GatewaySubnet",
            f"{HUB_GROUP}/providers/Microsoft.Network/virtualNetworkGateways/g",
        )
        azure.put(home, {"addressPrefix": "10.9.2.0/27"})
        azure.put(gateway, {"ipConfigurations": [{"name": "a", "properties": {"subnet": {"id": home}}}]})
        azure.act(gateway, "getLearnedRoutes", {"value": [{"network": "0.0.0.0/0", "origin": "EBgp"}]})
        assert verdicts(azure, "gateway-forced-tunnel") == {gateway.lower(): "Fail"}
        assert verdicts(azure, "vnet-gateway") == {VNET.lower(): "Pass"}


def _admin_rule(**rest: Any) -> dict[str, Any]:
    fields = {
        "access": "AlwaysAllow",
        "direction": "Outbound",
        "priority": 1,
        "protocol": "Any",
        "destinations": [{"addressPrefixType": "ServiceTag", "addressPrefix": "Internet"}],
    }
    return {"value": [{"id": f"{SUBSCRIPTION}/rules/out", "properties": {**fields, **rest}}]}


class TestNetworkManager:
    def test_an_applied_configuration_fails(self) -> None:
        azure = served_cluster().act(VNET, CONNECTIVITY, {"value": [{"id": "/mesh", "connectivityTopology": "Mesh"}]})
        assert verdicts(azure, "avnm-connectivity") == {VNET.lower(): "Fail"}

    def test_the_remedy_names_the_manager_of_what_is_applied(self) -> None:
        managers = [
            f"/subscriptions/hub-{number}/resourceGroups/rg-avnm/providers/Microsoft.Network/networkManagers/avnm-{number}"
            for number in (1, 2)
        ]
        mesh = [{"id": f"{network_manager}/connectivityConfigurations/mesh"} for network_manager in managers]
        azure = served_cluster().act(VNET, CONNECTIVITY, {"value": mesh})
        azure.bodies[VNET.lower()]["location"] = "westeurope"
        [finding] = azure.findings("avnm-connectivity").values()
        for number in (1, 2):
            manager = f"--subscription hub-{number} --resource-group rg-avnm --network-manager-name avnm-{number} "
            assert manager in finding.remedy
        assert "--target-locations westeurope " in finding.remedy

    def test_the_remedy_names_the_rule_and_its_manager(self) -> None:
        rule = "/subscriptions/hub/resourceGroups/rg/providers/Microsoft.Network/networkManagers/avnm"
        rule += "/securityAdminConfigurations/base/ruleCollections/out/rules/all"
        answer = _admin_rule()
        answer["value"][0]["id"] = rule
        [finding] = served_cluster().act(VNET, ADMIN_RULES, answer).findings("avnm-admin-rules").values()
        assert f"az resource delete --ids {rule}\n" in finding.remedy
        assert "--subscription hub --resource-group rg --network-manager-name avnm " in finding.remedy

    def test_a_manager_that_is_not_named_stays_to_be_filled_in(self) -> None:
        azure = served_cluster().act(VNET, CONNECTIVITY, {"value": [{"id": "/mesh"}]})
        [finding] = azure.findings("avnm-connectivity").values()
        assert "--network-manager-name MANAGER_NAME " in finding.remedy

    def test_the_second_page_is_read(self) -> None:
        azure = served_cluster()
        azure.pages[VNET.lower(), CONNECTIVITY.lower()] = {
            "{}": {"value": [], "skipToken": "next"},
            '{"skipToken":"next"}': {"value": [{"id": "/mesh"}]},
        }
        assert verdicts(azure, "avnm-connectivity") == {VNET.lower(): "Fail"}

    @pytest.mark.parametrize("action", [CONNECTIVITY, ADMIN_RULES])
    def test_pages_without_end_or_without_a_list_are_unknown(self, action: str) -> None:
        check = "avnm-connectivity" if action == CONNECTIVITY else "avnm-admin-rules"
        endless = served_cluster().act(VNET, action, {"value": [], "skipToken": "again"})
        assert verdicts(endless, check) == {VNET.lower(): "Unknown"}
        assert verdicts(served_cluster().act(VNET, action, {}), check) == {VNET.lower(): "Unknown"}
        azure = served_cluster().refuse(VNET, verb="post")
        assert verdicts(azure, check) == {VNET.lower(): "Unknown"}

    @pytest.mark.parametrize(
        ("fields", "verdict"),
        [
            ({}, "Fail"),
            ({"access": "Allow"}, "Fail"),
            ({"access": "Deny"}, "Pass"),
            ({"access": "Sometimes"}, "Unknown"),
            ({"direction": "Inbound"}, "Pass"),
            ({"direction": "Sideways"}, "Unknown"),
            ({"destinations": []}, "Fail"),
            ({"destinations": [{"addressPrefix": "*", "addressPrefixType": "IPPrefix"}]}, "Fail"),
            ({"destinations": [{"addressPrefix": "0.0.0.0/0", "addressPrefixType": "IPPrefix"}]}, "Fail"),
            ({"destinations": [{"addressPrefix": "20.0.0.0/8", "addressPrefixType": "IPPrefix"}]}, "Fail"),
            ({"destinations": [{"addressPrefix": "10.0.0.0/8", "addressPrefixType": "IPPrefix"}]}, "Pass"),
            ({"destinations": [{"addressPrefix": "VirtualNetwork", "addressPrefixType": "ServiceTag"}]}, "Pass"),
            ({"destinations": [{"addressPrefix": "Storage", "addressPrefixType": "ServiceTag"}]}, "Fail"),
        ],
    )
    def test_an_admin_rule_fails_when_it_allows_out(self, fields: dict[str, Any], verdict: str) -> None:
        azure = served_cluster().act(VNET, ADMIN_RULES, _admin_rule(**fields))
        assert verdicts(azure.change(ROUTES, routes=[]), "avnm-admin-rules") == {VNET.lower(): verdict}

    @pytest.mark.parametrize(
        ("fields", "routes", "verdict"),
        [
            ({}, [route("v4", "0.0.0.0/0", "None")], "Fail"),
            ({}, [route("v4", "20.0.0.0/8", "VnetLocal")], "Fail"),
            ({}, [route("v6", "::/0", "None")], "Pass"),
            ({}, [], "Pass"),
            ({}, None, "Unknown"),
            ({"access": "Allow"}, [route("v4", "0.0.0.0/0", "None")], "Pass"),
            ({"direction": "Inbound"}, [route("v4", "0.0.0.0/0", "None")], "Pass"),
        ],
    )
    def test_the_network_tag_leads_where_routes_widen_it(
        self, fields: dict[str, Any], routes: Any, verdict: str
    ) -> None:
        tag = [{"addressPrefixType": "ServiceTag", "addressPrefix": "VirtualNetwork"}]
        azure = served_cluster().act(VNET, ADMIN_RULES, _admin_rule(destinations=tag, **fields))
        assert verdicts(azure.change(ROUTES, routes=routes), "avnm-admin-rules") == {VNET.lower(): verdict}

    def test_the_network_tag_leads_to_the_declared_firewall(self) -> None:
        tag = [{"addressPrefixType": "ServiceTag", "addressPrefix": "VirtualNetwork"}]
        azure = served_cluster().act(VNET, ADMIN_RULES, _admin_rule(destinations=tag))
        address = {"name": "a", "properties": {"privateIPAddress": "10.0.5.4"}}
        azure.put(FIREWALL, {"ipConfigurations": [address]})
        azure.change(ROUTES, routes=[route("v4", "0.0.0.0/0", "VirtualAppliance", "10.0.5.4")])
        declared = Policy(profile="filtered", firewall=FIREWALL)
        assert verdicts(azure, "avnm-admin-rules", declared) == {VNET.lower(): "Pass"}
        assert verdicts(azure, "avnm-admin-rules") == {VNET.lower(): "Fail"}


class TestHubs:
    def test_a_connected_hub_fails_and_draws_where_its_default_route_leads(self) -> None:
        azure = served_cluster()
        table = {"associatedRouteTable": {"id": f"{NETWORK}/virtualHubs/wan/hubRouteTables/defaultRouteTable"}}
        connection = add_hub(azure, enableInternetSecurity=True, routingConfiguration=table)
        default = {"addressPrefixes": ["0.0.0.0/0"], "nextHopType": "Azure Firewall"}
        azure.act(f"{NETWORK}/virtualHubs/wan", "effectiveRoutes", {"value": [default]})
        finding = only(azure, "vwan-connection")
        assert (finding.verdict, finding.resource) == (Verdict.FAIL, connection)
        assert finding.path_texts == ("vnet ai -> virtual hub wan -> azure firewall -> internet",)

    def test_a_hub_of_others_passes_and_one_that_names_no_network_does_not(self) -> None:
        azure = served_cluster()
        connection = add_hub(azure, HUB)
        assert verdicts(azure, "vwan-connection") == {VNET.lower(): "Pass"}
        azure.drop(connection, "remoteVirtualNetwork")
        assert verdicts(azure, "vwan-connection") == {VNET.lower(): "Unknown"}

    @pytest.mark.parametrize(
        ("name", "remote", "verdict"),
        [
            ("RemoteVnetToHubPeering_2b6f", "HV_hub-central_7c1e", "Fail"),
            ("to-somewhere", "hv_hub-central_7c1e", "Fail"),
            ("RemoteVnetToHubPeering_2b6f", "renamed", "Fail"),
            ("to-hub", "hub-hv_1", None),
        ],
    )
    def test_a_hub_that_may_not_be_read_shows_by_its_peering(self, name: str, remote: str, verdict: str | None) -> None:
        azure, peering = served_cluster(), f"{VNET}/virtualNetworkPeerings/{name}"
        network = HUB.replace("/hub", f"/{remote}") if verdict is None else f"{HUB.rpartition('/')[0]}/{remote}"
        azure.put(peering, {"peeringState": "Connected", "remoteVirtualNetwork": {"id": network}})
        azure.refuse(OTHER_SUBSCRIPTION)
        verdict_of = verdicts(azure, "vwan-connection")
        assert verdict_of.get(peering.lower()) == verdict
        assert verdict_of[VNET.lower()] == "Unknown"

    def test_a_hub_that_is_read_is_named_by_its_connection_alone(self) -> None:
        azure = served_cluster()
        connection = add_hub(azure)
        peering_properties = {
            "peeringState": "Connected",
            "remoteVirtualNetwork": {"id": f"{NETWORK}/virtualNetworks/HV_wan_1"},
        }
        azure.put(f"{VNET}/virtualNetworkPeerings/RemoteVnetToHubPeering_1", peering_properties)
        assert verdicts(azure, "vwan-connection") == {connection.lower(): "Fail"}

    def test_an_allowed_hub_passes_unless_its_routes_lead_out(self) -> None:
        """github.com/MicrosoftDocs/azure-docs/issues/107338: a hub connection is a peering underneath."""
        azure, peering, hub = self._spoke()
        allowed = Policy(allowed_peerings=(hub,))
        for check in ("peering-any", "peering-forwarded", "peering-remote-gateway"):
            assert verdicts(azure, check, allowed)[peering.lower()] == "Pass", check
        spoke = {"addressPrefixes": ["10.77.0.0/16"], "nextHopType": "Virtual Network Connection"}
        for name, prefixes in (("one", ["10.77.0.0/16"]), ("two", ["10.78.0.0/16", "33.0.0.0/16"])):
            azure.put(f"{NETWORK}/virtualNetworks/{name}", {"addressSpace": {"addressPrefixes": prefixes}})
            remote = {"remoteVirtualNetwork": {"id": f"{NETWORK}/virtualNetworks/{name}"}}
            azure.put(f"{hub}/hubVirtualNetworkConnections/{name}", remote)
        for hop, prefix, verdict in (
            ("Virtual Network Connection", "10.78.0.0/16", "Pass"),
            ("Virtual Network Connection", "10.78.4.0/24", "Pass"),
            ("Virtual Network Connection", "33.0.0.0/16", "Pass"),
            # An appliance in a network that the hub connects: the prefix is in no network.
            ("Virtual Network Connection", "10.99.0.0/16", "Unknown"),
            ("Virtual Network Connection", "10.0.0.0/8", "Unknown"),
            ("Virtual Network Connection", "0.0.0.0/1", "Fail"),
            ("Virtual Network Connection", "20.1.2.0/24", "Fail"),
            ("Virtual Network Connection", "33.0.0.0/8", "Fail"),
            ("Virtual Network Connection", "AzureCloud", "Fail"),
            ("Azure Firewall", "0.0.0.0/0", "Fail"),
            ("Azure Firewall", "10.0.0.0/8", "Fail"),
            ("ExpressRouteGateway", "192.168.0.0/16", "Fail"),
            ("VPN_S2S_Gateway", "10.78.0.0/16", "Fail"),
            ("VPN_P2S_Gateway", "172.16.0.0/24", "Fail"),
            ("Virtual Network Connection", "0.0.0.0/0", "Fail"),
            ("Remote Hub", "0.0.0.0/0", "Fail"),
            ("Remote Hub", "10.79.0.0/16", "Unknown"),
            ("HubBgpConnection", "10.79.0.0/16", "Unknown"),
            ("HubBgpConnection", "20.1.2.0/24", "Fail"),
            ("", "10.78.0.0/16", "Unknown"),
        ):
            route = {"addressPrefixes": [prefix], "nextHopType": hop}
            azure.act(hub, "effectiveRoutes", {"value": [spoke, route]})
            verdict_of = verdicts(azure, "vwan-connection", allowed)
            assert set(verdict_of.values()) == {verdict}, (hop, prefix)

    def test_the_declared_firewall_of_a_secured_hub_may_have_its_default_route(self) -> None:
        azure, _, hub = self._spoke()
        azure.put(FIREWALL, {"virtualHub": {"id": hub}, "hubIPAddresses": {"privateIPAddress": "10.88.0.132"}})
        route = {"addressPrefixes": ["0.0.0.0/0", "10.0.0.0/8"], "nextHopType": "Azure Firewall"}
        azure.act(hub, "effectiveRoutes", {"value": [route]})
        allowed = (hub,)
        filtered = Policy(profile="filtered", firewall=FIREWALL, allowed_peerings=allowed)
        assert set(verdicts(azure, "vwan-connection", filtered).values()) == {"Pass"}
        assert set(verdicts(azure, "vwan-connection", Policy(allowed_peerings=allowed)).values()) == {"Fail"}

    def test_the_subscription_of_microsoft_behind_a_hub_is_not_searched(self) -> None:
        azure, _, hub = self._spoke()
        azure.refuse(OTHER_SUBSCRIPTION)
        for check in ("acr-public", "pe-foreign-target", "vm-pivot", "firewall-in-path"):
            assert "Unknown" not in verdicts(azure, check, Policy(allowed_peerings=(hub,))).values(), check

    @pytest.mark.parametrize(("prefix", "name"), [("10.99.0.0/24", "HV_wan_1"), ("10.88.0.0/24", "HV_else_1")])
    def test_a_network_that_only_has_the_name_of_a_hubs_is_searched(self, prefix: str, name: str) -> None:
        azure, peering, hub = self._spoke(prefix, name)
        azure.refuse(OTHER_SUBSCRIPTION)
        allowed = Policy(allowed_peerings=(hub,))
        assert verdicts(azure, "vm-pivot", allowed)[CLUSTER.lower()] == "Unknown"
        assert verdicts(azure, "vwan-connection", allowed)[peering.lower()] == "Unknown"

    @staticmethod
    def _spoke(prefix: str = "10.88.0.0/24", name: str = "HV_wan_1") -> tuple[FakeServices, str, str]:
        """The cluster's network behind a hub: the estate, the peering that shows, and the hub."""
        azure, hub = served_cluster(), f"{NETWORK}/virtualHubs/wan"
        add_hub(azure)
        azure.put(hub, {"addressPrefix": "10.88.0.0/24"})
        azure.act(hub, "effectiveRoutes", {"value": []})
        peering = f"{VNET}/virtualNetworkPeerings/RemoteVnetToHubPeering_1"
        azure.put(
            peering,
            {
                "peeringState": "Connected",
                "remoteVirtualNetwork": {"id": f"{HUB.rpartition('/')[0]}/{name}"},
                "remoteAddressSpace": {"addressPrefixes": [prefix]},
                "useRemoteGateways": True,
                "allowForwardedTraffic": True,
            },
        )
        return azure, peering, hub

    def test_hubs_in_a_subscription_that_cannot_be_read_are_unknown(self) -> None:
        azure = peer(served_cluster()).refuse(OTHER_SUBSCRIPTION, kind="Microsoft.Network/virtualHubs")
        assert verdicts(azure, "vwan-connection") == {VNET.lower(): "Unknown"}


def test_a_shared_subnet_fails() -> None:
    azure = served_cluster().change(NODES, sharingScope="Tenant")
    assert verdicts(azure, "subnet-sharing")[NODES.lower()] == "Fail"


def test_flow_logs_have_to_be_on() -> None:
    log = f"{NETWORK}/networkWatchers/watcher/flowLogs/ai"
    off: list[tuple[Callable[[FakeServices], object], str]] = [
        (lambda azure: azure.change(log, enabled=False), "Fail"),
        (lambda azure: azure.change(VNET, flowLogs=[]), "Fail"),
        (lambda azure: azure.drop(log, "enabled"), "Unknown"),
        (lambda azure: azure.refuse(log), "Unknown"),
    ]
    for change, verdict in off:
        azure = served_cluster()
        change(azure)
        assert verdicts(azure, "nsg-flowlogs") == {VNET.lower(): verdict}

"""Machines beside the nodes that could relay for them."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.egress.machines import machines_of
from hermetic.audit.estate.azure.vnet import ScaleSetNic
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import (
    CLUSTER,
    NETWORK,
    NODES,
    ROUTES,
    RULES,
    SUBSCRIPTION,
    VNET,
    ip_configuration,
    model_nics,
    route,
    rule,
)
from tests.audit_services import (
    HUB,
    HUB_GROUP,
    HUB_SUBNET,
    MACHINE,
    OTHER_SUBSCRIPTION,
    FakeServices,
    add_machine,
    deny_nodes,
    only,
    peer,
    served_cluster,
    verdicts,
)
from tests.outbound_methods import FAR_BALANCER, FIREWALL, balancer, balancing, outbound_rule

TOOLS_RULES = f"{NETWORK}/networkSecurityGroups/tools"
PUBLIC = {"publicIPAddress": {"id": f"{NETWORK}/publicIPAddresses/tools"}}


WORKERS = f"{SUBSCRIPTION}/resourceGroups/others/providers/Microsoft.Compute/virtualMachineScaleSets/workers"
WORKER = f"{WORKERS}/virtualMachines/0/networkInterfaces/worker"
FAILS, UNKNOWN = {MACHINE.lower(): "Fail"}, {MACHINE.lower(): "Unknown"}


def _machine_in(network: str) -> tuple[FakeServices, str]:
    """A machine without an egress path, in a private subnet of the cluster's network or of its peer."""
    azure = peer(served_cluster())
    if network == VNET:
        return azure, add_machine(azure)
    nic = f"{HUB_GROUP}/providers/Microsoft.Network/networkInterfaces/jump"
    return azure, add_machine(azure, nic, subnet=HUB_SUBNET, address="10.9.1.4")


def _with_workers() -> FakeServices:
    """A scale set of another team with one instance in the subnet of the nodes, and no egress path."""
    azure = served_cluster()
    azure.put(WORKERS, {"virtualMachineProfile": {"networkProfile": model_nics(NODES)}}, sku={"capacity": 1})
    addresses = [ip_configuration("10.0.1.66", NODES)]
    machine = {"virtualMachine": {"id": f"{WORKERS}/virtualMachines/0"}}
    interface_fields = {"ipConfigurations": addresses, "defaultOutboundConnectivityEnabled": False, **machine}
    azure.put(WORKER, interface_fields)
    return azure


def _public_machine() -> FakeServices:
    azure = served_cluster()
    add_machine(azure, **PUBLIC)
    return azure


def _guarded(azure: FakeServices, *rules: dict[str, Any]) -> FakeServices:
    azure.put(TOOLS_RULES, {"securityRules": list(rules)})
    azure.change(MACHINE, networkSecurityGroup={"id": TOOLS_RULES})
    return azure


class TestPivots:
    def test_a_machine_without_an_egress_path_passes(self) -> None:
        azure = served_cluster()
        add_machine(azure)
        assert verdicts(azure, "vm-pivot") == {MACHINE.lower(): "Pass"}

    def test_a_public_address_fails_and_is_drawn(self) -> None:
        finding = only(_public_machine(), "vm-pivot")
        assert (finding.verdict, finding.resource) == (Verdict.FAIL, MACHINE)
        assert finding.path_texts == ("node subnets -> machine tools -> public ip -> internet",)

    @pytest.mark.parametrize(
        "subnet", [{"defaultOutboundAccess": None}, {"natGateway": {"id": f"{NETWORK}/natGateways/n"}}]
    )
    def test_an_egress_path_of_its_subnet_fails(self, subnet: dict[str, Any]) -> None:
        azure = served_cluster()
        add_machine(azure)
        azure.change(f"{VNET}/subnets/tools", **subnet)
        assert verdicts(azure, "vm-pivot") == {MACHINE.lower(): "Fail"}

    def test_only_an_interface_that_tells_its_hidden_address_is_known_to_have_none(self) -> None:
        azure = served_cluster()
        add_machine(azure)
        assert verdicts(azure.change(MACHINE, defaultOutboundConnectivityEnabled=True), "vm-pivot") == FAILS
        assert verdicts(azure.drop(MACHINE, "defaultOutboundConnectivityEnabled"), "vm-pivot") == UNKNOWN
        assert verdicts(_guarded(azure, deny_nodes()), "vm-pivot") == {MACHINE.lower(): "Pass"}

    @pytest.mark.parametrize("network", [VNET, HUB])
    def test_a_nat_gateway_of_its_network_fails(self, network: str) -> None:
        azure, nic = _machine_in(network)
        azure.change(network, defaultPublicNatGateway={"id": f"{NETWORK}/natGateways/n"})
        assert verdicts(azure, "vm-pivot") == {nic.lower(): "Fail"}

    @pytest.mark.parametrize("network", [VNET, HUB])
    @pytest.mark.parametrize("kind", ["natGateways", "serviceGateways"])
    def test_a_gateway_that_names_its_network_as_its_source_fails(self, network: str, kind: str) -> None:
        azure, nic = _machine_in(network)
        gateway = f"{network.partition('/virtualNetworks/')[0]}/{kind}/g"
        named = {"sourceVirtualNetwork" if kind == "natGateways" else "virtualNetwork": {"id": network}}
        assert verdicts(azure.put(gateway, named), "vm-pivot") == {nic.lower(): "Fail"}

    def test_gateways_that_cannot_be_listed_are_unknown(self) -> None:
        azure, nic = _machine_in(HUB)
        azure.refuse(OTHER_SUBSCRIPTION, kind="Microsoft.Network/natGateways")
        assert verdicts(azure, "vm-pivot") == {nic.lower(): "Unknown"}

    @pytest.mark.parametrize(
        "lends", [{"outbound_rules": [outbound_rule(FAR_BALANCER)]}, {"rules": [balancing(FAR_BALANCER)]}]
    )
    @pytest.mark.parametrize("home", ["", NODES])
    def test_a_balancer_that_lends_it_a_public_address_fails(self, home: str, lends: dict[str, Any]) -> None:
        azure, pool = served_cluster(), f"{FAR_BALANCER}/backendAddressPools/n"
        add_machine(azure, subnet=home, loadBalancerBackendAddressPools=[{"id": pool}])
        balancer(FAR_BALANCER, public=True, **lends)(azure)
        assert verdicts(azure, "vm-pivot") == FAILS
        balancer(FAR_BALANCER, public=False, **lends)(azure)
        assert verdicts(azure, "vm-pivot") == {MACHINE.lower(): "Pass"}
        assert verdicts(azure.drop(FAR_BALANCER), "vm-pivot") == UNKNOWN

    @pytest.mark.parametrize(
        ("prefix", "hop", "verdict"),
        [
            ("0.0.0.0/0", "VirtualAppliance", "Fail"),
            ("0.0.0.0/0", "VirtualNetworkGateway", "Fail"),
            ("0.0.0.0/1", "VirtualAppliance", "Fail"),
            ("0.0.0.0/0", "Teleport", "Fail"),
            ("0.0.0.0/0", "Internet", "Pass"),
            ("0.0.0.0/0", "None", "Pass"),
            ("192.168.0.0/16", "VirtualAppliance", "Pass"),
        ],
    )
    def test_a_route_of_its_subnet_that_leads_on_fails(self, prefix: str, hop: str, verdict: str) -> None:
        azure = served_cluster()
        add_machine(azure)
        table = f"{NETWORK}/routeTables/tools"
        azure.put(table, {"routes": [route("r", prefix, hop, "10.200.0.4" if hop == "VirtualAppliance" else "")]})
        azure.change(f"{VNET}/subnets/tools", routeTable={"id": table})
        assert verdicts(azure, "vm-pivot") == {MACHINE.lower(): verdict}
        assert verdicts(azure.refuse(table), "vm-pivot") == UNKNOWN

    def test_the_table_of_the_nodes_is_judged_for_itself(self) -> None:
        azure = served_cluster()
        add_machine(azure)
        azure.change(f"{VNET}/subnets/tools", routeTable={"id": ROUTES.upper()})
        azure.change(ROUTES, routes=[route("v4", "0.0.0.0/0", "VirtualAppliance", "10.200.0.4")])
        assert verdicts(azure, "vm-pivot") == {MACHINE.lower(): "Pass"}

    def test_a_table_without_a_list_of_routes_is_unknown(self) -> None:
        azure, table = served_cluster(), f"{NETWORK}/routeTables/tools"
        add_machine(azure)
        azure.put(table).change(f"{VNET}/subnets/tools", routeTable={"id": table})
        assert verdicts(azure, "vm-pivot") == UNKNOWN

    def test_a_route_to_the_declared_firewall_is_no_way_of_its_own(self) -> None:
        azure = served_cluster()
        add_machine(azure)
        table = f"{NETWORK}/routeTables/tools"
        azure.put(table, {"routes": [route("r", "0.0.0.0/0", "VirtualAppliance", "10.0.9.4")]})
        azure.change(f"{VNET}/subnets/tools", routeTable={"id": table})
        address = {"name": "a", "properties": {"privateIPAddress": "10.0.9.4"}}
        azure.put(FIREWALL, {"ipConfigurations": [address]})
        declared = Policy(profile="filtered", firewall=FIREWALL)
        assert verdicts(azure, "vm-pivot", declared) == {MACHINE.lower(): "Pass"}
        assert verdicts(azure.refuse(FIREWALL), "vm-pivot", declared) == UNKNOWN

    def test_a_machine_with_two_interfaces_is_entered_by_one_and_left_by_the_other(self) -> None:
        azure = _guarded(_public_machine(), deny_nodes())
        assert verdicts(azure, "vm-pivot") == {MACHINE.lower(): "Pass"}
        second = f"{NETWORK}/networkInterfaces/second"
        add_machine(azure, second, subnet=f"{VNET}/subnets/tools", address="10.0.7.5")
        machine = azure.properties(second)["virtualMachine"]["id"]
        assert verdicts(azure, "vm-pivot") == {machine.lower(): "Fail"}
        azure.change(second, networkSecurityGroup={"id": TOOLS_RULES})
        assert verdicts(azure, "vm-pivot") == {machine.lower(): "Pass"}

    def test_a_machine_in_a_peer_counts_and_one_elsewhere_does_not(self) -> None:
        azure = peer(served_cluster())
        nic = f"{HUB_GROUP}/providers/Microsoft.Network/networkInterfaces/jump"
        add_machine(azure, nic, subnet=HUB_SUBNET, address="10.9.1.4", **PUBLIC)
        assert verdicts(azure, "vm-pivot") == {nic.lower(): "Fail"}
        assert verdicts(peer(azure, peeringState="Disconnected"), "vm-pivot") == {CLUSTER.lower(): "Pass"}

    def test_a_scale_set_that_is_not_the_clusters_counts(self) -> None:
        azure = served_cluster()
        workers = f"{SUBSCRIPTION}/resourceGroups/ai/providers/Microsoft.Compute/virtualMachineScaleSets/workers"
        address = {
            "name": "a",
            "properties": {"subnet": {"id": f"{VNET}/subnets/tools"}, "publicIPAddressConfiguration": {}},
        }
        nics = [{"name": "n", "properties": {"ipConfigurations": [address]}}]
        azure.put(f"{VNET}/subnets/tools", {"addressPrefix": "10.0.7.0/24", "defaultOutboundAccess": False})
        azure.put(workers, {"virtualMachineProfile": {"networkProfile": {"networkInterfaceConfigurations": nics}}})
        assert verdicts(azure, "vm-pivot") == {workers.lower(): "Fail"}

    @pytest.mark.parametrize(
        ("of_the_instance", "verdict"),
        [
            ({}, "Pass"),
            ({"defaultOutboundConnectivityEnabled": True}, "Fail"),
            ({"defaultOutboundConnectivityEnabled": None}, "Unknown"),
            ({"ipConfigurations": [ip_configuration("10.0.1.66", NODES, **PUBLIC)]}, "Fail"),
            ({"ipConfigurations": 3}, "Unknown"),
        ],
    )
    def test_instances_of_a_scale_set_of_others_are_asked(self, of_the_instance: dict[str, Any], verdict: str) -> None:
        azure = _with_workers()
        azure.change(WORKER, **of_the_instance)
        assert verdicts(azure, "vm-pivot") == {WORKERS.lower(): verdict}

    def test_a_public_address_that_only_the_set_lists_fails(self) -> None:
        azure = _with_workers().put(f"{WORKER}/ipConfigurations/ipconfig1/publicIPAddresses/p", {})
        assert verdicts(azure, "vm-pivot") == {WORKERS.lower(): "Fail"}

    def test_instances_that_no_list_shows_are_unknown_and_those_in_flexible_mode_stand_alone(self) -> None:
        azure = _with_workers().drop(WORKER)
        assert verdicts(azure, "vm-pivot") == {WORKERS.lower(): "Unknown"}
        assert verdicts(azure.change(WORKERS, orchestrationMode="Flexible"), "vm-pivot") == {WORKERS.lower(): "Pass"}

    def test_a_scale_set_elsewhere_is_asked_nothing(self) -> None:
        far = f"{NETWORK}/virtualNetworks/far/subnets/nodes"
        azure = _with_workers().change(WORKERS, virtualMachineProfile={"networkProfile": model_nics(far)})
        estate = azure.settled(lambda estate: list(machines_of(estate, Policy())))
        assert not machines_of(estate, Policy()).items
        assert estate.every(ScaleSetNic, WORKERS).problem is not None

    @pytest.mark.parametrize("check", ["nic-default-outbound", "nic-public-ip"])
    def test_they_are_interfaces_beside_the_nodes(self, check: str) -> None:
        azure = _with_workers()
        assert verdicts(azure, check)[WORKER.lower()] == "Pass"
        open_to = {"ipConfigurations": [ip_configuration("10.0.1.66", NODES, **PUBLIC)]}
        azure.change(WORKER, defaultOutboundConnectivityEnabled=True, **open_to)
        finding = azure.findings(check)[WORKER.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.CRITICAL)

    @pytest.mark.parametrize(
        ("rules", "verdict"),
        [
            ([deny_nodes()], "Pass"),
            ([deny_nodes(sourceAddressPrefix="VirtualNetwork")], "Pass"),
            ([deny_nodes(sourceAddressPrefix="10.0.1.0/24")], "Pass"),
            ([deny_nodes(sourceAddressPrefix="10.0.1.0/25")], "Fail"),
            ([deny_nodes(destinationPortRange="22")], "Fail"),
            ([deny_nodes(protocol="Tcp")], "Fail"),
            ([deny_nodes(direction="Outbound")], "Fail"),
            ([deny_nodes(), deny_nodes(90, access="Allow", destinationPortRange="22")], "Fail"),
            ([deny_nodes(), deny_nodes(110, access="Allow", destinationPortRange="22")], "Pass"),
            ([deny_nodes(), deny_nodes(90, access="Allow", sourceAddressPrefix="192.168.0.0/16")], "Pass"),
        ],
    )
    def test_only_a_group_that_stops_every_packet_puts_it_out_of_reach(
        self, rules: list[dict[str, Any]], verdict: str
    ) -> None:
        assert verdicts(_guarded(_public_machine(), *rules), "vm-pivot") == {MACHINE.lower(): verdict}

    def test_the_nodes_own_group_may_stop_them(self) -> None:
        azure = _public_machine()
        azure.properties(RULES)["securityRules"].append(rule("deny-tools", 200, "Deny", "10.0.7.0/24"))
        assert verdicts(azure, "vm-pivot") == {MACHINE.lower(): "Pass"}

    def test_a_group_that_cannot_be_read_is_unknown(self) -> None:
        azure = _guarded(_public_machine()).refuse(TOOLS_RULES)
        assert verdicts(azure, "vm-pivot") == {MACHINE.lower(): "Unknown"}

    def test_machines_that_cannot_be_listed_are_unknown(self) -> None:
        azure = served_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/networkInterfaces")
        assert verdicts(azure, "vm-pivot") == {CLUSTER.lower(): "Unknown"}

    def test_one_broken_machine_hides_no_other(self) -> None:
        azure = _public_machine()
        broken = f"{NETWORK}/networkInterfaces/broken"
        azure.put(broken, {"ipConfigurations": "many", "virtualMachine": {"id": "/vm"}})
        assert verdicts(azure, "vm-pivot") == {MACHINE.lower(): "Fail", CLUSTER.lower(): "Unknown"}

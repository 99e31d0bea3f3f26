"""Machines beside the nodes that could relay for them."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.egress.machines import machines_of
from hermetic.audit.estate.azure.vnet import ScaleSetNic
from hermetic.audit.findings import Severity, Verdict
from hermetic.audit.policy import Policy
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
    ServedWorld,
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


def _machine_in(network: str) -> tuple[ServedWorld, str]:
    """A machine without a way out, in a private subnet of the cluster's network or of its peer."""
    world = peer(served_cluster())
    if network == VNET:
        return world, add_machine(world)
    nic = f"{HUB_GROUP}/providers/Microsoft.Network/networkInterfaces/jump"
    return world, add_machine(world, nic, subnet=HUB_SUBNET, address="10.9.1.4")


def _with_workers() -> ServedWorld:
    """A scale set of somebody else's with one instance in the subnet of the nodes, and no way out."""
    world = served_cluster()
    world.put(WORKERS, {"virtualMachineProfile": {"networkProfile": model_nics(NODES)}}, sku={"capacity": 1})
    addresses = [ip_configuration("10.0.1.66", NODES)]
    machine = {"virtualMachine": {"id": f"{WORKERS}/virtualMachines/0"}}
    held = {"ipConfigurations": addresses, "defaultOutboundConnectivityEnabled": False, **machine}
    world.put(WORKER, held)
    return world


def _public_machine() -> ServedWorld:
    world = served_cluster()
    add_machine(world, **PUBLIC)
    return world


def _guarded(world: ServedWorld, *rules: dict[str, Any]) -> ServedWorld:
    world.put(TOOLS_RULES, {"securityRules": list(rules)})
    world.change(MACHINE, networkSecurityGroup={"id": TOOLS_RULES})
    return world


class TestPivots:
    def test_a_machine_without_a_way_out_passes(self) -> None:
        world = served_cluster()
        add_machine(world)
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): "Pass"}

    def test_a_public_address_fails_and_is_drawn(self) -> None:
        found = only(_public_machine(), "vm-pivot")
        assert (found.verdict, found.resource) == (Verdict.FAIL, MACHINE)
        assert found.path_texts == ("node subnets -> machine tools -> public ip -> internet",)

    @pytest.mark.parametrize(
        "subnet", [{"defaultOutboundAccess": None}, {"natGateway": {"id": f"{NETWORK}/natGateways/n"}}]
    )
    def test_a_way_out_of_its_subnet_fails(self, subnet: dict[str, Any]) -> None:
        world = served_cluster()
        add_machine(world)
        world.change(f"{VNET}/subnets/tools", **subnet)
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): "Fail"}

    def test_only_an_interface_that_tells_its_hidden_address_is_known_to_have_none(self) -> None:
        world = served_cluster()
        add_machine(world)
        assert verdicts(world.change(MACHINE, defaultOutboundConnectivityEnabled=True), "vm-pivot") == FAILS
        assert verdicts(world.drop(MACHINE, "defaultOutboundConnectivityEnabled"), "vm-pivot") == UNKNOWN
        assert verdicts(_guarded(world, deny_nodes()), "vm-pivot") == {MACHINE.lower(): "Pass"}

    @pytest.mark.parametrize("network", [VNET, HUB])
    def test_a_nat_gateway_of_its_network_fails(self, network: str) -> None:
        world, nic = _machine_in(network)
        world.change(network, defaultPublicNatGateway={"id": f"{NETWORK}/natGateways/n"})
        assert verdicts(world, "vm-pivot") == {nic.lower(): "Fail"}

    @pytest.mark.parametrize("network", [VNET, HUB])
    @pytest.mark.parametrize("kind", ["natGateways", "serviceGateways"])
    def test_a_gateway_that_names_its_network_as_its_source_fails(self, network: str, kind: str) -> None:
        world, nic = _machine_in(network)
        gateway = f"{network.partition('/virtualNetworks/')[0]}/{kind}/g"
        named = {"sourceVirtualNetwork" if kind == "natGateways" else "virtualNetwork": {"id": network}}
        assert verdicts(world.put(gateway, named), "vm-pivot") == {nic.lower(): "Fail"}

    def test_gateways_that_cannot_be_listed_are_unknown(self) -> None:
        world, nic = _machine_in(HUB)
        world.refuse(OTHER_SUBSCRIPTION, kind="Microsoft.Network/natGateways")
        assert verdicts(world, "vm-pivot") == {nic.lower(): "Unknown"}

    @pytest.mark.parametrize(
        "lends", [{"outbound_rules": [outbound_rule(FAR_BALANCER)]}, {"rules": [balancing(FAR_BALANCER)]}]
    )
    @pytest.mark.parametrize("home", ["", NODES])
    def test_a_balancer_that_lends_it_a_public_address_fails(self, home: str, lends: dict[str, Any]) -> None:
        world, pool = served_cluster(), f"{FAR_BALANCER}/backendAddressPools/n"
        add_machine(world, subnet=home, loadBalancerBackendAddressPools=[{"id": pool}])
        balancer(FAR_BALANCER, public=True, **lends)(world)
        assert verdicts(world, "vm-pivot") == FAILS
        balancer(FAR_BALANCER, public=False, **lends)(world)
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): "Pass"}
        assert verdicts(world.drop(FAR_BALANCER), "vm-pivot") == UNKNOWN

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
        world = served_cluster()
        add_machine(world)
        table = f"{NETWORK}/routeTables/tools"
        world.put(table, {"routes": [route("r", prefix, hop, "10.200.0.4" if hop == "VirtualAppliance" else "")]})
        world.change(f"{VNET}/subnets/tools", routeTable={"id": table})
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): verdict}
        assert verdicts(world.refuse(table), "vm-pivot") == UNKNOWN

    def test_the_table_of_the_nodes_is_judged_for_itself(self) -> None:
        world = served_cluster()
        add_machine(world)
        world.change(f"{VNET}/subnets/tools", routeTable={"id": ROUTES.upper()})
        world.change(ROUTES, routes=[route("v4", "0.0.0.0/0", "VirtualAppliance", "10.200.0.4")])
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): "Pass"}

    def test_a_table_without_a_list_of_routes_is_unknown(self) -> None:
        world, table = served_cluster(), f"{NETWORK}/routeTables/tools"
        add_machine(world)
        world.put(table).change(f"{VNET}/subnets/tools", routeTable={"id": table})
        assert verdicts(world, "vm-pivot") == UNKNOWN

    def test_a_route_to_the_declared_firewall_is_no_way_of_its_own(self) -> None:
        world = served_cluster()
        add_machine(world)
        table = f"{NETWORK}/routeTables/tools"
        world.put(table, {"routes": [route("r", "0.0.0.0/0", "VirtualAppliance", "10.0.9.4")]})
        world.change(f"{VNET}/subnets/tools", routeTable={"id": table})
        address = {"name": "a", "properties": {"privateIPAddress": "10.0.9.4"}}
        world.put(FIREWALL, {"ipConfigurations": [address]})
        declared = Policy(profile="filtered", firewall=FIREWALL)
        assert verdicts(world, "vm-pivot", declared) == {MACHINE.lower(): "Pass"}
        assert verdicts(world.refuse(FIREWALL), "vm-pivot", declared) == UNKNOWN

    def test_a_machine_with_two_interfaces_is_entered_by_one_and_left_by_the_other(self) -> None:
        world = _guarded(_public_machine(), deny_nodes())
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): "Pass"}
        second = f"{NETWORK}/networkInterfaces/second"
        add_machine(world, second, subnet=f"{VNET}/subnets/tools", address="10.0.7.5")
        machine = world.properties(second)["virtualMachine"]["id"]
        assert verdicts(world, "vm-pivot") == {machine.lower(): "Fail"}
        world.change(second, networkSecurityGroup={"id": TOOLS_RULES})
        assert verdicts(world, "vm-pivot") == {machine.lower(): "Pass"}

    def test_a_machine_in_a_peer_counts_and_one_elsewhere_does_not(self) -> None:
        world = peer(served_cluster())
        nic = f"{HUB_GROUP}/providers/Microsoft.Network/networkInterfaces/jump"
        add_machine(world, nic, subnet=HUB_SUBNET, address="10.9.1.4", **PUBLIC)
        assert verdicts(world, "vm-pivot") == {nic.lower(): "Fail"}
        assert verdicts(peer(world, peeringState="Disconnected"), "vm-pivot") == {CLUSTER.lower(): "Pass"}

    def test_a_scale_set_that_is_not_the_clusters_counts(self) -> None:
        world = served_cluster()
        workers = f"{SUBSCRIPTION}/resourceGroups/ai/providers/Microsoft.Compute/virtualMachineScaleSets/workers"
        address = {
            "name": "a",
            "properties": {"subnet": {"id": f"{VNET}/subnets/tools"}, "publicIPAddressConfiguration": {}},
        }
        nics = [{"name": "n", "properties": {"ipConfigurations": [address]}}]
        world.put(f"{VNET}/subnets/tools", {"addressPrefix": "10.0.7.0/24", "defaultOutboundAccess": False})
        world.put(workers, {"virtualMachineProfile": {"networkProfile": {"networkInterfaceConfigurations": nics}}})
        assert verdicts(world, "vm-pivot") == {workers.lower(): "Fail"}

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
        world = _with_workers()
        world.change(WORKER, **of_the_instance)
        assert verdicts(world, "vm-pivot") == {WORKERS.lower(): verdict}

    def test_a_public_address_that_only_the_set_lists_fails(self) -> None:
        world = _with_workers().put(f"{WORKER}/ipConfigurations/ipconfig1/publicIPAddresses/p", {})
        assert verdicts(world, "vm-pivot") == {WORKERS.lower(): "Fail"}

    def test_instances_that_no_list_shows_are_unknown_and_those_in_flexible_mode_stand_alone(self) -> None:
        world = _with_workers().drop(WORKER)
        assert verdicts(world, "vm-pivot") == {WORKERS.lower(): "Unknown"}
        assert verdicts(world.change(WORKERS, orchestrationMode="Flexible"), "vm-pivot") == {WORKERS.lower(): "Pass"}

    def test_a_scale_set_elsewhere_is_asked_nothing(self) -> None:
        far = f"{NETWORK}/virtualNetworks/far/subnets/nodes"
        world = _with_workers().change(WORKERS, virtualMachineProfile={"networkProfile": model_nics(far)})
        estate = world.settled(lambda estate: list(machines_of(estate, Policy())))
        assert not machines_of(estate, Policy()).items
        assert estate.every(ScaleSetNic, WORKERS).problem is not None

    @pytest.mark.parametrize("check", ["nic-default-outbound", "nic-public-ip"])
    def test_they_are_interfaces_beside_the_nodes(self, check: str) -> None:
        world = _with_workers()
        assert verdicts(world, check)[WORKER.lower()] == "Pass"
        open_to = {"ipConfigurations": [ip_configuration("10.0.1.66", NODES, **PUBLIC)]}
        world.change(WORKER, defaultOutboundConnectivityEnabled=True, **open_to)
        found = world.findings(check)[WORKER.lower()]
        assert (found.verdict, found.severity) == (Verdict.FAIL, Severity.CRITICAL)

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
        world = _public_machine()
        world.properties(RULES)["securityRules"].append(rule("deny-tools", 200, "Deny", "10.0.7.0/24"))
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): "Pass"}

    def test_a_group_that_cannot_be_read_is_unknown(self) -> None:
        world = _guarded(_public_machine()).refuse(TOOLS_RULES)
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): "Unknown"}

    def test_machines_that_cannot_be_listed_are_unknown(self) -> None:
        world = served_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/networkInterfaces")
        assert verdicts(world, "vm-pivot") == {CLUSTER.lower(): "Unknown"}

    def test_one_broken_machine_hides_no_other(self) -> None:
        world = _public_machine()
        broken = f"{NETWORK}/networkInterfaces/broken"
        world.put(broken, {"ipConfigurations": "many", "virtualMachine": {"id": "/vm"}})
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): "Fail", CLUSTER.lower(): "Unknown"}

"""Machines beside the nodes that could relay for them."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.findings import Verdict
from tests.audit_estates import CLUSTER, NETWORK, RULES, SUBSCRIPTION, VNET, rule
from tests.audit_services import (
    HUB_GROUP,
    HUB_SUBNET,
    MACHINE,
    ServedWorld,
    add_machine,
    deny_nodes,
    only,
    peer,
    served_cluster,
    verdicts,
)

TOOLS_RULES = f"{NETWORK}/networkSecurityGroups/tools"
PUBLIC = {"publicIPAddress": {"id": f"{NETWORK}/publicIPAddresses/tools"}}


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
        assert found.paths == ("node subnets -> machine tools -> public ip -> internet",)

    @pytest.mark.parametrize(
        "subnet", [{"defaultOutboundAccess": None}, {"natGateway": {"id": f"{NETWORK}/natGateways/n"}}]
    )
    def test_a_way_out_of_its_subnet_fails(self, subnet: dict[str, Any]) -> None:
        world = served_cluster()
        add_machine(world)
        world.change(f"{VNET}/subnets/tools", **subnet)
        assert verdicts(world, "vm-pivot") == {MACHINE.lower(): "Fail"}

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

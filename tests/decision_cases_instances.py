"""Estates whose lists of machines differ from what Azure counts, or from the model of their scale set."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.cluster import extensions_of_aks, instance_view
from testbed.azure.baseline.layout import COMPUTE, LOCATION, NETWORK, NETWORK_GROUP, NODE_GROUP
from testbed.azure.baseline.network import add_machine, rule
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import first_configuration, instance_nics, nat_gateway, network, subnet
from tests.decision_cases import Change


def capacity(count: int) -> Change:
    def change(estate: Estate) -> None:
        estate[estate.site.gpu_scale_set]["sku"]["capacity"] = count

    return change


def without_capacity(estate: Estate) -> None:
    del estate[estate.site.gpu_scale_set]["sku"]["capacity"]


def pool_that_counts(count: int, state: str = "Running", *, tagged: bool = True) -> Change:
    """The pool of the GPU nodes, of which the scale set has two instances."""

    def change(estate: Estate) -> None:
        pool = estate.properties(estate.cluster)["agentPoolProfiles"][1]
        pool |= {"count": count, "powerState": {"code": state}}
        if not tagged:
            estate[estate.site.gpu_scale_set]["tags"] = {}

    return change


def instance_without_interface(estate: Estate) -> None:
    estate.remove(instance_nics(estate)[0])


def instance_that_no_list_shows(estate: Estate) -> None:
    estate.remove(instance_nics(estate)[0].rpartition("/networkInterfaces/")[0])


def instance_of_an_older_model(**configuration: Any) -> Change:
    def change(estate: Estate) -> None:
        nic = instance_nics(estate)[0]
        estate.properties(nic.rpartition("/networkInterfaces/")[0])["latestModelApplied"] = False
        first_configuration(estate, nic).update(configuration)

    return change


def older_model_in_an_open_subnet(estate: Estate) -> None:
    home = subnet(estate, "snet-old", "10.40.50.0/24", defaultOutboundAccess=None)
    instance_of_an_older_model(subnet={"id": home})(estate)


def pool_of_machines(estate: Estate) -> None:
    """A pool of machines of their own: it counts three, and the interface of one is listed."""
    pools = estate.properties(estate.cluster)["agentPoolProfiles"]
    named = {"name": "alone", "count": 3, "mode": "User", "type": "VirtualMachines"}
    pools.append({**named, "vnetSubnetID": estate.site.gpu_subnet, "enableNodePublicIP": False})
    nic = f"{NODE_GROUP}/{NETWORK}/networkInterfaces/aks-alone-0"
    add_machine(estate, "aks-alone-0", nic, estate.site.gpu_subnet, "10.40.1.210")


def pool_of_machines_by_size(count: int | None) -> Change:
    """The same, with no number of machines of the pool but that of a size, or with none."""

    def change(estate: Estate) -> None:
        pool_of_machines(estate)
        pool = estate.properties(estate.cluster)["agentPoolProfiles"][-1]
        pool |= {"count": None, "virtualMachineNodesStatus": [{"size": "Standard_NC40ads_H100_v5", "count": count}]}
        machine = estate.properties(f"{NODE_GROUP}/{COMPUTE}/virtualMachines/aks-alone-0")
        machine["instanceView"] = instance_view(extensions_of_aks("aks-alone"))

    return change


def scale_set_of_others(estate: Estate) -> None:
    """A scale set beside the nodes of which no instance is listed."""
    home = subnet(estate, "snet-others", "10.40.51.0/24")
    configuration = {"name": "ip", "properties": {"subnet": {"id": home}}}
    model = {"networkInterfaceConfigurations": [{"name": "n", "properties": {"ipConfigurations": [configuration]}}]}
    identifier = f"{NETWORK_GROUP}/{COMPUTE}/virtualMachineScaleSets/vmss-others"
    scale_set_fields = {"orchestrationMode": "Uniform", "virtualMachineProfile": {"networkProfile": model}}
    estate.add(identifier, scale_set_fields, location=LOCATION, sku={"name": "Standard_D2s_v5", "capacity": 3})


def second_interface(*, in_the_node_group: bool = False, of_others: bool = False) -> Change:
    """The one machine of a pool has a second interface, in a subnet with a NAT gateway that lets nothing in.

    `of_others`: the interface is of a machine of others.
    """

    def change(estate: Estate) -> None:
        pool_of_machines_by_size(1)(estate)
        home = subnet(estate, "snet-second", "10.40.60.0/24", networkSecurityGroup=None)
        gateway = nat_gateway(estate, "nat-second", subnets=[{"id": home}])
        rules = network(estate, "networkSecurityGroups", "nsg-second")
        estate.add(rules, {"securityRules": [rule("DenyIn", 100, "Deny", "*", direction="Inbound")]}, location=LOCATION)
        estate.properties(home).update(natGateway={"id": gateway}, networkSecurityGroup={"id": rules})
        group = NODE_GROUP if in_the_node_group else NETWORK_GROUP
        nic = f"{group}/{NETWORK}/networkInterfaces/nic-second"
        machine = add_machine(estate, "vm-second", nic, home, "10.40.60.4")
        if not of_others:
            estate.remove(machine)
            interface_fields = estate.properties(nic)
            interface_fields["virtualMachine"] = {"id": f"{NODE_GROUP}/{COMPUTE}/virtualMachines/aks-alone-0"}

    return change

"""Table C, `vm-pivot`: machines beside the nodes, and every egress path that one of them can have."""

from __future__ import annotations

from testbed.azure.baseline.layout import COMPUTE, HUB_GROUP, LOCATION, NETWORK, WORKLOAD
from testbed.azure.baseline.network import add_machine, add_rules, rule
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import (
    EGRESS_PATH_CHECKS,
    PIPS,
    STANDARD,
    Body,
    first_configuration,
    machine,
    nat_gateway,
    network,
    public_address,
    subnet,
    tell_hidden_addresses,
)
from testbed.azure.plants.plant import Named, plant

OTHERS_GROUP = f"/subscriptions/{WORKLOAD}/resourceGroups/MC_rg-training_aks-training_{LOCATION}"
HUB_NETWORK = f"{HUB_GROUP}/{NETWORK}"


@plant("vm-pivot", "high", also=("nic-public-ip", *EGRESS_PATH_CHECKS))
def other_machine_with_an_egress_path(estate: Estate) -> Named:
    """A machine that the nodes can reach has a public address: a proxy on it is an egress path."""
    home = subnet(estate, "snet-tools", "10.40.15.192/28")
    nic = machine(estate, "tools", home, "10.40.15.196")
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-tools"))
    first_configuration(estate, nic)["publicIPAddress"] = {"id": address}
    return str(estate.properties(nic)["virtualMachine"]["id"]), nic


@plant("vm-pivot", "high", also=(PIPS, "natgw-inventory", "nsg-block-type"))
def machine_with_a_second_interface_behind_a_nat_gateway(estate: Estate) -> Named:
    """The nodes come in by the one interface, packets leave by the other, where no node can reach."""
    closed = rule("DenyIn", 100, "Deny", "*", direction="Inbound")
    guard = add_rules(estate, network(estate, "networkSecurityGroups", "nsg-dmz"), [closed])
    near = machine(estate, "relay", subnet(estate, "snet-relay", "10.40.41.0/28"), "10.40.41.4")
    relay = str(estate.properties(near)["virtualMachine"]["id"])
    gateway = nat_gateway(estate, "nat-dmz")
    dmz = {"networkSecurityGroup": {"id": guard}, "natGateway": {"id": gateway}}
    outer = subnet(estate, "snet-dmz", "10.40.41.16/28", **dmz)
    estate.properties(gateway)["subnets"] = [{"id": outer}]
    far = machine(estate, "relay-outer", outer, "10.40.41.20")
    estate.remove(str(estate.properties(far)["virtualMachine"]["id"]))
    estate.properties(far)["virtualMachine"] = {"id": relay}
    return relay, near, far


@plant("vm-pivot", "high", also=(PIPS,), spot="others-scale-set")
def another_cluster_behind_a_public_balancer(estate: Estate) -> Named:
    """A second AKS cluster is in the network, and has the outbound balancer that AKS makes by default."""
    balancer = f"{OTHERS_GROUP}/{NETWORK}/loadBalancers/kubernetes"
    home = subnet(estate, "snet-training", "10.40.42.0/24")
    return _scale_set(estate, home, _lending(estate, balancer))


@plant("vm-pivot", "high", also=("nic-default-outbound", *EGRESS_PATH_CHECKS), spot="others-scale-set")
def scale_set_of_others_that_kept_its_hidden_address(estate: Estate) -> Named:
    """An instance of another scale set beside the nodes was never deallocated, and Azure shows it."""
    tell_hidden_addresses(estate)
    return _scale_set(estate, estate.site.gpu_subnet, hidden=True)


@plant("vm-pivot", "high", also=("nic-public-ip", *EGRESS_PATH_CHECKS), spot="others-scale-set")
def scale_set_of_others_with_an_instance_that_drifted(estate: Estate) -> Named:
    """The model of the scale set has no public address, an instance has one."""
    identifier = _scale_set(estate, subnet(estate, "snet-batch", "10.40.43.0/24"))
    nic = f"{identifier}/virtualMachines/0/networkInterfaces/nic"
    address = public_address(estate, f"{nic}/ipConfigurations/ipconfig1/publicIPAddresses/pip")
    first_configuration(estate, nic)["publicIPAddress"] = {"id": address}
    return identifier


@plant("vm-pivot", "high", needs=("peering",), spot="hub-balancer")
def machine_of_a_peer_behind_a_public_balancer(estate: Estate) -> Named:
    """A balancer of the hub has an outbound rule for a machine there."""
    nic = _machine_of_the_hub(estate, "balanced", "10.10.1.10")
    pool = _lending(estate, f"{HUB_NETWORK}/loadBalancers/lb-hub")
    first_configuration(estate, nic)["loadBalancerBackendAddressPools"] = [{"id": pool}]
    return nic


@plant("vm-pivot", "high", needs=("peering",), spot="hub-nat")
def machine_of_a_peer_whose_network_has_a_nat_gateway(estate: Estate) -> Named:
    """A StandardV2 NAT gateway serves the whole hub; no subnet there shows it."""
    gateway, address = f"{HUB_NETWORK}/natGateways/nat-hub", f"{HUB_NETWORK}/publicIPAddresses/pip-nat-hub"
    addresses = [{"id": public_address(estate, address)}]
    properties = {"sourceVirtualNetwork": {"id": estate.site.hub}, "publicIpAddresses": addresses}
    estate.add(gateway, properties, location=LOCATION, sku={"name": "StandardV2"})
    return _machine_of_the_hub(estate, "translated", "10.10.1.11")


@plant("vm-pivot", "high", needs=("peering",), spot="hub-service-gateway")
def machine_of_a_peer_behind_a_service_gateway(estate: Estate) -> Named:
    """A subnet of the hub has a service gateway."""
    gateway = f"{HUB_NETWORK}/serviceGateways/sgw-hub"
    estate.add(gateway, {"virtualNetwork": {"id": estate.site.hub}}, location=LOCATION, sku=STANDARD)
    estate.properties(f"{estate.site.hub}/subnets/snet-shared")["serviceGateway"] = {"id": gateway}
    return _machine_of_the_hub(estate, "served", "10.10.1.12")


@plant("vm-pivot", "high", needs=("peering",), spot="hub-routes")
def machine_of_a_peer_that_is_routed_to_an_appliance(estate: Estate) -> Named:
    """The default route of the hub's subnet leads to an appliance that the audit cannot read."""
    route = {"addressPrefix": "0.0.0.0/0", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.200.0.4"}
    table = f"{HUB_NETWORK}/routeTables/rt-hub"
    estate.add(table, {"routes": [{"name": "default", "properties": route}]}, location=LOCATION)
    estate.properties(f"{estate.site.hub}/subnets/snet-shared")["routeTable"] = {"id": table}
    return _machine_of_the_hub(estate, "routed", "10.10.1.13")


def _machine_of_the_hub(estate: Estate, name: str, address: str) -> str:
    nic = f"{HUB_NETWORK}/networkInterfaces/nic-{name}"
    add_machine(estate, f"vm-{name}", nic, f"{estate.site.hub}/subnets/snet-shared", address)
    return nic


def _lending(estate: Estate, balancer: str) -> str:
    """A public balancer with an outbound rule for its one pool; returns the pool's id."""
    group = balancer.partition("/loadBalancers/")[0]
    address = public_address(estate, f"{group}/publicIPAddresses/pip-out")
    frontend = {"id": f"{balancer}/frontendIPConfigurations/public", "name": "public"}
    pool = {"id": f"{balancer}/backendAddressPools/aksOutboundBackendPool", "name": "aksOutboundBackendPool"}
    lent = {"frontendIPConfigurations": [{"id": frontend["id"]}], "backendAddressPool": {"id": pool["id"]}}
    properties = {
        "frontendIPConfigurations": [{**frontend, "properties": {"publicIPAddress": {"id": address}}}],
        "backendAddressPools": [{**pool, "properties": {}}],
        "loadBalancingRules": [],
        "outboundRules": [{"name": "out", "properties": {**lent, "protocol": "All"}}],
    }
    estate.add(balancer, properties, location=LOCATION, sku=STANDARD)
    return pool["id"]


def _scale_set(estate: Estate, home: str, pool: str = "", *, hidden: bool = False) -> str:
    """A scale set of another team with one instance in a subnet; returns its id."""
    identifier = f"{OTHERS_GROUP}/{COMPUTE}/virtualMachineScaleSets/aks-training-vmss"
    pools = {"loadBalancerBackendAddressPools": [{"id": pool}]} if pool else {}
    address: Body = {"name": "ipconfig1", "properties": {"primary": True, "subnet": {"id": home}, **pools}}
    model = {"name": "nic", "properties": {"primary": True, "ipConfigurations": [address]}}
    profile = {"networkProfile": {"networkInterfaceConfigurations": [model]}}
    properties = {"orchestrationMode": "Uniform", "virtualMachineProfile": profile}
    estate.add(
        identifier, properties, location=LOCATION, sku={"name": "Standard_D4s_v5", "tier": "Standard", "capacity": 1}
    )
    instance = f"{identifier}/virtualMachines/0"
    nic = f"{instance}/networkInterfaces/nic"
    configuration = {**address, "id": f"{nic}/ipConfigurations/ipconfig1"}
    estate.add(instance, {}, location=LOCATION)
    estate.add(
        nic,
        {
            "primary": True,
            "virtualMachine": {"id": instance},
            "defaultOutboundConnectivityEnabled": hidden,
            "ipConfigurations": [configuration],
        },
    )
    return identifier

"""Table A, first half: subnets, interfaces, NAT, public addresses."""

from __future__ import annotations

from testbed.azure.baseline.layout import LOCATION
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import (
    EGRESS_PATH_CHECKS,
    PIPS,
    STANDARD,
    first_configuration,
    in_node_group,
    instance_nics,
    machine,
    nat_gateway,
    network,
    public_address,
    subnet,
    tell_hidden_addresses,
)
from testbed.azure.plants.plant import Named, plant

# what serves the whole network serves the machine with the resolver too
OF_THE_NETWORK = (*EGRESS_PATH_CHECKS, "vnet-dns-servers")


@plant("subnet-default-outbound", "critical", also=EGRESS_PATH_CHECKS, spot="gpu-outbound")
def default_outbound_is_null(estate: Estate) -> Named:
    """The GPU subnet says null, which Azure reads as allowed."""
    estate.properties(estate.site.gpu_subnet)["defaultOutboundAccess"] = None
    return estate.site.gpu_subnet


@plant("subnet-default-outbound", "critical", also=EGRESS_PATH_CHECKS, spot="system-outbound")
def default_outbound_is_absent(estate: Estate) -> Named:
    """The system subnet does not mention default outbound access."""
    del estate.properties(estate.site.system_subnet)["defaultOutboundAccess"]
    return estate.site.system_subnet


@plant("subnet-default-outbound", "critical", also=EGRESS_PATH_CHECKS, needs=("pod_subnet",))
def default_outbound_of_a_delegated_pod_subnet(estate: Estate) -> Named:
    """The pod subnet is delegated to AKS, and is evaluated all the same."""
    estate.properties(estate.site.pod_subnet)["defaultOutboundAccess"] = True
    return estate.site.pod_subnet


@plant("nic-default-outbound", "critical", also=EGRESS_PATH_CHECKS)
def node_kept_its_hidden_address(estate: Estate) -> Named:
    """An instance was never deallocated after its subnet became private, and Azure shows it."""
    tell_hidden_addresses(estate)
    nic = instance_nics(estate)[0]
    estate.properties(nic)["defaultOutboundConnectivityEnabled"] = True
    return nic, nic.rsplit("/", 2)[0], estate.site.gpu_scale_set


@plant("nic-default-outbound", "critical", also=EGRESS_PATH_CHECKS, needs=("sentinel",))
def machine_kept_its_hidden_address(estate: Estate) -> Named:
    """A virtual machine in the GPU subnet was never deallocated after the subnet became private."""
    estate.properties(estate.site.sentinel)["defaultOutboundConnectivityEnabled"] = True
    return estate.site.sentinel


@plant("subnet-default-outbound", "critical", also=(*EGRESS_PATH_CHECKS, "route-table-missing", "nsg-internet-deny"))
def second_interface_on_a_subnet_that_no_pool_names(estate: Estate) -> Named:
    """The scale set's model has a second interface, on a subnet with default outbound access."""
    home = subnet(estate, "snet-side", "10.40.14.0/24", defaultOutboundAccess=None)
    profile = estate.properties(estate.site.gpu_scale_set)["virtualMachineProfile"]["networkProfile"]
    configuration = {"name": "ipconfig2", "properties": {"subnet": {"id": home}}}
    interface = {"primary": False, "ipConfigurations": [configuration]}
    profile["networkInterfaceConfigurations"].append({"name": "side", "properties": interface})
    return home


@plant(
    "subnet-default-outbound",
    "critical",
    also=(*EGRESS_PATH_CHECKS, "nsg-missing", "nsg-internet-deny"),
    needs=("api_subnet",),
)
def second_interface_in_the_api_servers_subnet(estate: Estate) -> Named:
    """The scale set's model has a second interface in the subnet of the API server, which is not private."""
    home = estate.site.api_subnet
    estate.properties(home)["defaultOutboundAccess"] = None
    profile = estate.properties(estate.site.gpu_scale_set)["virtualMachineProfile"]["networkProfile"]
    configuration = {"name": "ipconfig2", "properties": {"subnet": {"id": home}}}
    interface = {"primary": False, "ipConfigurations": [configuration]}
    profile["networkInterfaceConfigurations"].append({"name": "api", "properties": interface})
    return home


@plant("subnet-nat-gateway", "critical", also=(*EGRESS_PATH_CHECKS, "natgw-inventory"), spot="gpu-nat")
def nat_gateway_on_the_gpu_subnet(estate: Estate) -> Named:
    """A NAT gateway serves the GPU subnet, masked today by a route to nowhere."""
    home = estate.site.gpu_subnet
    estate.properties(home)["natGateway"] = {"id": nat_gateway(estate, subnets=[{"id": home}])}
    return home


@plant("vnet-nat-gateway", "critical", also=(*OF_THE_NETWORK, "natgw-inventory"), spot="vnet-nat")
def nat_gateway_of_the_whole_network(estate: Estate) -> Named:
    """A StandardV2 NAT gateway names the network as its source; no subnet shows it."""
    gateway = nat_gateway(estate, "nat-vnet", sourceVirtualNetwork={"id": estate.site.vnet})
    estate[gateway]["sku"] = {"name": "StandardV2"}
    return estate.site.vnet, gateway


@plant("vnet-nat-gateway", "critical", also=(*OF_THE_NETWORK, "natgw-inventory"), spot="vnet-nat")
def default_nat_gateway_of_the_network(estate: Estate) -> Named:
    """Azure gave the network a default public NAT gateway."""
    gateway = network(estate, "natGateways", "nat-default")
    estate.properties(estate.site.vnet)["defaultPublicNatGateway"] = {"id": gateway}
    return estate.site.vnet, gateway


@plant("natgw-inventory", "info", also=(PIPS,))
def nat_gateway_without_a_subnet(estate: Estate) -> Named:
    """A NAT gateway with an address, one association away from a node subnet."""
    return nat_gateway(estate, "nat-idle")


@plant("natgw-inventory", "critical", also=(*EGRESS_PATH_CHECKS, "subnet-nat-gateway"))
def nat_gateway_that_names_a_subnet(estate: Estate) -> Named:
    """The NAT gateway says that it serves the system subnet; the subnet does not say so."""
    return nat_gateway(estate, "nat-named", subnets=[{"id": estate.site.system_subnet}])


@plant("subnet-service-gateway", "critical", also=OF_THE_NETWORK, spot="service-gateway")
def service_gateway_on_the_gpu_subnet(estate: Estate) -> Named:
    """A service gateway routes the pods' egress through its own NAT."""
    gateway = network(estate, "serviceGateways", "sgw-inference")
    estate.add(gateway, {"virtualNetwork": {"id": estate.site.vnet}}, location=LOCATION, sku=STANDARD)
    estate.properties(estate.site.gpu_subnet)["serviceGateway"] = {"id": gateway}
    return estate.site.gpu_subnet, gateway


@plant("subnet-service-gateway", "critical", also=OF_THE_NETWORK, spot="service-gateway")
def service_gateway_of_the_network(estate: Estate) -> Named:
    """A service gateway belongs to the network; no subnet names it."""
    gateway = network(estate, "serviceGateways", "sgw-vnet")
    estate.add(gateway, {"virtualNetwork": {"id": estate.site.vnet}}, location=LOCATION, sku=STANDARD)
    return gateway, estate.site.vnet


@plant("nodepool-node-public-ip", "critical", also=EGRESS_PATH_CHECKS, spot="gpu-pool-address")
def pool_with_public_addresses(estate: Estate) -> Named:
    """Each node of the GPU pool gets a public address."""
    estate.properties(f"{estate.cluster}/agentPools/gpu")["enableNodePublicIP"] = True
    return f"{estate.cluster}/agentPools/gpu", estate.cluster


@plant("nodepool-node-public-ip", "critical", also=EGRESS_PATH_CHECKS, spot="gpu-pool-address")
def pool_with_an_address_prefix(estate: Estate) -> Named:
    """The GPU pool names a prefix to take its nodes' public addresses from."""
    prefix = f"{estate.site.vnet.partition('/providers/')[0]}/providers/Microsoft.Network/publicIPPrefixes/ippre-nodes"
    estate.properties(f"{estate.cluster}/agentPools/gpu")["nodePublicIPPrefixID"] = prefix
    return f"{estate.cluster}/agentPools/gpu", estate.cluster


@plant("vmss-public-ip-config", "critical", also=EGRESS_PATH_CHECKS)
def scale_set_model_with_a_public_address(estate: Estate) -> Named:
    """The model of the scale set has a public address in a second, IPv6 configuration."""
    profile = estate.properties(estate.site.gpu_scale_set)["virtualMachineProfile"]["networkProfile"]
    address = {"name": "pip", "properties": {"publicIPAddressVersion": "IPv6"}}
    properties = {"publicIPAddressConfiguration": address, "subnet": {"id": estate.site.gpu_subnet}}
    interface = profile["networkInterfaceConfigurations"][0]["properties"]
    interface["ipConfigurations"].append({"name": "ipconfig2", "properties": properties})
    return estate.site.gpu_scale_set


@plant("vmss-instance-pip", "critical", also=(*EGRESS_PATH_CHECKS, "nic-public-ip"))
def instance_with_a_public_address(estate: Estate) -> Named:
    """One instance drifted from its model: it has a public address."""
    nic = instance_nics(estate)[0]
    address = public_address(estate, f"{nic}/ipConfigurations/ipconfig1/publicIPAddresses/pip")
    first_configuration(estate, nic)["publicIPAddress"] = {"id": address}
    return estate.site.gpu_scale_set, address, nic, nic.rsplit("/", 2)[0]


@plant("nic-public-ip", "critical", also=EGRESS_PATH_CHECKS, needs=("sentinel",))
def machine_beside_the_nodes_with_a_public_address(estate: Estate) -> Named:
    """A virtual machine in the GPU subnet has a public address."""
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-sentinel"))
    first_configuration(estate, estate.site.sentinel)["publicIPAddress"] = {"id": address}
    return estate.site.sentinel


@plant("nic-public-ip", "high", also=EGRESS_PATH_CHECKS)
def machine_elsewhere_with_a_public_address(estate: Estate) -> Named:
    """A virtual machine in another subnet of the network has a public address."""
    home = subnet(estate, "snet-jump", "10.40.15.0/28")
    nic = machine(estate, "jump", home, "10.40.15.4")
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-jump"))
    first_configuration(estate, nic)["publicIPAddress"] = {"id": address}
    return nic


@plant("pip-and-prefix-inventory", "medium")
def address_that_is_not_attached(estate: Estate) -> Named:
    """A public address lies in the node group, one write away from a node."""
    return public_address(estate, in_node_group("publicIPAddresses", "pip-idle"))


@plant("pip-and-prefix-inventory", "medium")
def prefix_that_is_not_attached(estate: Estate) -> Named:
    """A public prefix lies in the network's group."""
    identifier = network(estate, "publicIPPrefixes", "ippre-idle")
    return estate.add(identifier, {"ipPrefix": "20.91.240.0/30", "prefixLength": 30}, location=LOCATION, sku=STANDARD)


@plant("nic-ip-forwarding", "medium", needs=("sentinel",))
def machine_that_forwards(estate: Estate) -> Named:
    """A virtual machine in the GPU subnet may route for others."""
    estate.properties(estate.site.sentinel)["enableIPForwarding"] = True
    return estate.site.sentinel

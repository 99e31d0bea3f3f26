"""Pieces that plants put into an estate: public addresses, gateways, machines, balancers."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.cluster import NODE_RULES
from testbed.azure.baseline.layout import CONNECTIVITY, LOCATION, NETWORK, NETWORK_GROUP, NODE_GROUP
from testbed.azure.baseline.network import add_machine
from testbed.azure.estate import Estate

Body = dict[str, Any]

STANDARD = {"name": "Standard"}
FOREIGN = "d94e2b6a-7c15-4f08-b3a9-6e1d50f8c274"  # a subscription that is not ours
PIPS = "pip-and-prefix-inventory"
# what an open path from a node subnet may trip beside the check it is planted for
EGRESS_PATH_CHECKS = ("aks-outbound-type", "vm-pivot", "effective-routes", "nexthop-spotcheck", PIPS)


def group(estate: Estate) -> str:
    """The resource group of the cluster's network."""
    return estate.site.vnet.partition("/providers/")[0]


def network(estate: Estate, kind: str, name: str) -> str:
    """The id of a network resource in the network's group."""
    return f"{group(estate)}/{NETWORK}/{kind}/{name}"


def in_node_group(kind: str, name: str) -> str:
    return f"{NODE_GROUP}/{NETWORK}/{kind}/{name}"


def public_address(estate: Estate, identifier: str, address: str = "20.91.201.17") -> str:
    properties = {"ipAddress": address, "publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"}
    return estate.add(identifier, properties, location=LOCATION, sku=STANDARD)


def nat_gateway(estate: Estate, name: str = "nat-out", **properties: Any) -> str:
    address = public_address(estate, network(estate, "publicIPAddresses", f"pip-{name}"))
    identifier = network(estate, "natGateways", name)
    held = {"publicIpAddresses": [{"id": address}], "idleTimeoutInMinutes": 4, **properties}
    return estate.add(identifier, held, location=LOCATION, sku=STANDARD)


def subnet(estate: Estate, name: str, prefix: str, **properties: Any) -> str:
    """A subnet that is not the cluster's, private and with a group that denies."""
    identifier = f"{estate.site.vnet}/subnets/{name}"
    held = {"addressPrefix": prefix, "defaultOutboundAccess": False, **properties}
    return estate.add(identifier, {"networkSecurityGroup": {"id": estate.site.node_rules}, **held})


def delegations(service: str) -> list[Body]:
    """The delegations of a subnet, to one service."""
    return [{"name": "service", "properties": {"serviceName": service}}]


def service_link(service: str) -> Body:
    """A link as Azure writes it into a subnet for a service that it put there."""
    return {"name": "link", "properties": {"linkedResourceType": service, "allowDelete": False}}


def delegated(estate: Estate, service: str, *, name: str, prefix: str, in_use: bool = True) -> str:
    """A private subnet behind rules that deny the internet, delegated to a service; `in_use`: one is there."""
    home = subnet(estate, name, prefix, delegations=delegations(service))
    if in_use:
        estate.properties(home)["serviceAssociationLinks"] = [service_link(service)]
    return home


def gateway(estate: Estate, **properties: Any) -> str:
    """A VPN gateway in the cluster's network; its address lies outside the groups that are looked through."""
    home = subnet(estate, "GatewaySubnet", "10.40.13.0/27")
    address = f"/subscriptions/{CONNECTIVITY}/resourceGroups/rg-gateway/{NETWORK}/publicIPAddresses/pip-vpn"
    configuration = {"subnet": {"id": home}, "publicIPAddress": {"id": public_address(estate, address)}}
    return estate.add(
        network(estate, "virtualNetworkGateways", "vgw-inference"),
        {
            "gatewayType": "Vpn",
            "vpnType": "RouteBased",
            "enableBgp": True,
            "ipConfigurations": [{"name": "default", "properties": configuration}],
            **properties,
        },
        location=LOCATION,
    )


def connection(estate: Estate, gateway_id: str, status: str = "Connected") -> str:
    properties = {
        "connectionType": "IPsec",
        "connectionStatus": status,
        "virtualNetworkGateway1": {"id": gateway_id},
        "localNetworkGateway2": {"id": network(estate, "localNetworkGateways", "site")},
    }
    return estate.add(network(estate, "connections", "to-site"), properties, location=LOCATION)


def machine(estate: Estate, name: str, home: str, address: str) -> str:
    """A virtual machine in a subnet; returns its interface's id."""
    nic = f"{NETWORK_GROUP}/{NETWORK}/networkInterfaces/nic-{name}"
    add_machine(estate, f"vm-{name}", nic, home, address)
    return nic


def first_configuration(estate: Estate, nic: str) -> Body:
    properties: Body = estate.properties(nic)["ipConfigurations"][0]["properties"]
    return properties


def instance_nics(estate: Estate) -> list[str]:
    """Interfaces of the GPU scale set's instances."""
    kind = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"
    below = f"{estate.site.gpu_scale_set}/".lower()
    return [nic["id"] for nic in estate.of_type(kind) if nic["id"].lower().startswith(below)]


def pool_of_nodes(estate: Estate, balancer: str) -> Body:
    """A backend pool that holds the GPU nodes."""
    held = [{"id": f"{nic}/ipConfigurations/ipconfig1"} for nic in instance_nics(estate)]
    pool = f"{balancer}/backendAddressPools/nodes"
    return {"id": pool, "name": "nodes", "properties": {"backendIPConfigurations": held}}


def public_balancer(estate: Estate, balancer: str, *, rules: list[Body], outbound: list[Body]) -> str:
    """A standard balancer with a public frontend before the GPU nodes."""
    address = public_address(estate, in_node_group("publicIPAddresses", "pip-balancer"))
    frontend = {
        "id": f"{balancer}/frontendIPConfigurations/public",
        "name": "public",
        "properties": {"publicIPAddress": {"id": address}},
    }
    properties = {
        "frontendIPConfigurations": [frontend],
        "backendAddressPools": [pool_of_nodes(estate, balancer)],
        "loadBalancingRules": rules,
        "outboundRules": outbound,
        "probes": [],
        "inboundNatRules": [],
    }
    return estate.add(balancer, properties, location=LOCATION, sku=STANDARD)


def balancing_rule(balancer: str, **properties: Any) -> Body:
    pool = {"id": f"{balancer}/backendAddressPools/nodes"}
    frontend = {"id": f"{balancer}/frontendIPConfigurations/public"}
    held = {"frontendIPConfiguration": frontend, "backendAddressPool": pool, "backendAddressPools": [pool]}
    return {
        "name": "web",
        "properties": {"protocol": "Tcp", "frontendPort": 443, "backendPort": 443, **held, **properties},
    }


def outbound_rule(balancer: str) -> Body:
    properties = {
        "frontendIPConfigurations": [{"id": f"{balancer}/frontendIPConfigurations/public"}],
        "backendAddressPool": {"id": f"{balancer}/backendAddressPools/nodes"},
        "protocol": "All",
        "allocatedOutboundPorts": 1024,
    }
    return {"name": "out", "properties": properties}


def set_route(estate: Estate, name: str, prefix: str, hop: str, address: str = "") -> str:
    """A route in the sealed table, in place of the one to the same prefix; returns the table's id.

    Where AKS's own network has no table, the GPU subnet gets one.
    """
    table = estate.site.route_table or _new_table(estate)
    properties = estate.properties(table)
    route = {"addressPrefix": prefix, "nextHopType": hop, **({"nextHopIpAddress": address} if address else {})}
    remaining_routes = [other for other in properties["routes"] if other["properties"]["addressPrefix"] != prefix]
    properties["routes"] = [*remaining_routes, {"name": name, "properties": route}]
    return table


def tell_hidden_addresses(estate: Estate) -> None:
    """ARM shows of every interface of a scale set whether it kept one."""
    estate.scale_set_outbound_shown_by |= {"arm"}


def apply_in_graph(estate: Estate, field: str, configuration: str) -> None:
    """Resource Graph's row about what Network Manager applies to the network.

    MicrosoftDocs/azure-docs, virtual-network-manager/query-azure-resource-graph: the id of the row, and the property
    with the snapshot that is deployed.
    """
    kind = "effectiveSecurityAdminRules" if "SecurityAdmin" in field else field
    row = f"{estate.site.vnet}/{NETWORK}/{kind}/default"
    estate.add(row, {field: [{"id": f"{configuration}/snapshots/0"}]}, location=LOCATION)


def _new_table(estate: Estate) -> str:
    table = network(estate, "routeTables", "rt-own")
    if table not in estate:
        estate.add(table, {"disableBgpRoutePropagation": True, "routes": []}, location=LOCATION)
        estate.properties(estate.site.gpu_subnet)["routeTable"] = {"id": table}
    return table


def node_subnets(estate: Estate) -> list[str]:
    """Subnets of the cluster's nodes, by their interfaces: a pool in AKS's own network names none."""
    kind = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"
    home = estate.site.gpu_scale_set.partition("/providers/")[0].lower()
    nics = [nic["properties"] for nic in estate.of_type(kind) if str(nic["id"]).lower().startswith(f"{home}/")]
    configurations = [ip_configuration["properties"] for nic in nics for ip_configuration in nic["ipConfigurations"]]
    return sorted({str(estate[configuration["subnet"]["id"]]["id"]) for configuration in configurations})


def drop_aks_rules(estate: Estate) -> None:
    """AKS's own group holds Azure's default rules only, whatever the layout."""
    estate.properties(NODE_RULES)["securityRules"] = []


def change_rules(estate: Estate, rules: str, *, without: str = "", plus: Body | None = None) -> str:
    properties = estate.properties(rules)
    remaining_security_rules = [rule for rule in properties["securityRules"] if rule["name"] != without]
    properties["securityRules"] = [*remaining_security_rules, plus] if plus else remaining_security_rules
    return rules

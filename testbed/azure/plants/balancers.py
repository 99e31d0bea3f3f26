"""Table A, second half: load balancers and front doors."""

from __future__ import annotations

from testbed.azure.baseline.layout import LOCATION
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import (
    EGRESS_PATH_CHECKS,
    PIPS,
    balancing_rule,
    in_node_group,
    instance_nics,
    network,
    outbound_rule,
    public_address,
    public_balancer,
    subnet,
)
from testbed.azure.plants.plant import Named, plant

PUBLIC = (*EGRESS_PATH_CHECKS, "lb-public-frontend", "lb-rule-snat", "lb-outbound-rule")


@plant("lb-outbound-rule", "critical", also=PUBLIC, spot="public-balancer")
def outbound_rule_of_a_balancer(estate: Estate) -> Named:
    """An outbound rule gives the nodes the balancer's public address."""
    balancer = in_node_group("loadBalancers", "kubernetes")
    return public_balancer(estate, balancer, rules=[], outbound=[outbound_rule(balancer)])


@plant("lb-outbound-rule", "critical", also=PUBLIC, spot="public-balancer")
def outbound_rule_of_a_balancer_in_another_group(estate: Estate) -> Named:
    """The balancer lies outside the node group, and its pool holds the nodes."""
    balancer = network(estate, "loadBalancers", "lb-elsewhere")
    return public_balancer(estate, balancer, rules=[], outbound=[outbound_rule(balancer)])


@plant("lb-rule-snat", "critical", also=PUBLIC, spot="public-balancer")
def rule_that_translates_addresses(estate: Estate) -> Named:
    """A rule with a public frontend does not mention disableOutboundSnat, so it translates."""
    balancer = in_node_group("loadBalancers", "kubernetes")
    return public_balancer(estate, balancer, rules=[balancing_rule(balancer)], outbound=[])


@plant("lb-public-frontend", "high", also=(PIPS, "aks-outbound-type"), spot="public-balancer")
def public_frontend_for_inbound_only(estate: Estate) -> Named:
    """A public frontend whose rules translate nothing: exposure, and an outbound rule away from a path."""
    balancer = in_node_group("loadBalancers", "kubernetes")
    rule = balancing_rule(balancer, disableOutboundSnat=True)
    return public_balancer(estate, balancer, rules=[rule], outbound=[])


@plant("lb-basic-sku", "high", also=("aks-outbound-type",), spot="balancer-sku")
def basic_balancer(estate: Estate) -> Named:
    """A Basic internal balancer leaves its members their default outbound access."""
    estate[estate.site.balancer]["sku"] = {"name": "Basic", "tier": "Regional"}
    return estate.site.balancer


@plant("lb-gateway-chain", "high", spot="gateway-chain")
def frontend_chained_to_an_appliance(estate: Estate) -> Named:
    """The internal frontend sends its traffic through a gateway load balancer."""
    frontend = estate.properties(estate.site.balancer)["frontendIPConfigurations"][0]["properties"]
    frontend["gatewayLoadBalancer"] = {"id": _appliance(estate)}
    return estate.site.balancer


@plant("lb-gateway-chain", "high", spot="gateway-chain")
def node_chained_to_an_appliance(estate: Estate) -> Named:
    """A node's interface sends its traffic through a gateway load balancer."""
    nic = instance_nics(estate)[0]
    configuration = estate.properties(nic)["ipConfigurations"][0]["properties"]
    configuration["gatewayLoadBalancer"] = {"id": _appliance(estate)}
    return nic, estate.site.gpu_scale_set


def _appliance(estate: Estate) -> str:
    return network(estate, "loadBalancers", "gwlb/frontendIPConfigurations/appliance")


@plant("lb-ip-based-pool", "high", also=(*EGRESS_PATH_CHECKS, "subnet-default-outbound"), spot="gpu-outbound")
def pools_by_address_beside_default_outbound(estate: Estate) -> Named:
    """Backend pools hold addresses instead of interfaces: default outbound access is not masked there."""
    profile = estate.properties(estate.cluster)["networkProfile"]["loadBalancerProfile"]
    profile["backendPoolType"] = "nodeIP"
    estate.properties(estate.site.gpu_subnet)["defaultOutboundAccess"] = None
    return estate.cluster, estate.site.gpu_subnet, estate.site.balancer


@plant("lb-ip-based-pool", "high", also=(*EGRESS_PATH_CHECKS, "subnet-default-outbound"), spot="gpu-outbound")
def balancer_that_lists_node_addresses(estate: Estate) -> Named:
    """One balancer's pool lists the nodes' addresses, whatever the cluster says of its pools."""
    estate.properties(estate.site.gpu_subnet)["defaultOutboundAccess"] = None
    pool = estate.properties(estate.site.balancer)["backendAddressPools"][0]["properties"]
    nic = estate.properties(instance_nics(estate)[0])
    address = nic["ipConfigurations"][0]["properties"]["privateIPAddress"]
    properties = {"ipAddress": address, "virtualNetwork": {"id": estate.site.vnet}}
    pool["loadBalancerBackendAddresses"] = [{"name": "node", "properties": properties}]
    return estate.site.balancer, estate.site.gpu_subnet, estate.cluster


@plant("appgw-bastion-other-pip", "medium", also=(PIPS,))
def application_gateway_with_a_public_frontend(estate: Estate) -> Named:
    """An application gateway in the network listens on a public address."""
    home = subnet(estate, "snet-appgw", "10.40.15.32/28")
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-appgw"))
    properties = {
        "gatewayIPConfigurations": [{"name": "gateway", "properties": {"subnet": {"id": home}}}],
        "frontendIPConfigurations": [{"name": "public", "properties": {"publicIPAddress": {"id": address}}}],
    }
    return estate.add(network(estate, "applicationGateways", "agw-inference"), properties, location=LOCATION)


@plant("appgw-bastion-other-pip", "medium", also=(PIPS, "bastion-copy-out"), spot="bastion")
def bastion_with_a_public_address(estate: Estate) -> Named:
    """A bastion in the network is reached from the internet."""
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-bastion"))
    return _bastion(estate, {"publicIPAddress": {"id": address}}, disableCopyPaste=True)


@plant("bastion-copy-out", "medium", spot="bastion")
def bastion_that_lets_people_copy(estate: Estate) -> Named:
    """A private bastion allows copying text and files out of a session."""
    return _bastion(estate, {}, enablePrivateOnlyBastion=True, enableFileCopy=True, disableCopyPaste=False)


def _bastion(estate: Estate, configuration: dict[str, object], **properties: object) -> str:
    home = subnet(estate, "AzureBastionSubnet", "10.40.15.64/26")
    held = {"subnet": {"id": home}, **configuration}
    return estate.add(
        network(estate, "bastionHosts", "bas-inference"),
        {"ipConfigurations": [{"name": "ipconfig", "properties": held}], **properties},
        location=LOCATION,
        sku={"name": "Premium"},
    )

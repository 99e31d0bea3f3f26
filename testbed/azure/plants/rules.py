"""Table E: network security groups."""

from __future__ import annotations

from testbed.azure.baseline.cluster import NODE_RULES
from testbed.azure.baseline.network import rule
from testbed.azure.effective_rules import effective_rules
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import change_rules, drop_aks_rules, instance_nics, node_subnets
from testbed.azure.plants.plant import SEALED, Named, plant

SEEN_BY = ("nsg-effective", "nsg-internet-deny", "nsg-broad-allow", "nsg-block-type")
NO_GROUP = (*SEEN_BY, "nsg-missing", "nsg-platform-dns")
HOLE = 150


@plant("nsg-missing", "high", also=NO_GROUP, spot="node-rules", depends=True)
def nodes_without_any_group(estate: Estate) -> Named:
    """Neither the GPU subnet nor its nodes' interfaces have a security group."""
    estate.properties(estate.site.gpu_subnet)["networkSecurityGroup"] = None
    for nic in instance_nics(estate):
        estate.properties(nic)["networkSecurityGroup"] = None
    profile = estate.properties(estate.site.gpu_scale_set)["virtualMachineProfile"]["networkProfile"]
    profile["networkInterfaceConfigurations"][0]["properties"]["networkSecurityGroup"] = None
    return estate.site.gpu_subnet


@plant(
    "nsg-internet-deny",
    "high",
    also=(*SEEN_BY, "nsg-missing", "nsg-platform-dns"),
    profiles=(SEALED,),
    spot="node-rules",
)
def subnet_without_a_group(estate: Estate) -> Named:
    """Only AKS's own group is left for the GPU nodes, and it holds Azure's default rules."""
    drop_aks_rules(estate)
    estate.properties(estate.site.gpu_subnet)["networkSecurityGroup"] = None
    return estate.site.gpu_subnet


@plant("nsg-internet-deny", "high", also=SEEN_BY, profiles=(SEALED,), spot="node-rules")
def group_without_a_deny(estate: Estate) -> list[Named]:
    """The node subnets' group denies nothing: the default rule lets the internet through."""
    drop_aks_rules(estate)
    change_rules(estate, estate.site.node_rules, without="DenyInternet")
    return list(node_subnets(estate))


@plant("nsg-internet-deny", "high", also=SEEN_BY, profiles=(SEALED,), spot="node-rules v4-route")
def allow_to_the_virtual_network_before_the_deny(estate: Estate) -> list[Named]:
    """An allow to VirtualNetwork comes before the deny; with a user route to 0.0.0.0/0 the tag holds every address."""
    drop_aks_rules(estate)
    change_rules(estate, estate.site.node_rules, plus=rule("AllowVnet", HOLE, "Allow", "VirtualNetwork"))
    return list(node_subnets(estate))


@plant("nsg-broad-allow", "critical", also=SEEN_BY, profiles=(SEALED,), spot="node-rules")
def hole_for_every_storage_account(estate: Estate) -> Named:
    """An allow to the tag of storage comes before the deny: any account of any tenant."""
    return _hole(estate, rule("AllowStorage", HOLE, "Allow", "Storage.SwedenCentral"))


@plant("nsg-broad-allow", "critical", also=SEEN_BY, profiles=(SEALED,), spot="node-rules")
def hole_in_a_list_of_prefixes(estate: Estate) -> Named:
    """A public prefix is among the plural prefixes of an allow, behind a private one."""
    prefixes = {"destinationAddressPrefix": "", "destinationAddressPrefixes": ["10.50.0.0/16", "20.60.0.0/16"]}
    return _hole(estate, rule("AllowPartners", HOLE, "Allow", "", **prefixes))


@plant("nsg-broad-allow", "critical", also=SEEN_BY, profiles=(SEALED,), spot="node-rules")
def hole_for_the_whole_internet_on_one_port(estate: Estate) -> Named:
    """An allow to anywhere on one port comes before the deny."""
    return _hole(estate, rule("AllowHttps", HOLE, "Allow", "*", protocol="Tcp", destinationPortRange="443"))


def _hole(estate: Estate, hole: dict[str, object]) -> Named:
    """In the group of the node subnets; the finding may name the group, or a subnet behind it."""
    drop_aks_rules(estate)
    return change_rules(estate, estate.site.node_rules, plus=hole), *node_subnets(estate)


@plant(
    "nsg-broad-allow",
    "medium",
    also=("nsg-block-type",),
    profiles=(SEALED,),
    spot="node-rules",
    fits=lambda estate: estate.site.node_rules != NODE_RULES,
)
def hole_under_a_layer_that_seals(estate: Estate) -> Named:
    """AKS's own group has a hole; the subnet's group seals it, one change away from open."""
    drop_aks_rules(estate)
    hole = rule("AllowAzure", HOLE, "Allow", "AzureCloud")
    return change_rules(estate, NODE_RULES, plus=hole), *node_subnets(estate)


@plant(
    "nsg-effective", "high", also=SEEN_BY, needs=("sentinel",), profiles=(SEALED,), spot="effective-rules", depends=True
)
def effective_rules_that_no_group_shows(estate: Estate) -> Named:
    """What the platform applies differs from what the groups say: the deny is missing."""
    shown = effective_rules(estate, estate[estate.site.sentinel])
    for entry in shown["value"]:
        entry["effectiveSecurityRules"] = [
            effective_security_rule
            for effective_security_rule in entry["effectiveSecurityRules"]
            if effective_security_rule["name"] != "securityRules/DenyInternet"
        ]
    estate.answer(estate.site.sentinel, "effectiveNetworkSecurityGroups", shown)
    return estate.site.gpu_subnet


def _uses_azure_dns(estate: Estate) -> bool:
    return not estate.properties(estate.site.vnet)["dhcpOptions"]["dnsServers"]


@plant("nsg-platform-dns", "medium", also=("dns-security-policy",), spot="dns-policy", fits=_uses_azure_dns)
def platform_dns_without_a_policy(estate: Estate) -> list[Named]:
    """Azure's resolver answers the nodes, and no policy blocks what it may look up."""
    estate.remove(f"{estate.site.dns_policy}/virtualNetworkLinks/inference")
    return list(node_subnets(estate))


@plant("nsg-pe-bypass", "low")
def endpoints_outside_of_the_rules(estate: Estate) -> Named:
    """Security groups do not apply to the private endpoints of their subnet."""
    estate.properties(estate.site.endpoint_subnet)["privateEndpointNetworkPolicies"] = "Disabled"
    return estate.site.endpoint_subnet


def _is_blocked(estate: Estate) -> bool:
    return bool(estate.properties(estate.cluster)["networkProfile"]["outboundType"] == "block")


@plant("nsg-block-type", "medium", also=SEEN_BY, spot="node-rules cluster:networkProfile", fits=_is_blocked)
def block_without_its_rules(estate: Estate) -> Named:
    """The cluster says block, and the rules that do it are gone from its group."""
    drop_aks_rules(estate)
    return NODE_RULES, estate.cluster, estate.site.node_group

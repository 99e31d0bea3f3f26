"""What only the profile `filtered` has: rules of the declared firewall that lead to a relay or to hosts of everyone."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.firewall import POLICY
from testbed.azure.baseline.layout import HUB_GROUP, LOCATION, NETWORK
from testbed.azure.baseline.network import SPACE, add_machine, peering
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import PIPS, first_configuration, public_address
from testbed.azure.plants.plant import FILTERED, Named, plant

SPOKE = f"{HUB_GROUP}/{NETWORK}/virtualNetworks/vnet-shared-services"
SPOKE_SUBNET = f"{SPOKE}/subnets/snet-proxies"
PROXY = "10.79.4.4"


@plant("vm-pivot", "high", also=(PIPS, "firewall-in-path"), profiles=(FILTERED,), needs=("hub",), spot="firewall-rules")
def proxy_two_hops_behind_the_declared_firewall(estate: Estate) -> Named:
    """A rule leads to a proxy with a public address, in a second network that is peered with the hub."""
    estate.add(SPOKE, {"addressSpace": {"addressPrefixes": ["10.79.0.0/16"]}}, location=LOCATION)
    estate.add(SPOKE_SUBNET, {"addressPrefix": "10.79.4.0/24", "defaultOutboundAccess": False})
    estate.add(f"{estate.site.hub}/virtualNetworkPeerings/to-shared", peering(SPOKE, "10.79.0.0/16"))
    estate.add(f"{SPOKE}/virtualNetworkPeerings/to-hub", peering(estate.site.hub, "10.10.0.0/16"))
    nic = f"{HUB_GROUP}/{NETWORK}/networkInterfaces/nic-forward-proxy"
    add_machine(estate, "vm-forward-proxy", nic, SPOKE_SUBNET, PROXY)
    address = public_address(estate, f"{HUB_GROUP}/{NETWORK}/publicIPAddresses/pip-forward-proxy")
    first_configuration(estate, nic)["publicIPAddress"] = {"id": address}
    allow_in_declared_firewall(
        estate,
        {
            "ruleType": "NetworkRule",
            "name": "proxy",
            "sourceAddresses": [SPACE],
            "destinationAddresses": [PROXY],
            "destinationPorts": ["3128"],
            "ipProtocols": ["TCP"],
        },
    )
    return nic


@plant("firewall-in-path", "critical", profiles=(FILTERED,), spot="firewall-rules")
def declared_firewall_that_allows_hosts_of_many_tenants(estate: Estate) -> Named:
    """Rules name single hosts, and each serves every tenant: a path or a token decides who receives the data."""
    hosts = ["github.com", "management.azure.com", "s3.amazonaws.com", "huggingface.co"]
    rule = {"ruleType": "ApplicationRule", "name": "tools", "sourceAddresses": [SPACE], "targetFqdns": hosts}
    return allow_in_declared_firewall(estate, rule)


def allow_in_declared_firewall(estate: Estate, rule: dict[str, Any]) -> str:
    """Add an allow rule to the policy of the declared firewall; returns the id of the firewall."""
    estate.properties(f"{POLICY}/ruleCollectionGroups/inference")["ruleCollections"][0]["rules"].append(rule)
    return estate.site.firewall

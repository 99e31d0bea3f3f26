"""The firewall that the `filtered` profile declares: in the hub, with rules for named hosts only."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import HUB_GROUP, LOCATION, NETWORK
from testbed.azure.baseline.network import FIREWALL_ADDRESS, SPACE
from testbed.azure.estate import Estate

POLICY = f"{HUB_GROUP}/{NETWORK}/firewallPolicies/afwp-hub"
MIRROR = "mirror.contoso.example"
ADDRESS = f"{HUB_GROUP}/{NETWORK}/publicIPAddresses/pip-afw-hub"


def add_firewall(estate: Estate) -> None:
    site = estate.site
    subnet = f"{site.hub}/subnets/AzureFirewallSubnet"
    estate.add(subnet, {"addressPrefix": "10.10.0.0/26", "defaultOutboundAccess": False})
    estate.add(ADDRESS, {"ipAddress": "20.91.128.14"}, location=LOCATION, sku={"name": "Standard"})
    configuration = {"privateIPAddress": FIREWALL_ADDRESS, "subnet": {"id": subnet}, "publicIPAddress": {"id": ADDRESS}}
    estate.add(
        site.firewall,
        {
            "sku": {"name": "AZFW_VNet", "tier": "Premium"},
            "threatIntelMode": "Deny",
            "ipConfigurations": [{"name": "ipconfig", "properties": configuration}],
            "firewallPolicy": {"id": POLICY},
            "applicationRuleCollections": [],
            "networkRuleCollections": [],
            "natRuleCollections": [],
        },
        location=LOCATION,
    )
    properties = {"threatIntelMode": "Deny", "basePolicy": None, "ruleCollectionGroups": [{"id": f"{POLICY}/{_GROUP}"}]}
    estate.add(POLICY, properties, location=LOCATION)
    estate.add(f"{POLICY}/{_GROUP}", {"priority": 300, "ruleCollections": [_collection(_mirror())]})
    estate.policy["firewall"] = site.firewall
    estate.policy["allowedHosts"] = [{"host": MIRROR, "reason": "our own mirror of packages; it takes no uploads"}]
    estate.profile = "filtered"


_GROUP = "ruleCollectionGroups/inference"


def _collection(rule: dict[str, Any]) -> dict[str, Any]:
    return {
        "ruleCollectionType": "FirewallPolicyFilterRuleCollection",
        "name": "named-hosts",
        "priority": 310,
        "action": {"type": "Allow"},
        "rules": [rule],
    }


def _mirror() -> dict[str, Any]:
    return {
        "ruleType": "ApplicationRule",
        "name": "package-mirror",
        "sourceAddresses": [SPACE],
        "protocols": [{"protocolType": "Https", "port": 443}],
        "targetFqdns": [MIRROR],
        "terminateTLS": False,
    }

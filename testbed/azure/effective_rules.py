"""Which security rules an interface has: its subnet's group and its own, each with Azure's default rules."""

from __future__ import annotations

from typing import Any

from testbed.azure.addresses import TAG_PREFIXES, network_of
from testbed.azure.effective_routes import routes_of
from testbed.azure.estate import Estate

Body = dict[str, Any]

_FIELDS = (
    "protocol", "sourcePortRange", "sourcePortRanges", "destinationPortRange", "destinationPortRanges",
    "sourceAddressPrefix", "sourceAddressPrefixes", "destinationAddressPrefix", "destinationAddressPrefixes",
    "access", "priority", "direction",
)  # fmt: skip


def default_rules(group_id: str) -> list[Body]:
    """The six rules that Azure puts into every group."""
    rows = (
        ("AllowVnetInBound", "VirtualNetwork", "VirtualNetwork", "Allow", 65000, "Inbound"),
        ("AllowAzureLoadBalancerInBound", "AzureLoadBalancer", "*", "Allow", 65001, "Inbound"),
        ("DenyAllInBound", "*", "*", "Deny", 65500, "Inbound"),
        ("AllowVnetOutBound", "VirtualNetwork", "VirtualNetwork", "Allow", 65000, "Outbound"),
        ("AllowInternetOutBound", "*", "Internet", "Allow", 65001, "Outbound"),
        ("DenyAllOutBound", "*", "*", "Deny", 65500, "Outbound"),
    )
    return [
        {
            "id": f"{group_id}/defaultSecurityRules/{name}",
            "name": name,
            "type": "Microsoft.Network/networkSecurityGroups/defaultSecurityRules",
            "properties": {
                "provisioningState": "Succeeded",
                "protocol": "*",
                "sourcePortRange": "*",
                "destinationPortRange": "*",
                "sourceAddressPrefix": source,
                "destinationAddressPrefix": destination,
                "access": access,
                "priority": priority,
                "direction": direction,
                "sourcePortRanges": [],
                "destinationPortRanges": [],
                "sourceAddressPrefixes": [],
                "destinationAddressPrefixes": [],
            },
        }
        for name, source, destination, access, priority, direction in rows
    ]


def effective_rules(estate: Estate, nic: Body) -> Body:
    """The body of effectiveNetworkSecurityGroups: one entry per group that applies to the interface."""
    subnet_id = nic["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"]
    layers = (
        (estate.properties(subnet_id).get("networkSecurityGroup"), {"subnet": {"id": subnet_id}}),
        (nic["properties"].get("networkSecurityGroup"), {"networkInterface": {"id": nic["id"]}}),
    )
    routed = [route.prefix for route in routes_of(estate, subnet_id) if route.hop in {"VnetLocal", "VNetPeering"}]
    return {
        "value": [
            {
                "networkSecurityGroup": {"id": estate[group["id"]]["id"]},
                "association": association,
                "effectiveSecurityRules": _rules(estate[group["id"]], routed),
                "tagMap": {},
            }
            for group, association in layers
            if group
        ]
    }


def _rules(group: Body, vnet_prefixes: list[str]) -> list[Body]:
    properties = group["properties"]
    own = [("securityRules", rule) for rule in properties.get("securityRules") or ()]
    defaults = [("defaultSecurityRules", rule) for rule in properties.get("defaultSecurityRules") or ()]
    ordered = sorted([*own, *defaults], key=lambda pair: pair[1]["properties"]["priority"])
    return [_effective(kind, rule, vnet_prefixes) for kind, rule in ordered]


def _effective(kind: str, rule: Body, vnet_prefixes: list[str]) -> Body:
    properties = rule["properties"]
    effective = {"name": f"{kind}/{rule['name']}", **{key: properties[key] for key in _FIELDS if properties.get(key)}}
    for side in ("source", "destination"):
        typed = [properties.get(f"{side}AddressPrefix"), *(properties.get(f"{side}AddressPrefixes") or ())]
        spelled = [prefix for word in typed if word for prefix in _spelled(word, vnet_prefixes)]
        if spelled:
            effective[f"expanded{side.capitalize()}AddressPrefix"] = spelled
    return effective


def _spelled(word: str, vnet_prefixes: list[str]) -> list[str]:
    """A service tag as prefixes; nothing for a plain prefix or `*`, which need no spelling out."""
    if word == "*" or network_of(word):
        return []
    return vnet_prefixes if word.lower() == "virtualnetwork" else list(TAG_PREFIXES.get(word.lower(), ()))

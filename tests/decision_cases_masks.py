"""Estates whose security rules deny a part of what a later rule of the same group, or another group, allows."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.cluster import NODE_RULES
from testbed.azure.baseline.network import Body
from testbed.azure.baseline.network import rule as outbound_rule
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import group
from tests.decision_cases import Change

PLURAL = {
    "destinations": "destinationAddressPrefixes",
    "sources": "sourceAddressPrefixes",
    "ports": "destinationPortRanges",
    "source_ports": "sourcePortRanges",
}
"""Augmented security rules: the plural of a field replaces its singular, which ARM then answers as an empty text."""


def ruled(access: str, destination: str = "Internet", **fields: Any) -> Body:
    """A rule; lists by the keys of `PLURAL` make it an augmented one. `subnet_rules` numbers it."""
    augmented = {PLURAL[key]: value for key, value in fields.items() if key in PLURAL}
    empty = {name.removesuffix("es") if name.endswith("Prefixes") else name.removesuffix("s"): "" for name in augmented}
    plain = {key: value for key, value in fields.items() if key not in PLURAL}
    return outbound_rule("", 0, access, destination, **empty, **augmented, **plain)


def subnet_rules(*rules: Body) -> Change:
    """The group of the node subnets has these rules, in this order, before those of the layout."""
    return lambda estate: _put_first(estate, estate.site.node_rules, rules)


def interface_rules(*rules: Body) -> Change:
    """The group of the nodes' interfaces has them."""
    return lambda estate: _put_first(estate, NODE_RULES, rules)


def without_deny(estate: Estate) -> None:
    """The group of the node subnets no longer denies the internet."""
    properties = estate.properties(estate.site.node_rules)
    properties["securityRules"] = [
        security_rule for security_rule in properties["securityRules"] if security_rule["name"] != "DenyInternet"
    ]


def interface_group_denied(estate: Estate) -> None:
    """The caller may not read the group of the nodes' interfaces."""
    estate.deny(NODE_RULES.partition("/providers/")[0], "Microsoft.Network/networkSecurityGroups/read")


def subnet_group_denied(estate: Estate) -> None:
    estate.deny(group(estate), "Microsoft.Network/networkSecurityGroups/read")


def all_of(*changes: Change) -> Change:
    def change(estate: Estate) -> None:
        for change in changes:
            change(estate)

    return change


def _put_first(estate: Estate, target: str, rules: tuple[Body, ...]) -> None:
    properties = estate.properties(target)
    numbered = [
        {"name": f"Rule{number}", "properties": {**security_rule["properties"], "priority": number}}
        for number, security_rule in enumerate(rules, start=80)
    ]
    properties["securityRules"] = [*numbered, *properties["securityRules"]]

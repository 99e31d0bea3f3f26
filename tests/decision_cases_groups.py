"""Estates whose security rules name application security groups; address prefix sets add addresses to such a group."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import HUB_GROUP, LOCATION
from testbed.azure.baseline.network import rule
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import change_rules, first_configuration, group, network
from tests.decision_cases import Change
from tests.decision_cases_transit import HUB_RULES, relay

READ_SETS = "Microsoft.Network/applicationSecurityGroups/addressPrefixSets/read"


def application_group(estate: Estate, *prefixes: str) -> str:
    """A group with a set of these prefixes."""
    identifier = estate.add(network(estate, "applicationSecurityGroups", "asg"), {}, location=LOCATION)
    if prefixes:
        estate.add(f"{identifier}/addressPrefixSets/set", {"addressPrefixes": list(prefixes)})
    return identifier


def by_group(identifier: str, end: str, access: str = "Allow") -> dict[str, Any]:
    """A rule that names a group at one end (source, destination), before every other."""
    group_rule = rule("ByGroup", 90, access, "Internet")
    del group_rule["properties"][f"{end}AddressPrefix"]
    group_rule["properties"][f"{end}ApplicationSecurityGroups"] = [{"id": identifier}]
    return group_rule


def grouped(end: str, *prefixes: str, access: str = "Allow", without: str = "") -> Change:
    """A rule of the nodes' security group for a group with these prefixes; one other rule is taken away."""

    def change(estate: Estate) -> None:
        more = by_group(application_group(estate, *prefixes), end, access)
        change_rules(estate, estate.site.node_rules, without=without, plus=more)

    return change


def sets_that_are_not_readable(estate: Estate) -> None:
    grouped("source", "10.77.0.0/24")(estate)
    estate.deny(group(estate), READ_SETS)


def relay_beside_a_group(estate: Estate) -> None:
    """A machine in the hub that is not in the group that alone is let out."""
    relay()(estate)
    change_rules(estate, HUB_RULES, plus=by_group(application_group(estate), "source"))


def relay_of_a_group(estate: Estate) -> None:
    """A machine in the hub whose group alone is let out, to storage among others."""
    relay()(estate)
    identifier = application_group(estate)
    nic = f"{HUB_GROUP}/providers/Microsoft.Network/networkInterfaces/nic-relay"
    first_configuration(estate, nic)["applicationSecurityGroups"] = [{"id": identifier}]
    change_rules(estate, HUB_RULES, plus=by_group(identifier, "source"))

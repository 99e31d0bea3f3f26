"""The roles that docs give to the auditing identity: together exactly what an audit asks for, no more and no less.

The built-in role Reader has every read; a small role of our own has the POST actions that only read, and one more those
that a cloud may not know yet. Who does not assign Reader has a role of all reads instead.

Audits are made of estates in which everything is there that any check follows; every action that their requests need
must be in the role, and every action of the role must have been needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hermetic.audit.result.ownership import ownership_of
from hermetic.audit.rules.own_hosts import SERVICES
from hermetic.collect.azure.allowed_requests import READING_ACTIONS
from testbed.azure.baseline import estate_of, filtered_estate, sealed_estate
from testbed.azure.baseline.network import add_machine
from testbed.azure.estate import Estate
from testbed.azure.operations import is_poll
from testbed.azure.plants import PLANTS
from testbed.azure.requests import ArmRequest
from testbed.textbook import TEXTBOOK
from tests.azure_audits import audited, evaluated
from tests.decision_cases_groups import grouped
from tests.decision_cases_transit import to_hosts
from tests.sampled_groups import LONG

DOCS = Path(__file__).parents[2] / "docs"
ACTIONS, NEWER, READS = "audit-role.json", "audit-role-newer-actions.json", "audit-role-without-reader.json"
# No operation of the provider is known by these names, and a role with one that is not known is refused whole. Reader's
# */read shows the rows; without them the network stays Unknown.
ONLY_READER = {
    "microsoft.network/effectiveconnectivityconfigurations",
    "microsoft.network/effectivesecurityadminrules",
}
GRAPH_TYPE = re.compile(r"'(microsoft\.[a-z./]+)'", re.IGNORECASE)


@LONG
async def test_the_role_has_exactly_the_actions_that_audits_use() -> None:
    used: set[str] = set()
    estates = (
        sealed_estate(),
        _with_an_ip_group(),
        _with_an_application_group(),
        _without_arc(),
        _of_which_azure_shows_nothing(),
        _behind_a_lock(),
        _with_hosts_of_instances(),
        _with_every_plant(sealed_estate(), ("logs_in_a_hub_that_is_captured_by_others",)),
        # of plants that exclude each other the first is taken
        _with_every_plant(sealed_estate(), ("service_endpoint_with_an_exact_policy", *PLANTS)),
        _with_every_plant(estate_of("peered"), reversed(PLANTS)),
    )
    for estate in estates:
        requests: list[ArmRequest] = []
        await audited(estate, "graph", requests)
        await audited(estate, "list", requests)
        assert all(request.is_allowed for request in requests)
        used |= {action.lower() for request in requests for action in _actions(request)}
    requests = []
    await evaluated(sealed_estate(), "list", ownership_of, requests)
    used |= {action.lower() for request in requests for action in _actions(request)}
    granted = {action.lower() for name in (ACTIONS, NEWER, READS) for action in _role(name)["Actions"]}
    assert sorted(used - granted) == []
    assert sorted(granted - used) == []


@pytest.mark.parametrize(
    ("name", "called", "ending"),
    [
        (ACTIONS, "Hermetic Egress Auditor", "/action"),
        (NEWER, "Hermetic Egress Auditor, newer actions", "/action"),
        (READS, "Hermetic Egress Auditor, reads", "/read"),
    ],
)
def test_a_role_can_only_read(name: str, called: str, ending: str) -> None:
    role = _role(name)
    assert role["Name"] == called
    assert role["Actions"]
    assert role["IsCustom"] is True
    assert (role["NotActions"], role["DataActions"], role["NotDataActions"]) == ([], [], [])
    assert role["Actions"] == sorted(set(role["Actions"]), key=str.lower)
    for action in role["Actions"]:
        assert "*" not in action
        assert action.endswith(ending)
        # a federated credential is an issuer and a subject: it holds no secret
        assert not re.search(
            r"listkeys|(?<!federatedIdentity)credential|runcommand(?!s/read)|write|delete", action, re.IGNORECASE
        )


def test_what_the_product_may_post_is_what_the_two_small_roles_grant() -> None:
    posts = {f"{kind}/{action}/action" for kind, action in READING_ACTIONS}
    assert {*_role(ACTIONS)["Actions"], *_role(NEWER)["Actions"]} == posts


def _role(name: str) -> dict[str, Any]:
    role: dict[str, Any] = json.loads((DOCS / name).read_text())
    return role


def _actions(request: ArmRequest) -> set[str]:
    """What a request needs: also the reads of the rows that a query asks for, and those of polls."""
    if request.is_graph:
        kinds = [
            type_name
            for type_name in GRAPH_TYPE.findall(json.loads(request.body)["query"])
            if type_name.lower() not in ONLY_READER
        ]
        return {request.action, *(f"{kind}/read" for kind in kinds)}
    if is_poll(request.path):
        kind = "operationResults" if "/operationresults/" in request.path.lower() else "operations"
        return {f"Microsoft.Network/locations/{kind}/read"}
    return {request.action} - {""}  # the caller's own tenants need no permission


def _with_hosts_of_instances() -> Estate:
    """A rule of the declared firewall names a host in each domain of instances."""
    estate = filtered_estate()
    to_hosts(*(f"ours{domain}" for service in SERVICES for domain in service.domains[:1]))(estate)
    return estate


def _with_every_plant(estate: Estate, names: Iterable[str]) -> Estate:
    """Every path is open that can be open beside those before it."""
    spots = set[str]()
    # some interfaces do not tell whether they have default outbound access: Resource Graph is asked then
    estate.scale_set_outbound_shown_by = frozenset({"graph"})
    for plant in (PLANTS[name] for name in names):
        if spots.isdisjoint(plant.spots) and plant.fits(estate):
            plant.into(estate)
            spots |= plant.spots
    return estate


def _of_which_azure_shows_nothing() -> Estate:
    """Neither ARM nor Resource Graph shows the default outbound of nodes, nor of one that is no scale set's."""
    estate = sealed_estate()
    estate.scale_set_outbound_shown_by = frozenset()
    nic = f"{estate.site.node_group}/providers/Microsoft.Network/networkInterfaces/nic-alone"
    add_machine(estate, "vm-alone", nic, estate.site.gpu_subnet, "10.40.1.201")
    del estate.properties(nic)["defaultOutboundConnectivityEnabled"]
    statement = {"subnet": estate.site.gpu_subnet, "since": "2026-01-01T00:00:00Z", "statedBy": "network-team"}
    estate.policy = {**estate.policy, "subnetsPrivateSince": [statement]}
    return estate


def _behind_a_lock() -> Estate:
    """The node resource group with the network is locked; a ruleset links it, Network Manager sets rules for it."""
    estate = TEXTBOOK["managed-network-block"].azure
    for name in ("forwarding_to_a_resolver_outside", "admin_rule_that_outranks_security_groups"):
        PLANTS[name].into(estate)
    return estate


def _without_arc() -> Estate:
    """A subscription that never registered what Azure Arc needs."""
    estate = sealed_estate()
    estate.unregister(estate.cluster.split("/")[2], "Microsoft.Kubernetes")
    return estate


def _with_an_application_group() -> Estate:
    """A rule of the nodes names an application security group, which may hold addresses."""
    estate = sealed_estate()
    grouped("source")(estate)
    return estate


def _with_an_ip_group() -> Estate:
    """A firewall whose rules name destinations by an IP group."""
    estate = filtered_estate()
    [group] = estate.of_type("Microsoft.Network/firewallPolicies/ruleCollectionGroups")
    ips = f"{group['id'].partition('/providers/')[0]}/providers/Microsoft.Network/ipGroups/partners"
    estate.add(ips, {"ipAddresses": ["198.51.100.0/24"]}, location="swedencentral")
    rule = {
        "ruleType": "NetworkRule",
        "name": "partners",
        "ipProtocols": ["TCP"],
        "sourceAddresses": ["10.0.0.0/8"],
        "destinationIpGroups": [ips],
        "destinationPorts": ["443"],
    }
    group["properties"]["ruleCollections"][0]["rules"].append(rule)
    return estate

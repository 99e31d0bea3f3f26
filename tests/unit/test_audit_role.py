"""The role that docs give to the auditing identity: exactly what an audit asks for, no more and no less.

Audits are made of estates in which everything is there that any check follows; every action that their requests need
must be in the role, and every action of the role must have been needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed.azure.baseline import estate_of, filtered_estate, sealed_estate
from testbed.azure.estate import Estate
from testbed.azure.operations import is_poll
from testbed.azure.plants import PLANTS
from testbed.azure.requests import ArmRequest
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import audited

ROLE = Path(__file__).parents[2] / "docs" / "audit-role.json"
GRAPH_TYPE = re.compile(r"'(microsoft\.[a-z./]+)'", re.IGNORECASE)


async def test_the_role_has_exactly_the_actions_that_audits_use() -> None:
    used: set[str] = set()
    estates = (
        sealed_estate(),
        _with_an_ip_group(),
        _without_arc(),
        # of plants that exclude each other the first is taken
        _with_every_plant(sealed_estate(), ("service_endpoint_with_an_exact_policy", *PLANTS)),
        _with_every_plant(estate_of("peered"), reversed(PLANTS)),
    )
    for estate in estates:
        with ArmStandIn(estate) as arm:
            for discovery in ("graph", "list"):
                await audited(arm, discovery=discovery)  # type: ignore[arg-type]
            assert not arm.forbidden_requests
            used |= {action.lower() for request in arm.requests for action in _actions(request)}
    granted = {action.lower() for action in _role()["Actions"]}
    assert sorted(used - granted) == []
    assert sorted(granted - used) == []


def test_the_role_can_only_read() -> None:
    role = _role()
    assert role["Name"] == "Hermetic Egress Auditor"
    assert role["IsCustom"] is True
    assert (role["NotActions"], role["DataActions"], role["NotDataActions"]) == ([], [], [])
    assert role["Actions"] == sorted(set(role["Actions"]), key=str.lower)
    for action in role["Actions"]:
        assert "*" not in action
        assert action.endswith(("/read", "/action"))
        assert not re.search(r"listkeys|credential|runcommand|write|delete", action, re.IGNORECASE)


def _role() -> dict[str, Any]:
    role: dict[str, Any] = json.loads(ROLE.read_text())
    return role


def _actions(request: ArmRequest) -> set[str]:
    """What a request needs: also the reads of the rows that a query asks for, and those of polls."""
    if request.is_graph:
        return {request.action, *(f"{kind}/read" for kind in GRAPH_TYPE.findall(json.loads(request.body)["query"]))}
    if is_poll(request.path):
        kind = "operationResults" if "/operationresults/" in request.path.lower() else "operations"
        return {f"Microsoft.Network/locations/{kind}/read"}
    return {request.action}


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


def _without_arc() -> Estate:
    """A subscription that never registered what Azure Arc needs."""
    estate = sealed_estate()
    estate.unregister(estate.cluster.split("/")[2], "Microsoft.Kubernetes")
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

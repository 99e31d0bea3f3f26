"""POST actions that read: what each answers, computed from the estate unless the estate says what to answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.azure import refusals, versions
from testbed.azure.addresses import network_of
from testbed.azure.effective_routes import next_hop, propagation_off, reach, routes_of
from testbed.azure.effective_rules import effective_rules
from testbed.azure.estate import Estate
from testbed.azure.ids import parent_of, subscription_of, take_apart
from testbed.azure.reads import Reader

Body = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One call of an action: on what, with which body and query."""

    estate: Estate
    target: Body
    body: Body
    query: Mapping[str, str]
    page_size: int


@dataclass(frozen=True)
class ActionResult:
    """What an action answers, at once or after polling."""

    value: Body
    long_running: bool
    scope: str


def act(reader: Reader, path: str, query: Mapping[str, str], body: Body) -> ActionResult | None:
    """The answer of a known action, None for any other POST; raises the refusal."""
    target_id, _, action = path.rstrip("/").rpartition("/")
    kind = take_apart(target_id).type
    action_of_kind = ACTIONS.get((kind.lower(), action.lower()))
    if action_of_kind is None:
        return None
    versions.check(kind, query.get("api-version", ""))
    reader.demand(target_id, f"{kind}/{action}/action")
    target = reader.estate.find(target_id)
    if target is None:
        raise refusals.not_found(target_id)
    estate = reader.estate
    answered = estate.answers.get((target_id.lower(), action.lower()))
    if isinstance(answered, refusals.Refusal):
        raise answered
    request = Asked(estate, target, body, query, reader.page_size)
    answer, long_running = action_of_kind
    if answered is not None and action.lower().startswith("listnetworkmanager"):
        answered = _by_skip_token(answered["value"], request)
    scope = f"/subscriptions/{subscription_of(target_id)}"
    return ActionResult(answer(request) if answered is None else answered, long_running, scope)


def _effective_routes(request: Asked) -> Body:
    subnet_id = _subnet_of_running(request.target)
    estate = request.estate
    table_id = (estate.properties(subnet_id).get("routeTable") or {}).get("id", "")
    off = propagation_off(estate.find(table_id) if table_id else None)
    return {"value": [route.as_body(off) for route in routes_of(estate, subnet_id)]}


def _effective_rules(request: Asked) -> Body:
    _subnet_of_running(request.target)
    return effective_rules(request.estate, request.target)


def _subnet_of_running(nic: Body) -> str:
    if not nic["properties"].get("virtualMachine"):
        # Azure refuses; which code it says is not documented
        message = f"The network interface '{nic['id']}' must be attached to a running virtual machine."
        raise refusals.bad_request("NetworkInterfaceNotAttachedToRunningVM", message)
    return str(nic["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"])


def _next_hop(request: Asked) -> Body:
    machine_id, nic_id = request.body.get("targetResourceId", ""), request.body.get("targetNicResourceId", "")
    destination = request.body.get("destinationIPAddress", "")
    machine = request.estate.find(machine_id)
    if machine is None or not destination:
        raise refusals.bad_request("InvalidRequest", "targetResourceId and destinationIPAddress are required.")
    nics = [nic["id"] for nic in machine["properties"]["networkProfile"]["networkInterfaces"]]
    if len(nics) > 1 and not nic_id:
        raise refusals.bad_request("NicNotSpecified", "A machine with several interfaces needs targetNicResourceId.")
    subnet_id = _subnet_of_running(request.estate[nic_id or nics[0]])
    hop = next_hop(request.estate, subnet_id, destination)
    return {"nextHopType": hop.hop, "nextHopIpAddress": hop.address or None, "routeTableId": hop.table}


def _effective_configurations(request: Asked) -> Body:
    """Network Manager has applied nothing unless the estate says what."""
    return _by_skip_token([], request)


def _linked_policies(request: Asked) -> Body:
    return {"value": [{"id": parent_of(link["id"])} for link in _links(request, "dnsResolverPolicies")]}


def _linked_rulesets(request: Asked) -> Body:
    return {
        "value": [
            {"id": parent_of(link["id"]), "properties": {"virtualNetworkLink": {"id": link["id"]}}}
            for link in _links(request, "dnsForwardingRulesets")
        ]
    }


def _links(request: Asked, family: str) -> list[Body]:
    kind = f"Microsoft.Network/{family}/virtualNetworkLinks"
    ours = request.target["id"].lower()
    return [link for link in request.estate.of_type(kind) if link["properties"]["virtualNetwork"]["id"].lower() == ours]


def _hub_routes(request: Asked) -> Body:
    default = {"addressPrefixes": ["0.0.0.0/0"], "nextHopType": "Azure Firewall", "nextHops": [], "asPath": ""}
    firewall = request.target["properties"].get("azureFirewall")
    return {"value": [default | {"nextHops": [firewall["id"]], "routeOrigin": firewall["id"]}] if firewall else []}


def _learned_routes(request: Asked) -> Body:
    """Without an override a gateway has learned its clients' pool and nothing else."""
    prefixes = [prefix for prefix in reach(request.estate, request.target) if network_of(prefix)]
    return {"value": [{"network": prefix, "origin": "Network", "nextHop": None, "asPath": ""} for prefix in prefixes]}


def _by_skip_token(rows: list[Body], request: Asked) -> Body:
    """Network Manager's two lists page by a token in the request's body, not by a nextLink."""
    start = int(request.body.get("skipToken") or 0)
    end = start + request.page_size
    return {"value": rows[start:end], **({"skipToken": str(end)} if end < len(rows) else {})}


Answering = Callable[[Asked], Body]
NIC, VNET = "microsoft.network/networkinterfaces", "microsoft.network/virtualnetworks"
# (folded type, folded action) -> what answers it, and whether it is polled
ACTIONS: dict[tuple[str, str], tuple[Answering, bool]] = {
    (NIC, "effectiveroutetable"): (_effective_routes, True),
    (NIC, "effectivenetworksecuritygroups"): (_effective_rules, True),
    ("microsoft.network/networkwatchers", "nexthop"): (_next_hop, True),
    (VNET, "listnetworkmanagereffectiveconnectivityconfigurations"): (_effective_configurations, False),
    (VNET, "listnetworkmanagereffectivesecurityadminrules"): (_effective_configurations, False),
    (VNET, "listdnsresolverpolicies"): (_linked_policies, False),
    (VNET, "listdnsforwardingrulesets"): (_linked_rulesets, False),
    ("microsoft.network/virtualhubs", "effectiveroutes"): (_hub_routes, True),
    ("microsoft.network/virtualnetworkgateways", "getlearnedroutes"): (_learned_routes, True),
}

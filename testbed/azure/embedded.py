"""Children that ARM shows inside their parent: which property of the parent holds them.

They are kept there and nowhere else, so that a subnet read by its own id and the same subnet read inside its network
cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Body = dict[str, Any]

# (parent type, child type), lower case -> key in the parent's properties
COLLECTIONS: dict[tuple[str, str], str] = {
    ("microsoft.network/virtualnetworks", "subnets"): "subnets",
    ("microsoft.network/virtualnetworks", "virtualnetworkpeerings"): "virtualNetworkPeerings",
    ("microsoft.network/routetables", "routes"): "routes",
    ("microsoft.network/networksecuritygroups", "securityrules"): "securityRules",
    ("microsoft.network/networksecuritygroups", "defaultsecurityrules"): "defaultSecurityRules",
    ("microsoft.network/loadbalancers", "frontendipconfigurations"): "frontendIPConfigurations",
    ("microsoft.network/loadbalancers", "backendaddresspools"): "backendAddressPools",
    ("microsoft.network/loadbalancers", "loadbalancingrules"): "loadBalancingRules",
    ("microsoft.network/loadbalancers", "outboundrules"): "outboundRules",
    ("microsoft.network/loadbalancers", "probes"): "probes",
    ("microsoft.network/networkinterfaces", "ipconfigurations"): "ipConfigurations",
    ("microsoft.containerservice/managedclusters", "agentpools"): "agentPoolProfiles",
    ("microsoft.containerregistry/registries", "privateendpointconnections"): "privateEndpointConnections",
    ("microsoft.storage/storageaccounts", "privateendpointconnections"): "privateEndpointConnections",
    ("microsoft.fileshares/fileshares", "privateendpointconnections"): "privateEndpointConnections",
    ("microsoft.compute/diskaccesses", "privateendpointconnections"): "privateEndpointConnections",
    ("microsoft.keyvault/vaults", "privateendpointconnections"): "privateEndpointConnections",
    ("microsoft.keyvault/managedhsms", "privateendpointconnections"): "privateEndpointConnections",
    ("microsoft.insights/privatelinkscopes", "privateendpointconnections"): "privateEndpointConnections",
    ("microsoft.network/privatelinkservices", "privateendpointconnections"): "privateEndpointConnections",
}
# flat in the parent, nested below `properties` when asked for alone
FLAT = {"microsoft.containerservice/managedclusters/agentpools"}


def key_of(parent_type: str, child_type: str) -> str | None:
    """The property of the parent that holds such children, None when they are resources of their own."""
    return COLLECTIONS.get((parent_type.lower(), child_type.lower()))


def members(parent: Body, child_type: str) -> Iterator[Body]:
    """The children inside a parent's body; nothing when its property is absent or null."""
    key = key_of(parent["type"], child_type)
    if key is not None:
        yield from parent.get("properties", {}).get(key) or ()


def find(parent: Body, child_type: str, name: str) -> Body | None:
    """The child of that name in the parent's body, letter case apart."""
    wanted = name.lower()
    return next((child for child in members(parent, child_type) if str(child.get("name", "")).lower() == wanted), None)


def as_alone(parent: Body, child_type: str, child: Body) -> Body:
    """What a GET of the child itself answers: with id, name and type, and properties of their own."""
    whole_type = f"{parent['type']}/{child_type}"
    identifier = f"{parent['id']}/{child_type}/{child['name']}"
    if whole_type.lower() in FLAT:
        properties = {key: value for key, value in child.items() if key != "name"}
        return {"id": identifier, "name": child["name"], "type": whole_type, "properties": properties}
    return {"id": identifier, "type": whole_type, **child}

"""Short names of resources: an ARM id has about 150 characters, of which the end identifies it for a reader."""

from __future__ import annotations

import re

_REFERENCE = re.compile(r"((?:[a-z0-9.-]+/)?v[a-z0-9]+)/([A-Z][A-Za-z0-9]*) (?:([a-z0-9.-]+)/)?([a-z0-9.:-]+)")
_WORDS = {
    "managedclusters": "cluster",
    "agentpools": "pool",
    "virtualnetworks": "VNet",
    "subnets": "subnet",
    "routetables": "route table",
    "networksecuritygroups": "NSG",
    "securityrules": "rule",
    "loadbalancers": "load balancer",
    "natgateways": "NAT gateway",
    "publicipaddresses": "public IP",
    "publicipprefixes": "public IP prefix",
    "networkinterfaces": "NIC",
    "virtualmachinescalesets": "scale set",
    "virtualmachines": "VM",
    "virtualnetworkpeerings": "peering",
    "virtualnetworkgateways": "gateway",
    "azurefirewalls": "firewall",
    "bastionhosts": "Bastion",
    "privateendpoints": "private endpoint",
    "privatednszones": "private DNS zone",
    "dnsresolvers": "DNS resolver",
    "storageaccounts": "storage account",
    "registries": "registry",
    "virtualhubs": "virtual hub",
    "connectedclusters": "connected cluster",
    "routes": "route",
}


def is_arm_id(resource: str) -> bool:
    """Whether the resource is one of Azure's; all others are Kubernetes objects or targets of the probe."""
    return resource.lower().startswith("/subscriptions/")


def object_reference(resource: str) -> dict[str, str] | None:
    """The ObjectReference of "apps/v1/Deployment inference/llama"; None for anything but a Kubernetes object."""
    if (match := _REFERENCE.fullmatch(resource)) is None:
        return None
    api_version, kind, namespace, name = match.groups()
    return {"apiVersion": api_version, "kind": kind, **({"namespace": namespace} if namespace else {}), "name": name}


def short_name(resource: str) -> str:
    """ "vnet-spoke/nodes" of a subnet's ARM id; anything else as it is."""
    return "/".join(name for _, name in _named(resource)) or resource


def sort_of(resource: str) -> str:
    """ "subnet" of a subnet's ARM id; "resource group" or "subscription" where the id ends there, else ""."""
    if not is_arm_id(resource):
        return ""
    if named := _named(resource):
        kind = named[-1][0]
        return _WORDS.get(kind.lower(), kind)
    return "resource group" if "/resourcegroups/" in resource.lower() else "subscription"


def readable(resource: str) -> str:
    """ "subnet vnet-spoke/nodes" of a subnet's ARM id; anything else as it is."""
    sort = sort_of(resource)
    return f"{sort} {_last_resort(resource)}" if sort else resource


def _last_resort(resource: str) -> str:
    named = short_name(resource)
    return resource.rstrip("/").rpartition("/")[2] if named == resource else named


def _named(resource: str) -> list[tuple[str, str]]:
    """Pairs (type, name) after the last provider: [("virtualNetworks", "vnet-spoke"), ("subnets", "nodes")]."""
    if not is_arm_id(resource):
        return []
    segments = [word for word in resource.split("/") if word]
    starts = [position for position, word in enumerate(segments) if word.lower() == "providers"]
    types_and_names = segments[starts[-1] + 2 :] if starts else []
    return list(zip(types_and_names[::2], types_and_names[1::2], strict=False))

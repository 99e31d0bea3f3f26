"""What ARM writes into a subnet about those that live in it: their configurations, and its private endpoints.

Azure keeps these references itself. Here they are written anew whenever an estate has been built or changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from testbed.azure.estate import Estate

Body = dict[str, Any]

# type -> the properties that hold configurations with a subnet
INHABITANTS = {
    "Microsoft.Network/networkInterfaces": ("ipConfigurations",),
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces": ("ipConfigurations",),
    "Microsoft.Network/loadBalancers": ("frontendIPConfigurations",),
    "Microsoft.Network/virtualNetworkGateways": ("ipConfigurations",),
    "Microsoft.Network/azureFirewalls": ("ipConfigurations",),
    "Microsoft.Network/bastionHosts": ("ipConfigurations",),
    "Microsoft.Network/applicationGateways": ("gatewayIPConfigurations",),
}


def refer_back(estate: Estate) -> Estate:
    """Writes the references of every subnet; returns the estate."""
    living, endpoints = defaultdict(list), defaultdict(list)
    for subnet, reference in _configurations(estate):
        living[subnet].append({"id": reference})
    for endpoint in estate.of_type("Microsoft.Network/privateEndpoints"):
        endpoints[_subnet_of(endpoint["properties"])].append({"id": endpoint["id"]})
    for vnet in estate.of_type("Microsoft.Network/virtualNetworks"):
        for subnet in vnet["properties"].get("subnets") or ():
            key = subnet["id"].lower()
            subnet["properties"]["ipConfigurations"] = living.get(key, [])
            subnet["properties"]["privateEndpoints"] = endpoints.get(key, [])
    return estate


def _configurations(estate: Estate) -> Iterator[tuple[str, str]]:
    for kind, keys in INHABITANTS.items():
        for body in estate.of_type(kind):
            for key in keys:
                for configuration in body["properties"].get(key) or ():
                    yield _subnet_of(configuration["properties"]), f"{body['id']}/{key}/{configuration['name']}"


def _subnet_of(properties: Body) -> str:
    return str((properties.get("subnet") or {}).get("id", "")).lower()

"""A sealed estate among very many resources: what an audit costs when the subscription is large."""

from __future__ import annotations

from testbed.azure.baseline import private_since, sealed_estate
from testbed.azure.baseline.cluster import add_scale_set
from testbed.azure.baseline.layout import LOCATION, WORKLOAD
from testbed.azure.baseline.network import add_subnet
from testbed.azure.estate import Estate
from testbed.azure.references import refer_back

PER_GROUP = 250  # resources of other teams in one group


def large_estate(resources: int = 50_000, pools: int = 40, nodes: int = 250) -> Estate:
    """pools: GPU pools beside the sealed estate's, each with its own subnet and `nodes` instances with interfaces.

    The rest, up to `resources`, belongs to other teams: machines, interfaces and disks in groups of their own. It
    stays sealed. At most 1,000 nodes fit into a pool's subnet, and 512 pools into the network.
    """
    estate = sealed_estate()
    estate.scale_set_outbound_shown_by = frozenset({"arm", "graph"})
    estate.properties(estate.site.vnet)["addressSpace"]["addressPrefixes"].append("10.48.0.0/13")
    for number in range(1, pools + 1):
        _add_pool(estate, number, nodes)
    missing = resources - len(estate.resources)
    for number in range(max(0, missing)):
        _add_foreign(estate, number)
    return refer_back(estate)


def _add_pool(estate: Estate, number: int, nodes: int) -> None:
    name, subnet = f"gpu{number}", f"{estate.site.vnet}/subnets/snet-gpu{number}"
    add_subnet(estate, subnet, f"10.{48 + number // 64}.{number % 64 * 4}.0/22", estate.site.node_rules)
    profiles = estate.properties(estate.cluster)["agentPoolProfiles"]
    template = next(profile for profile in profiles if profile["name"] == "gpu")
    profiles.append({**template, "name": name, "vnetSubnetID": subnet, "count": nodes})
    add_scale_set(estate, f"aks-{name}-31862004-vmss", name, subnet, nodes)
    estate.policy["subnetsPrivateSince"] += private_since(subnet)


def _add_foreign(estate: Estate, number: int) -> None:
    group = f"/subscriptions/{WORKLOAD}/resourceGroups/rg-team-{number // PER_GROUP:03d}/providers"
    kind = ("Microsoft.Compute/disks", "Microsoft.Network/networkInterfaces", "Microsoft.Compute/virtualMachines")
    vnet = f"{group}/Microsoft.Network/virtualNetworks/vnet-team/subnets/default"
    properties = {"ipConfigurations": [{"name": "ipconfig1", "properties": {"subnet": {"id": vnet}}}]}
    estate.add(f"{group}/{kind[number % 3]}/thing-{number}", properties if number % 3 == 1 else {}, location=LOCATION)

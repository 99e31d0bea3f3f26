"""Where everything in a baseline lies: subscriptions, groups, names and address space."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.azure.estate import Site

WORKLOAD = "3c1f6a52-8e0b-4d7a-9b64-2f5c7d10e8a1"
CONNECTIVITY = "b7d40e19-6c25-4f83-a1de-90c8b35f27e6"
MICROSOFT = "6f1f4c0e-93b2-4ad5-8c77-1e02d9a65b34"  # whose subscription holds private-link API servers
LOCATION = "swedencentral"

CLUSTER_GROUP = f"/subscriptions/{WORKLOAD}/resourceGroups/rg-inference"
NODE_GROUP = f"/subscriptions/{WORKLOAD}/resourceGroups/MC_rg-inference_aks-inference_{LOCATION}"
NETWORK_GROUP = f"/subscriptions/{WORKLOAD}/resourceGroups/rg-inference-network"
DATA_GROUP = f"/subscriptions/{WORKLOAD}/resourceGroups/rg-inference-data"
WATCHER_GROUP = f"/subscriptions/{WORKLOAD}/resourceGroups/NetworkWatcherRG"
HUB_GROUP = f"/subscriptions/{CONNECTIVITY}/resourceGroups/rg-hub"

NETWORK = "providers/Microsoft.Network"
COMPUTE = "providers/Microsoft.Compute"

KUBELET = "1b9a7c64-0d3e-4f5a-86c2-7f40e1d9b285"
CONTROL_PLANE = "e25c0f81-7a46-4b9d-93f7-5c8d160ea3b4"


@dataclass(frozen=True)
class Layout:
    """What distinguishes one sealed estate from another; all of them are sealed.

    gpu_pools: each with a subnet of its own. peered: a hub in another subscription, allow-listed. firewall: the
    default route leads to a firewall in that hub, to be audited as `filtered`. own_dns: a resolver of our own instead
    of Azure's. private_link_api: the API server behind a private endpoint instead of in a subnet. managed: AKS's own
    network in the node group. one_subnet: all pools share one. outbound: the cluster's outbound type, where it is not
    the one that the rest implies.
    """

    name: str
    gpu_pools: int = 1
    nodes: int = 2
    pod_subnet: bool = True
    sentinel: bool = True
    peered: bool = False
    firewall: bool = False
    own_dns: bool = False
    private_link_api: bool = False
    managed: bool = False
    one_subnet: bool = False
    outbound: str = ""

    @property
    def network_group(self) -> str:
        return NODE_GROUP if self.managed else NETWORK_GROUP

    @property
    def vnet(self) -> str:
        name = "aks-vnet-24417093" if self.managed else "vnet-inference"
        return f"{self.network_group}/{NETWORK}/virtualNetworks/{name}"

    def subnet(self, name: str) -> str:
        return f"{self.vnet}/subnets/{name}"

    @property
    def system_subnet(self) -> str:
        return self.subnet("snet-nodes" if self.one_subnet else "snet-system")

    @property
    def gpu_subnets(self) -> tuple[str, ...]:
        if self.one_subnet:
            return (self.system_subnet,) * self.gpu_pools
        return tuple(self.subnet(f"snet-gpu{number or ''}") for number in range(self.gpu_pools))

    @property
    def has_hub(self) -> bool:
        return self.peered or self.firewall


LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("sealed"),
        Layout("many-pools", gpu_pools=3, nodes=3),
        Layout("overlay", pod_subnet=False, sentinel=False),
        Layout("peered", peered=True),
        Layout("own-dns", own_dns=True, pod_subnet=False),
        Layout("private-link", private_link_api=True),
        Layout("peered-private-link", gpu_pools=2, peered=True, private_link_api=True, sentinel=False),
        Layout("managed", managed=True),
        Layout("filtered", firewall=True),
    )
}


def site_of(layout: Layout) -> Site:
    """The ids of a layout's pieces."""
    network = f"{layout.network_group}/{NETWORK}"
    return Site(
        cluster=f"{CLUSTER_GROUP}/providers/Microsoft.ContainerService/managedClusters/aks-inference",
        node_group=NODE_GROUP,
        vnet=layout.vnet,
        system_subnet=layout.system_subnet,
        gpu_subnet=layout.gpu_subnets[0],
        pod_subnet=layout.subnet("snet-pods") if layout.pod_subnet else "",
        api_subnet="" if layout.private_link_api else layout.subnet("snet-apiserver"),
        endpoint_subnet=layout.subnet("snet-endpoints"),
        route_table=f"{network}/routeTables/rt-sealed",
        node_rules=f"{network}/networkSecurityGroups/nsg-nodes",
        gpu_scale_set=f"{NODE_GROUP}/{COMPUTE}/virtualMachineScaleSets/aks-gpu-31862004-vmss",
        balancer=f"{NODE_GROUP}/{NETWORK}/loadBalancers/kubernetes-internal",
        sentinel=f"{NETWORK_GROUP}/{NETWORK}/networkInterfaces/nic-sentinel" if layout.sentinel else "",
        registry=f"{DATA_GROUP}/providers/Microsoft.ContainerRegistry/registries/acrinference",
        storage=f"{DATA_GROUP}/providers/Microsoft.Storage/storageAccounts/stinferenceweights",
        share=f"{DATA_GROUP}/providers/Microsoft.FileShares/fileShares/share-weights",
        dns_policy=f"{network}/dnsResolverPolicies/dnspolicy-inference",
        watcher=f"{WATCHER_GROUP}/{NETWORK}/networkWatchers/NetworkWatcher_{LOCATION}",
        peering=f"{layout.vnet}/virtualNetworkPeerings/to-hub" if layout.has_hub else "",
        hub=f"{HUB_GROUP}/{NETWORK}/virtualNetworks/vnet-hub" if layout.has_hub else "",
        firewall=f"{HUB_GROUP}/{NETWORK}/azureFirewalls/afw-hub" if layout.firewall else "",
    )

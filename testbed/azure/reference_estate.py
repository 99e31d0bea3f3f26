"""The public reference deployment of the air-gapped inference article, as its own script would leave it.

Built from what is known of that script, not from its text: a sealed estate from which everything is taken that the
script does not do, and to which everything is added that it does beside. `CONTRADICTIONS` lists what the article and
the script say against each other, and which findings an audit owes for each. Of the same list, ARM cannot show how the
share is mounted, the node label that manifests select, and a version variable that is never set; that the GPU pool is
spot can be seen, and is no egress path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from testbed.azure.baseline import sealed_estate
from testbed.azure.baseline.network import add_rules
from testbed.azure.estate import Estate
from testbed.azure.ids import parent_of
from testbed.azure.plants.pieces import first_configuration, gateway, instance_nics, machine, network, public_address
from testbed.azure.plants.plant import Expected
from testbed.azure.references import refer_back

FORWARDER = "10.40.12.4"
GPU_POOL_IS_SPOT = {"scaleSetPriority": "Spot", "scaleSetEvictionPolicy": "Delete", "spotMaxPrice": -1}


def reference_estate() -> Estate:
    estate = sealed_estate()
    estate.scale_set_outbound_shown_by = frozenset({"arm", "graph"})  # or what its interfaces kept could not be found
    for step in (
        _let_default_outbound_on,
        _leave_out_routes_and_rules,
        _leave_out_watching,
        _put_a_forwarder,
        _dial_in,
    ):
        step(estate)
    _provision_the_share(estate)
    _run_without_policies(estate)
    return refer_back(estate)


def _let_default_outbound_on(estate: Estate) -> None:
    site = estate.site
    for subnet in (site.system_subnet, site.gpu_subnet, site.pod_subnet):
        estate.properties(subnet)["defaultOutboundAccess"] = True
    for subnet in (site.api_subnet, site.endpoint_subnet):
        del estate.properties(subnet)["defaultOutboundAccess"]
    for nic in instance_nics(estate):
        estate.properties(nic)["defaultOutboundConnectivityEnabled"] = True


def _leave_out_routes_and_rules(estate: Estate) -> None:
    for subnet in estate.properties(estate.site.vnet)["subnets"]:
        subnet["properties"].pop("routeTable", None)
        subnet["properties"].pop("networkSecurityGroup", None)
        subnet["properties"]["privateEndpointNetworkPolicies"] = "Disabled"
    estate.remove(estate.site.route_table)
    for name in ("nsg-nodes", "nsg-apiserver", "nsg-endpoints"):
        estate.remove(network(estate, "networkSecurityGroups", name))


def _leave_out_watching(estate: Estate) -> None:
    """No flow logs, no DNS policy, no machine to ask for effective routes."""
    site = estate.site
    estate.remove(f"{site.watcher}/flowLogs/flow-inference")
    estate.properties(site.vnet)["flowLogs"] = []
    estate.remove(site.dns_policy)
    estate.remove(str(estate.properties(site.sentinel)["virtualMachine"]["id"]))
    estate.remove(site.sentinel)
    estate.site = replace(site, sentinel="", dns_policy="")


def _put_a_forwarder(estate: Estate) -> None:
    """A machine that forwards DNS, with a public address to reach it by SSH."""
    home = f"{estate.site.vnet}/subnets/snet-services"
    del estate.properties(home)["defaultOutboundAccess"]
    nic = machine(estate, "dns", home, FORWARDER)
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-dns"))
    first_configuration(estate, nic)["publicIPAddress"] = {"id": address}
    ssh = {"direction": "Inbound", "access": "Allow", "priority": 1000, "protocol": "Tcp", "destinationPortRange": "22"}
    everyone = {"sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationAddressPrefix": "*"}
    rules = [{"name": "ssh", "properties": {**ssh, **everyone}}]
    group = add_rules(estate, network(estate, "networkSecurityGroups", "nsg-dns"), rules)
    estate.properties(nic)["networkSecurityGroup"] = {"id": group}
    estate.properties(estate.site.vnet)["dhcpOptions"]["dnsServers"] = [FORWARDER]


def _dial_in(estate: Estate) -> None:
    pool = {"addressPrefixes": ["172.30.0.0/24"]}
    gateway(estate, vpnClientConfiguration={"vpnClientAddressPool": pool, "vpnClientProtocols": ["OpenVPN"]})


def _provision_the_share(estate: Estate) -> None:
    """As provisioned there: small, slow, root squashed, mounted in clear; public access is never mentioned."""
    share = estate.properties(estate.site.share)
    share |= {"provisionedStorageGiB": 32, "provisionedIOPerSec": 3032, "provisionedThroughputMiBPerSec": 128}
    share["nfsProtocolProperties"]["encryptionInTransitRequired"] = "Disabled"
    del share["publicNetworkAccess"]


def _run_without_policies(estate: Estate) -> None:
    cluster = estate.properties(estate.cluster)
    cluster["networkProfile"] |= {"networkPolicy": "none", "networkDataplane": "azure"}
    estate.properties(f"{estate.cluster}/agentPools/gpu").update(GPU_POOL_IS_SPOT)


@dataclass(frozen=True)
class Contradiction:
    """One point of the list: what the article asks for and the script does. owed: findings, of a reference estate."""

    sentence: str
    owed: Callable[[Estate], list[Expected]]


def _fail(check: str, severity: str, *resources: str) -> Expected:
    return Expected(check, resources, severity)


def _forwarder(estate: Estate) -> tuple[str, str]:
    nic = network(estate, "networkInterfaces", "nic-dns")
    return str(estate.properties(nic)["virtualMachine"]["id"]), nic


def _outbound(estate: Estate) -> list[Expected]:
    site = estate.site
    subnets = (site.system_subnet, site.gpu_subnet, site.pod_subnet)
    nic = instance_nics(estate)[0]
    return [
        *(_fail("subnet-default-outbound", "critical", subnet) for subnet in subnets),
        _fail("nic-default-outbound", "critical", nic, parent_of(nic), site.gpu_scale_set),
        _fail("aks-outbound-type", "critical", estate.cluster),
    ]


CONTRADICTIONS = (
    Contradiction("no default outbound access; the script turns it on for node and pod subnets", _outbound),
    Contradiction(
        "the share is private; the script never says so",
        lambda estate: [_fail("fileshare-public", "high", estate.site.share)],
    ),
    Contradiction(
        "network policies isolate pods; the script's default is no policy engine",
        lambda estate: [_fail("aks-network-policy", "high", estate.cluster)],
    ),
    Contradiction(
        "nothing reaches the internet; a DNS forwarder in the same network has a public address",
        lambda estate: [
            _fail("vm-pivot", "high", *_forwarder(estate)),
            _fail("nic-public-ip", "high", _forwarder(estate)[1]),
            _fail("vnet-dns-servers", "high", estate.site.vnet),
        ],
    ),
    Contradiction(
        "no gateway leads out; laptops dial in by VPN",
        lambda estate: [
            _fail("gateway-p2s", "medium", network(estate, "virtualNetworkGateways", "vgw-inference")),
            _fail("vnet-gateway", "medium", network(estate, "virtualNetworkGateways", "vgw-inference")),
        ],
    ),
    Contradiction(
        "data in transit is protected; the share is mounted in clear",
        lambda estate: [_fail("fileshare-eit", "medium", estate.site.share)],
    ),
)


def owed(estate: Estate) -> list[Expected]:
    """Every finding that an audit of the reference estate owes."""
    return [finding for contradiction in CONTRADICTIONS for finding in contradiction.owed(estate)]

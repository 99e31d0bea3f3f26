"""Table H: what the cluster's own resource says."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import CLUSTER_GROUP, LOCATION
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import FOREIGN, subnet
from testbed.azure.plants.plant import Change, Named, plant
from testbed.azure.plants.stores import put

BALANCER_IP = "/subscriptions/x/resourceGroups/y/providers/Microsoft.Network/publicIPAddresses/z"

# (name, check, severity, dotted field of the cluster, value, what was opened, what may fail beside it)
EDITS: tuple[tuple[str, str, str, str, Any, str, tuple[str, ...]], ...] = (
    ("outbound_by_balancer", "aks-outbound-type", "critical", "networkProfile.outboundType", "loadBalancer",
     "The cluster is configured with an outbound load balancer of its own.", ()),
    ("outbound_by_nat_gateway", "aks-outbound-type", "critical", "networkProfile.outboundType", "managedNATGatewayV2",
     "The cluster is configured with a NAT gateway of its own.", ()),
    ("outbound_type_unset", "aks-outbound-type", "critical", "networkProfile.outboundType", None,
     "The cluster does not say its outbound type, and the default is a load balancer.", ()),
    ("outbound_addresses_left", "aks-effective-outbound-ips", "critical",
     "networkProfile.loadBalancerProfile.effectiveOutboundIPs", [{"id": BALANCER_IP}],
     "The cluster still has outbound addresses from before it was isolated.", ()),
    ("outbound_addresses_of_nat", "aks-effective-outbound-ips", "critical",
     "networkProfile.natGatewayProfile.effectiveOutboundIPs", [{"id": BALANCER_IP}],
     "The cluster still has the addresses of a managed NAT gateway.", ()),
    ("images_fetched_directly", "aks-artifact-source", "high", "bootstrapProfile.artifactSource", "Direct",
     "Nodes fetch what they start from at Microsoft, not from our registry.", ()),
    ("public_api_server", "aks-private-api", "high", "apiServerAccessProfile.enablePrivateCluster", False,
     "The API server is public.", ("aks-authorized-ips", "aks-public-fqdn", "aks-pna")),
    ("public_name_of_the_api_server", "aks-public-fqdn", "low",
     "apiServerAccessProfile.enablePrivateClusterPublicFQDN", None,
     "The private API server has a public name.", ()),
    ("public_network_access", "aks-pna", "medium", "publicNetworkAccess", "Enabled",
     "The cluster resource allows public network access.", ()),
    ("run_command", "aks-run-command", "medium", "apiServerAccessProfile.disableRunCommand", False,
     "Commands can be run in the cluster through ARM.", ()),
    ("no_policy_engine", "aks-network-policy", "high", "networkProfile.networkPolicy", "none",
     "No policy engine: NetworkPolicy objects are inert.", ()),
    ("policy_engine_unset", "aks-network-policy", "high", "networkProfile.networkPolicy", None,
     "The policy engine is not set, and the default is none.", ()),
    ("static_egress", "aks-static-egress", "critical", "networkProfile.staticEgressGatewayProfile.enabled", True,
     "Pods can be sent through a gateway pool, past every NetworkPolicy.", ()),
    ("http_proxy", "aks-http-proxy", "high", "httpProxyConfig",
     {"httpProxy": "http://10.40.12.77:3128", "httpsProxy": "http://10.40.12.77:3128", "enabled": True},
     "Every pod has a proxy set.", ()),
    ("container_insights", "aks-addons", "medium", "addonProfiles.omsagent", {"enabled": True, "config": {}},
     "An add-on sends logs to Azure Monitor.", ("aks-monitoring",)),
    ("metrics_sent_out", "aks-monitoring", "medium", "azureMonitorProfile", {"metrics": {"enabled": True}},
     "Metrics are sent to Azure Monitor, without a private link scope.", ()),
    ("defender", "aks-monitoring", "medium", "securityProfile.defender", {"securityMonitoring": {"enabled": True}},
     "Defender's sensor reports out.", ()),
    ("public_ingress", "aks-ingress-addon", "high", "ingressProfile.webAppRouting", {"enabled": True},
     "The ingress add-on makes a public load balancer by default.", ()),
    ("container_insights_by_profile", "aks-monitoring", "medium", "azureMonitorProfile",
     {"metrics": {"enabled": False}, "containerInsights": {"enabled": True, "containerNetworkLogs": "Enabled"}},
     "Container Insights is on in the profile of Azure Monitor, not as an add-on.", ()),
    ("outbound_by_nat_gateway_of_a_kind", "aks-outbound-type", "critical", "networkProfile",
     {"outboundType": "managedNATGateway", "networkPolicy": "cilium", "natGatewayProfile": {"sku": "StandardV2"}},
     "The cluster makes a NAT gateway of the second generation.", ()),
    ("mesh_with_external_gateways", "aks-istio-gateways", "high", "serviceMeshProfile",
     {"mode": "Istio", "istio": {"components": {"ingressGateways": [{"mode": "External", "enabled": True}]}}},
     "The service mesh has an external gateway.", ()),
    ("mesh_with_egress_gateways", "aks-istio-gateways", "high", "serviceMeshProfile",
     {"mode": "Istio", "istio": {"components": {"egressGateways": [{"enabled": True, "name": "out"}]}}},
     "The service mesh has an egress gateway.", ()),
    ("virtual_nodes", "aks-virtual-nodes", "high", "addonProfiles.aciConnectorLinux", {"enabled": True},
     "Pods may run in another subnet, with an egress path of its own.", ("aks-addons",)),
    ("unmanaged_node_updates", "aks-os-channel", "low", "autoUpgradeProfile.nodeOSUpgradeChannel", "Unmanaged",
     "Nodes update themselves from the internet.", ()),
    ("node_group_unlocked", "aks-node-rg-lockdown", "medium", "nodeResourceGroupProfile.restrictionLevel",
     "Unrestricted", "Anyone with rights there may add addresses to the node group.", ()),
)  # fmt: skip


def _edit(name: str, path: str, value: Any, title: str) -> Change:
    def change(estate: Estate) -> Named:
        put(estate.properties(estate.cluster), path, value)
        return estate.cluster

    change.__name__, change.__doc__ = name, title
    return change


def _sends_by_no_scope(estate: Estate) -> bool:
    return not estate.of_type("Microsoft.Insights/privateLinkScopes")


def _anywhere(_estate: Estate) -> bool:
    return True


for _name, _check, _severity, _path, _value, _title, _also in EDITS:
    plant(
        _check,
        _severity,
        also=_also,
        spot=f"cluster:{_path.partition('.')[0]}",
        fits=_sends_by_no_scope if _check == "aks-monitoring" else _anywhere,
    )(_edit(_name, _path, _value, _title))


@plant(
    "aks-authorized-ips",
    "high",
    also=("aks-private-api", "aks-public-fqdn", "aks-pna"),
    spot="cluster:apiServerAccessProfile",
)
def api_server_for_everyone(estate: Estate) -> Named:
    """The API server is public, and its ranges hold every address."""
    profile = estate.properties(estate.cluster)["apiServerAccessProfile"]
    profile |= {"enablePrivateCluster": False, "authorizedIPRanges": ["10.0.0.0/8", "0.0.0.0/0"]}
    return estate.cluster


@plant("aks-static-egress", "critical")
def gateway_pool(estate: Estate) -> Named:
    """A pool is there to be a gateway."""
    estate.properties(f"{estate.cluster}/agentPools/gpu")["mode"] = "Gateway"
    return estate.cluster, f"{estate.cluster}/agentPools/gpu"


@plant("aks-trusted-access", "low")
def trusted_access(estate: Estate) -> Named:
    """An Azure service reaches the API server through AKS."""
    source = f"{CLUSTER_GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ml"
    binding = f"{estate.cluster}/trustedAccessRoleBindings/ml"
    estate.add(
        binding, {"sourceResourceId": source, "roles": ["Microsoft.MachineLearningServices/workspaces/mlworkload"]}
    )
    return binding, estate.cluster


@plant("aks-extensions", "medium", spot="extensions")
def cluster_extension(estate: Estate) -> Named:
    """An extension is installed, which isolated clusters do not support."""
    extension = f"{estate.cluster}/providers/Microsoft.KubernetesConfiguration/extensions/dapr"
    estate.add(extension, {"extensionType": "microsoft.dapr", "autoUpgradeMinorVersion": True})
    return extension, estate.cluster


@plant("aks-extensions", "medium", spot="extensions")
def flux_configuration(estate: Estate) -> Named:
    """Flux is configured to pull from outside."""
    flux = f"{estate.cluster}/providers/Microsoft.KubernetesConfiguration/fluxConfigurations/apps"
    estate.add(flux, {"scope": "cluster", "gitRepository": {"url": "https://git.contoso.example/apps"}})
    return flux, estate.cluster


@plant("aks-arc", "high")
def arc_agents(estate: Estate) -> Named:
    """The cluster is connected to Arc, whose agents dial out."""
    connected = f"{CLUSTER_GROUP}/providers/Microsoft.Kubernetes/connectedClusters/aks-inference"
    return estate.add(connected, {"distribution": "aks", "connectivityStatus": "Connected"}, location=LOCATION)


@plant("aks-ingress-addon", "high")
def gateway_for_containers(estate: Estate) -> Named:
    """A subnet is delegated to Application Gateway for Containers, whose frontends are public."""
    delegation = {"name": "alb", "properties": {"serviceName": "Microsoft.ServiceNetworking/trafficControllers"}}
    return subnet(estate, "snet-alb", "10.40.45.0/24", delegations=[delegation])


@plant("aks-identity-bindings", "low", spot="identity-binding")
def identity_bound_to_pods(estate: Estate) -> Named:
    """Pods may take on an identity of ours through the proxy of AKS."""
    return _bound(estate, f"{CLUSTER_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/id-pods")


@plant("aks-identity-bindings", "high", spot="identity-binding")
def identity_of_others_bound_to_pods(estate: Estate) -> Named:
    """Pods may take on an identity of another subscription."""
    group = f"/subscriptions/{FOREIGN}/resourceGroups/rg-analytics/providers"
    return _bound(estate, f"{group}/Microsoft.ManagedIdentity/userAssignedIdentities/id-stranger")


def _bound(estate: Estate, identity: str) -> str:
    """Fields as in the examples of the stable specification 2026-06-01, IdentityBindings_Get."""
    return estate.add(f"{estate.cluster}/identityBindings/pods", {"managedIdentityProfile": {"resourceId": identity}})


@plant("aks-fleet-member", "high", spot="fleet")
def member_of_a_fleet_with_a_hub(estate: Estate) -> Named:
    """The hub of a fleet puts objects into the cluster."""
    return _member(estate, hubProfile={"dnsPrefix": "fleet"})


@plant("aks-fleet-member", "medium", spot="fleet")
def member_of_a_fleet(estate: Estate) -> Named:
    """The cluster is upgraded from a fleet."""
    return _member(estate)


@plant("aks-mesh-member", "medium", spot="mesh")
def member_of_a_mesh(estate: Estate) -> Named:
    """The cluster is a member of a mesh of ours, with other clusters."""
    return _in_mesh(estate, CLUSTER_GROUP)


@plant("aks-mesh-member", "high", spot="mesh")
def member_of_a_mesh_of_others(estate: Estate) -> Named:
    """The cluster is a member of a mesh of another subscription."""
    return _in_mesh(estate, f"/subscriptions/{FOREIGN}/resourceGroups/rg-mesh")


def _in_mesh(estate: Estate, group: str) -> str:
    """Fields as in the examples of the specification 2026-06-02-preview, MeshMemberships_ListByManagedCluster."""
    mesh = f"{group}/providers/Microsoft.AppLink/applinks/mesh/appLinkMembers/aks"
    return estate.add(f"{estate.cluster}/meshMemberships/mesh", {"managedMeshID": mesh})


def _member(estate: Estate, **fleet: Any) -> str:
    """Fields as in the examples of the stable specification of fleets 2025-03-01, FleetMembers_ListByFleet."""
    holder = f"{CLUSTER_GROUP}/providers/Microsoft.ContainerService/fleets/fleet-inference"
    estate.add(holder, fleet, location=LOCATION)
    return estate.add(f"{holder}/members/aks", {"clusterResourceId": estate.cluster})

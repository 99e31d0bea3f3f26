"""The textbook estates by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from testbed.azure.baseline import private_since
from testbed.azure.baseline.layout import HUB_GROUP, NETWORK, NETWORK_GROUP, NODE_GROUP
from testbed.azure.baseline.network import RESOLVER
from testbed.azure.estate import Estate
from testbed.azure.references import refer_back
from testbed.textbook import addons, azure, mesh, own
from testbed.textbook.aks import Plane, aks, machines_of
from testbed.textbook.objects import Manifest

Body = dict[str, Any]

LEARN = "learn.microsoft.com/azure"
DOCUMENTS = "github.com/MicrosoftDocs/azure-aks-docs at fb060abe, articles/aks"
OWNER = "platform-team@contoso.example"
EXPIRY = "2027-06-30"


@dataclass(frozen=True)
class TextbookEstate:
    """A documented set-up. Both sides are built anew whenever they are asked for."""

    name: str
    source: str
    build: Callable[[], Estate]
    changes: Sequence[Callable[[Estate], None]] = ()
    runs: Sequence[addons.Added] = ()
    plane: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    node_subnet: str = f"{NETWORK_GROUP}/{NETWORK}/virtualNetworks/vnet-inference/subnets/snet-nodes"
    exceptions: Sequence[Body] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Types that the region does not offer, with the code that ARM answers of them."""

    @property
    def azure(self) -> Estate:
        estate = self.build()
        for change in self.changes:
            change(estate)
        for kind, code in self.left_out.items():
            estate.leave_out(kind, code)
        # what a layout allows is for this estate's own policy file to say
        estate.policy = self.policy_file
        return refer_back(estate)

    @property
    def manifests(self) -> list[Manifest]:
        plane = Plane(machines_of(self.azure), **self.plane)
        return [manifest for run in (aks, *self.runs) for manifest in run(plane)]

    @property
    def policy_file(self) -> Body:
        """What the team writes for --policy."""
        return {"subnetsPrivateSince": private_since(self.node_subnet), **self.policy}

    @property
    def exceptions_file(self) -> Body:
        """What the team writes for --exceptions."""
        return {"exceptions": [dict(exception) for exception in self.exceptions]}


def accepted(check: str, resource: str, reason: str) -> Body:
    """One exception."""
    return {"check": check, "resource": resource, "reason": reason, "owner": OWNER, "expiry": EXPIRY}


PLUG_IN = accepted(
    "k8s-privileged",
    "apps/v1/DaemonSet gpu-resources/nvidia-device-plugin-daemonset",
    "NVIDIA's device plug-in registers in the kubelet's folder; its image is ours, by digest; its namespace is closed",
)
OPERATOR = accepted(
    "k8s-privileged",
    "apps/v1/DaemonSet gpu-operator/*",
    "the GPU Operator installs drivers; its images are ours, by digest; only the platform team writes in its namespace",
)
GATEWAY = accepted(
    "peering-remote-gateway",
    "*/virtualNetworkPeerings/to-hub",
    "the hub's gateway leads to the company's network only; no table of this network learns its routes",
)
DEFAULT_RULES = accepted(
    "nsg-internet-deny",
    "*/virtualNetworks/aks-vnet-*/subnets/aks-subnet",
    "AKS keeps this group, and changes in the node group are not supported; no outbound method is there",
)
EFFECTIVE_RULES = accepted(
    "nsg-effective",
    "*/virtualNetworks/aks-vnet-*/subnets/aks-subnet",
    "the rules that a node enforces are those of the group that AKS keeps; no outbound method is there",
)
"""Beside DEFAULT_RULES where nodes are machines of their own, whose effective rules Azure shows."""
LOCKED = tuple(
    accepted(check, "*/virtualNetworks/aks-vnet-*", f"lockdown denies the action that reads it; {instead}")
    for check, instead in (
        ("avnm-connectivity", "no Network Manager of this company has this subscription in its scope"),
        ("avnm-admin-rules", "no Network Manager of this company has this subscription in its scope"),
        ("dns-forwarding-ruleset", "a policy denies links of rulesets in this subscription"),
    )
)
MANAGED_SUBNET = f"{NODE_GROUP}/{NETWORK}/virtualNetworks/aks-vnet-24417093/subnets/aks-subnet"
TRUSTED_PLUG_IN = {
    "namespace": "gpu-resources",
    "owner": "DaemonSet/nvidia-device-plugin-daemonset",
    "image": own.image("nvidia/k8s-device-plugin"),
}
HUB = {"allowedPeerings": [f"{HUB_GROUP}/{NETWORK}/virtualNetworks/vnet-hub"]}
FIREWALL = {"firewall": f"{HUB_GROUP}/{NETWORK}/azureFirewalls/afw-hub"}
TUNNEL = {"tunnel": True}
NO_TUNNEL = {"tunnel": False, "api_server": "10.40.11.4"}
MODELS = own.model_servers

ESTATES = (
    TextbookEstate(
        "own-registry-private-link",
        f"{LEARN}/aks/network-isolated (bring your own ACR, private link-based), /use-nvidia-gpu (device plug-in); "
        f"{DOCUMENTS}",
        partial(azure.in_own_network, private_link_api=True, pod_subnet=False),
        runs=(own.device_plugin, MODELS),
        plane=TUNNEL,
        policy={"allowedRegistries": [own.REGISTRY], "trustedNodeAgents": [TRUSTED_PLUG_IN]},
    ),
    TextbookEstate(
        "own-registry-vnet-integration",
        f"{LEARN}/aks/network-isolated (bring your own ACR, API Server VNet Integration), /nvidia-gpu-operator, "
        f"/istio-deploy-addon, /istio-cni; "
        f"{DOCUMENTS}",
        partial(azure.in_own_network, pod_subnet=False, sentinel=False),
        changes=(azure.with_own_drivers, azure.with_service_mesh),
        runs=(own.gpu_operator, mesh.service_mesh, MODELS),
        plane=NO_TUNNEL,
        exceptions=(OPERATOR,),
        left_out={
            "Microsoft.Network/serviceGateways": "NoRegisteredProviderFound",
            "Microsoft.Network/virtualNetworkAppliances": "InvalidResourceType",
        },
    ),
    TextbookEstate(
        "managed-registry-own-network",
        f"{LEARN}/aks/network-isolated (AKS-managed ACR), /image-cleaner, /use-nvidia-gpu; {DOCUMENTS}",
        partial(azure.in_own_network, private_link_api=True, pod_subnet=False, sentinel=False),
        changes=(azure.managed_registry, azure.with_image_cleaner),
        runs=(addons.image_cleaner, own.device_plugin, MODELS),
        plane=TUNNEL,
        exceptions=(PLUG_IN,),
    ),
    TextbookEstate(
        "managed-network-none",
        f"{LEARN}/aks/network-isolated (AKS-managed ACR, outbound type none), "
        f"/node-resource-group-lockdown (Unrestricted); {DOCUMENTS}",
        partial(azure.in_managed_network, "none", api_in_network=False, locked=False),
        node_subnet=MANAGED_SUBNET,
        runs=(own.device_plugin, MODELS),
        plane={"api_server": "10.224.0.4"},
        exceptions=(PLUG_IN, DEFAULT_RULES),
    ),
    TextbookEstate(
        "managed-network-block",
        f"{LEARN}/aks/network-isolated (AKS-managed ACR, outbound type block, preview), "
        f"/api-server-vnet-integration, /node-resource-group-lockdown; {DOCUMENTS}",
        partial(azure.in_managed_network, "block", api_in_network=True),
        node_subnet=MANAGED_SUBNET,
        changes=(azure.with_own_drivers,),
        runs=(own.gpu_operator, MODELS),
        plane={"tunnel": False, "api_server": "10.226.0.4"},
        exceptions=(OPERATOR, *LOCKED),
        left_out={"Microsoft.Network/virtualNetworkAppliances": "NoRegisteredProviderFound"},
    ),
    TextbookEstate(
        "pod-subnets-with-npm",
        f"{LEARN}/aks/configure-azure-cni-dynamic-ip-allocation, /use-network-policies (Azure NPM), "
        f"/nvidia-gpu-operator; {DOCUMENTS}",
        partial(azure.in_own_network, gpu_pools=2),
        changes=(azure.with_npm, azure.with_own_drivers),
        runs=(own.gpu_operator, MODELS),
        plane={"plugin": "npm", **NO_TUNNEL},
        exceptions=(OPERATOR,),
    ),
    TextbookEstate(
        "kubenet-behind-a-firewall",
        f"{LEARN}/aks/configure-kubenet (bring your own subnet and route table), /limit-egress-traffic; {DOCUMENTS}",
        partial(azure.in_own_network, firewall=True, private_link_api=True, pod_subnet=False),
        changes=(azure.with_kubenet,),
        runs=(own.device_plugin, MODELS),
        plane={"plugin": "calico"},
        policy=HUB | FIREWALL,
        exceptions=(PLUG_IN,),
    ),
    TextbookEstate(
        "monitored",
        f"{LEARN}/azure-monitor/containers/kubernetes-monitoring-private-link, /defender-for-cloud/"
        f"defender-for-containers-enable, /governance/policy/concepts/policy-for-kubernetes, /aks/image-cleaner; "
        f"{DOCUMENTS}",
        partial(azure.in_own_network, private_link_api=True, pod_subnet=False),
        changes=(azure.with_monitoring, azure.with_defender, azure.with_azure_policy, azure.with_image_cleaner),
        runs=(
            addons.azure_monitor,
            addons.defender,
            addons.azure_policy,
            addons.image_cleaner,
            own.device_plugin,
            MODELS,
        ),
        plane=TUNNEL,
        exceptions=(PLUG_IN,),
    ),
    TextbookEstate(
        "local-dns-and-flux",
        f"{LEARN}/aks/localdns-custom, fluxcd.io/flux/installation/configuration/air-gapped, "
        f"/dns/dns-private-resolver-overview (a resolver of one's own); {DOCUMENTS}",
        partial(azure.in_own_network, own_dns=True, pod_subnet=False),
        changes=(azure.with_local_dns,),
        runs=(own.flux, own.device_plugin, partial(MODELS, local_dns=True)),
        plane=NO_TUNNEL,
        policy={"allowedDnsServers": [RESOLVER]},
        exceptions=(PLUG_IN,),
    ),
    TextbookEstate(
        "automatic",
        f"{LEARN}/aks/automatic/quick-automatic-private-custom-network, /aks/intro-aks-automatic; {DOCUMENTS}",
        partial(azure.in_own_network, pod_subnet=False, sentinel=False),
        changes=(azure.automatic,),
        runs=(
            addons.azure_policy,
            addons.image_cleaner,
            addons.workload_identity,
            addons.autoscalers,
            addons.network_security,
            own.device_plugin,
            partial(MODELS, local_dns=True),
        ),
        plane=NO_TUNNEL,
        exceptions=(PLUG_IN,),
    ),
    TextbookEstate(
        "hub-with-on-premises",
        f"{LEARN}/architecture/networking/architecture/hub-spoke, /aks/network-isolated (bring your own ACR); "
        f"{DOCUMENTS}",
        partial(azure.in_own_network, peered=True, private_link_api=True, pod_subnet=False),
        changes=(azure.with_on_premises,),
        runs=(addons.secrets_store, own.device_plugin, MODELS),
        plane=TUNNEL,
        policy=HUB,
        exceptions=(PLUG_IN, GATEWAY),
    ),
    TextbookEstate(
        "hub-with-firewall",
        f"{LEARN}/aks/limit-egress-traffic, /architecture/networking/architecture/hub-spoke; {DOCUMENTS}",
        partial(azure.in_own_network, firewall=True),
        changes=(azure.with_on_premises, azure.with_routed_api_subnet),
        runs=(addons.workload_identity, own.gpu_operator, MODELS),
        plane=NO_TUNNEL,
        policy=HUB | FIREWALL,
        exceptions=(OPERATOR, GATEWAY),
    ),
)
TEXTBOOK: Mapping[str, TextbookEstate] = {estate.name: estate for estate in ESTATES}

"""Network policies that are missing, wide, or gone around."""

from __future__ import annotations

from testbed.kubernetes_plants.pieces import closed_namespace, manifest, put, put_pod
from testbed.kubernetes_plants.plant import Manifest, Manifests, plant

KUBERNETES = "Kubernetes: Network policies"
CILIUM = "Cilium: Layer 3 policies"
CALICO = "Calico: Network policy reference"


def network_policy(manifests: Manifests, *rules: Manifest) -> str:
    """The NetworkPolicy planted/way-out."""
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": list(rules)}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("networking.k8s.io/v1", "NetworkPolicy", "way-out", namespace, spec=spec))


def cilium_policy(manifests: Manifests, rule: Manifest, *, everywhere: bool = False) -> str:
    """A policy of Cilium, of one namespace or of the whole cluster."""
    spec = {"endpointSelector": {}, "egress": [rule]}
    if everywhere:
        return put(manifests, manifest("cilium.io/v2", "CiliumClusterwideNetworkPolicy", "way-out", spec=spec))
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("cilium.io/v2", "CiliumNetworkPolicy", "way-out", namespace, spec=spec))


@plant("k8s-default-deny-egress", "high", KUBERNETES)
def namespace_without_a_policy(manifests: Manifests) -> str:
    """Pods run in a namespace that no policy closes."""
    put_pod(manifests)
    manifests[:] = [
        manifest
        for manifest in manifests
        if manifest["kind"] != "NetworkPolicy" or manifest["metadata"].get("namespace") != "planted"
    ]
    return "v1/Namespace planted"


@plant("k8s-default-deny-egress", "high", CILIUM)
def default_deny_without_a_section_egress(manifests: Manifests) -> str:
    """The only policy of a namespace denies egress by default and has no section egress, so it changes nothing."""
    spec = {"endpointSelector": {}, "ingress": [{}], "enableDefaultDeny": {"egress": True}}
    return closed_by(manifests, manifest("cilium.io/v2", "CiliumNetworkPolicy", "deny", "planted", spec=spec))


def closed_by(manifests: Manifests, policy: Manifest) -> str:
    """Pods run in a namespace whose only policy is this one."""
    namespace_without_a_policy(manifests)
    put(manifests, policy)
    return "v1/Namespace planted"


@plant("k8s-policy-allow-all", "high", KUBERNETES)
def rule_without_a_destination(manifests: Manifests) -> str:
    """An egress rule names ports and no destination."""
    return network_policy(manifests, {"ports": [{"port": 53, "protocol": "UDP"}]})


@plant("k8s-policy-allow-all", "high", KUBERNETES)
def rule_for_every_address(manifests: Manifests) -> str:
    """An egress rule for every address but the private ones."""
    return network_policy(manifests, {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]})


@plant("k8s-policy-allow-all", "high", "RFC 4291, IPv4-Mapped IPv6 Address")
def rule_for_every_address_written_as_ipv6(manifests: Manifests) -> str:
    """An egress rule for every address of IPv4, written as a range of IPv6."""
    return network_policy(manifests, {"to": [{"ipBlock": {"cidr": "::ffff:0.0.0.0/96"}}]})


@plant("k8s-policy-allow-all", "high", KUBERNETES)
def rule_for_one_public_address(manifests: Manifests) -> str:
    """An egress rule for a single public address."""
    return network_policy(manifests, {"to": [{"ipBlock": {"cidr": "203.0.113.7/32"}}]})


@plant("k8s-policy-allow-all", "high", CILIUM)
def cilium_rule_for_the_world(manifests: Manifests) -> str:
    """A policy of Cilium lets pods go to the world."""
    return cilium_policy(manifests, {"toEntities": ["world"]})


@plant("k8s-policy-allow-all", "high", CILIUM)
def cilium_rule_for_names(manifests: Manifests) -> str:
    """A policy of Cilium lets pods go to names outside."""
    return cilium_policy(manifests, {"toFQDNs": [{"matchPattern": "*.example.com"}]})


@plant("k8s-policy-allow-all", "high", CILIUM)
def cilium_rule_for_a_set_of_ranges(manifests: Manifests) -> str:
    """A policy of the whole cluster lets pods go to a public range."""
    return cilium_policy(manifests, {"toCIDRSet": [{"cidr": "198.51.100.0/24"}]}, everywhere=True)


@plant("k8s-policy-allow-all", "high", CILIUM)
def cilium_rule_for_an_empty_list_of_names(manifests: Manifests) -> str:
    """A policy of Cilium lets ports go to an empty list of names, which restricts nothing."""
    return cilium_policy(manifests, {"toFQDNs": [], "toPorts": [{"ports": [{"port": "443"}]}]})


@plant("k8s-policy-allow-all", "high", CILIUM, verdict="Unknown")
def cilium_rule_for_a_clouds_groups(manifests: Manifests) -> str:
    """A policy of Cilium names addresses that only a cloud knows."""
    return cilium_policy(manifests, {"toGroups": [{"aws": {"securityGroupsNames": ["web"]}}]})


@plant("k8s-policy-allow-all", "high", CALICO)
def calico_rule_without_a_destination(manifests: Manifests) -> str:
    """A policy of Calico allows everything."""
    spec = {"selector": "all()", "types": ["Egress"], "egress": [{"action": "Allow"}]}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("crd.projectcalico.org/v1", "NetworkPolicy", "default.out", namespace, spec=spec))


@plant("k8s-policy-allow-all", "high", CALICO)
def calico_rule_of_the_whole_cluster(manifests: Manifests) -> str:
    """A policy of Calico for the whole cluster allows a public range."""
    rule = {"action": "Allow", "destination": {"nets": ["203.0.113.0/24"]}}
    spec = {"selector": "all()", "types": ["Egress"], "egress": [rule]}
    return put(manifests, manifest("crd.projectcalico.org/v1", "GlobalNetworkPolicy", "default.out", spec=spec))


@plant("k8s-policy-allow-all", "high", "Calico: Tier")
def calico_rule_that_goes_past_the_policies_of_kubernetes(manifests: Manifests) -> str:
    """A policy of Calico in the default tier passes everything on to the profile of the namespace."""
    spec = {"tier": "default", "order": 1, "selector": "all()", "types": ["Egress"], "egress": [{"action": "Pass"}]}
    return put(manifests, manifest("crd.projectcalico.org/v1", "GlobalNetworkPolicy", "default.pass", spec=spec))


def of_engine(manifests: Manifests, name: str, namespace: str) -> None:
    """The DaemonSet of a policy engine, where the cluster has none of this name."""
    there = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
    if ("DaemonSet", name) not in there:
        put(manifests, manifest("apps/v1", "DaemonSet", name, namespace))


@plant("k8s-policy-engine-live", "high", "Cilium: Policy enforcement modes")
def cilium_that_enforces_nothing(manifests: Manifests) -> str:
    """The settings of Cilium switch the enforcement of policies off."""
    of_engine(manifests, "cilium", "kube-system")
    data = {"enable-policy": "never"}
    return put(manifests, manifest("v1", "ConfigMap", "cilium-config", "kube-system", data=data))


@plant("k8s-policy-engine-live", "high", "Cilium: Per-node configuration")
def cilium_that_only_reports_on_some_nodes(manifests: Manifests) -> str:
    """On nodes with a label, Cilium reports what a policy denies and lets it through."""
    of_engine(manifests, "cilium", "kube-system")
    spec = {"nodeSelector": {"matchLabels": {"team": "a"}}, "defaults": {"policy-audit-mode": "true"}}
    return put(manifests, manifest("cilium.io/v2", "CiliumNodeConfig", "audit", "kube-system", spec=spec))


@plant("k8s-policy-engine-live", "high", "Calico: Felix configuration", verdict="Unknown")
def calico_for_some_interfaces(manifests: Manifests) -> str:
    """Calico applies policies to interfaces with a prefix that users choose."""
    of_engine(manifests, "calico-node", "calico-system")
    spec = {"interfacePrefix": "eth"}
    return put(manifests, manifest("crd.projectcalico.org/v1", "FelixConfiguration", "default", spec=spec))


@plant("k8s-static-egress", "critical", "AKS: Configure Static Egress Gateway")
def static_gateway_configured(manifests: Manifests) -> str:
    """A static egress gateway is configured."""
    version = "egressgateway.kubernetes.azure.com/v1alpha1"
    spec = {"gatewayNodepoolName": "gateway", "provisionPublicIps": True}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest(version, "StaticGatewayConfiguration", "out", namespace, spec=spec))

"""Table H: what is switched on in the AKS resource, and what it needs of the tables before it."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.checks.aks import CHECKS
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.aks_estates import addon, network_profile
from tests.audit_estates import CLUSTER, NETWORK, NIC, NODES, SUBSCRIPTION, VNET
from tests.audit_services import (
    REGISTRY,
    only,
    served_cluster,
    verdicts,
)

AZURE_ONLY = sorted(check.page.id for check in CHECKS if check.needs == {"azure"})
# Lists beside the cluster: its own body is not read for them.
ATTACHED = {"aks-trusted-access", "aks-extensions", "aks-identity-bindings", "aks-mesh-member"}
FILTERED = Policy(profile="filtered", firewall=f"{NETWORK}/azureFirewalls/wall")
PRIVATE = {"enablePrivateCluster": True, "enablePrivateClusterPublicFQDN": False, "disableRunCommand": True}


@pytest.mark.parametrize("check", AZURE_ONLY)
def test_a_closed_cluster_passes(check: str) -> None:
    finding = only(served_cluster(), check)
    assert finding.verdict is (Verdict.NOT_APPLICABLE if check == "aks-authorized-ips" else Verdict.PASS)
    assert finding.evidence


@pytest.mark.parametrize("check", sorted({*AZURE_ONLY} - ATTACHED))
def test_a_cluster_that_cannot_be_read_is_unknown(check: str) -> None:
    assert verdicts(served_cluster().refuse(CLUSTER, verb="get"), check)[CLUSTER.lower()] == "Unknown"


@pytest.mark.parametrize("check", sorted(ATTACHED | {"aks-arc"}))
def test_lists_that_cannot_be_read_are_unknown(check: str) -> None:
    azure = served_cluster().refuse(CLUSTER, verb="list").refuse(SUBSCRIPTION, verb="list")
    assert verdicts(azure, check) == {CLUSTER.lower(): "Unknown"}


def _pools(*properties: dict[str, Any]) -> dict[str, Any]:
    return {"agentPoolProfiles": [{"name": "one"}, *({"name": "two", **pool} for pool in properties)]}


def _mesh(mode: str = "Istio", **components: Any) -> dict[str, Any]:
    return {"serviceMeshProfile": {"mode": mode, "istio": {"components": components}}}


def _routing(**nginx: Any) -> dict[str, Any]:
    return {"ingressProfile": {"webAppRouting": {"enabled": True, "nginx": nginx}}}


def _gateway_api(mode: Any) -> dict[str, Any]:
    """The Gateway API of application routing, whose own controller is off."""
    return {"ingressProfile": {"webAppRouting": {"gatewayAPIImplementations": {"appRoutingIstio": {"mode": mode}}}}}


ADDRESS = {"effectiveOutboundIPs": [{"id": "/ip"}]}


@pytest.mark.parametrize(
    ("check", "properties", "verdict", "severity"),
    [
        ("aks-outbound-type", network_profile(outboundType="block"), "Pass", "critical"),
        ("aks-outbound-type", network_profile(outboundType="loadBalancer"), "Fail", "critical"),
        ("aks-outbound-type", network_profile(outboundType="managedNATGateway"), "Fail", "critical"),
        ("aks-outbound-type", network_profile(outboundType="managedNATGatewayV2"), "Fail", "critical"),
        ("aks-outbound-type", network_profile(outboundType="userAssignedNATGateway"), "Fail", "critical"),
        ("aks-outbound-type", network_profile(outboundType="userDefinedRouting"), "Fail", "critical"),
        ("aks-outbound-type", network_profile(outboundType="somethingNew"), "Fail", "critical"),
        ("aks-outbound-type", network_profile(outboundType=None), "Fail", "critical"),
        ("aks-outbound-type", {"networkProfile": None}, "Fail", "critical"),
        ("aks-effective-outbound-ips", network_profile(loadBalancerProfile=ADDRESS), "Fail", "critical"),
        ("aks-effective-outbound-ips", network_profile(natGatewayProfile=ADDRESS), "Fail", "critical"),
        ("aks-effective-outbound-ips", {"networkProfile": None}, "Unknown", "critical"),
        ("aks-effective-outbound-ips", network_profile(outboundType=None), "Unknown", "critical"),
        ("aks-artifact-source", {"bootstrapProfile": {"artifactSource": "Direct"}}, "Fail", "high"),
        ("aks-artifact-source", {"bootstrapProfile": None}, "Fail", "high"),
        ("aks-artifact-source", {"bootstrapProfile": {"artifactSource": "Cache"}}, "Unknown", "high"),
        ("aks-private-api", {"apiServerAccessProfile": {}}, "Fail", "high"),
        ("aks-private-api", {"apiServerAccessProfile": None}, "Fail", "high"),
        ("aks-public-fqdn", {"apiServerAccessProfile": {"enablePrivateCluster": True}}, "Fail", "low"),
        ("aks-public-fqdn", {"apiServerAccessProfile": {}}, "NotApplicable", "low"),
        ("aks-authorized-ips", {"apiServerAccessProfile": {}}, "Fail", "high"),
        ("aks-authorized-ips", {"apiServerAccessProfile": {"authorizedIPRanges": ["20.1.2.3"]}}, "Pass", "high"),
        ("aks-authorized-ips", {"apiServerAccessProfile": {"authorizedIPRanges": ["0.0.0.0/0"]}}, "Fail", "high"),
        ("aks-authorized-ips", {"apiServerAccessProfile": {"authorizedIPRanges": ["128.0.0.0/1"]}}, "Fail", "high"),
        ("aks-authorized-ips", {"apiServerAccessProfile": {"authorizedIPRanges": ["office"]}}, "Unknown", "high"),
        ("aks-pna", {"publicNetworkAccess": "Enabled"}, "Fail", "medium"),
        ("aks-pna", {"publicNetworkAccess": None}, "Fail", "medium"),
        ("aks-pna", {"publicNetworkAccess": "SecuredByPerimeter"}, "Unknown", "medium"),
        ("aks-run-command", {"apiServerAccessProfile": {**PRIVATE, "disableRunCommand": None}}, "Fail", "medium"),
        ("aks-network-policy", network_profile(networkPolicy="calico"), "Pass", "high"),
        ("aks-network-policy", network_profile(networkPolicy="azure"), "Pass", "high"),
        ("aks-network-policy", network_profile(networkPolicy="none"), "Fail", "high"),
        ("aks-network-policy", network_profile(networkPolicy=None), "Fail", "high"),
        ("aks-network-policy", network_profile(networkPolicy=None, networkPlugin="none"), "Unknown", "high"),
        ("aks-network-policy", network_profile(networkPolicy="somethingNew"), "Unknown", "high"),
        ("aks-static-egress", network_profile(staticEgressGatewayProfile={"enabled": True}), "Fail", "critical"),
        ("aks-static-egress", network_profile(staticEgressGatewayProfile={"enabled": False}), "Pass", "critical"),
        ("aks-static-egress", {"networkProfile": {"tomorrow": 1}}, "Unknown", "critical"),
        ("aks-static-egress", {"networkProfile": None}, "Unknown", "critical"),
        ("aks-static-egress", network_profile(staticEgressGatewayProfile={}), "Unknown", "critical"),
        ("aks-http-proxy", {"httpProxyConfig": {"httpsProxy": "http://proxy:3128"}}, "Fail", "high"),
        ("aks-http-proxy", {"httpProxyConfig": {"httpProxy": "http://p", "enabled": False}}, "Fail", "medium"),
        ("aks-http-proxy", {"httpProxyConfig": {"noProxy": ["x"]}}, "Pass", "high"),
        ("aks-addons", addon("azurepolicy"), "Fail", "medium"),
        ("aks-addons", addon("omsAgent"), "Fail", "medium"),
        ("aks-addons", addon("somethingNew"), "Unknown", "medium"),
        ("aks-addons", {"addonProfiles": {"azurepolicy": {"enabled": False}}}, "Pass", "medium"),
        ("aks-addons", {"addonProfiles": {"azurepolicy": {"enabled": None}}}, "Fail", "medium"),
        ("aks-addons", {"addonProfiles": {"azurepolicy": {}}}, "Fail", "medium"),
        ("aks-virtual-nodes", {"addonProfiles": {"aciConnectorLinux": {"config": {}}}}, "Fail", "high"),
        ("aks-monitoring", {"azureMonitorProfile": {"metrics": {"enabled": True}}}, "Fail", "medium"),
        ("aks-monitoring", {"azureMonitorProfile": {"a": {"b": {"enabled": True}}}}, "Fail", "medium"),
        ("aks-monitoring", {"azureMonitorProfile": {"metrics": {"enabled": False}}}, "Pass", "medium"),
        ("aks-monitoring", {"azureMonitorProfile": {"logs": [{"enabled": True}]}}, "Fail", "medium"),
        ("aks-monitoring", {"azureMonitorProfile": {"logs": [[{"a": {"enabled": True}}]]}}, "Fail", "medium"),
        ("aks-monitoring", {"azureMonitorProfile": {"logs": [{"enabled": False}]}}, "Pass", "medium"),
        (
            "aks-monitoring",
            {"securityProfile": {"defender": {"securityMonitoring": {"enabled": True}}}},
            "Fail",
            "medium",
        ),
        ("aks-monitoring", {"metricsProfile": {"costAnalysis": {"enabled": True}}}, "Fail", "medium"),
        ("aks-ingress-addon", _routing(), "Fail", "high"),
        ("aks-ingress-addon", _routing(defaultIngressControllerType="AnnotationControlled"), "Fail", "high"),
        ("aks-ingress-addon", _routing(defaultIngressControllerType="External"), "Fail", "high"),
        ("aks-ingress-addon", _routing(defaultIngressControllerType="Internal"), "Pass", "high"),
        ("aks-ingress-addon", _routing(defaultIngressControllerType="None"), "Pass", "high"),
        ("aks-ingress-addon", _routing(defaultIngressControllerType="Odd"), "Unknown", "high"),
        ("aks-ingress-addon", _gateway_api("Enabled"), "Fail", "medium"),
        ("aks-ingress-addon", _gateway_api("Odd"), "Fail", "medium"),
        ("aks-ingress-addon", _gateway_api("Disabled"), "Pass", "high"),
        ("aks-ingress-addon", _gateway_api(None), "Pass", "high"),
        ("aks-ingress-addon", _gateway_api(True), "Unknown", "high"),
        ("aks-ingress-addon", {"ingressProfile": {"applicationLoadBalancer": {"enabled": True}}}, "Fail", "high"),
        ("aks-ingress-addon", {"ingressProfile": {"applicationLoadBalancer": {"enabled": False}}}, "Pass", "high"),
        ("aks-ingress-addon", {"ingressProfile": {"applicationLoadBalancer": {"enabled": "yes"}}}, "Unknown", "high"),
        ("aks-ingress-addon", {"ingressProfile": {"applicationLoadBalancer": "on"}}, "Unknown", "high"),
        ("aks-ingress-addon", {"ingressProfile": "on"}, "Unknown", "high"),
        ("aks-istio-gateways", _mesh(ingressGateways=[{"mode": "External", "enabled": True}]), "Fail", "high"),
        ("aks-istio-gateways", _mesh(ingressGateways=[{"mode": "External"}]), "Fail", "high"),
        ("aks-istio-gateways", _mesh(ingressGateways=[{"mode": "External", "enabled": False}]), "Pass", "high"),
        ("aks-istio-gateways", _mesh(ingressGateways=[{"mode": "Internal", "enabled": True}]), "Pass", "high"),
        ("aks-istio-gateways", _mesh(ingressGateways=[{"mode": "Odd", "enabled": True}]), "Unknown", "high"),
        ("aks-istio-gateways", _mesh(egressGateways=[{"enabled": True, "name": "out"}]), "Fail", "high"),
        ("aks-istio-gateways", _mesh("Odd"), "Unknown", "high"),
        ("aks-istio-gateways", _mesh("Disabled", egressGateways=[{"enabled": True}]), "Pass", "high"),
        ("aks-virtual-nodes", addon("aciConnectorLinux"), "Fail", "high"),
        ("aks-virtual-nodes", addon("ACICONNECTORLINUX"), "Fail", "high"),
        ("aks-os-channel", {"autoUpgradeProfile": {"nodeOSUpgradeChannel": "Unmanaged"}}, "Fail", "low"),
        ("aks-os-channel", {"autoUpgradeProfile": {"nodeOSUpgradeChannel": "SecurityPatch"}}, "Pass", "low"),
        ("aks-os-channel", {"autoUpgradeProfile": None}, "Unknown", "low"),
        ("aks-node-rg-lockdown", {"nodeResourceGroupProfile": {"restrictionLevel": "Unrestricted"}}, "Fail", "medium"),
        ("aks-node-rg-lockdown", {"nodeResourceGroupProfile": None}, "Fail", "medium"),
        ("aks-node-rg-lockdown", {"nodeResourceGroupProfile": {"restrictionLevel": "Odd"}}, "Unknown", "medium"),
        ("aks-unread-features", {"tunnelProfile": {"enabled": True}}, "Unknown", "medium"),
        ("aks-unread-features", {"tunnelProfile": {"mode": "Odd"}}, "Unknown", "medium"),
        ("aks-unread-features", {"tunnelProfile": {"enabled": False, "mode": "Disabled", "a": []}}, "Pass", "medium"),
        ("aks-unread-features", {"tunnelProfile": None}, "Pass", "medium"),
        ("aks-unread-features", {"ingressProfile": {"tunnel": {"enabled": True}}}, "Unknown", "medium"),
        ("aks-unread-features", network_profile(natGatewayProfile={"tunnel": 1}), "Unknown", "medium"),
        ("aks-unread-features", network_profile(natGatewayProfile={"sku": "StandardV2"}), "Pass", "medium"),
        ("aks-unread-features", {"INGRESSPROFILE": {"WebAppRouting": {"Enabled": False}}}, "Pass", "medium"),
        ("aks-unread-features", _pools({"tunnelProfile": {"enabled": True}}), "Unknown", "medium"),
        ("aks-unread-features", _pools({"networkProfile": {"tunnel": {"enabled": True}}}), "Unknown", "medium"),
        ("aks-unread-features", _pools({"tunnelProfile": {"enabled": False}}), "Pass", "medium"),
        ("aks-unread-features", _pools({"gpuProfile": {"driver": "None"}, "MaxPods": 110}), "Pass", "medium"),
    ],
)
def test_each_setting_is_read_strictly(check: str, properties: dict[str, Any], verdict: str, severity: str) -> None:
    finding = only(served_cluster().change(CLUSTER, **properties), check)
    assert (finding.verdict, finding.severity, finding.resource) == (verdict, severity, CLUSTER)


@pytest.mark.parametrize("kind", ["none", "block", "loadBalancer"])
def test_an_address_left_behind_is_not_mended_by_the_type_that_is_set(kind: str) -> None:
    address = f"{NETWORK}/publicIPAddresses/left"
    for frontend in (ADDRESS, {"effectiveOutboundIPs": [{"id": address}]}):
        changed = network_profile(loadBalancerProfile=frontend, outboundType=kind)
        finding = only(served_cluster().change(CLUSTER, **changed), "aks-effective-outbound-ips")
        assert ("--outbound-type" in finding.remedy) is (kind == "loadBalancer")
        assert "az network public-ip delete --ids" in finding.remedy
    assert kind == "loadBalancer" or f"--ids {address}" in finding.remedy


class TestOutboundTypeNone:
    """It adds no egress path, and takes none away."""

    @pytest.mark.parametrize(
        "properties", [{"defaultOutboundAccess": None}, {"natGateway": {"id": f"{NETWORK}/natGateways/n"}}]
    )
    def test_fails_with_the_paths_of_what_the_network_lets_out(self, properties: dict[str, Any]) -> None:
        finding = only(served_cluster().change(NODES, **properties), "aks-outbound-type")
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.CRITICAL)
        assert any("subnet nodes" in path for path in finding.path_texts)

    def test_is_unknown_when_a_subnet_cannot_be_read(self) -> None:
        assert only(served_cluster().refuse(NODES), "aks-outbound-type").verdict is Verdict.UNKNOWN

    def test_is_unknown_when_interfaces_do_not_tell(self) -> None:
        finding = only(served_cluster().drop(NIC, "defaultOutboundConnectivityEnabled"), "aks-outbound-type")
        assert finding.verdict is Verdict.UNKNOWN

    def test_user_defined_routing_passes_behind_a_declared_firewall(self) -> None:
        azure = served_cluster().change(CLUSTER, **network_profile(outboundType="userDefinedRouting"))
        assert verdicts(azure, "aks-outbound-type", FILTERED) == {CLUSTER.lower(): "Pass"}
        azure = served_cluster().change(CLUSTER, **network_profile(outboundType="loadBalancer"))
        assert verdicts(azure, "aks-outbound-type", FILTERED) == {CLUSTER.lower(): "Fail"}


class TestArtifactSource:
    def test_a_cache_that_does_not_pass_itself_does_not_pass(self) -> None:
        finding = only(served_cluster().change(REGISTRY, publicNetworkAccess="Enabled"), "aks-artifact-source")
        assert finding.verdict is Verdict.UNKNOWN
        assert "acr-public" in finding.message

    def test_a_cache_that_cannot_be_read_is_unknown(self) -> None:
        azure = served_cluster().refuse(REGISTRY, verb="get")
        assert only(azure, "aks-artifact-source").verdict is Verdict.UNKNOWN


class TestGatewayForContainers:
    """No stable api-version shows the add-on, so the subnet that it needs tells."""

    @pytest.mark.parametrize(
        ("service", "verdict"),
        [("Microsoft.ServiceNetworking/trafficControllers", "Fail"), ("Microsoft.Web/serverFarms", None)],
    )
    def test_a_subnet_that_is_delegated_to_it_fails(self, service: str, verdict: str | None) -> None:
        lent = f"{VNET}/subnets/alb"
        delegations = [{"name": "d", "properties": {"serviceName": service}}]
        azure = served_cluster()
        azure.change(VNET, subnets=[{"id": lent, "properties": {"delegations": delegations}}])
        verdict_of = verdicts(azure, "aks-ingress-addon")
        assert verdict_of.pop(lent.lower(), None) == verdict
        assert verdict_of == {CLUSTER.lower(): "Pass"}

    def test_a_network_that_cannot_be_read_is_unknown(self) -> None:
        assert verdicts(served_cluster().refuse(VNET, verb="get"), "aks-ingress-addon")[CLUSTER.lower()] == "Unknown"


def test_subnets_of_hosted_system_nodes_are_subnets_of_the_cluster() -> None:
    open_subnet = f"{VNET}/subnets/hosted"
    azure = served_cluster().change(CLUSTER, hostedSystemProfile={"enabled": True, "nodeSubnetID": open_subnet})
    azure.put(open_subnet, {"addressPrefix": "10.0.30.0/24"})
    assert verdicts(azure, "subnet-default-outbound")[open_subnet.lower()] == "Fail"


@pytest.mark.parametrize("check", ["subnet-default-outbound", "subnet-nat-gateway", "nsg-missing", "aks-outbound-type"])
def test_system_nodes_that_are_hosted_in_a_subnet_that_is_not_named_are_not_seen(check: str) -> None:
    azure = served_cluster().change(CLUSTER, hostedSystemProfile={"enabled": True})
    assert "Unknown" in verdicts(azure, check).values()
    for profile in ({"enabled": False}, {"enabled": True, "systemNodeSubnetID": NODES, "nodeSubnetID": NODES}, None):
        assert "Unknown" not in verdicts(served_cluster().change(CLUSTER, hostedSystemProfile=profile), check).values()


@pytest.mark.parametrize("check", ["nic-default-outbound", "vmss-public-ip-config", "vmss-instance-pip"])
def test_a_pool_whose_scale_set_is_not_listed_is_not_seen(check: str) -> None:
    """Machines of another pool show nothing about those of this one."""
    azure = served_cluster()
    pools = azure.properties(CLUSTER)["agentPoolProfiles"]
    pools.append({**pools[0], "name": "unseen"})
    assert "Unknown" in verdicts(azure, check).values()
    pools[-1]["count"] = 0
    assert "Unknown" not in verdicts(azure, check).values()


@pytest.mark.parametrize(
    ("properties", "verdict"),
    [
        ({"aiToolchainOperatorProfile": {"enabled": True}}, "Fail"),
        ({"workloadAutoScalerProfile": {"keda": {"enabled": True}}}, "Fail"),
        ({"workloadAutoScalerProfile": {"keda": None}, "aiToolchainOperatorProfile": {"enabled": False}}, "Pass"),
        ({"aiToolchainOperatorProfile": {"enabled": "yes"}}, "Unknown"),
    ],
)
def test_operators_that_fetch_for_their_users_are_low(properties: dict[str, Any], verdict: str) -> None:
    finding = only(served_cluster().change(CLUSTER, **properties), "aks-managed-operators")
    assert (finding.verdict.value, finding.severity) == (verdict, Severity.LOW)

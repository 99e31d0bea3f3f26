"""Table H: what is switched on in the AKS resource, and what it needs of the tables before it."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.checks.aks import CHECKS
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, GROUP, NETWORK, NIC, NODES, SUBSCRIPTION, VNET
from tests.audit_services import (
    OTHER_SUBSCRIPTION,
    REGISTRY,
    FakeServices,
    add_endpoint,
    only,
    served_cluster,
    verdicts,
)

AZURE_ONLY = sorted(check.page.id for check in CHECKS if check.needs == {"azure"})
# Lists beside the cluster: its own body is not read for them.
ATTACHED = {"aks-trusted-access", "aks-extensions", "aks-identity-bindings", "aks-mesh-member"}
DEFENDER = f"{GROUP}/providers/Microsoft.Security/privateLinks/defender"
VAULT = f"{GROUP}/providers/Microsoft.KeyVault/vaults/secrets"
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


def _profile(**network: Any) -> dict[str, Any]:
    return {"networkProfile": {"outboundType": "none", "networkPolicy": "cilium", **network}}


def _addon(name: str) -> dict[str, Any]:
    return {"addonProfiles": {name: {"enabled": True}}}


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
        ("aks-outbound-type", _profile(outboundType="block"), "Pass", "critical"),
        ("aks-outbound-type", _profile(outboundType="loadBalancer"), "Fail", "critical"),
        ("aks-outbound-type", _profile(outboundType="managedNATGateway"), "Fail", "critical"),
        ("aks-outbound-type", _profile(outboundType="managedNATGatewayV2"), "Fail", "critical"),
        ("aks-outbound-type", _profile(outboundType="userAssignedNATGateway"), "Fail", "critical"),
        ("aks-outbound-type", _profile(outboundType="userDefinedRouting"), "Fail", "critical"),
        ("aks-outbound-type", _profile(outboundType="somethingNew"), "Fail", "critical"),
        ("aks-outbound-type", _profile(outboundType=None), "Fail", "critical"),
        ("aks-outbound-type", {"networkProfile": None}, "Fail", "critical"),
        ("aks-effective-outbound-ips", _profile(loadBalancerProfile=ADDRESS), "Fail", "critical"),
        ("aks-effective-outbound-ips", _profile(natGatewayProfile=ADDRESS), "Fail", "critical"),
        ("aks-effective-outbound-ips", {"networkProfile": None}, "Unknown", "critical"),
        ("aks-effective-outbound-ips", _profile(outboundType=None), "Unknown", "critical"),
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
        ("aks-network-policy", _profile(networkPolicy="calico"), "Pass", "high"),
        ("aks-network-policy", _profile(networkPolicy="azure"), "Pass", "high"),
        ("aks-network-policy", _profile(networkPolicy="none"), "Fail", "high"),
        ("aks-network-policy", _profile(networkPolicy=None), "Fail", "high"),
        ("aks-network-policy", _profile(networkPolicy=None, networkPlugin="none"), "Unknown", "high"),
        ("aks-network-policy", _profile(networkPolicy="somethingNew"), "Unknown", "high"),
        ("aks-static-egress", _profile(staticEgressGatewayProfile={"enabled": True}), "Fail", "critical"),
        ("aks-static-egress", _profile(staticEgressGatewayProfile={"enabled": False}), "Pass", "critical"),
        ("aks-static-egress", {"networkProfile": {"tomorrow": 1}}, "Unknown", "critical"),
        ("aks-static-egress", {"networkProfile": None}, "Unknown", "critical"),
        ("aks-static-egress", _profile(staticEgressGatewayProfile={}), "Unknown", "critical"),
        ("aks-http-proxy", {"httpProxyConfig": {"httpsProxy": "http://proxy:3128"}}, "Fail", "high"),
        ("aks-http-proxy", {"httpProxyConfig": {"httpProxy": "http://p", "enabled": False}}, "Fail", "medium"),
        ("aks-http-proxy", {"httpProxyConfig": {"noProxy": ["x"]}}, "Pass", "high"),
        ("aks-addons", _addon("azurepolicy"), "Fail", "medium"),
        ("aks-addons", _addon("omsAgent"), "Fail", "medium"),
        ("aks-addons", _addon("somethingNew"), "Unknown", "medium"),
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
        ("aks-virtual-nodes", _addon("aciConnectorLinux"), "Fail", "high"),
        ("aks-virtual-nodes", _addon("ACICONNECTORLINUX"), "Fail", "high"),
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
        ("aks-unread-features", _profile(natGatewayProfile={"tunnel": 1}), "Unknown", "medium"),
        ("aks-unread-features", _profile(natGatewayProfile={"sku": "StandardV2"}), "Pass", "medium"),
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
        changed = _profile(loadBalancerProfile=frontend, outboundType=kind)
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
        azure = served_cluster().change(CLUSTER, **_profile(outboundType="userDefinedRouting"))
        assert verdicts(azure, "aks-outbound-type", FILTERED) == {CLUSTER.lower(): "Pass"}
        azure = served_cluster().change(CLUSTER, **_profile(outboundType="loadBalancer"))
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


IDENTITY = "providers/Microsoft.ManagedIdentity/userAssignedIdentities/id"
FLEET = f"{GROUP}/providers/Microsoft.ContainerService/fleets/fleet"


class TestMemberships:
    @pytest.mark.parametrize(
        ("identity", "verdict", "severity"),
        [
            (f"{GROUP}/{IDENTITY}", "Fail", "low"),
            (f"{OTHER_SUBSCRIPTION}/resourceGroups/x/{IDENTITY}", "Fail", "high"),
            (None, "Unknown", "low"),
        ],
    )
    def test_a_bound_identity_is_as_bad_as_whose_it_is(self, identity: str | None, verdict: str, severity: str) -> None:
        binding = f"{CLUSTER}/identityBindings/pods"
        azure = served_cluster()
        azure.put(binding, {"managedIdentityProfile": {"resourceId": identity}})
        finding = only(azure, "aks-identity-bindings")
        assert (finding.verdict, finding.severity, finding.resource) == (verdict, severity, binding)

    @pytest.mark.parametrize(
        ("fleet", "member", "verdict", "severity"),
        [
            ({}, CLUSTER.upper(), "Fail", "medium"),
            ({"hubProfile": {"dnsPrefix": "f"}}, CLUSTER, "Fail", "high"),
            ({"hubProfile": {}}, f"{CLUSTER}-other", None, ""),
            ({}, None, "Unknown", "medium"),
        ],
    )
    def test_a_fleet_that_has_the_cluster_is_found(
        self, fleet: dict[str, Any], member: str | None, verdict: str | None, severity: str
    ) -> None:
        azure = served_cluster().put(FLEET, fleet).put(f"{FLEET}/members/one", {"clusterResourceId": member})
        findings = azure.findings("aks-fleet-member")
        if verdict is None:
            assert {finding.verdict for finding in findings.values()} == {Verdict.PASS}
        else:
            member_finding = findings[f"{FLEET}/members/one".lower()]
            assert (member_finding.verdict, member_finding.severity) == (verdict, severity)

    def test_fleets_and_members_that_cannot_be_listed_are_unknown(self) -> None:
        azure = served_cluster().refuse(SUBSCRIPTION, kind="Microsoft.ContainerService/fleets")
        assert verdicts(azure, "aks-fleet-member") == {CLUSTER.lower(): "Unknown"}
        azure = served_cluster().put(FLEET, {}).refuse(FLEET, verb="list")
        assert verdicts(azure, "aks-fleet-member") == {CLUSTER.lower(): "Unknown"}

    @pytest.mark.parametrize(("name", "verdict"), [("fleet-system", "Fail"), ("team", "Pass")])
    def test_with_the_cluster_asked_the_namespace_tells(self, name: str, verdict: str) -> None:
        azure = served_cluster()
        azure.sources = ("azure", "kube")
        azure.objects["v1/namespaces"] = [{"metadata": {"name": name}}]
        assert verdicts(azure, "aks-fleet-member") == {CLUSTER.lower(): verdict}


class TestPools:
    @pytest.mark.parametrize(("mode", "verdict"), [("Gateway", "Fail"), ("User", "Pass"), ("Odd", "Unknown")])
    def test_a_gateway_pool_is_static_egress(self, mode: str, verdict: str) -> None:
        pool = {"name": "gw", "mode": mode, "vnetSubnetID": NODES}
        azure = served_cluster().change(CLUSTER, agentPoolProfiles=[pool])
        assert verdicts(azure, "aks-static-egress")[CLUSTER.lower()] == verdict

    def test_a_cluster_without_pools_was_not_answered_whole(self) -> None:
        azure = served_cluster().change(CLUSTER, agentPoolProfiles=[])
        assert verdicts(azure, "aks-static-egress")[CLUSTER.lower()] == "Unknown"


class TestWhatSends:
    @pytest.mark.parametrize(
        ("check", "properties", "target"),
        [
            ("aks-addons", _addon("azureKeyvaultSecretsProvider"), VAULT),
            (
                "aks-monitoring",
                {"securityProfile": {"defender": {"securityMonitoring": {"enabled": True}}}},
                DEFENDER,
            ),
        ],
    )
    def test_passes_behind_a_private_endpoint(self, check: str, properties: dict[str, Any], target: str) -> None:
        azure = served_cluster().change(CLUSTER, **properties)
        assert only(azure, check).verdict is Verdict.FAIL
        add_endpoint(azure, f"{NETWORK}/privateEndpoints/extra", target)  # type: ignore[arg-type]
        assert only(azure, check).verdict is Verdict.PASS

    @pytest.mark.parametrize(
        ("check", "properties"),
        [
            ("aks-addons", _addon("omsagent")),
            ("aks-monitoring", {"azureMonitorProfile": {"metrics": {"enabled": True}}}),
        ],
    )
    def test_is_unknown_where_endpoints_cannot_be_listed(self, check: str, properties: dict[str, Any]) -> None:
        azure = served_cluster().change(CLUSTER, **properties)
        azure.refuse(SUBSCRIPTION, UnreadReason.TRUNCATED, kind="Microsoft.Network/privateEndpoints")
        assert only(azure, check).verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize(
        ("check", "properties"),
        [
            ("aks-addons", {"addonProfiles": {"omsagent": {"enabled": True}, "azurepolicy": {"enabled": True}}}),
            (
                "aks-monitoring",
                {
                    "azureMonitorProfile": {"metrics": {"enabled": True}},
                    "metricsProfile": {"costAnalysis": {"enabled": True}},
                },
            ),
        ],
    )
    def test_endpoints_that_cannot_be_listed_hide_nothing_that_needs_none(
        self, check: str, properties: dict[str, Any]
    ) -> None:
        azure = served_cluster().change(CLUSTER, **properties)
        azure.refuse(SUBSCRIPTION, UnreadReason.TRUNCATED, kind="Microsoft.Network/privateEndpoints")
        finding = only(azure, check)
        assert finding.verdict is Verdict.FAIL
        assert "Unknown, medium" in finding.message


class TestAttached:
    @pytest.mark.parametrize(
        ("check", "child"),
        [
            ("aks-extensions", "providers/Microsoft.KubernetesConfiguration/extensions/dapr"),
            ("aks-extensions", "providers/Microsoft.KubernetesConfiguration/fluxConfigurations/apps"),
            ("aks-trusted-access", "trustedAccessRoleBindings/ml"),
        ],
    )
    def test_each_is_named(self, check: str, child: str) -> None:
        azure = served_cluster().put(f"{CLUSTER}/{child}")
        assert verdicts(azure, check)[f"{CLUSTER}/{child}".lower()] == "Fail"

    @pytest.mark.parametrize("kind", ["extensions", "fluxConfigurations"])
    def test_half_a_look_at_extensions_is_unknown(self, kind: str) -> None:
        azure = served_cluster().refuse(CLUSTER, kind=f"Microsoft.KubernetesConfiguration/{kind}")
        assert verdicts(azure, "aks-extensions") == {CLUSTER.lower(): "Unknown"}

    @pytest.mark.parametrize(
        ("connected", "counts"),
        [
            (f"{GROUP}/providers/Microsoft.Kubernetes/connectedClusters/other", True),
            (f"{SUBSCRIPTION}/resourceGroups/x/providers/Microsoft.Kubernetes/connectedClusters/AI", True),
            (f"{SUBSCRIPTION}/resourceGroups/x/providers/Microsoft.Kubernetes/connectedClusters/edge", False),
        ],
    )
    def test_arc_counts_by_group_or_name(self, connected: str, counts: bool) -> None:
        azure = served_cluster().put(connected)
        expected = {connected.lower(): "Fail"} if counts else {CLUSTER.lower(): "Pass"}
        assert verdicts(azure, "aks-arc") == expected

    def test_arc_shows_in_the_cluster_too(self) -> None:
        azure = served_cluster()
        azure.sources = ("azure", "kube")
        azure.objects["v1/namespaces"] = [{"metadata": {"name": "azure-arc"}}]
        assert verdicts(azure, "aks-arc") == {CLUSTER.lower(): "Fail"}
        azure.objects["v1/namespaces"] = [{"metadata": {"name": "default"}}]
        assert verdicts(azure, "aks-arc") == {CLUSTER.lower(): "Pass"}


def _both(azure: FakeServices, kind: str, *manifests: dict[str, Any]) -> FakeServices:
    azure.sources = ("azure", "kube")
    azure.objects[kind] = list(manifests)
    return azure


class TestWithKubernetes:
    @pytest.mark.parametrize(
        ("advanced", "verdict"),
        [
            (None, "Fail"),
            ({"enabled": True}, "Fail"),
            ({"enabled": True, "security": {"enabled": False}}, "Fail"),
            ({"enabled": False, "security": {"enabled": True}}, "Fail"),
            ({"enabled": True, "security": {"enabled": True}}, "Pass"),
        ],
    )
    def test_policies_by_host_name_need_advanced_networking(self, advanced: Any, verdict: str) -> None:
        policy = {
            "metadata": {"name": "web", "namespace": "n"},
            "spec": {"endpointSelector": {}, "egress": [{"toFQDNs": [{"matchName": "x.example"}]}]},
        }
        azure = _both(served_cluster(), "cilium.io/v2/ciliumnetworkpolicies", policy)
        azure.change(CLUSTER, **_profile(advancedNetworking=advanced))
        finding = only(azure, "aks-acns")
        assert (finding.verdict, finding.severity) == (verdict, Severity.INFO)

    def test_without_such_policies_nothing_is_needed(self) -> None:
        azure = _both(served_cluster(), "cilium.io/v2/ciliumnetworkpolicies")
        assert only(azure, "aks-acns").verdict is Verdict.PASS
        assert only(azure.refuse(CLUSTER, verb="get"), "aks-acns").verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize(
        ("subnet", "verdict"),
        [(None, "Pass"), (NODES.upper(), "Pass"), (f"{VNET}/subnets/new", "Fail"), (f"{OTHER_SUBSCRIPTION}/s", "Fail")],
    )
    def test_a_node_class_may_use_subnets_of_pools_only(self, subnet: str | None, verdict: str) -> None:
        spec = {"vnetSubnetID": subnet} if subnet else {}
        node_class = {"metadata": {"name": "gpu"}, "spec": spec}
        azure = _both(served_cluster(), "karpenter.azure.com/v1beta1/aksnodeclasses", node_class)
        azure.change(CLUSTER, nodeProvisioningProfile={"mode": "Auto"})
        azure.put(f"{VNET}/subnets/new", {"addressPrefix": "10.0.20.0/24", "defaultOutboundAccess": False})
        assert verdicts(azure, "aks-nap") == {"karpenter.azure.com/v1beta1/aksnodeclass gpu": verdict}

    def test_the_subnet_of_a_node_class_is_judged_like_all_others(self) -> None:
        node_class = {"metadata": {"name": "gpu"}, "spec": {"vnetSubnetID": f"{VNET}/subnets/new"}}
        azure = _both(served_cluster(), "karpenter.azure.com/v1beta1/aksnodeclasses", node_class)
        azure.put(f"{VNET}/subnets/new", {"addressPrefix": "10.0.20.0/24"})
        azure.change(CLUSTER, nodeProvisioningProfile={"mode": "Auto"})
        assert verdicts(azure, "subnet-default-outbound")[f"{VNET}/subnets/new".lower()] == "Fail"

    @pytest.mark.parametrize(
        ("mode", "verdict"), [("Manual", "NotApplicable"), (None, "NotApplicable"), ("Odd", "Unknown")]
    )
    def test_without_auto_provisioning_nothing_applies(self, mode: str | None, verdict: str) -> None:
        azure = _both(served_cluster(), "karpenter.azure.com/v1beta1/aksnodeclasses")
        azure.change(CLUSTER, nodeProvisioningProfile={"mode": mode})
        assert only(azure, "aks-nap").verdict == verdict


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

"""What is attached to a cluster: memberships, pools, what sends, extensions, and objects of Kubernetes beside it."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from tests.aks_estates import addon, network_profile
from tests.audit_estates import CLUSTER, GROUP, NETWORK, NODES, SUBSCRIPTION, VNET
from tests.audit_services import (
    OTHER_SUBSCRIPTION,
    FakeServices,
    add_endpoint,
    only,
    served_cluster,
    verdicts,
)

DEFENDER = f"{GROUP}/providers/Microsoft.Security/privateLinks/defender"
VAULT = f"{GROUP}/providers/Microsoft.KeyVault/vaults/secrets"
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
            ("aks-addons", addon("azureKeyvaultSecretsProvider"), VAULT),
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
            ("aks-addons", addon("omsagent")),
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
        azure.change(CLUSTER, **network_profile(advancedNetworking=advanced))
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

"""Table F, endpoints: service endpoints, private endpoints, private link services, Azure Monitor's scopes."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, NETWORK, NODE_NETWORK, NODES, SUBSCRIPTION, VNET
from tests.audit_services import (
    ACCOUNT,
    HUB_GROUP,
    HUB_SUBNET,
    OTHER_SUBSCRIPTION,
    REGISTRY_ENDPOINT,
    FakeServices,
    add_endpoint,
    consumer,
    only,
    peer,
    served_cluster,
    verdicts,
)

IDS = (
    "svc-endpoint-storage", "svc-endpoint-other", "svc-endpoint-policy-scope", "pe-foreign-target", "pls-exposed",
    "ampls-open",
)  # fmt: skip
POLICY = f"{NETWORK}/serviceEndpointPolicies/accounts"
ENDPOINT = f"{NETWORK}/privateEndpoints/extra"
SERVICE = f"{NODE_NETWORK}/privateLinkServices/serving"
HIDDEN = f"{SUBSCRIPTION}/resourceGroups/hidden/providers/Microsoft.Network"
SCOPE = f"{SUBSCRIPTION}/resourceGroups/ai/providers/Microsoft.Insights/privateLinkScopes/monitor"
FOREIGN = f"{OTHER_SUBSCRIPTION}/resourceGroups/x/providers/Microsoft.Storage/storageAccounts/drop"
ARM = f"{SUBSCRIPTION}/resourceGroups/ai/providers/Microsoft.Authorization/resourceManagementPrivateLinks/arm"


@pytest.mark.parametrize("check", IDS)
def test_a_sealed_estate_passes(check: str) -> None:
    findings = served_cluster().findings(check)
    assert findings
    assert {finding.verdict for finding in findings.values()} <= {Verdict.PASS, Verdict.NOT_APPLICABLE}
    assert all(finding.evidence for finding in findings.values())


@pytest.mark.parametrize("check", IDS)
def test_a_cluster_that_cannot_be_read_never_passes(check: str) -> None:
    azure = served_cluster().refuse(CLUSTER)
    assert {finding.verdict for finding in azure.findings(check).values()} == {Verdict.UNKNOWN}


def _with_storage(*resources: str, service: str = "Microsoft.Storage", **policy: Any) -> FakeServices:
    """A storage endpoint on the node subnet; with resources, behind a policy that lists them."""
    azure = served_cluster()
    azure.change(NODES, serviceEndpoints=[{"service": service, "locations": ["*"]}])
    if resources or policy:
        definition = {"name": "d", "properties": {"service": "Microsoft.Storage", "serviceResources": list(resources)}}
        azure.put(POLICY, {"serviceEndpointPolicyDefinitions": [definition], **policy})
        azure.change(NODES, serviceEndpointPolicies=[{"id": POLICY}])
    return azure


class TestServiceEndpoints:
    @pytest.mark.parametrize("service", ["Microsoft.Storage", "microsoft.storage.Global"])
    def test_storage_without_a_policy_is_critical(self, service: str) -> None:
        finding = _with_storage(service=service).findings("svc-endpoint-storage")[NODES.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.CRITICAL)
        assert finding.path_texts == ("subnet nodes -> service endpoint -> storage",)

    @pytest.mark.parametrize(
        ("resource", "severity", "scope"),
        [
            (ACCOUNT, "medium", "Pass"),
            (FOREIGN, "high", "Fail"),
            (f"{SUBSCRIPTION}/resourceGroups/ai", "high", "Fail"),
            (SUBSCRIPTION, "high", "Fail"),
            ("/services/Azure/Batch", "high", "Fail"),
        ],
    )
    def test_a_policy_is_as_good_as_what_it_lists(self, resource: str, severity: str, scope: str) -> None:
        azure = _with_storage(resource)
        finding = azure.findings("svc-endpoint-storage")[NODES.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, severity)
        assert verdicts(azure, "svc-endpoint-policy-scope")[POLICY.lower()] == scope

    def test_an_alias_makes_a_policy_wide(self) -> None:
        azure = _with_storage(ACCOUNT, contextualServiceEndpointPolicies=["/services/Azure/MachineLearning"])
        assert verdicts(azure, "svc-endpoint-policy-scope")[POLICY.lower()] == "Fail"

    def test_a_policy_that_cannot_be_read_or_lists_nothing_is_unknown(self) -> None:
        for azure in (_with_storage(ACCOUNT).refuse(POLICY), _with_storage(contextualServiceEndpointPolicies=[])):
            assert verdicts(azure, "svc-endpoint-storage")[NODES.lower()] == "Unknown"
            assert verdicts(azure, "svc-endpoint-policy-scope")[POLICY.lower()] == "Unknown"

    def test_any_other_service_fails(self) -> None:
        azure = served_cluster().change(NODES, serviceEndpoints=[{"service": "Microsoft.KeyVault"}])
        assert verdicts(azure, "svc-endpoint-other")[NODES.lower()] == "Fail"
        assert verdicts(azure, "svc-endpoint-storage")[NODES.lower()] == "Pass"

    def test_an_endpoint_without_a_service_is_unknown(self) -> None:
        azure = served_cluster().change(NODES, serviceEndpoints=[{"locations": ["*"]}])
        for check in ("svc-endpoint-storage", "svc-endpoint-other"):
            assert verdicts(azure, check)[NODES.lower()] == "Unknown"


class TestPrivateEndpoints:
    @pytest.mark.parametrize(
        ("target", "verdict", "severity"),
        [
            (ACCOUNT, "Pass", "critical"),
            (FOREIGN, "Fail", "critical"),
            ("service.0a1b.westeurope.azure.privatelinkservice", "Fail", "critical"),
            (ARM, "Fail", "high"),
            ("", "Unknown", "critical"),
        ],
    )
    def test_leads_to_something_of_ours(self, target: str, verdict: str, severity: str) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, target)
        finding = azure.findings("pe-foreign-target")[ENDPOINT.lower()]
        assert (finding.verdict, finding.severity) == (verdict, severity)

    def test_a_manual_connection_fails_even_to_our_own(self) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, ACCOUNT, manual=True)
        assert verdicts(azure, "pe-foreign-target")[ENDPOINT.lower()] == "Fail"

    def test_the_policy_says_whose_subscriptions_and_services_are_meant(self) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, FOREIGN)
        ours = Policy(own_subscriptions=(OTHER_SUBSCRIPTION.rpartition("/")[2],))
        assert verdicts(azure, "pe-foreign-target", ours)[ENDPOINT.lower()] == "Pass"
        allowed = Policy(allowed_private_link_services=(FOREIGN.upper(),))
        assert verdicts(azure, "pe-foreign-target", allowed)[ENDPOINT.lower()] == "Pass"

    def test_one_in_a_peer_counts(self) -> None:
        azure = peer(served_cluster())
        far = add_endpoint(
            azure, f"{HUB_GROUP}/providers/Microsoft.Network/privateEndpoints/drop", FOREIGN, subnet=HUB_SUBNET
        )
        assert verdicts(azure, "pe-foreign-target")[far.lower()] == "Fail"

    def test_one_in_a_network_of_others_does_not(self) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, FOREIGN, subnet=f"{NETWORK}/virtualNetworks/other/subnets/s")
        assert ENDPOINT.lower() not in verdicts(azure, "pe-foreign-target")

    @pytest.mark.parametrize("scope", [SUBSCRIPTION, f"{SUBSCRIPTION}/resourceGroups/ai"])
    def test_endpoints_that_cannot_be_listed_are_unknown(self, scope: str) -> None:
        azure = served_cluster().refuse(scope, kind="Microsoft.Network/privateEndpoints")
        assert verdicts(azure, "pe-foreign-target")[CLUSTER.lower()] == "Unknown"

    def test_a_peer_whose_subscription_cannot_be_read_is_unknown(self) -> None:
        azure = peer(served_cluster()).refuse(OTHER_SUBSCRIPTION, kind="Microsoft.Network/privateEndpoints")
        assert verdicts(azure, "pe-foreign-target")[CLUSTER.lower()] == "Unknown"

    def test_one_without_a_subnet_leaves_a_gap(self) -> None:
        azure = served_cluster().drop(REGISTRY_ENDPOINT, "subnet")
        assert verdicts(azure, "pe-foreign-target")[CLUSTER.lower()] == "Unknown"


MICROSOFT = f"{OTHER_SUBSCRIPTION}/resourceGroups/hcp/providers/Microsoft.Network/privateLinkServices/aks-ai-management"


class TestTheApiServersEndpoint:
    """AKS makes it in the node resource group; its target lies in a subscription of Microsoft's."""

    @staticmethod
    def azure(
        endpoint: str = f"{NODE_NETWORK}/privateEndpoints/kube-apiserver", part: str = "management"
    ) -> FakeServices:
        azure = served_cluster()
        azure.change(CLUSTER, apiServerAccessProfile={"enablePrivateCluster": True})
        add_endpoint(azure, endpoint, MICROSOFT)
        connection = azure.properties(endpoint)["privateLinkServiceConnections"][0]["properties"]
        connection["groupIds"] = [part]
        return azure

    def test_passes_by_name_place_and_part(self) -> None:
        assert (
            verdicts(self.azure(), "pe-foreign-target")[f"{NODE_NETWORK}/privateEndpoints/kube-apiserver".lower()]
            == "Pass"
        )

    @pytest.mark.parametrize(
        ("endpoint", "part"),
        [
            (f"{NETWORK}/privateEndpoints/kube-apiserver", "management"),
            (f"{NODE_NETWORK}/privateEndpoints/kube-apiserver-2", "management"),
            (f"{NODE_NETWORK}/privateEndpoints/kube-apiserver", "blob"),
        ],
    )
    def test_fails_where_anything_of_that_differs(self, endpoint: str, part: str) -> None:
        assert verdicts(self.azure(endpoint, part), "pe-foreign-target")[endpoint.lower()] == "Fail"

    def test_fails_where_the_api_server_is_in_the_network(self) -> None:
        azure = served_cluster()
        endpoint = add_endpoint(azure, f"{NODE_NETWORK}/privateEndpoints/kube-apiserver", MICROSOFT)
        azure.properties(endpoint)["privateLinkServiceConnections"][0]["properties"]["groupIds"] = ["management"]
        assert verdicts(azure, "pe-foreign-target")[endpoint.lower()] == "Fail"


def _offered(**properties: Any) -> FakeServices:
    azure = served_cluster()
    azure.put(SERVICE, {"visibility": {"subscriptions": []}, "autoApproval": {"subscriptions": []}, **properties})
    return azure


DAMAGED = {"name": "odd", "properties": {"privateEndpoint": 7}}


def _consumer(status: str | None, subscription: str = OTHER_SUBSCRIPTION) -> dict[str, Any]:
    endpoint = {"id": f"{subscription}/resourceGroups/x/providers/Microsoft.Network/privateEndpoints/p"}
    fields = {} if status is None else {"status": status}
    return {"name": "c", "properties": {"privateEndpoint": endpoint, "privateLinkServiceConnectionState": fields}}


class TestPrivateLinkServices:
    @pytest.mark.parametrize(
        ("properties", "verdict"),
        [
            ({}, "Pass"),
            ({"visibility": {"subscriptions": ["*"]}}, "Fail"),
            ({"visibility": {"subscriptions": [OTHER_SUBSCRIPTION.rpartition("/")[2]]}}, "Fail"),
            ({"visibility": {"subscriptions": [SUBSCRIPTION.rpartition("/")[2]]}}, "Pass"),
            ({"autoApproval": {"subscriptions": [SUBSCRIPTION.rpartition("/")[2]]}}, "Fail"),
            ({"privateEndpointConnections": [_consumer("Approved")]}, "Fail"),
            ({"privateEndpointConnections": [_consumer("Approved", SUBSCRIPTION)]}, "Pass"),
            ({"privateEndpointConnections": [_consumer("Pending")]}, "Pass"),
            ({"privateEndpointConnections": [_consumer("Odd")]}, "Unknown"),
            ({"privateEndpointConnections": [_consumer(None)]}, "Unknown"),
            ({"privateEndpointConnections": [consumer(None)]}, "Unknown"),
            ({"privateEndpointConnections": [consumer("not an id")]}, "Unknown"),
            ({"privateEndpointConnections": [consumer(None, "Pending")]}, "Pass"),
            ({"privateEndpointConnections": [consumer(None), _consumer("Approved")]}, "Fail"),
            ({"privateEndpointConnections": [DAMAGED]}, "Unknown"),
            ({"privateEndpointConnections": [DAMAGED, _consumer("Approved")]}, "Fail"),
        ],
    )
    def test_only_our_own_may_see_and_use_it(self, properties: dict[str, Any], verdict: str) -> None:
        assert verdicts(_offered(**properties), "pls-exposed") == {SERVICE.lower(): verdict}

    def test_one_in_the_network_counts_wherever_it_is_kept(self) -> None:
        azure = served_cluster()
        service = f"{SUBSCRIPTION}/resourceGroups/other/providers/Microsoft.Network/privateLinkServices/s"
        addresses = [{"name": "a", "properties": {"subnet": {"id": f"{VNET}/subnets/endpoints"}}}]
        azure.put(service, {"ipConfigurations": addresses, "visibility": {"subscriptions": ["*"]}})
        assert verdicts(azure, "pls-exposed") == {service.lower(): "Fail"}

    def test_services_that_cannot_be_listed_are_unknown(self) -> None:
        azure = served_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/privateLinkServices")
        assert verdicts(azure, "pls-exposed") == {CLUSTER.lower(): "Unknown"}


class TestMonitorScopes:
    @pytest.mark.parametrize(
        ("modes", "verdict"),
        [
            ({"ingestionAccessMode": "PrivateOnly", "queryAccessMode": "PrivateOnly"}, "Pass"),
            ({"ingestionAccessMode": "Open", "queryAccessMode": "PrivateOnly"}, "Fail"),
            ({"ingestionAccessMode": "PrivateOnly", "queryAccessMode": "Open"}, "Fail"),
            ({"ingestionAccessMode": "PrivateOnly"}, "Fail"),
            ({"ingestionAccessMode": "PrivateOnly", "queryAccessMode": "Odd"}, "Unknown"),
        ],
    )
    def test_pass_when_both_modes_are_private_only(self, modes: dict[str, Any], verdict: str) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, SCOPE)
        azure.put(SCOPE, {"accessModeSettings": modes})
        assert verdicts(azure, "ampls-open") == {SCOPE.lower(): verdict}

    @pytest.mark.parametrize(
        ("exclusion", "verdict"),
        [
            ({"ingestionAccessMode": "Open", "queryAccessMode": "PrivateOnly"}, "Fail"),
            ({"ingestionAccessMode": "PrivateOnly", "queryAccessMode": "PrivateOnly"}, "Pass"),
            ({"ingestionAccessMode": "PrivateOnly"}, "Unknown"),
        ],
    )
    def test_an_exclusion_may_open_one_connection(self, exclusion: dict[str, Any], verdict: str) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, SCOPE)
        private = {"ingestionAccessMode": "PrivateOnly", "queryAccessMode": "PrivateOnly"}
        named = {"privateEndpointConnectionName": "c", **exclusion}
        azure.put(SCOPE, {"accessModeSettings": {**private, "exclusions": [named]}})
        assert verdicts(azure, "ampls-open") == {SCOPE.lower(): verdict}

    def test_a_scope_that_cannot_be_read_is_unknown(self) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, SCOPE)
        assert only(azure, "ampls-open").verdict is Verdict.UNKNOWN
        azure.put(SCOPE, {})
        assert only(azure, "ampls-open").verdict is Verdict.UNKNOWN


class TestWhoLivesThere:
    """The list of a subscription leaves out, without a word, what the caller may not read; the network does not."""

    @pytest.mark.parametrize(
        ("check", "inhabitant"),
        [
            ("pe-foreign-target", {"privateEndpoints": [{"id": f"{HIDDEN}/privateEndpoints/p"}]}),
            ("acr-public", {"privateEndpoints": [{"id": f"{HIDDEN}/privateEndpoints/p"}]}),
            ("vm-pivot", {"ipConfigurations": [{"id": f"{HIDDEN}/networkInterfaces/n/ipConfigurations/a"}]}),
            (
                "firewall-in-path",
                {"ipConfigurations": [{"id": f"{HIDDEN}/azureFirewalls/f/azureFirewallIpConfigurations/a"}]},
            ),
        ],
    )
    def test_an_inhabitant_that_no_list_shows_is_unknown(self, check: str, inhabitant: dict[str, Any]) -> None:
        azure = served_cluster().change(f"{VNET}/subnets/endpoints", **inhabitant)
        assert verdicts(azure, check)[CLUSTER.lower()] == "Unknown"

    def test_inhabitants_that_were_listed_or_are_of_another_kind_change_nothing(self) -> None:
        azure = served_cluster()
        known_endpoints = [{"id": REGISTRY_ENDPOINT.upper()}]
        balancer = [{"id": f"{HIDDEN}/loadBalancers/b/frontendIPConfigurations/a"}]
        azure.change(f"{VNET}/subnets/endpoints", privateEndpoints=known_endpoints, ipConfigurations=balancer)
        assert CLUSTER.lower() not in verdicts(azure, "pe-foreign-target")

    def test_a_delegated_subnet_is_its_services_own_business(self) -> None:
        azure = served_cluster()
        service = [{"name": "d", "properties": {"serviceName": "Microsoft.ContainerService/managedClusters"}}]
        hidden = [{"id": f"{HIDDEN}/networkInterfaces/n/ipConfigurations/a"}]
        azure.change(f"{VNET}/subnets/endpoints", delegations=service, ipConfigurations=hidden)
        assert verdicts(azure, "vm-pivot") == {CLUSTER.lower(): "Pass"}

"""Private Link past targets that are not ours: foreign endpoints at our stores, and resources of ours that relay."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.azure.private_link_types import ENDS, RELAYS
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, NETWORK, NODE_GROUP, SUBSCRIPTION, VNET, FakeAzure
from tests.audit_services import (
    ACCOUNT,
    HUB,
    OTHER_SUBSCRIPTION,
    REGISTRY,
    SHARE,
    add_endpoint,
    consumer,
    only,
    peer,
    served_cluster,
    verdicts,
)

SCOPE = f"{SUBSCRIPTION}/resourceGroups/ai/providers/Microsoft.Insights/privateLinkScopes/monitor"
FOREIGN_ENDPOINT = f"{OTHER_SUBSCRIPTION}/resourceGroups/x/providers/Microsoft.Network/privateEndpoints/pe"
ENDPOINT = f"{NETWORK}/privateEndpoints/extra"
OURS = f"{NETWORK}/privateEndpoints/registry"
STORES = (REGISTRY, ACCOUNT, SHARE, SCOPE)
PRIVATE = {"ingestionAccessMode": "PrivateOnly", "queryAccessMode": "PrivateOnly"}


def _with_a_scope() -> FakeAzure:
    azure = served_cluster()
    add_endpoint(azure, ENDPOINT, SCOPE)
    connections = [consumer(ENDPOINT)]
    return azure.put(SCOPE, {"accessModeSettings": PRIVATE, "privateEndpointConnections": connections})


def _connected(store: str, *connections: Any) -> FakeAzure:
    return _with_a_scope().change(store, privateEndpointConnections=[consumer(OURS), *connections])


AT_THE_API_SERVER = f"{CLUSTER}/privateEndpointConnections/one"
OF_AKS = f"{NODE_GROUP}/providers/Microsoft.Network/privateEndpoints/kube-apiserver"
PRIVATE_LINK = {"enablePrivateCluster": True, "enableVnetIntegration": False}


def _behind_private_link(consumer_id: str | None, status: str | None = "Approved", **profile: bool) -> FakeAzure:
    access = {"apiServerAccessProfile": {**PRIVATE_LINK, **profile}}
    properties = consumer(consumer_id, status)["properties"]
    return served_cluster().change(CLUSTER, **access).put(AT_THE_API_SERVER, properties)


class TestStrangersAtTheApiServer:
    @pytest.mark.parametrize(
        ("azure", "verdict", "severity"),
        [
            (_behind_private_link(OF_AKS), "Pass", "critical"),
            (_behind_private_link(FOREIGN_ENDPOINT), "Fail", "critical"),
            (_behind_private_link(None), "Unknown", "critical"),
            (_behind_private_link("not an id"), "Unknown", "critical"),
            (_behind_private_link(None, "Pending"), "Unknown", "medium"),
            (_behind_private_link(None, "Rejected"), "Pass", "critical"),
            (_behind_private_link(FOREIGN_ENDPOINT, "Pending"), "Fail", "medium"),
            (_behind_private_link(FOREIGN_ENDPOINT, "Rejected"), "Pass", "critical"),
            (_behind_private_link(FOREIGN_ENDPOINT, None), "Unknown", "critical"),
            (_behind_private_link(FOREIGN_ENDPOINT).refuse(CLUSTER, verb="list"), "Unknown", "critical"),
            (_behind_private_link(OF_AKS).refuse(CLUSTER, verb="get"), "Unknown", "critical"),
        ],
    )
    def test_its_connections_are_evaluated_as_those_of_a_store(
        self, azure: FakeAzure, verdict: str, severity: str
    ) -> None:
        finding = azure.findings("pe-stranger")[CLUSTER.lower()]
        assert (finding.verdict, finding.severity) == (verdict, severity)
        if verdict == "Fail":
            assert f"az resource delete --ids {AT_THE_API_SERVER}" in finding.remedy

    @pytest.mark.parametrize("profile", [{"enablePrivateCluster": False}, {"enableVnetIntegration": True}])
    def test_without_private_link_no_list_is_asked_for(self, profile: dict[str, bool]) -> None:
        azure = _behind_private_link(FOREIGN_ENDPOINT, **profile)
        assert CLUSTER.lower() not in azure.findings("pe-stranger")


class TestStrangers:
    def test_our_own_endpoints_pass(self) -> None:
        findings = _with_a_scope().findings("pe-stranger")
        assert {resource: finding.verdict.value for resource, finding in findings.items()} == {
            store.lower(): "Pass" for store in STORES
        }
        assert all(finding.evidence for finding in findings.values())

    @pytest.mark.parametrize("store", STORES)
    @pytest.mark.parametrize(
        ("connection", "verdict", "severity"),
        [
            (consumer(FOREIGN_ENDPOINT), "Fail", "critical"),
            (consumer(FOREIGN_ENDPOINT, "APPROVED"), "Fail", "critical"),
            (consumer(None), "Unknown", "critical"),
            (consumer("not an id"), "Unknown", "critical"),
            (consumer(None, "Pending"), "Unknown", "medium"),
            (consumer(FOREIGN_ENDPOINT, "Pending"), "Fail", "medium"),
            (consumer(FOREIGN_ENDPOINT, "Rejected"), "Pass", "critical"),
            (consumer(FOREIGN_ENDPOINT, "Disconnected"), "Pass", "critical"),
            (consumer(FOREIGN_ENDPOINT, "Odd"), "Unknown", "critical"),
            (consumer(FOREIGN_ENDPOINT, None), "Unknown", "critical"),
            (consumer(OURS.upper(), "Odd"), "Pass", "critical"),
            ({"name": "bare"}, "Unknown", "critical"),
            ({"name": "odd", "properties": {"privateEndpoint": 7}}, "Unknown", "critical"),
        ],
    )
    def test_a_connection_is_judged_by_whose_it_is_and_its_state(
        self, store: str, connection: Any, verdict: str, severity: str
    ) -> None:
        finding = _connected(store, connection).findings("pe-stranger")[store.lower()]
        assert (finding.verdict, finding.severity) == (verdict, severity)
        if verdict == "Fail":
            assert "one" in finding.message
            assert finding.remedy
            assert finding.evidence

    @pytest.mark.parametrize("store", STORES)
    def test_a_stranger_beside_damage_or_an_odd_state_still_fails(self, store: str) -> None:
        damage = {"name": "odd", "properties": {"privateEndpoint": 7}}
        azure = _connected(store, damage, consumer(FOREIGN_ENDPOINT, "Odd"), consumer(FOREIGN_ENDPOINT))
        finding = azure.findings("pe-stranger")[store.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.CRITICAL)
        assert finding.paths

    @pytest.mark.parametrize("store", STORES)
    def test_a_store_that_waits_for_one_and_shows_damage_of_another_is_unknown(self, store: str) -> None:
        damage = {"name": "odd", "properties": {"privateEndpoint": 7}}
        finding = _connected(store, damage, consumer(FOREIGN_ENDPOINT, "Pending")).findings("pe-stranger")[
            store.lower()
        ]
        assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, Severity.CRITICAL)

    @pytest.mark.parametrize("store", STORES)
    def test_the_remedy_names_each_connection(self, store: str) -> None:
        findings = _connected(store, consumer(FOREIGN_ENDPOINT, name="a"), consumer(None, name="b")).findings(
            "pe-stranger"
        )
        remedy = findings[store.lower()].remedy
        assert "az network private-endpoint-connection reject --id /c/a" in remedy
        assert "az network private-endpoint-connection reject --id /c/b" in remedy
        assert "LINK_ID" not in remedy

    @pytest.mark.parametrize("store", STORES)
    @pytest.mark.parametrize("value", [None, "odd", [7]])
    def test_connections_that_are_not_said_or_not_readable_are_unknown(self, store: str, value: Any) -> None:
        azure = _with_a_scope().change(store, privateEndpointConnections=value)
        assert verdicts(azure, "pe-stranger")[store.lower()] == "Unknown"  # type: ignore[arg-type]

    @pytest.mark.parametrize("store", STORES)
    def test_a_store_that_cannot_be_read_is_unknown(self, store: str) -> None:
        azure = _with_a_scope().refuse(store, verb="get")
        assert verdicts(azure, "pe-stranger")[store.lower()] == "Unknown"  # type: ignore[arg-type]

    def test_subscriptions_of_the_policy_are_ours(self) -> None:
        azure = _connected(REGISTRY, consumer(FOREIGN_ENDPOINT))
        assert azure.findings("pe-stranger")[REGISTRY.lower()].verdict is Verdict.FAIL
        own = Policy(own_subscriptions=(OTHER_SUBSCRIPTION,))
        assert azure.findings("pe-stranger", own)[REGISTRY.lower()].verdict is Verdict.PASS

    @pytest.mark.parametrize("store", STORES)
    @pytest.mark.parametrize("policy", [Policy(), Policy(allowed_peerings=(HUB,))])
    def test_a_peering_makes_no_subscription_ours(self, store: str, policy: Policy) -> None:
        azure = _connected(store, consumer(f"{HUB.partition('/virtualNetworks/')[0]}/privateEndpoints/reader"))
        assert peer(azure).findings("pe-stranger", policy)[store.lower()].verdict is Verdict.FAIL  # type: ignore[arg-type]

    def test_a_peering_that_cannot_be_read_hides_no_stranger(self) -> None:
        azure = peer(served_cluster()).change(REGISTRY, privateEndpointConnections=[consumer(FOREIGN_ENDPOINT)])
        azure.refuse(VNET, kind="Microsoft.Network/virtualNetworks/virtualNetworkPeerings")
        assert azure.findings("pe-stranger")[REGISTRY.lower()].verdict is Verdict.FAIL

    def test_where_the_cluster_may_have_more_networks_it_is_not_known_whose_an_endpoint_is(self) -> None:
        azure = served_cluster().change(REGISTRY, privateEndpointConnections=[consumer(FOREIGN_ENDPOINT)])
        azure.refuse(NODE_GROUP, kind="Microsoft.Compute/virtualMachineScaleSets")
        assert azure.findings("pe-stranger")[REGISTRY.lower()].verdict is Verdict.UNKNOWN

    def test_nothing_applies_where_no_store_is_in_use(self) -> None:
        azure = served_cluster().drop(CLUSTER, "bootstrapProfile")
        for name in ("registry", "account", "share"):
            azure.drop(f"{NETWORK}/privateEndpoints/{name}")
        assert verdicts(azure, "pe-stranger") == {CLUSTER.lower(): "NotApplicable"}  # type: ignore[arg-type]

    def test_a_kind_that_is_not_in_use_changes_nothing(self) -> None:
        azure = served_cluster().drop(f"{NETWORK}/privateEndpoints/share")
        assert set(verdicts(azure, "pe-stranger")) == {REGISTRY.lower(), ACCOUNT.lower()}  # type: ignore[arg-type]

    def test_a_list_that_was_cut_leaves_it_open(self) -> None:
        azure = served_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/privateEndpoints")
        assert verdicts(azure, "pe-stranger")[CLUSTER.lower()] == "Unknown"

    def test_a_cluster_that_cannot_be_read_never_passes(self) -> None:
        findings = served_cluster().refuse(CLUSTER).findings("pe-stranger")
        assert {finding.verdict for finding in findings.values()} == {Verdict.UNKNOWN}


def _target(kind: str) -> str:
    namespace, _, types = kind.partition("/")
    return f"{SUBSCRIPTION}/resourceGroups/ai/providers/{namespace}/" + "/".join(
        f"{type_segment}/target" for type_segment in types.split("/")
    )


class TestRelays:
    def test_endpoints_to_what_ends_there_pass(self) -> None:
        findings = served_cluster().findings("pe-relay-target")
        assert {finding.verdict for finding in findings.values()} == {Verdict.PASS}
        assert all(finding.evidence for finding in findings.values())

    @pytest.mark.parametrize("kind", sorted(RELAYS))
    def test_a_kind_that_relays_fails(self, kind: str) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, _target(kind))
        finding = azure.findings("pe-relay-target")[ENDPOINT.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)
        assert RELAYS[kind] in finding.message
        assert finding.paths

    @pytest.mark.parametrize("kind", sorted(ENDS))
    def test_a_kind_that_is_known_to_end_there_passes(self, kind: str) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, _target(kind))
        assert verdicts(azure, "pe-relay-target")[ENDPOINT.lower()] == "Pass"

    @pytest.mark.parametrize(
        ("target", "verdict"),
        [
            (_target("Microsoft.Web/sites/slots"), "Fail"),
            (_target("Microsoft.WEB/Sites"), "Fail"),
            (_target("Microsoft.ContainerService/managedClusters"), "Fail"),
            (CLUSTER, "Pass"),
            (CLUSTER.upper(), "Pass"),
            (_target("Microsoft.Contoso/things"), "Unknown"),
            (_target("Microsoft.ContainerRegistry/registries/tasks"), "Unknown"),
            (_target("Microsoft.WebPubSub/sites"), "Unknown"),
            (f"{SUBSCRIPTION}/resourceGroups/ai", "Unknown"),
            ("", "Unknown"),
            ("relay.guid.westeurope.azure.privatelinkservice", "NotApplicable"),
            (f"{OTHER_SUBSCRIPTION}/resourceGroups/x/providers/Microsoft.Web/sites/x", "NotApplicable"),
        ],
    )
    def test_targets_are_told_apart(self, target: str, verdict: str) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, target)
        assert verdicts(azure, "pe-relay-target")[ENDPOINT.lower()] == verdict

    def test_the_subscription_of_the_policy_is_ours(self) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, f"{OTHER_SUBSCRIPTION}/resourceGroups/x/providers/Microsoft.Web/sites/x")
        own = Policy(own_subscriptions=(OTHER_SUBSCRIPTION,))
        assert verdicts(azure, "pe-relay-target", own)[ENDPOINT.lower()] == "Fail"

    def test_what_the_policy_names_is_allowed(self) -> None:
        azure = served_cluster()
        target = _target("Microsoft.Search/searchServices")
        add_endpoint(azure, ENDPOINT, target)
        allowed = Policy(allowed_private_link_services=(target.upper(),))
        assert verdicts(azure, "pe-relay-target", allowed)[ENDPOINT.lower()] == "Pass"
        other = Policy(allowed_private_link_services=(f"{target}2",))
        assert verdicts(azure, "pe-relay-target", other)[ENDPOINT.lower()] == "Fail"

    def test_one_connection_of_several_that_relays_fails(self) -> None:
        azure = served_cluster()
        add_endpoint(azure, ENDPOINT, ACCOUNT)
        more = {"name": "d", "properties": {"privateLinkServiceId": _target("Microsoft.Relay/namespaces")}}
        azure.properties(ENDPOINT)["manualPrivateLinkServiceConnections"] = [more]
        assert verdicts(azure, "pe-relay-target")[ENDPOINT.lower()] == "Fail"

    def test_an_endpoint_in_a_peer_counts(self) -> None:
        azure = peer(served_cluster())
        add_endpoint(azure, ENDPOINT, _target("Microsoft.Web/sites"), subnet=f"{HUB}/subnets/shared")
        assert verdicts(azure, "pe-relay-target")[ENDPOINT.lower()] == "Fail"

    def test_one_without_a_connection_or_a_readable_one_is_unknown(self) -> None:
        azure = served_cluster().put(ENDPOINT, {"subnet": {"id": f"{VNET}/subnets/endpoints"}})
        assert verdicts(azure, "pe-relay-target")[ENDPOINT.lower()] == "Unknown"  # type: ignore[arg-type]
        azure.change(ENDPOINT, privateLinkServiceConnections="odd")
        assert verdicts(azure, "pe-relay-target")[ENDPOINT.lower()] == "Unknown"  # type: ignore[arg-type]

    def test_none_at_all_passes_and_a_cut_list_is_unknown(self) -> None:
        azure = served_cluster()
        for name in ("registry", "account", "share"):
            azure.drop(f"{NETWORK}/privateEndpoints/{name}")
        assert only(azure, "pe-relay-target").verdict is Verdict.PASS
        azure.refuse(SUBSCRIPTION, kind="Microsoft.Network/privateEndpoints")
        assert only(azure, "pe-relay-target").verdict is Verdict.UNKNOWN

"""Table F, registries: which are in scope, who may do what there, and what leaves them by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, GROUP, NETWORK, SUBSCRIPTION
from tests.audit_services import (
    ACR_PULL,
    ACR_PUSH,
    KUBELET,
    REGISTRY,
    REGISTRY_ENDPOINT,
    FakeServices,
    add_endpoint,
    assign,
    only,
    peer,
    served_cluster,
    verdicts,
)

IDS = (
    "acr-public", "acr-trusted-bypass", "acr-export-policy", "acr-anonymous", "acr-admin", "acr-push-identity",
    "acr-cache-wildcard", "acr-connected-registry", "acr-webhooks", "acr-replications", "acr-arm-audience",
)  # fmt: skip
OTHER = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/models"
FOREIGN_ID = "99999999-0000-0000-0000-000000000000"


@pytest.mark.parametrize("check", IDS)
def test_a_closed_registry_passes(check: str) -> None:
    finding = only(served_cluster(), check)
    assert (finding.verdict, finding.resource) == (Verdict.PASS, REGISTRY)
    assert finding.evidence


@pytest.mark.parametrize("check", IDS)
def test_a_registry_in_use_that_cannot_be_read_is_unknown(check: str) -> None:
    assert verdicts(served_cluster().refuse(REGISTRY, verb="get"), check) == {REGISTRY.lower(): "Unknown"}


@pytest.mark.parametrize(
    "reason", [unread_reason for unread_reason in UnreadReason if unread_reason is not UnreadReason.NOT_ASKED]
)
def test_a_missing_permission_is_named_only_where_azure_refused_for_want_of_one(reason: UnreadReason) -> None:
    azure = served_cluster()
    problem = Problem(reason, "the answer", permission="Microsoft.ContainerRegistry/registries/read")
    azure.refusals.append((REGISTRY.lower(), "", "get", problem))
    message = only(azure, "acr-public").message
    assert ("missing permission" in message) is (reason is UnreadReason.FORBIDDEN)


@pytest.mark.parametrize("check", IDS)
def test_nothing_applies_where_no_registry_is_in_use(check: str) -> None:
    azure = served_cluster().drop(CLUSTER, "bootstrapProfile").drop(REGISTRY_ENDPOINT)
    assert verdicts(azure, check) == {CLUSTER.lower(): "NotApplicable"}


@pytest.mark.parametrize("check", IDS)
def test_a_cluster_that_cannot_be_read_never_passes(check: str) -> None:
    azure = served_cluster().refuse(CLUSTER)
    assert verdicts(azure, check)[CLUSTER.lower()] == "Unknown"


@pytest.mark.parametrize(
    ("check", "properties", "verdict", "severity"),
    [
        ("acr-public", {"publicNetworkAccess": "Enabled"}, "Fail", "high"),
        ("acr-public", {"publicNetworkAccess": None}, "Fail", "high"),
        ("acr-public", {"publicNetworkAccess": "Odd"}, "Fail", "high"),
        # Microsoft.ContainerRegistry 2025-11-01, PublicNetworkAccess: Enabled and Disabled, and no perimeter
        ("acr-public", {"publicNetworkAccess": "SecuredByPerimeter"}, "Fail", "high"),
        ("acr-public", {"networkRuleSet": {"defaultAction": "Allow"}}, "Fail", "medium"),
        ("acr-public", {"networkRuleSet": None}, "Pass", "high"),
        ("acr-trusted-bypass", {"networkRuleBypassOptions": "AzureServices"}, "Fail", "high"),
        ("acr-trusted-bypass", {"networkRuleBypassOptions": None}, "Fail", "high"),
        ("acr-trusted-bypass", {"networkRuleBypassOptions": "Odd"}, "Unknown", "high"),
        ("acr-export-policy", {"policies": {"exportPolicy": {"status": "enabled"}}}, "Fail", "high"),
        ("acr-export-policy", {"policies": None}, "Fail", "high"),
        ("acr-anonymous", {"anonymousPullEnabled": True}, "Fail", "medium"),
        ("acr-anonymous", {"anonymousPullEnabled": None}, "Unknown", "medium"),
        ("acr-admin", {"adminUserEnabled": True}, "Fail", "medium"),
        ("acr-admin", {"adminUserEnabled": "yes"}, "Unknown", "medium"),
        (
            "acr-arm-audience",
            {"policies": {"azureADAuthenticationAsArmPolicy": {"status": "disabled"}}},
            "Fail",
            "info",
        ),
        ("acr-arm-audience", {"policies": {}}, "Unknown", "info"),
    ],
)
def test_each_switch_is_read_strictly(check: str, properties: dict[str, Any], verdict: str, severity: str) -> None:
    finding = only(served_cluster().change(REGISTRY, **properties), check)
    assert (finding.verdict, finding.severity, finding.resource) == (verdict, severity, REGISTRY)


def test_a_registry_behind_an_endpoint_is_in_scope_and_others_are_not() -> None:
    azure = served_cluster().put(OTHER, {"publicNetworkAccess": "Enabled"})
    assert OTHER.lower() not in verdicts(azure, "acr-public")
    add_endpoint(azure, f"{NETWORK}/privateEndpoints/models", OTHER)
    assert verdicts(azure, "acr-public")[OTHER.lower()] == "Fail"


def _running(azure: FakeServices, image: str) -> FakeServices:
    azure.sources = ("azure", "kube")
    azure.objects["v1/pods"] = [
        {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [{"image": image}]}}
    ]
    return azure


class TestRegistriesOfRunningImages:
    def test_are_in_scope_when_the_cluster_was_asked(self) -> None:
        azure = served_cluster().put(OTHER, {"loginServer": "models.azurecr.io", "publicNetworkAccess": "Enabled"})
        azure = _running(azure, "models.azurecr.io/llama@sha256:0")  # type: ignore[arg-type]
        assert verdicts(azure, "acr-public")[OTHER.lower()] == "Fail"

    def test_leave_a_gap_when_nothing_of_ours_bears_the_name(self) -> None:
        azure = _running(served_cluster(), "stranger.azurecr.io/llama:1")
        finding = azure.findings("acr-public")[CLUSTER.lower()]
        assert finding.verdict is Verdict.UNKNOWN
        assert "stranger.azurecr.io" in finding.message

    def test_registries_that_are_not_azures_belong_to_another_check(self) -> None:
        assert set(verdicts(_running(served_cluster(), "mcr.microsoft.com/pause:3"), "acr-public")) == {
            REGISTRY.lower()
        }


def _labelled(azure: Any) -> list[dict[str, Any]]:
    """The pools of the cluster, with a label that is named as an identity is."""
    pools: list[dict[str, Any]] = azure.bodies[CLUSTER.lower()]["properties"]["agentPoolProfiles"]
    return [{**pool, "nodeLabels": {"identity": "ours"}} for pool in pools]


class TestIdentities:
    @pytest.mark.parametrize("role", [ACR_PUSH, "b24988ac-6180-42a0-ab88-20f7382dd24c", "0000aaaa-custom"])
    def test_the_kubelet_may_only_pull(self, role: str) -> None:
        azure = served_cluster()
        assign(azure, KUBELET.upper(), role, name="two")
        finding = only(azure, "acr-push-identity")
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)
        assert role in finding.message

    def test_a_role_above_the_registry_counts(self) -> None:
        azure = served_cluster()
        assign(azure, KUBELET, ACR_PUSH, scope=SUBSCRIPTION, name="two")
        assert only(azure, "acr-push-identity").verdict is Verdict.FAIL

    def test_identities_outside_the_cluster_may_push(self) -> None:
        azure = served_cluster()
        assign(azure, FOREIGN_ID, ACR_PUSH, name="two")
        assert only(azure, "acr-push-identity").verdict is Verdict.PASS

    @pytest.mark.parametrize(
        "body",
        [
            {
                "addonProfiles": {
                    "azureKeyvaultSecretsProvider": {"enabled": True, "identity": {"objectId": FOREIGN_ID}}
                }
            },
            {"identityProfile": {"kubeletidentity": {"objectId": KUBELET}, "other": {"objectId": FOREIGN_ID}}},
            {"podIdentityProfile": {"userAssignedIdentities": [{"name": "p", "identity": {"objectId": FOREIGN_ID}}]}},
            {"ingressProfile": {"webAppRouting": {"enabled": True, "identity": {"ObjectID": FOREIGN_ID.upper()}}}},
            {"somethingNew": [{"properties": {"identity": {"principalId": FOREIGN_ID}}}]},
        ],
    )
    def test_every_identity_that_the_cluster_names_counts(self, body: dict[str, Any]) -> None:
        azure = served_cluster().change(CLUSTER, **body)
        assign(azure, FOREIGN_ID, ACR_PUSH, name="two")  # type: ignore[arg-type]
        assert only(azure, "acr-push-identity").verdict is Verdict.FAIL  # type: ignore[arg-type]

    def test_without_a_kubelets_identity_or_the_assignments_it_is_unknown(self) -> None:
        assert only(served_cluster().drop(CLUSTER, "identityProfile"), "acr-push-identity").verdict is Verdict.UNKNOWN
        azure = served_cluster().refuse(REGISTRY, kind="Microsoft.Authorization/roleAssignments")
        assert only(azure, "acr-push-identity").verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize(
        "body",
        [
            {"identityProfile": {"kubeletidentity": {"objectId": KUBELET}, "other": {"objectId": 7}}},
            {"addonProfiles": {"azureKeyvaultSecretsProvider": {"enabled": True, "identity": "odd"}}},
            {"podIdentityProfile": "odd"},
            {"ingressProfile": {"webAppRouting": True}},
        ],
    )
    def test_an_identity_that_cannot_be_read_is_unknown(self, body: dict[str, Any]) -> None:
        azure = served_cluster().change(CLUSTER, **body)
        assert only(azure, "acr-push-identity").verdict is Verdict.UNKNOWN  # type: ignore[arg-type]

    def test_what_people_write_into_the_cluster_is_no_identity(self) -> None:
        azure = served_cluster().change(CLUSTER, agentPoolProfiles=_labelled(served_cluster()))
        azure.bodies[CLUSTER.lower()]["tags"] = {"identity": "ours", "principalId": FOREIGN_ID}
        assign(azure, FOREIGN_ID, ACR_PUSH, name="two")  # type: ignore[arg-type]
        assert only(azure, "acr-push-identity").verdict is Verdict.PASS  # type: ignore[arg-type]

    def test_pull_alone_passes(self) -> None:
        azure = served_cluster()
        assign(azure, KUBELET, ACR_PULL.upper(), name="two")
        assert only(azure, "acr-push-identity").verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("check", "child", "properties", "fields"),
    [
        ("acr-cache-wildcard", "cacheRules/hub", {"sourceRepository": "docker.io/library/*"}, {}),
        ("acr-cache-wildcard", "cacheRules/one", {"sourceRepository": "docker.io/library/nginx"}, {}),
        ("acr-cache-wildcard", "cacheRules/odd", {}, {}),
        ("acr-connected-registry", "connectedRegistries/edge", {}, {}),
        ("acr-webhooks", "webhooks/hook", {"status": "disabled"}, {}),
        ("acr-replications", "replications/eastus", {}, {"location": "eastus"}),
        ("acr-replications", "replications/odd", {}, {}),
    ],
)
def test_what_leaves_by_itself_fails(
    check: str, child: str, properties: dict[str, Any], fields: dict[str, Any]
) -> None:
    azure = served_cluster().put(f"{REGISTRY}/{child}", properties, **fields)
    assert verdicts(azure, check) == {REGISTRY.lower(): "Fail"}


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        ("acr-cache-wildcard", "cacheRules"),
        ("acr-connected-registry", "connectedRegistries"),
        ("acr-webhooks", "webhooks"),
        ("acr-replications", "replications"),
    ],
)
def test_children_that_cannot_be_listed_are_unknown(check: str, kind: str) -> None:
    azure = served_cluster().refuse(REGISTRY, kind=f"Microsoft.ContainerRegistry/registries/{kind}")
    assert verdicts(azure, check) == {REGISTRY.lower(): "Unknown"}


def test_a_peer_that_cannot_be_read_leaves_its_endpoints_unknown_and_no_registry() -> None:
    """Which endpoints a peer has, no list of ours shows; registries in use are known by our own networks."""
    azure = peer(served_cluster()).refuse(
        "/subscriptions/00000000-0000-0000-0000-00000000000f", kind="Microsoft.Network/privateEndpoints"
    )
    assert "Unknown" not in verdicts(azure, "acr-public", Policy()).values()
    for check in ("pe-foreign-target", "pe-relay-target"):
        assert verdicts(azure, check, Policy())[CLUSTER.lower()] == "Unknown"

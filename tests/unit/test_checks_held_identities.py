"""acr-push-identity: only what a node or a pod can hold counts, and all of that does."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.model.findings import Finding, Severity, Verdict
from tests.audit_estates import CLUSTER, GROUP, NODE_GROUP, SCALE_SET, SUBSCRIPTION
from tests.audit_services import ACR_PUSH, KUBELET, REGISTRY, FakeServices, assign, served_cluster

CONTROL_PLANE = "99999999-0000-0000-0000-000000000000"
WORKLOAD = "88888888-0000-0000-0000-000000000000"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
IDENTITIES = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
ISSUER = "https://swedencentral.oic.prod-aks.azure.com/tenant/issuer/"
CREDENTIALS = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"


def _judged(azure: FakeServices) -> Finding:
    return azure.findings("acr-push-identity")[REGISTRY.lower()]


def _with_control_plane(*, user_assigned: bool) -> FakeServices:
    """As AKS makes it: Contributor on the node resource group."""
    azure = served_cluster()
    body = azure.bodies[CLUSTER.lower()]
    if user_assigned:
        azure.put(f"{IDENTITIES}/control", {"principalId": CONTROL_PLANE})
        identities = {f"{IDENTITIES}/control": {"principalId": CONTROL_PLANE, "clientId": "c"}}
        body["identity"] = {"type": "UserAssigned", "userAssignedIdentities": identities}
    else:
        body["identity"] = {"type": "SystemAssigned", "principalId": CONTROL_PLANE}
    assign(azure, CONTROL_PLANE, CONTRIBUTOR, scope=NODE_GROUP, name="two")
    return azure


def _attach(azure: FakeServices, identity: Any) -> FakeServices:
    azure.bodies[SCALE_SET.lower()]["identity"] = identity
    return azure


def _with_workload(azure: FakeServices, *, issuer: str | None = ISSUER, principal: str = WORKLOAD) -> FakeServices:
    """An identity with a role that writes, which trusts an issuer."""
    azure.change(CLUSTER, oidcIssuerProfile={"enabled": True, "issuerURL": ISSUER})
    azure.put(f"{IDENTITIES}/workload", {"principalId": principal})
    credential = {"subject": "system:serviceaccount:ml:train", "audiences": ["api://AzureADTokenExchange"]}
    azure.put(f"{IDENTITIES}/workload/federatedIdentityCredentials/ml", {**credential, "issuer": issuer})
    assign(azure, WORKLOAD, ACR_PUSH, name="two")
    return azure


class TestTheControlPlane:
    @pytest.mark.parametrize("user_assigned", [True, False])
    @pytest.mark.parametrize("issuer", [True, False])
    def test_its_identity_is_information(self, user_assigned: bool, issuer: bool) -> None:
        azure = _with_control_plane(user_assigned=user_assigned)
        if issuer:
            azure.change(CLUSTER, oidcIssuerProfile={"enabled": True, "issuerURL": ISSUER})
        finding = _judged(azure)
        assert finding.verdict is Verdict.PASS
        assert "the control plane's identity has role" in finding.message

    def test_attached_to_the_nodes_it_counts(self) -> None:
        azure = _with_control_plane(user_assigned=True)
        _attach(azure, {"userAssignedIdentities": {f"{IDENTITIES}/control": {"principalId": CONTROL_PLANE}}})
        assert _judged(azure).verdict is Verdict.FAIL

    def test_as_the_kubelets_too_it_counts(self) -> None:
        azure = _with_control_plane(user_assigned=True)
        azure.change(CLUSTER, identityProfile={"kubeletidentity": {"objectId": CONTROL_PLANE.upper()}})
        assert _judged(azure).verdict is Verdict.FAIL

    def test_with_a_federated_credential_for_the_cluster_it_counts(self) -> None:
        azure = _with_control_plane(user_assigned=True)
        azure.change(CLUSTER, oidcIssuerProfile={"enabled": True, "issuerURL": ISSUER})
        azure.put(f"{IDENTITIES}/control/federatedIdentityCredentials/x", {"issuer": ISSUER.rstrip("/").upper()})
        assert _judged(azure).verdict is Verdict.FAIL

    def test_no_remedy_deletes_a_role_above_the_registry(self) -> None:
        azure = _with_control_plane(user_assigned=True)
        _attach(azure, {"userAssignedIdentities": {f"{IDENTITIES}/control": {"principalId": CONTROL_PLANE}}})
        finding = _judged(azure)
        assert "role assignment delete" not in finding.remedy
        assert "do not delete" in finding.remedy
        assert NODE_GROUP in finding.remedy


class TestTheScaleSets:
    @pytest.mark.parametrize(
        "identity",
        [
            {"userAssignedIdentities": {f"{IDENTITIES}/extra": {"principalId": WORKLOAD}}},
            {"UserAssignedIdentities": {f"{IDENTITIES}/extra": {"PrincipalId": WORKLOAD.upper()}}},
            {"principalId": WORKLOAD},
            {"userAssignedIdentities": {f"{IDENTITIES}/extra": {}}},  # the object id is read by ARM id
        ],
    )
    def test_every_identity_of_theirs_counts(self, identity: Any) -> None:
        azure = _attach(served_cluster(), identity)
        azure.put(f"{IDENTITIES}/extra", {"principalId": WORKLOAD})
        assert _judged(azure).verdict is Verdict.PASS
        assign(azure, WORKLOAD, ACR_PUSH, name="two")
        finding = _judged(azure)
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)
        assert finding.remedy.endswith(
            f"\naz role assignment delete --ids {REGISTRY}/providers/Microsoft.Authorization/roleAssignments/two"
        )

    @pytest.mark.parametrize(
        "identity",
        [
            "odd",
            {"userAssignedIdentities": "odd"},
            {"userAssignedIdentities": {f"{IDENTITIES}/extra": {"principalId": 7}}},
            {"userAssignedIdentities": {f"{IDENTITIES}/extra": {}}},  # and it cannot be read by its id either
            {"principalId": ""},
        ],
    )
    def test_one_that_cannot_be_read_is_unknown(self, identity: Any) -> None:
        assert _judged(_attach(served_cluster(), identity)).verdict is Verdict.UNKNOWN

    def test_a_list_of_scale_sets_that_was_refused_is_unknown(self) -> None:
        azure = served_cluster().refuse(NODE_GROUP, kind="Microsoft.Compute/virtualMachineScaleSets")
        assert _judged(azure).verdict is Verdict.UNKNOWN  # type: ignore[arg-type]


class TestFederatedOnes:
    def test_one_that_trusts_the_clusters_issuer_counts(self) -> None:
        finding = _judged(_with_workload(served_cluster()))
        assert finding.verdict is Verdict.FAIL
        assert "workload" in finding.message

    @pytest.mark.parametrize("issuer", ["https://token.actions.githubusercontent.com", "https://other.oic/tenant/x/"])
    def test_one_that_trusts_another_issuer_may_push(self, issuer: str) -> None:
        assert _judged(_with_workload(served_cluster(), issuer=issuer)).verdict is Verdict.PASS

    def test_one_that_does_not_say_whom_it_trusts_counts(self) -> None:
        assert _judged(_with_workload(served_cluster(), issuer=None)).verdict is Verdict.FAIL

    def test_without_an_issuer_no_pod_gets_a_token(self) -> None:
        azure = _with_workload(served_cluster()).drop(CLUSTER, "oidcIssuerProfile")
        assert _judged(azure).verdict is Verdict.PASS  # type: ignore[arg-type]

    def test_people_and_groups_hold_no_such_credential(self) -> None:
        azure: Any = _with_workload(served_cluster())
        for scope in (SUBSCRIPTION, GROUP):
            azure.refuse(scope, kind="Microsoft.ManagedIdentity/userAssignedIdentities")
        assignment = f"{REGISTRY}/providers/Microsoft.Authorization/roleAssignments/two"
        assert _judged(azure).verdict is Verdict.UNKNOWN
        azure.change(assignment, principalType="User")
        assert _judged(azure).verdict is Verdict.PASS

    def test_credentials_that_cannot_be_listed_are_unknown(self) -> None:
        azure = _with_workload(served_cluster()).refuse(f"{IDENTITIES}/workload", kind=CREDENTIALS)
        assert _judged(azure).verdict is Verdict.UNKNOWN  # type: ignore[arg-type]

    @pytest.mark.parametrize("profile", [{"enabled": True}, "odd", {"issuerURL": 7}])
    def test_an_issuer_that_cannot_be_read_is_unknown(self, profile: Any) -> None:
        azure = _with_workload(served_cluster()).change(CLUSTER, oidcIssuerProfile=profile)
        assert _judged(azure).verdict is Verdict.UNKNOWN  # type: ignore[arg-type]

    def test_an_identity_whose_object_id_is_broken_is_unknown(self) -> None:
        azure = _with_workload(served_cluster(), principal=7)  # type: ignore[arg-type]
        assert _judged(azure).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("role", ["bfdb9389-c9a5-478a-bb2f-ba9ca092c3c7", "B93AA761-3E63-49ED-AC28-BEFFA264F7AC"])
def test_reading_repositories_and_their_list_is_no_more_than_pull(role: str) -> None:
    azure = served_cluster()
    assign(azure, KUBELET, role, name="two")
    assert _judged(azure).verdict is Verdict.PASS

"""Membership in a mesh that Azure manages: only previews of the API list it."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, GROUP, small_cluster
from tests.audit_services import OTHER_SUBSCRIPTION

MEMBERSHIP = f"{CLUSTER}/meshMemberships/mesh"
MESH = "providers/Microsoft.AppLink/applinks/mesh/appLinkMembers/ai"
OURS, THEIRS = f"{GROUP}/{MESH}", f"{OTHER_SUBSCRIPTION}/resourceGroups/soc/{MESH}"


@pytest.mark.parametrize(
    ("properties", "severity"),
    [
        ({"managedMeshID": OURS}, "medium"),
        ({"managedMeshID": OURS.upper()}, "medium"),
        ({"managedMeshID": THEIRS}, "high"),
        ({"managedMeshID": "a text"}, "high"),
        ({"managedMeshID": ""}, "high"),
        ({}, "high"),
    ],
)
def test_a_membership_is_found_and_decides_where_the_mesh_is_not_ours(
    properties: dict[str, Any], severity: str
) -> None:
    finding = small_cluster().put(MEMBERSHIP, properties).findings("aks-mesh-member")[MEMBERSHIP.lower()]
    assert (finding.verdict, finding.severity) == (Verdict.FAIL, severity)
    assert f"az resource delete --ids {MEMBERSHIP}" in finding.remedy


def test_a_subscription_that_the_policy_names_is_ours() -> None:
    policy = Policy(own_subscriptions=(OTHER_SUBSCRIPTION.rpartition("/")[2],))
    azure = small_cluster().put(MEMBERSHIP, {"managedMeshID": THEIRS})
    assert azure.findings("aks-mesh-member", policy)[MEMBERSHIP.lower()].severity == "medium"


def test_one_whose_mesh_cannot_be_read_is_unknown() -> None:
    azure = small_cluster().put(MEMBERSHIP, {"managedMeshID": 7})
    assert azure.findings("aks-mesh-member")[MEMBERSHIP.lower()].verdict is Verdict.UNKNOWN


def test_a_cluster_in_no_mesh_passes_with_the_list_as_evidence() -> None:
    finding = small_cluster().findings("aks-mesh-member")[CLUSTER.lower()]
    assert finding.verdict is Verdict.PASS
    assert any("2026-06-02-preview" in evidence.request for evidence in finding.evidence)


@pytest.mark.parametrize("reason", [UnreadReason.REFUSED, UnreadReason.FORBIDDEN, UnreadReason.NOT_FOUND])
def test_a_cloud_that_does_not_answer_the_list_is_unknown_and_does_not_decide(reason: UnreadReason) -> None:
    azure = small_cluster().refuse(
        CLUSTER, reason, verb="list", kind="Microsoft.ContainerService/managedClusters/meshMemberships"
    )
    finding = azure.findings("aks-mesh-member")[CLUSTER.lower()]
    assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, "medium")

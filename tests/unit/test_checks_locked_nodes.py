"""A node that is a machine, in a locked node resource group: no role can ask what its routes and rules are."""

from __future__ import annotations

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import NODE_NETWORK, NODES, SENTINEL, FakeAzure, ip_configuration, small_cluster
from tests.routes_and_sentinels import effective, line, sentinel, verdict_and_severity

ACTIONS = ("effective-routes", "nsg-effective")
NODE = f"{NODE_NETWORK}/networkInterfaces/aks-default-k7x2"
MACHINE = NODE.replace("Microsoft.Network/networkInterfaces", "Microsoft.Compute/virtualMachines")
OUT = line("0.0.0.0/0", "VirtualAppliance", "User", address="10.9.9.9")


def locked_node(azure: FakeAzure, reason: UnreadReason = UnreadReason.LOCKED) -> FakeAzure:
    interface_fields = {"virtualMachine": {"id": MACHINE}, "ipConfigurations": [ip_configuration("10.0.1.220", NODES)]}
    return azure.put(NODE, interface_fields, location="West Europe").refuse(NODE, reason, verb="post")


@pytest.mark.parametrize("check", ACTIONS)
def test_it_is_no_more_doubtful_than_a_node_of_a_scale_set(check: str) -> None:
    finding = locked_node(small_cluster()).findings(check)[NODES.lower()]
    assert (finding.verdict.value, finding.reason) == ("NotApplicable", "LockedNode")
    assert any(evidence.request.startswith(f"post {NODE}") for evidence in finding.evidence)


@pytest.mark.parametrize("check", ACTIONS)
def test_a_sentinel_that_a_lock_of_others_keeps_silent_stays_unknown(check: str) -> None:
    azure = sentinel(small_cluster()).refuse(SENTINEL, UnreadReason.LOCKED, verb="post")
    assert verdict_and_severity(azure.findings(check), NODES)[0] == "Unknown"


@pytest.mark.parametrize("check", ACTIONS)
def test_a_node_that_the_policy_names_as_a_sentinel_has_to_answer(check: str) -> None:
    findings = locked_node(small_cluster()).findings(check, Policy(sentinelNics=(NODE,)))
    assert verdict_and_severity(findings, NODES)[0] == "Unknown"


@pytest.mark.parametrize("check", ACTIONS)
@pytest.mark.parametrize("reason", [UnreadReason.FORBIDDEN, UnreadReason.UNAVAILABLE])
def test_a_node_that_is_silent_for_another_reason_is_unknown(check: str, reason: UnreadReason) -> None:
    findings = locked_node(small_cluster(), reason).findings(check)
    assert verdict_and_severity(findings, NODES)[0] == "Unknown"


def test_a_machine_beside_the_nodes_is_asked_before_them() -> None:
    azure = locked_node(effective(OUT))
    assert verdict_and_severity(azure.findings("effective-routes"), NODES)[0] == "Fail"

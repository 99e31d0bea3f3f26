"""LocalDNS: a node that asks its own proxy passes where LocalDNS is on, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.checks import probe
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.policies import NetworkPolicy
from hermetic.audit.estate.questions import Answer, Body, Question
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Evidence, Finding, Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.collect.probe.program import metadata
from hermetic.collect.probe.readings import question
from tests.kubernetes_estates import answers, manifest, sealed_cluster, verdicts
from tests.probe_runs import CLUSTER, both, changed

LABEL = "kubernetes.azure.com/localdns-state"
PASSES, FAILS = Verdict.PASS, Verdict.FAIL


def _host(*servers: str) -> dict[str, Any]:
    """What the probe says from the node's network."""
    return changed(host_network=True, nameservers=list(servers), clusterName=["r3:;/1"] * len(servers))


def _judged(
    *servers: str, label: str | None = None, profile: Any = None, node: str = "gpu-0", refused: bool = False
) -> Finding:
    """What node-resolv says of a node with these resolvers; `label` on its Node, `profile` on its pool."""
    observed_answers: dict[Question, Answer] = {question(CLUSTER): Answer(tuple(both(None, _host(*servers))))}
    sources: list[Any] = ["probe"]
    if label is not None:
        sources.append("kube")
        nodes = [manifest(Node, node, labels={LABEL: label})]
        observed_answers |= answers(nodes, [Node] if refused else [])
    if profile is not None:
        sources.append("azure")
        pool = {"name": "gpu", "count": 1, "localDNSProfile": profile}
        body = {"id": CLUSTER, "properties": {"agentPoolProfiles": [{"name": "other"}, pool]}}
        asked_question = Question("azure", "get", ManagedCluster.TYPE, CLUSTER, ManagedCluster.API_VERSION)
        observed_answers[asked_question] = Answer((Body(body, (Evidence(f"GET {CLUSTER}", 200),)),))
    (check,) = (candidate for candidate in probe.CHECKS if candidate.page.id == "node-resolv")
    policy = Policy(allowedDnsServers=("10.0.0.4",))
    (finding,) = findings_of(check, Estate(CLUSTER, sources, observed_answers), policy)
    return finding


@pytest.mark.parametrize("server", ["169.254.10.10", "169.254.10.11"])
def test_the_nodes_own_proxy_is_allowed_where_its_label_says_so(server: str) -> None:
    finding = _judged(server, label="enabled")
    assert finding.verdict is PASSES
    assert any("v1/nodes" in evidence.request for evidence in finding.evidence)


@pytest.mark.parametrize("profile", [{"mode": "Required", "state": "Enabled"}, {"State": "enabled"}])
def test_or_where_its_pool_says_so(profile: Any) -> None:
    finding = _judged("169.254.10.10", profile=profile)
    assert finding.verdict is PASSES
    assert any(CLUSTER in evidence.request for evidence in finding.evidence)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"label": "disabled"},
        {"label": ""},
        {"label": "Enabled!"},
        {"label": "enabled", "node": "gpu-1"},
        {"label": "enabled", "refused": True},
        {"profile": {"mode": "Required", "state": "Disabled"}},
        {"profile": {"mode": "Required"}},
        {"profile": {}},
        {"profile": "odd"},
    ],
)
def test_otherwise_it_is_a_resolver_that_no_policy_allows(state: dict[str, Any]) -> None:
    finding = _judged("169.254.10.10", **state)
    assert (finding.verdict, finding.severity) == (FAILS, Severity.MEDIUM)


@pytest.mark.parametrize("server", ["169.254.10.12", "169.254.169.254", "10.9.9.9", "8.8.8.8", "169.254.20.10"])
def test_localdns_allows_its_own_two_addresses_alone(server: str) -> None:
    finding = _judged("169.254.10.10", server, label="enabled")
    assert finding.verdict is FAILS
    assert server in finding.message
    assert "asks 169.254.10.10" not in finding.message


def test_a_rule_to_localdns_is_not_wide() -> None:
    peers = [{"ipBlock": {"cidr": "169.254.10.10/32"}}, {"ipBlock": {"cidr": "169.254.10.11/32"}}]
    ports = [{"protocol": "UDP", "port": 53}]
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": peers, "ports": ports}]}
    some = [*sealed_cluster(), manifest(NetworkPolicy, "dns", "inference", spec=spec)]
    assert set(verdicts("k8s-policy-allow-all", some).values()) == {PASSES}
    assert set(verdicts("k8s-default-deny-egress", some).values()) == {PASSES}


def test_what_may_be_public_is_kept_where_the_list_of_frontends_is_cut() -> None:
    inside = [f"10.40.12.{number}" for number in range(9)]
    entries = [{"frontendIpAddress": address} for address in ("", "100.64.0.1", *inside, "51.0.0.1", "odd", "fd00::1")]
    summary = metadata.summary("loadbalancer", {"loadbalancer": {"publicIpAddresses": entries, "outboundRules": []}})
    assert {"51.0.0.1", "odd"} <= set(summary["public"])
    assert (len(summary["public"]), summary["more"]) == (4, 10)

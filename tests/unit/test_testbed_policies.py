"""NetworkPolicies as rules of nftables: which packets of which pods are let through."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.errors import BedError
from testbed.node.policies import ruleset

Manifest = dict[str, Any]


def pod(name: str, address: str, namespace: str = "team-a", **labels: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"metadata": metadata, "spec": {}, "status": {"podIP": address}}


def policy(spec: Manifest) -> Manifest:
    return {"metadata": {"name": "policy", "namespace": "team-a"}, "spec": spec}


def chain(rules: str, name: str) -> list[str]:
    """The rules of one chain."""
    text = rules.partition(f"chain {name} {{\n")[2].partition("  }")[0]
    return [line.strip() for line in text.splitlines()]


PODS = [
    pod("head", "10.244.0.5", group="0"),
    pod("member", "10.244.1.5", group="0"),
    pod("other", "10.244.1.6", group="1"),
    pod("elsewhere", "10.244.0.9", namespace="team-b", group="0"),
]
NAMESPACES = [{"metadata": {"name": name, "labels": {"team": name}}} for name in ("team-a", "team-b")]
GROUP = {"matchLabels": {"group": "0"}}


def test_a_pod_that_no_policy_selects_is_in_no_chain() -> None:
    assert "jump" not in ruleset(PODS, NAMESPACES, [])


def test_a_policy_between_the_members_of_a_group_opens_a_range_in_both_directions() -> None:
    ports = [{"protocol": "TCP", "port": 1024, "endPort": 65535}]
    spec = {
        "podSelector": GROUP,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [{"podSelector": GROUP}], "ports": ports}],
        "egress": [{"to": [{"podSelector": GROUP}], "ports": ports}],
    }
    rules = ruleset(PODS, NAMESPACES, [policy(spec)])
    members = "{ 10.244.0.5, 10.244.1.5 } tcp dport 1024-65535 return"
    assert chain(rules, "ingress-10-244-0-5") == [f"ip saddr {members}", "drop"]
    assert chain(rules, "egress-10-244-1-5") == [f"ip daddr {members}", "drop"]
    assert "10-244-1-6" not in rules
    assert "10-244-0-9" not in rules


@pytest.mark.parametrize(
    ("ingress", "rules"),
    [
        ([], ["drop"]),
        ([{}], ["return", "drop"]),
        ([{"ports": [{"port": 8000}]}], ["tcp dport 8000 return", "drop"]),
        ([{"from": [{"podSelector": {"matchLabels": {"group": "none"}}}]}], ["drop"]),
        (
            [{"from": [{"ipBlock": {"cidr": "10.13.0.0/16", "except": ["10.13.64.0/24"]}}]}],
            ["ip saddr 10.13.0.0/16 ip saddr != { 10.13.64.0/24 } return", "drop"],
        ),
        (
            [{"from": [{"namespaceSelector": {"matchLabels": {"team": "team-b"}}}]}],
            ["ip saddr { 10.244.0.9 } return", "drop"],
        ),
    ],
)
def test_each_form_of_a_rule_is_read_as_kubernetes_defines_it(ingress: list[Manifest], rules: list[str]) -> None:
    spec = {"podSelector": {"matchLabels": {"group": "1"}}, "policyTypes": ["Ingress"], "ingress": ingress}
    assert chain(ruleset(PODS, NAMESPACES, [policy(spec)]), "ingress-10-244-1-6") == rules


def test_policies_add_to_each_other() -> None:
    closed = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    opened = {"podSelector": GROUP, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 8000}]}]}
    rules = ruleset(PODS, NAMESPACES, [policy(closed), policy(opened)])
    assert chain(rules, "ingress-10-244-0-5") == ["tcp dport 8000 return", "drop"]
    assert chain(rules, "ingress-10-244-1-6") == ["drop"]
    assert chain(rules, "egress-10-244-0-5") == ["drop"]


def test_a_named_port_is_an_error() -> None:
    spec = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": "http"}]}]}
    with pytest.raises(BedError, match="named port 'http'"):
        ruleset(PODS, NAMESPACES, [policy(spec)])

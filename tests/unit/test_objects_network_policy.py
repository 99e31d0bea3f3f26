"""The pods' network: nothing out, ever; in only from whom the spec names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.renderings import RENDERINGS
from tests.scenarios import a_share_model
from tests.worlds import rendered

PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"]


def policy(endpoint: dict[str, Any]) -> dict[str, Any]:
    return rendered(a_share_model(endpoint=endpoint))["NetworkPolicy"]["spec"]


def peers(endpoint: dict[str, Any]) -> list[dict[str, Any]]:
    (rule,) = policy(endpoint)["ingress"]
    return rule["from"]


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_egress_is_denied_to_everywhere_by_an_empty_list_of_rules(manifest):
    """No rule for DNS, none for NFS (the node mounts), none for the metadata service: no rule at all."""
    spec = rendered(manifest)["NetworkPolicy"]["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["egress"] == []


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_no_ingress_rule_is_open_to_every_client(manifest):
    for rule in rendered(manifest)["NetworkPolicy"]["spec"]["ingress"]:
        assert rule["from"], "an empty list of peers means everybody"
        assert rule["ports"], "an empty list of ports means every port"
        for peer in rule["from"]:
            assert peer, "an empty peer is invalid"
            assert peer.get("ipBlock", {}).get("cidr") not in {"0.0.0.0/0", "::/0"}


def test_no_client_may_connect_when_none_is_named():
    assert policy({})["ingress"] == []


def test_clients_of_the_load_balancer_are_the_private_ranges_by_default():
    assert peers({"internalLoadBalancer": {}}) == [{"ipBlock": {"cidr": cidr}} for cidr in PRIVATE]


def test_clients_of_the_load_balancer_are_those_that_the_spec_names():
    assert peers({"internalLoadBalancer": {"allowedSourceRanges": ["10.7.0.0/16"]}}) == [
        {"ipBlock": {"cidr": "10.7.0.0/16"}}
    ]


def test_allowed_clients_are_selected_by_both_selectors_at_once():
    client = {
        "namespaceSelector": {"matchLabels": {"team": "chat"}},
        "podSelector": {"matchLabels": {"app": "web"}},
    }
    assert peers({"allowedClients": [client]}) == [client]


def test_an_empty_selector_means_every_namespace_as_kubernetes_reads_it():
    assert peers({"allowedClients": [{"namespaceSelector": {}}]}) == [{"namespaceSelector": {}}]


def test_only_the_engine_s_port_is_open():
    (rule,) = policy({"port": 9000, "internalLoadBalancer": {}})["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 9000}]

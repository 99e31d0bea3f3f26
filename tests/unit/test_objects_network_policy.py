"""The pods' network: nothing out, ever; in only from whom the spec names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from hermetic.objects.children import PlatformSettings, render
from hermetic.objects.names import GROUP_LABEL, MODEL_LABEL
from hermetic.objects.network_policy import PodPeer
from hermetic.plan.planning import plan
from tests.renderings import GROUP_RENDERINGS, RENDERINGS
from tests.scenarios import a_share_model
from tests.snapshots import NOW, POLICY, a_snapshot, children_of, owner_of, rendered, serving, spec_of

PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"]


def policy(endpoint: dict[str, Any], pod_ranges: Iterable[str] = ()) -> dict[str, Any]:
    manifest = a_share_model(endpoint=endpoint)
    children = render(owner_of(manifest), spec_of(manifest), PlatformSettings(pod_ranges=tuple(pod_ranges)))
    return next(child["spec"] for child in children if child["kind"] == "NetworkPolicy")


def peers(endpoint: dict[str, Any], pod_ranges: Iterable[str] = ()) -> list[dict[str, Any]]:
    (rule,) = policy(endpoint, pod_ranges)["ingress"]
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
        assert rule["from"], "an empty list of peers means every client"
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


@pytest.mark.parametrize(
    ("clients", "pods", "blocks"),
    [
        (
            [],
            ["10.244.0.0/16"],
            [{"cidr": PRIVATE[0], "except": ["10.244.0.0/16"]}, *({"cidr": r} for r in PRIVATE[1:])],
        ),
        ([], ["203.0.113.0/24", "fd00:10::/64"], [{"cidr": cidr} for cidr in PRIVATE]),
        (
            ["10.7.0.0/16", "fd00::/8"],
            ["10.7.4.0/22", "10.7.8.0/22", "fd00:10::/64"],
            [
                {"cidr": "10.7.0.0/16", "except": ["10.7.4.0/22", "10.7.8.0/22"]},
                {"cidr": "fd00::/8", "except": ["fd00:10::/64"]},
            ],
        ),
        (["10.244.3.0/24", "10.7.0.0/16"], ["10.244.0.0/16"], [{"cidr": "10.7.0.0/16"}]),
        (["10.244.0.0/16", "10.7.0.0/16"], ["10.244.0.0/16"], [{"cidr": "10.7.0.0/16"}]),
    ],
    ids=["default ranges", "elsewhere", "inside", "around", "equal"],
)
def test_pods_are_no_clients_of_the_load_balancer(clients, pods, blocks):
    """Calico and Azure Network Policy Manager apply an ipBlock to addresses of pods too."""
    balancer = {"allowedSourceRanges": clients} if clients else {}
    assert peers({"internalLoadBalancer": balancer}, pods) == [{"ipBlock": block} for block in blocks]


def test_without_a_range_that_is_left_no_client_may_connect():
    assert (
        policy({"internalLoadBalancer": {"allowedSourceRanges": ["10.244.3.0/24"]}}, ["10.244.0.0/16"])["ingress"] == []
    )


def test_pods_come_in_by_their_labels_although_their_range_is_none_of_a_client():
    client = {"podSelector": {"matchLabels": {"app": "web"}}}
    policy_peers = peers(
        {"internalLoadBalancer": {"allowedSourceRanges": ["10.244.3.0/24"]}, "allowedClients": [client]},
        ["10.244.0.0/16"],
    )
    assert policy_peers == [{"podSelector": {"matchLabels": {"app": "web"}}}]


@pytest.mark.parametrize("registries", [POLICY.registries, []], ids=["going on", "blocked"])
def test_the_plan_takes_the_ranges_of_pods_from_the_configuration(registries):
    """Blocked or not: the policy of pods that serve must not change back."""
    manifest = a_share_model(endpoint={"internalLoadBalancer": {}})
    snapshot = a_snapshot(policy=POLICY.model_copy(update={"pod_ranges": ["10.244.0.0/16"], "registries": registries}))
    before = serving(a_snapshot(children=children_of(manifest), policy=snapshot.policy), 1)
    decided = plan(spec_of(manifest), before, NOW)
    (applied,) = (change.manifest for change in decided.apply if change.manifest["kind"] == "NetworkPolicy")
    blocks = [peer["ipBlock"] for peer in applied["spec"]["ingress"][0]["from"]]
    assert blocks[0] == {"cidr": "10.0.0.0/8", "except": ["10.244.0.0/16"]}


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


@pytest.mark.parametrize("manifest", GROUP_RENDERINGS.values(), ids=list(GROUP_RENDERINGS))
def test_pods_of_a_group_reach_each_other_both_ways_and_nothing_else(manifest):
    policies = [child for child in render(owner_of(manifest), spec_of(manifest)) if child["kind"] == "NetworkPolicy"]
    assert policies[0]["spec"]["egress"] == []
    assert policies[0]["spec"]["podSelector"] == {"matchLabels": {MODEL_LABEL: manifest["metadata"]["name"]}}
    assert len(policies) == 1 + spec_of(manifest).wanted_replicas
    for index, policy_of_group in enumerate(policies[1:]):
        pods = {"matchLabels": {MODEL_LABEL: manifest["metadata"]["name"], GROUP_LABEL: str(index)}}
        ports = [{"protocol": "TCP", "port": 1024, "endPort": 65535}]
        assert policy_of_group["spec"] == {
            "podSelector": pods,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [{"podSelector": pods}], "ports": ports}],
            "egress": [{"to": [{"podSelector": pods}], "ports": ports}],
        }


def test_peers_without_a_label_are_refused_since_they_would_be_every_pod_of_the_namespace():
    with pytest.raises(ValueError, match="every pod of the namespace"):
        PodPeer({}, first_port=1024, last_port=65535)

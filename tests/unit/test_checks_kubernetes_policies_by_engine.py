"""Network policies and the engine that enforces them: what it does not read or take closes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.cilium_policies import CiliumClusterwideNetworkPolicy, CiliumNetworkPolicy
from hermetic.audit.estate.kubernetes.engine_settings import CiliumNodeConfig
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import NetworkPolicy
from hermetic.audit.estate.kubernetes.templates import DaemonSet
from hermetic.audit.model.findings import Verdict
from tests.kubernetes_estates import (
    CLUSTER,
    OF_TIGERA,
    Manifest,
    container,
    findings,
    manifest,
    owned,
    pod,
    sealed_cluster,
)

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
TEAM = "v1/Namespace team"
PORTS = [{"ports": [{"port": "53"}]}]
ENGINES = {"cilium": "kube-system", "azure-npm": "kube-system", "calico-node": "calico-system"}


def engine(name: str, *, ready: bool = True) -> list[Manifest]:
    """The agent of a policy engine."""
    condition = {"type": "Ready", "status": str(ready)}
    agent = pod(
        f"{name}-x",
        ENGINES[name],
        ownerReferences=owned("DaemonSet", name),
        spec={"hostNetwork": True, "containers": [container(image="mcr.microsoft.com/oss/calico/node")]},
        status={"phase": "Running", "conditions": [condition]},
    )
    return [manifest(DaemonSet, name, ENGINES[name]), agent, *([OF_TIGERA] if name == "calico-node" else [])]


def cluster(*engines: Manifest) -> list[Manifest]:
    """The sealed cluster with these agents in place of its own."""
    other_manifests = [item for item in sealed_cluster() if not item["metadata"]["name"].startswith("cilium")]
    return [*other_manifests, *engines]


def verdict_on_team(policy: Manifest, base: list[Manifest], **labels: str) -> Verdict:
    """The verdict on a pod of namespace team that only this policy may close."""
    some = findings("k8s-default-deny-egress", [*base, pod("web-1", "team", labels=labels or {"app": "web"}), policy])
    (finding,) = [candidate for candidate in some if candidate.resource in {TEAM, CLUSTER}]
    return finding.verdict


def cilium(rule: Any = None, *, everywhere: bool = False, **fields: Any) -> Manifest:
    """A policy of Cilium that closes every pod, with one egress rule."""
    spec = {"endpointSelector": {}, "egress": [rule or {}], **fields.pop("spec", {})}
    if everywhere:
        return manifest(CiliumClusterwideNetworkPolicy, "p", spec=spec, **fields)
    return manifest(CiliumNetworkPolicy, "p", "team", spec=spec, **fields)


def valid(status: str) -> Manifest:
    return {"conditions": [{"type": "Valid", "status": status, "message": "m", "lastTransitionTime": "t"}]}


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize(
    ("engines", "expected"),
    [
        (engine("cilium"), FINE),
        (engine("azure-npm"), OPEN),
        (engine("calico-node"), OPEN),
        ([*engine("azure-npm"), *engine("cilium", ready=False)], OPEN),
        ([*engine("azure-npm"), *engine("cilium")], UNSEEN),
        (engine("cilium", ready=False), UNSEEN),
        ([], UNSEEN),
    ],
)
def test_a_policy_of_cilium_closes_only_where_cilium_enforces(
    engines: list[Manifest], expected: Verdict, everywhere: bool
) -> None:
    assert verdict_on_team(cilium(everywhere=everywhere), cluster(*engines)) is expected


@pytest.mark.parametrize("name", ENGINES)
def test_a_policy_of_kubernetes_closes_under_every_engine(name: str) -> None:
    plain = manifest(NetworkPolicy, "p", "team", spec={"podSelector": {}, "policyTypes": ["Egress"]})
    assert verdict_on_team(plain, cluster(*engine(name))) is FINE


def test_pods_that_may_not_be_read_leave_the_engine_unknown() -> None:
    some = findings("k8s-default-deny-egress", [*sealed_cluster(), cilium()], forbidden=[Pod])
    assert {finding.verdict for finding in some} == {UNSEEN}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (cilium(status=valid("True")), FINE),
        (cilium(status={"conditions": [{"type": "Other", "status": "False"}]}), FINE),
        (cilium(status={}), FINE),
        (cilium(status=valid("False")), UNSEEN),
        (cilium(status=valid("False"), everywhere=True), UNSEEN),
        (cilium(status={"conditions": "none"}), UNSEEN),
        (cilium({"toCIDR": ["10.1.0.0/16"], "toPorts": PORTS}), FINE),
        (cilium({"toCIDR": ["10.1.0.0/16"], "toEndpoints": []}), FINE),
        (cilium({"toEndpoints": [{}], "toCIDR": ["10.1.0.0/16"]}), UNSEEN),
        (cilium({"toEntities": ["cluster"], "toCIDRSet": [{"cidr": "10.1.0.0/16"}]}), UNSEEN),
        (cilium({"toServices": [{"k8sService": {}}], "toPorts": PORTS}), UNSEEN),
        (cilium({"icmps": [{"fields": []}], "toPorts": PORTS}), UNSEEN),
        (cilium(spec={"egressDeny": [{"toEntities": ["world"], "toCIDR": ["20.0.0.0/8"]}]}), UNSEEN),
        (cilium(spec={"ingress": [{"fromEntities": ["cluster"], "fromCIDR": ["10.1.0.0/16"]}]}), UNSEEN),
        (cilium(spec={"ingress": [{"fromEntities": ["cluster"], "toPorts": PORTS}]}), FINE),
        (cilium(spec={"ingressDeny": [{"fromNodes": [{}], "fromGroups": [{}]}]}), UNSEEN),
        (cilium(spec={"nodeSelector": {}}), UNSEEN),
    ],
)
def test_a_policy_that_cilium_may_reject_does_not_certainly_close(policy: Manifest, expected: Verdict) -> None:
    assert verdict_on_team(policy, cluster(*engine("cilium"))) is expected


def test_one_rejected_rule_takes_the_others_with_it() -> None:
    rules = [
        {"endpointSelector": {}, "egress": [{}]},
        {"endpointSelector": {}, "egress": [{"toEntities": ["cluster"], "toCIDR": ["10.0.0.0/8"]}]},
    ]
    policy = manifest(CiliumNetworkPolicy, "p", "team", specs=rules)
    assert verdict_on_team(policy, cluster(*engine("cilium"))) is UNSEEN


IGNORED = (
    "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/controller-uid", "controller-uid", "pod-template-hash", "pod-template-generation",
    "controller-revision-hash", "kubernetes.io/app", "k8s.io/app", "io.kubernetes.app", "node.beta.kubernetes.io/app",
    "topology.kubernetes.io/zone", "annotation.app", "etcd_node",
)  # fmt: skip
SEEN = (
    "app",
    "app.kubernetes.io/name",
    "team.example.com/kubernetes.io",
    "x-pod-template-hash",
    "batch.kubernetes.io/job-name",
)


def selecting(key: str, operator: str, *values: str) -> Manifest:
    """A NetworkPolicy for the pods with such a label."""
    expression = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    spec = {"podSelector": {"matchExpressions": [expression]}, "policyTypes": ["Egress"]}
    return manifest(NetworkPolicy, "p", "team", spec=spec)


def by_label(key: str) -> Manifest:
    spec = {"podSelector": {"matchLabels": {key: "a"}}, "policyTypes": ["Egress"]}
    return manifest(NetworkPolicy, "p", "team", spec=spec)


@pytest.mark.parametrize("key", [*IGNORED, *SEEN])
def test_a_selector_needs_labels_that_cilium_sees(key: str) -> None:
    expected = FINE if key in SEEN else UNSEEN
    under_cilium = cluster(*engine("cilium"))
    as_ciliums_own = cilium(spec={"endpointSelector": {"matchLabels": {f"k8s:{key}": "a"}}})
    for policy in (by_label(key), selecting(key, "In", "a"), selecting(key, "Exists"), as_ciliums_own):
        assert verdict_on_team(policy, under_cilium, **{key: "a"}) is expected
    assert verdict_on_team(by_label(key), cluster(*engine("azure-npm")), **{key: "a"}) is FINE
    assert verdict_on_team(by_label(key), cluster(*engine("calico-node")), **{key: "a"}) is FINE
    assert verdict_on_team(by_label(key), under_cilium, **{key: "b"}) is OPEN


def test_what_excludes_by_a_label_that_is_not_seen_selects_more() -> None:
    under_cilium = cluster(*engine("cilium"))
    key = "pod-template-hash"
    assert verdict_on_team(selecting(key, "NotIn", "a"), under_cilium, **{key: "b"}) is FINE
    assert verdict_on_team(selecting(key, "NotIn", "a"), under_cilium, **{key: "a"}) is UNSEEN
    assert verdict_on_team(selecting(key, "DoesNotExist"), under_cilium, app="web") is FINE


@pytest.mark.parametrize("setting", ["labels", "label-prefix-file"])
def test_a_filter_of_its_own_leaves_every_label_in_doubt(setting: str) -> None:
    config_map = manifest(ConfigMap, "cilium-config", "kube-system", data={setting: "k8s:team"})
    for_some = manifest(CiliumNodeConfig, "some", "kube-system", spec={"defaults": {setting: "k8s:team"}})
    everything = manifest(NetworkPolicy, "p", "team", spec={"podSelector": {}, "policyTypes": ["Egress"]})
    for filtered in (config_map, for_some):
        assert verdict_on_team(by_label("app"), [*cluster(*engine("cilium")), filtered], app="a") is UNSEEN
        assert verdict_on_team(everything, [*cluster(*engine("cilium")), filtered], app="a") is FINE
        assert verdict_on_team(by_label("app"), [*cluster(*engine("azure-npm")), filtered], app="a") is FINE

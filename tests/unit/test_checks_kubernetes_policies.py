"""Network policies: who is closed, by whom, and what opens them again."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.calico_policies import (
    CalicoGlobalNetworkPolicy,
    CalicoGlobalNetworkSet,
    CalicoHostEndpoint,
    CalicoNetworkPolicy,
)
from hermetic.audit.estate.kubernetes.cilium_policies import CiliumClusterwideNetworkPolicy, CiliumNetworkPolicy
from hermetic.audit.estate.kubernetes.policies import AdminNetworkPolicy, NetworkPolicy
from hermetic.audit.model.findings import Severity, Verdict
from tests.kubernetes_estates import (
    CLUSTER,
    container,
    findings,
    manifest,
    owned,
    pod,
    sealed_cluster,
    verdicts,
)

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
TEAM = "v1/Namespace team"
NAMESPACE_LABEL = "io.cilium.k8s.namespace.labels.team"
EVERYTHING: dict[str, Any] = {"podSelector": {}, "policyTypes": ["Egress"]}


def policy(name: str = "p", namespace: str = "team", **spec: Any) -> Any:
    """A NetworkPolicy; `spec` as written."""
    return manifest(NetworkPolicy, name, namespace, spec=spec)


def cilium(name: str = "p", namespace: str = "team", **fields: Any) -> Any:
    """A CiliumNetworkPolicy; `fields` as written."""
    return manifest(CiliumNetworkPolicy, name, namespace, **fields)


def clusterwide(**fields: Any) -> Any:
    """A CiliumClusterwideNetworkPolicy; `fields` as written."""
    return manifest(CiliumClusterwideNetworkPolicy, "p", **fields)


def calico_policy(namespace: str = "team", **spec: Any) -> Any:
    """A NetworkPolicy of Calico's; `spec` as written."""
    return manifest(CalicoNetworkPolicy, "p", namespace, spec=spec)


def team(*more: Any, **labels: str) -> list[Any]:
    """The sealed cluster, a pod in namespace team with these labels, and more."""
    return [*sealed_cluster(), pod("web-1", "team", labels=labels), *more]


# ------------------------------------------------------------------ default deny


def test_a_namespace_without_any_policy_is_open() -> None:
    (finding,) = findings("k8s-default-deny-egress", team(app="web"))
    assert (finding.resource, finding.verdict, finding.severity) == (TEAM, OPEN, Severity.HIGH)
    assert "v1/Pod team/web-1" in finding.message


CLOSES = {
    "all pods": policy(**EVERYTHING),
    "all pods, with a rule": policy(**EVERYTHING, egress=[{"to": [{"podSelector": {}}]}]),
    "no types but rules": policy(podSelector={}, egress=[{"to": [{"podSelector": {}}]}]),
    "by label": policy(podSelector={"matchLabels": {"app": "web"}}, policyTypes=["Egress"]),
    "by expression": policy(
        podSelector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, policyTypes=["Egress"]
    ),
    "cilium, empty rule": cilium(spec={"endpointSelector": {}, "egress": [{}]}),
    "cilium, in specs": cilium(specs=[{"endpointSelector": {"matchLabels": {"k8s:app": "web"}}, "egress": [{}]}]),
    "cilium, said outright": clusterwide(
        spec={"endpointSelector": {}, "egress": [{}], "enableDefaultDeny": {"egress": True}}
    ),
    "cilium, deny rule": cilium(spec={"endpointSelector": {}, "egressDeny": [{"toEntities": ["world"]}]}),
    "cilium, whole cluster": clusterwide(
        spec={
            "endpointSelector": {
                "matchExpressions": [
                    {"key": "io.kubernetes.pod.namespace", "operator": "NotIn", "values": ["kube-system"]}
                ]
            },
            "egress": [{}],
        }
    ),
}
LEAVES_OPEN = {
    "ingress only": policy(podSelector={}, policyTypes=["Ingress"], egress=[]),
    "no types and no rules": policy(podSelector={}),
    "another label": policy(podSelector={"matchLabels": {"app": "api"}}, policyTypes=["Egress"]),
    "another namespace": policy(namespace="elsewhere", **EVERYTHING),
    "cilium, empty list": cilium(spec={"endpointSelector": {}, "egress": []}),
    "cilium, default deny without a section egress": clusterwide(
        spec={"endpointSelector": {}, "ingress": [{}], "enableDefaultDeny": {"egress": True}}
    ),
    "cilium, default deny and empty lists": cilium(
        spec={"endpointSelector": {}, "egress": [], "egressDeny": [], "enableDefaultDeny": {"egress": True}}
    ),
    "cilium, default deny off": cilium(
        spec={"endpointSelector": {}, "egress": [{}], "enableDefaultDeny": {"egress": False}}
    ),
    "cilium, other namespace": cilium(namespace="elsewhere", spec={"endpointSelector": {}, "egress": [{}]}),
    "cilium, nodes": clusterwide(spec={"nodeSelector": {}, "egress": [{}]}),
    "cilium, ingress rules only": clusterwide(spec={"endpointSelector": {}, "ingress": [{}]}),
    "cilium, neither": clusterwide(
        spec={
            "endpointSelector": {"matchLabels": {NAMESPACE_LABEL: "red", "app": "api"}},
            "egress": [{}],
        }
    ),
    "calico, ingress only": calico_policy(types=["Ingress"], egress=[{"action": "Deny"}]),
    "calico, no types and no rules": calico_policy(selector="all()"),
    "calico, another namespace": calico_policy(namespace="elsewhere", types=["Egress"]),
}
MAY_CLOSE = {
    "unknown operator": policy(
        podSelector={"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]},
        policyTypes=["Egress"],
    ),
    "cilium, a label of the namespace": clusterwide(
        spec={"endpointSelector": {"matchLabels": {NAMESPACE_LABEL: "red"}}, "egress": [{}]}
    ),
    "cilium, no label of the namespace": clusterwide(
        spec={
            "endpointSelector": {"matchExpressions": [{"key": NAMESPACE_LABEL, "operator": "DoesNotExist"}]},
            "egress": [{}],
        }
    ),
    "cilium, a service account": cilium(
        spec={
            "endpointSelector": {"matchLabels": {"app": "web", "io.cilium.k8s.policy.serviceaccount": "web"}},
            "egress": [{}],
        }
    ),
    "calico": calico_policy(selector="app == 'web'", types=["Egress"]),
    "calico, no types but rules": calico_policy(egress=[{"action": "Deny"}]),
    "calico, whole cluster": manifest(CalicoGlobalNetworkPolicy, "p", spec={"selector": "all()", "types": ["Egress"]}),
    "unknown field of the selector": policy(podSelector={"matchNames": ["web"]}, policyTypes=["Egress"]),
    "cilium, unknown field of the selector": cilium(spec={"endpointSelector": {"matchNames": []}, "egress": [{}]}),
    "cilium, unknown field": cilium(spec={"endpointSelector": {}, "egress": [{}], "onWeekdays": True}),
    "damaged": policy(podSelector={"matchLabels": "app"}, policyTypes=["Egress"]),
}


@pytest.mark.parametrize("name", CLOSES)
def test_a_policy_that_selects_every_pod_closes_the_namespace(name: str) -> None:
    assert verdicts("k8s-default-deny-egress", team(CLOSES[name], app="web")) == {CLUSTER: FINE}


@pytest.mark.parametrize("name", LEAVES_OPEN)
def test_a_policy_that_does_not_certainly_close_the_pod_leaves_it_open(name: str) -> None:
    assert verdicts("k8s-default-deny-egress", team(LEAVES_OPEN[name], app="web")) == {TEAM: OPEN}


@pytest.mark.parametrize("name", MAY_CLOSE)
def test_a_policy_that_may_close_the_pod_leaves_it_unknown(name: str) -> None:
    (finding,) = findings("k8s-default-deny-egress", team(MAY_CLOSE[name], app="web"))
    assert (finding.resource, finding.verdict, finding.reason) == (TEAM, UNSEEN, "SelectionUnknown")


@pytest.mark.parametrize("name", MAY_CLOSE)
def test_a_policy_that_closes_the_pod_leaves_no_doubt(name: str) -> None:
    some = [policy("sure", **EVERYTHING), MAY_CLOSE[name]]
    assert verdicts("k8s-default-deny-egress", team(*some, app="web")) == {CLUSTER: FINE}


def test_a_pod_that_is_certainly_open_outweighs_a_doubt() -> None:
    more = [MAY_CLOSE["cilium, a service account"], pod("stray", "team", labels={"app": "other"})]
    (finding,) = findings("k8s-default-deny-egress", team(*more, app="web"))
    assert (finding.resource, finding.verdict) == (TEAM, OPEN)
    assert "stray" in finding.message
    assert "web-1" not in finding.message


def test_one_pod_that_no_policy_selects_opens_the_namespace() -> None:
    more = [CLOSES["by label"], pod("stray", "team", labels={"app": "other"})]
    (finding,) = findings("k8s-default-deny-egress", team(*more, app="web"))
    assert finding.verdict is OPEN
    assert "stray" in finding.message
    assert "web-1" not in finding.message


@pytest.mark.parametrize(
    "excused",
    [
        pod("done", "team", labels={}, status={"phase": "Succeeded"}),
        pod("host", "team", labels={}, spec={"hostNetwork": True}),
        pod("metrics", "kube-system", labels={}, spec={"containers": [container(image="mcr.microsoft.com/oss/x:1")]}),
    ],
)
def test_pods_that_no_policy_could_reach_or_should_are_left_out(excused: Any) -> None:
    assert verdicts("k8s-default-deny-egress", [*sealed_cluster(), excused]) == {CLUSTER: FINE}


def test_hermetics_labels_excuse_no_pod_in_another_namespace() -> None:
    labels = {"app.kubernetes.io/name": "hermetic", "app.kubernetes.io/component": "egress-probe"}
    pretender = pod("probe-1", "team", labels=labels, ownerReferences=owned("Job", "probe-1", "batch/v1"))
    assert verdicts("k8s-default-deny-egress", [*sealed_cluster(), pretender]) == {TEAM: OPEN}


@pytest.mark.parametrize(
    "kind",
    [
        NetworkPolicy,
        CiliumNetworkPolicy,
        CiliumClusterwideNetworkPolicy,
        CalicoNetworkPolicy,
        CalicoGlobalNetworkPolicy,
    ],
)
def test_policies_that_could_not_be_read_make_an_open_namespace_unknown(kind: Any) -> None:
    assert verdicts("k8s-default-deny-egress", team(), forbidden=[kind])[TEAM] is UNSEEN


# ------------------------------------------------------------------ wide rules


def block(cidr: str, *excepted: str) -> Any:
    """A NetworkPolicy that lets traffic go to a range."""
    return policy(**EVERYTHING, egress=[{"to": [{"ipBlock": {"cidr": cidr, "except": list(excepted)}}]}])


def cilium_rule(**rule: Any) -> Any:
    """A Cilium policy of one egress rule."""
    return cilium(spec={"endpointSelector": {}, "egress": [rule]})


def without(key: str, operator: str, *values: str) -> Any:
    """A selector of whatever lacks a label, or has other values of it."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def calico(**rule: Any) -> Any:
    """A Calico policy of one egress rule."""
    return manifest(CalicoNetworkPolicy, "p", "team", spec={"egress": [rule]})


def in_tier(tier: str, **rule: Any) -> Any:
    """A Calico policy of the whole cluster, of one egress rule, in a tier; its name has the tier as prefix."""
    return manifest(CalicoGlobalNetworkPolicy, f"{tier}.p", spec={"tier": tier, "egress": [rule]})


PORTS = [{"ports": [{"port": "53"}]}]
WIDE = [
    policy(**EVERYTHING, egress=[{}]),
    policy(**EVERYTHING, egress=[{"to": []}]),
    policy(**EVERYTHING, egress=[{"ports": [{"port": 53, "protocol": "UDP"}]}]),
    block("0.0.0.0/0"),
    block("0.0.0.0/0", "10.0.0.0/8"),
    block("0.0.0.0/1"),
    block("::/0"),
    block("20.0.0.0/8"),
    block("1.1.1.1/32"),
    block("::ffff:0.0.0.0/96"),
    block("::ffff:8.8.8.0/120"),
    block("0.0.0.0/0", "::ffff:0.0.0.0/96"),
    cilium_rule(toEntities=["world"]),
    cilium_rule(toEntities=["cluster", "all"]),
    cilium_rule(toEntities=["world-ipv4"]),
    cilium_rule(toCIDR=["0.0.0.0/0"]),
    cilium_rule(toCIDR=["::ffff:8.8.8.8"]),
    cilium_rule(toCIDRSet=[{"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}]),
    cilium_rule(toFQDNs=[{"matchName": "huggingface.co"}]),
    cilium_rule(toPorts=PORTS),
    cilium_rule(toFQDNs=[], toPorts=PORTS),
    cilium_rule(toGroups=[], toPorts=PORTS),
    cilium_rule(toServices=[], toPorts=PORTS),
    cilium_rule(toServices=[], icmps=[{"fields": [{"type": 8}]}]),
    cilium_rule(toEndpoints=[{"matchLabels": {"reserved:world": ""}}]),
    cilium_rule(toEndpoints=[{"matchLabels": {"reserved.world": ""}}]),
    cilium_rule(toEndpoints=[{"matchLabels": {"app": "db"}}, {"matchLabels": {"reserved:world-ipv6": ""}}]),
    cilium_rule(toEndpoints=[{"matchExpressions": [{"key": "reserved:world-ipv4", "operator": "Exists"}]}]),
    clusterwide(spec={"endpointSelector": {}, "egress": [{"toEndpoints": [{"matchLabels": {"reserved:world": ""}}]}]}),
    clusterwide(specs=[{"endpointSelector": {}, "egress": [{"toEntities": ["all"]}]}]),
    calico(action="Allow"),
    calico(action="Allow", destination={"nets": ["0.0.0.0/0"]}),
    calico(action="Allow", destination={"domains": ["*.example.com"]}),
    calico(action="Allow", destination={"notNets": ["10.0.0.0/8"]}),
    calico(action="Allow", destination={"notNets": ["0.0.0.0/0"]}),
    calico(action="Allow", destination={"notNets": ["::/0"]}),
    calico(action="Allow", destination={"nets": ["::/0"], "notNets": ["0.0.0.0/0"]}),
    manifest(CalicoGlobalNetworkPolicy, "p", spec={"egress": [{"action": "Allow"}]}),
    calico(action="Pass"),
    calico(action="Pass", destination={"nets": ["20.0.0.0/8"]}),
    in_tier("default", action="Pass"),
]
NARROW = [
    policy(**EVERYTHING, egress=[{"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"k": "dns"}}}]}]),
    policy(podSelector={}, policyTypes=["Ingress"], egress=[{}]),
    policy(namespace="kube-system", podSelector={}, policyTypes=["Egress"], egress=[{}]),
    block("10.0.0.0/8"),
    block("169.254.20.10/32"),
    block("169.254.10.0/24"),
    block("169.254.0.0/16", "169.254.169.254/32"),
    block("fd00::/8"),
    block("::ffff:10.0.0.0/104"),
    block("20.0.0.0/8", "20.0.0.0/8"),
    cilium_rule(),
    cilium_rule(toEntities=["cluster", "kube-apiserver"]),
    cilium_rule(toCIDR=["10.1.0.0/16"], toPorts=[{"ports": [{"port": "2049"}]}]),
    cilium_rule(toEndpoints=[{"matchLabels": {"k8s-app": "kube-dns"}}], toPorts=[{"ports": [{"port": "53"}]}]),
    cilium_rule(toEndpoints=[{}]),
    cilium_rule(toCIDR=["10.1.0.0/16"], toFQDNs=[], toPorts=PORTS),
    cilium_rule(toFQDNs=[]),
    cilium_rule(toEndpoints=[{"matchLabels": {"k8s:io.kubernetes.pod.namespace": "kube-system"}}]),
    cilium_rule(toEndpoints=[{"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}]),
    cilium_rule(toEntities=["cluster"], authentication={"mode": "required"}, toRequires=[{}]),
    cilium(spec={"endpointSelector": {}, "egress": [{}], "description": "d", "labels": [], "log": {}}),
    calico(action="Deny"),
    calico(action="Allow", destination={"nets": ["10.0.0.0/8"]}),
    calico(
        action="Allow", protocol="TCP", ipVersion=4, metadata={}, destination={"nets": ["10.0.0.0/8"], "ports": [443]}
    ),
    calico(action="Allow", destination={"notNets": ["0.0.0.0/0", "::/0"]}),
    calico(action="Allow", destination={"selector": "app == 'db'"}),
    calico(action="Pass", destination={"nets": ["10.0.0.0/8"]}),
    in_tier("platform", action="Pass", destination={"nets": ["10.0.0.0/8"]}),
]
UNCLEAR = [
    policy(**EVERYTHING, egress=[{"to": [{"somethingNew": {}}]}]),
    block("ten"),
    block("::/80"),
    cilium_rule(toEntities=["galaxy"]),
    cilium_rule(toGroups=[{"aws": {}}]),
    cilium_rule(toCIDRSet=[{"cidrGroupRef": "partners"}]),
    cilium_rule(toCIDRSet=[{"cidrGroupSelector": {"matchLabels": {"of": "partners"}}}]),
    cilium_rule(toCIDRSet=[{"cidrGroupSelector": {}}]),
    cilium_rule(toEndpoints=[{"matchLabels": {"reserved:host": ""}}]),
    cilium_rule(toEndpoints=[{"matchExpressions": [{"key": "reserved:world", "operator": "DoesNotExist"}]}]),
    cilium_rule(toEndpoints=[without("k8s:io.kubernetes.pod.namespace", "DoesNotExist")]),
    cilium_rule(toEndpoints=[without("io.kubernetes.pod.namespace", "NotIn", "kube-system")]),
    cilium_rule(toEndpoints=[without("io.cilium.k8s.namespace.labels.team", "NotIn", "red")]),
    *(
        cilium_rule(**{field: [], "toPorts": PORTS})
        for field in ("toEndpoints", "toCIDR", "toCIDRSet", "toEntities", "toNodes")
    ),
    cilium_rule(toFQDNs=[], toCIDR=[], toPorts=PORTS),
    *(
        cilium_rule(toPlanets=["mars"], **rule_fields)
        for rule_fields in ({}, {"toPorts": PORTS}, {"toEntities": ["cluster"]})
    ),
    cilium_rule(toCIDRSet=[{"cidr": "10.0.0.0/8", "cidrSelector": {}}]),
    cilium_rule(toEndpoints=[{"matchNames": ["db"]}]),
    cilium_rule(toServices=[{"k8sService": {"serviceName": "db"}}], toPorts=PORTS),
    cilium(specs=[{"endpointSelector": {}, "egress": [{}], "egressElsewhere": [{}]}]),
    clusterwide(spec={"endpointSelector": {}, "egress": [{"toPlanets": ["mars"]}]}),
    policy(**EVERYTHING, egress=[{"to": [{"podSelector": {}, "somethingNew": {}}]}]),
    policy(**EVERYTHING, egress=[{"to": [{"podSelector": {}}], "toAsWell": [{}]}]),
    policy(**EVERYTHING, egressElsewhere=[{}]),
    calico(action="Allow", destination={"planets": ["mars"]}),
    calico(action="Allow", destination={"selector": "app == 'db'", "planets": ["mars"]}),
    calico(action="Allow", destination={"nets": ["10.0.0.0/8"]}, orDestination={}),
    manifest(CalicoGlobalNetworkPolicy, "p", spec={"egress": [], "egressElsewhere": [{}]}),
    *(
        manifest(AdminNetworkPolicy, "p", spec={"egress": [{"action": "Allow", **rule}]})
        for rule in ({"to": [{"pods": {}, "planets": ["mars"]}]}, {"to": [{"pods": {}}], "toAsWell": [{}]})
    ),
    calico(action="Maybe"),
    in_tier("platform", action="Pass"),
    in_tier("platform", action="Pass", destination={"nets": ["20.0.0.0/8"]}),
]


@pytest.mark.parametrize("wide", WIDE)
def test_a_rule_that_leads_to_public_addresses_is_open(wide: Any) -> None:
    (finding,) = findings("k8s-policy-allow-all", [*sealed_cluster(), wide])
    assert finding.verdict is OPEN
    assert finding.resource.startswith(f"{wide['apiVersion']}/{wide['kind']} ")


@pytest.mark.parametrize("narrow", NARROW)
def test_a_rule_that_stays_inside_passes(narrow: Any) -> None:
    assert verdicts("k8s-policy-allow-all", [*sealed_cluster(), narrow]) == {CLUSTER: FINE}


@pytest.mark.parametrize("unclear", UNCLEAR)
def test_a_rule_that_cannot_be_read_is_unknown(unclear: Any) -> None:
    assert set(verdicts("k8s-policy-allow-all", [*sealed_cluster(), unclear]).values()) == {UNSEEN}


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (CalicoGlobalNetworkSet, {"nets": ["20.1.0.0/16"]}, UNSEEN),
        (CalicoHostEndpoint, {"node": "none", "expectedIPs": ["10.1.0.4", "20.1.2.3"]}, UNSEEN),
        (CalicoHostEndpoint, {"node": "none", "expectedIPs": ["anything"]}, UNSEEN),
        (CalicoGlobalNetworkSet, {"nets": ["10.1.0.0/16"], "planets": ["mars"]}, UNSEEN),
        (CalicoHostEndpoint, {"node": "aks-gpu-0", "interfaceName": "*", "expectedIPs": ["10.1.0.4"]}, FINE),
    ],
)
def test_a_calico_selector_is_unknown_where_a_set_or_a_host_has_public_addresses(
    kind: Any, spec: Any, expected: Verdict
) -> None:
    partners = manifest(kind, "partners", labels={"role": "partner"}, spec=spec)
    selecting = calico(action="Allow", destination={"selector": "role == 'partner'"})
    assert set(verdicts("k8s-policy-allow-all", [*sealed_cluster(), partners, selecting]).values()) == {expected}

"""What holds for every check of the cluster's own objects: without all that it reads there is never a Pass."""

from __future__ import annotations

import pytest

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import ASKED, BY_TYPE, question
from hermetic.audit.estate.kubernetes.calico_policies import CalicoGlobalNetworkPolicy, CalicoNetworkPolicy
from hermetic.audit.estate.kubernetes.calls import ConfigMap, MutatingWebhookConfiguration
from hermetic.audit.estate.kubernetes.engine_settings import CiliumNodeConfig, FelixConfiguration
from hermetic.audit.estate.kubernetes.nodes import Namespace, Node
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import ADMIN_KINDS
from hermetic.audit.estate.kubernetes.served import SERVED
from hermetic.audit.estate.kubernetes.services import EndpointSlice, Service
from hermetic.audit.estate.kubernetes.templates import CONTROLLERS, DaemonSet
from hermetic.audit.evaluation.check_findings import Check, findings_of
from hermetic.audit.model.findings import Verdict
from hermetic.audit.policy.declarations import Policy
from tests.kubernetes_estates import CLUSTER, POLICY, findings, manifest, sealed_cluster, verdicts, with_one

TABLE_I = {
    "k8s-public-lb", "k8s-lb-status-ip", "k8s-externalips", "k8s-externalname", "k8s-endpoints-external",
    "k8s-nodeport", "k8s-hostnetwork", "k8s-privileged", "k8s-node-externalip", "k8s-default-deny-egress",
    "k8s-policy-engine-live", "k8s-policy-allow-all", "k8s-static-egress", "k8s-svc-egress-gateway",
    "k8s-ingress-gateway", "k8s-proxy-env", "k8s-image-origin", "k8s-hf-offline", "k8s-webhook-external",
    "k8s-apiservice-external", "k8s-other-ways", "k8s-mesh-egress", "k8s-unread-kinds",
    "k8s-outside-endpoint", "k8s-model-token", "k8s-gateway-routes",
}  # fmt: skip
OF_OTHER_TABLES = {"csi-nfs-storageclass", "weights-share-writable", "coredns-custom", "k8s-outside-storage"}
OURS = [check for check in CHECKS if check.page.id in TABLE_I | OF_OTHER_TABLES]

# Read only to excuse what else would be a Fail: not seeing them cannot turn a Pass. Namespaces do so for every check:
# a controller without pods makes none in one that is being deleted.
ONLY_EXCUSES = {
    ("k8s-endpoints-external", Pod),
    ("k8s-gateway-routes", Pod),
    ("k8s-gateway-routes", Node),
    ("k8s-endpoints-external", Node),
    ("k8s-policy-engine-live", DaemonSet),
    ("coredns-custom", Service),
    # It shows that a namespace is the mesh add-on's, whose network plug-in is recognised there.
    *(
        (check, MutatingWebhookConfiguration)
        for check in ("k8s-nodeport", "k8s-default-deny-egress", "k8s-policy-allow-all", "k8s-image-origin")
    ),
    # Only where a pod takes variables from one, or where Istio is there.
    ("k8s-proxy-env", ConfigMap),
    ("k8s-outside-endpoint", ConfigMap),
    ("k8s-hf-offline", ConfigMap),
    ("k8s-mesh-egress", ConfigMap),
    ("k8s-mesh-egress", Service),
    ("k8s-other-ways", Service),
    *(("k8s-mesh-egress", kind) for kind in (Pod, *CONTROLLERS)),
    ("k8s-default-deny-egress", CalicoNetworkPolicy),
    ("k8s-default-deny-egress", CalicoGlobalNetworkPolicy),
    *(("k8s-default-deny-egress", kind) for kind in ADMIN_KINDS),
    # Settings that are not read make k8s-policy-engine-live unknown, where the engine that has them runs.
    ("k8s-default-deny-egress", ConfigMap),
    ("k8s-default-deny-egress", CiliumNodeConfig),
    ("k8s-policy-engine-live", FelixConfiguration),
}


def wanted_by(check: Check) -> set[type[KubernetesObject]]:
    """The kinds that a check asks for when it knows nothing."""
    empty = Estate(CLUSTER, ("kube",), {})
    list(findings_of(check, empty, POLICY))
    return {BY_TYPE[question.kind.lower()] for question in empty.wanted.values() if question.key != SERVED.key}


def test_every_id_of_table_i_has_its_check_and_needs_the_cluster_alone() -> None:
    assert {check.page.id for check in OURS} == TABLE_I | OF_OTHER_TABLES
    assert {check.needs for check in OURS} == {frozenset({"kube"})}


def test_what_the_operator_watches_is_exactly_what_these_checks_ask_for() -> None:
    empty = Estate(CLUSTER, ("kube",), {})
    for check in OURS:
        list(findings_of(check, empty, POLICY))
    assert empty.wanted.keys() == {SERVED.key, *(question(kind, scope).key for kind, scope in ASKED)}


@pytest.mark.parametrize("check", OURS, ids=lambda check: check.page.id)
def test_a_sealed_cluster_passes_with_one_finding_and_its_evidence(check: Check) -> None:
    (finding,) = findings(check.page.id, sealed_cluster())
    assert (finding.verdict, finding.resource) == (Verdict.PASS, CLUSTER)
    assert all(exchange.status == 200 and exchange.sha256 for exchange in finding.evidence)


@pytest.mark.parametrize("check", OURS, ids=lambda check: check.page.id)
def test_a_kind_that_may_not_be_listed_makes_its_checks_unknown_and_names_the_permission(check: Check) -> None:
    for kind in wanted_by(check):
        if kind is Namespace or (check.page.id, kind) in ONLY_EXCUSES:
            continue
        results = findings(check.page.id, sealed_cluster(), forbidden=[kind])
        assert {result.verdict for result in results} == {Verdict.UNKNOWN}, kind
        assert any(f"list {kind.TYPE}" in result.message for result in results), kind


@pytest.mark.parametrize("check", OURS, ids=lambda check: check.page.id)
def test_nothing_seen_is_unknown(check: Check) -> None:
    results = list(findings_of(check, Estate(CLUSTER, ("kube",), {}), POLICY))
    assert {result.verdict for result in results} == {Verdict.UNKNOWN}


@pytest.mark.parametrize(
    ("kind", "checks"),
    [
        (Node, {"k8s-node-externalip", "k8s-nodeport", "k8s-policy-engine-live"}),
        (Service, {"k8s-public-lb", "k8s-lb-status-ip", "k8s-externalips", "k8s-externalname", "k8s-nodeport"}),
        (EndpointSlice, {"k8s-endpoints-external"}),
    ],
)
def test_an_empty_list_of_what_every_cluster_has_is_no_evidence(kind: type[KubernetesObject], checks: set[str]) -> None:
    cut = [manifest_of_cluster for manifest_of_cluster in sealed_cluster() if manifest_of_cluster["kind"] != kind.KIND]
    for check in checks:
        assert set(verdicts(check, cut).values()) == {Verdict.UNKNOWN}, check


DAMAGED = {
    "k8s-public-lb": manifest(Service, "odd", "inference", spec={"type": 5}),
    "k8s-lb-status-ip": manifest(Service, "odd", "inference", spec={}, status={"loadBalancer": {"ingress": "x"}}),
    "k8s-externalips": manifest(Service, "odd", "inference", spec={"externalIPs": "1.2.3.4"}),
    "k8s-endpoints-external": manifest(EndpointSlice, "odd", "inference", endpoints=[{"addresses": "1.2.3.4"}]),
    "k8s-node-externalip": manifest(Node, "odd", status={"addresses": {"type": "ExternalIP"}}),
    "k8s-hostnetwork": manifest(Pod, "odd", "inference", spec={"hostNetwork": "true"}),
    "k8s-privileged": manifest(
        Pod, "odd", "inference", spec={"containers": [{"name": "x", "securityContext": {"privileged": "yes"}}]}
    ),
    "k8s-proxy-env": manifest(Pod, "odd", "inference", spec={"containers": [{"name": "x", "env": "HTTP_PROXY"}]}),
}


@pytest.mark.parametrize("check", DAMAGED)
def test_a_damaged_object_is_unknown_and_hides_no_other_fail(check: str) -> None:
    by_resource = verdicts(check, with_one(DAMAGED[check]))
    assert Verdict.UNKNOWN in by_resource.values()
    assert Verdict.PASS not in by_resource.values()


def test_one_damaged_service_does_not_hide_the_public_one_after_it() -> None:
    public = manifest(Service, "zz-public", "inference", spec={"type": "LoadBalancer"})
    by_resource = verdicts("k8s-public-lb", [*with_one(DAMAGED["k8s-public-lb"]), public])
    assert by_resource == {
        "v1/Service inference/odd": Verdict.UNKNOWN,
        "v1/Service inference/zz-public": Verdict.FAIL,
    }


def test_a_fail_stands_beside_a_list_that_is_not_whole() -> None:
    public = manifest(Service, "llama", "inference", spec={"type": "LoadBalancer", "ports": [{"nodePort": 30000}]})
    by_resource = verdicts("k8s-nodeport", with_one(public), forbidden=[Node])
    assert by_resource == {"v1/Service inference/llama": Verdict.FAIL, CLUSTER: Verdict.UNKNOWN}


def test_no_policy_at_all_decides_nothing_but_the_registries() -> None:
    for check in OURS:
        results = {result.verdict for result in findings(check.page.id, sealed_cluster(), policy=Policy())}
        assert results == ({Verdict.UNKNOWN} if check.page.id == "k8s-image-origin" else {Verdict.PASS})

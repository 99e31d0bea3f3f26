"""Findings name who wrote the object that they blame, as far as the API server's record of field managers tells."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.field_managers import BLAMED as BLAMED_PLACES
from hermetic.api.field_managers import last_writer, newest, record
from hermetic.audit.estate.kubernetes.calls import CustomResourceDefinition
from hermetic.audit.estate.kubernetes.mesh import Sidecar
from hermetic.audit.estate.kubernetes.policies import NetworkPolicy
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.kubernetes.routes import HttpRoute
from hermetic.audit.estate.kubernetes.services import EndpointSlice, Gateway, Ingress, Service
from hermetic.audit.estate.kubernetes.templates import CronJob, Deployment, Job, ReplicaSet
from tests.kubernetes_estates import container, findings, manifest, owned, pod, sealed_cluster, with_one

Manifest = dict[str, Any]
HERS = "written by field manager 'mallory' (Update, 2026-11-22T11:00:00Z)"
SPEC = {"f:spec": {"f:type": {}}}


def entry(manager: str, at: int, *, fields: Manifest | None = None, **more: str) -> Manifest:
    """One entry of metadata.managedFields, written at this hour."""
    time = f"2026-11-22T{at:02}:00:00Z"
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields or SPEC, **more}


BOOK = [
    entry("kubectl-create", 10),
    entry("mallory", 11),
    entry("cloud-controller-manager", 12, subresource="status", fields={"f:status": {}}),
    entry("kube-controller-manager", 13, fields={"f:metadata": {"f:finalizers": {}, "f:labels": {}}}),
    entry("hermetic", 14, operation="Apply"),
]
PROXY = {"containers": [container(env=[{"name": "HTTPS_PROXY", "value": "http://10.9.9.9:3128"}])]}
CONVERTED_OUTSIDE = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://convert.example.com"}}}
TRAINS = {"group": "ray.io", "names": {"plural": "trains", "kind": "Train"}, "conversion": CONVERTED_OUTSIDE}
OUTSIDE = [{"addresses": ["203.0.113.7"]}]

BLAMED: dict[str, tuple[str, Manifest]] = {
    "public load balancer": ("k8s-public-lb", manifest(Service, "a", "team", spec={"type": "LoadBalancer"})),
    "given address": (
        "k8s-lb-status-ip",
        manifest(Service, "a", "team", status={"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}),
    ),
    "external IPs": ("k8s-externalips", manifest(Service, "a", "team", spec={"externalIPs": ["203.0.113.7"]})),
    "ExternalName": (
        "k8s-externalname",
        manifest(Service, "a", "team", spec={"type": "ExternalName", "externalName": "api.example.com"}),
    ),
    "slice": (
        "k8s-endpoints-external",
        manifest(EndpointSlice, "a", "team", addressType="IPv4", endpoints=OUTSIDE),
    ),
    "ingress": (
        "k8s-ingress-gateway",
        manifest(Ingress, "a", "team", status={"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}),
    ),
    "gateway": (
        "k8s-ingress-gateway",
        manifest(Gateway, "a", "team", status={"addresses": [{"value": "203.0.113.7"}]}),
    ),
    "route": (
        "k8s-gateway-routes",
        manifest(
            HttpRoute,
            "a",
            "team",
            spec={
                "rules": [{"backendRefs": [{"group": "networking.istio.io", "kind": "Hostname", "name": "a.example"}]}]
            },
        ),
    ),
    "wide policy": (
        "k8s-policy-allow-all",
        manifest(NetworkPolicy, "a", "team", spec={"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}),
    ),
    "definition with a conversion webhook": (
        "k8s-webhook-external",
        manifest(CustomResourceDefinition, "trains.ray.io", spec=TRAINS),
    ),
    "pod with a proxy": ("k8s-proxy-env", pod("a", "inference", spec=PROXY)),
    "template with a proxy": (
        "k8s-proxy-env",
        manifest(Deployment, "a", "inference", spec={"replicas": 0, "template": {"spec": PROXY}}),
    ),
}


def signed(unsigned: Manifest, book: Any) -> Manifest:
    """The manifest as its API server shows it, with this record of who wrote it."""
    return {**unsigned, "metadata": {**unsigned["metadata"], "managedFields": book}}


def message(check: str, *changes: Manifest) -> str:
    """The message about the object changed."""
    (finding,) = findings(check, [*sealed_cluster(), *changes])
    return finding.message


@pytest.mark.parametrize(("check", "blamed"), BLAMED.values(), ids=BLAMED)
def test_who_wrote_the_object_is_named(check: str, blamed: Manifest) -> None:
    unsigned = message(check, blamed)
    assert "written by" not in unsigned
    assert message(check, signed(blamed, BOOK)) == f"{unsigned}; {HERS}"


def test_of_pods_that_a_controller_made_the_controller_names_who_wrote_it() -> None:
    proxy_pod = pod("a-5d9c-x", "inference", ownerReferences=owned("ReplicaSet", "a-5d9c"), spec=PROXY)
    proxy_pod["metadata"]["labels"] = {"pod-template-hash": "5d9c"}
    proxy_pod = signed(proxy_pod, [entry("kube-controller-manager", 12)])
    live = {"replicas": 1, "updatedReplicas": 1}
    deployment = manifest(Deployment, "a", "inference", spec={"replicas": 1, "template": {"spec": PROXY}}, status=live)
    assert message("k8s-proxy-env", proxy_pod, signed(deployment, BOOK)).endswith(HERS)
    assert "written by" not in message("k8s-proxy-env", proxy_pod, deployment)


def test_a_workload_with_pods_and_a_template_that_waits_is_named_once() -> None:
    proxy_pod = pod("a-x", "inference", ownerReferences=owned("Deployment", "a"), spec=PROXY)
    waiting = manifest(Deployment, "a", "inference", spec={"replicas": 1, "template": {"spec": PROXY}}, status={})
    assert message("k8s-proxy-env", proxy_pod, signed(waiting, BOOK)).count("written by") == 1


def test_a_finding_about_the_cluster_names_no_manager() -> None:
    fine = signed(manifest(Service, "a", "team", spec={"type": "ClusterIP"}), BOOK)
    (finding,) = findings("k8s-public-lb", with_one(fine))
    assert "written by" not in finding.message


def test_what_is_kept_is_one_name_and_no_field() -> None:
    projection = projected(Service, signed(manifest(Service, "a", "team"), BOOK))
    hers = {"manager": "mallory", "operation": "Update", "time": "2026-11-22T11:00:00Z"}
    assert projection["metadata"]["managedFields"] == [hers]
    assert projected(Service, projection) == projection


def test_of_a_definition_the_name_and_the_last_writer_are_kept() -> None:
    definition = manifest(CustomResourceDefinition, "trains.ray.io", labels={"a": "b"}, spec=TRAINS)
    projection = projected(CustomResourceDefinition, signed(definition, BOOK))
    assert projection["metadata"].keys() == {"name", "managedFields"}
    assert [entry["manager"] for entry in projection["metadata"]["managedFields"]] == ["mallory"]


@pytest.mark.parametrize("kind", [Deployment, Job])
def test_of_a_controller_with_pods_nothing_else_is_kept(kind: Any) -> None:
    live = {"updatedReplicas": 1, "active": 1}
    workload = manifest(
        kind, "a", "team", labels={"a": "b"}, spec={"replicas": 1, "template": {"spec": PROXY}}, status=live
    )
    projection = projected(kind, signed(workload, BOOK))
    assert projection["metadata"].keys() == {"name", "namespace", "managedFields"}
    assert not projection["spec"]
    assert kind.is_relevant(projection)
    assert not kind.is_relevant(projected(kind, workload))


def test_of_a_replica_set_with_pods_nothing_is_kept_at_all() -> None:
    replica_set = manifest(ReplicaSet, "a", "team", ownerReferences=owned("Deployment", "a"), spec={"template": {}})
    assert not ReplicaSet.is_relevant(projected(ReplicaSet, signed(replica_set, BOOK)))


@pytest.mark.parametrize("book", [None, "x", [], ["x"], [{}], [{"manager": 7, "time": {}}], {"manager": "x"}])
def test_a_record_that_cannot_be_read_changes_no_verdict(book: Any) -> None:
    blamed = signed(BLAMED["public load balancer"][1], book)
    (finding,) = findings("k8s-public-lb", with_one(blamed))
    assert (finding.verdict.value, finding.reason) == ("Fail", "LoadBalancerNotInternal")


def test_a_name_is_one_bounded_line() -> None:
    text = message("k8s-public-lb", signed(BLAMED["public load balancer"][1], [entry("m\n\u202e" + "x" * 9000, 11)]))
    assert text.isprintable()
    assert len(text) < 500


def test_who_only_labels_or_holds_is_named_where_there_is_no_other() -> None:
    aside = entry("labeller", 12, fields={"f:metadata": {"f:labels": {"f:a": {}}}})
    annotated = entry("annotator", 13, fields={"f:metadata": {"f:annotations": {"f:a": {}}}})
    assert last_writer([aside]) == "'labeller' (Update, 2026-11-22T12:00:00Z)"
    assert newest([entry("mallory", 11), aside])[0]["manager"] == "mallory"
    assert newest([entry("mallory", 11), aside, annotated])[0]["manager"] == "annotator"


# ---------------------------------------------------------------------- who wrote the field that offends

HIS = "written by field manager 'helm' (Update, 2026-11-22T08:00:00Z)"
OFFENDING: dict[str, Manifest] = {
    "public load balancer": {"f:spec": {"f:type": {}}},
    "external IPs": {"f:spec": {"f:externalIPs": {}}},
    "ExternalName": {"f:spec": {"f:externalName": {}}},
    "slice": {"f:endpoints": {}},
    "route": {"f:spec": {"f:rules": {}}},
    "wide policy": {"f:spec": {"f:egress": {}, "f:podSelector": {}}},
    "definition with a conversion webhook": {"f:spec": {"f:conversion": {"f:strategy": {}}}},
}


def later(manager: str = "kubectl-label", at: int = 12, **fields: Any) -> Manifest:
    """Who wrote something else of the object afterwards."""
    return entry(manager, at, fields=fields or {"f:spec": {"f:sessionAffinity": {}}})


@pytest.mark.parametrize("shape", OFFENDING)
@pytest.mark.parametrize("turned", [False, True])
def test_who_wrote_the_field_that_offends_is_named_and_not_who_came_later(shape: str, turned: bool) -> None:
    check, blamed = BLAMED[shape]
    book = [entry("helm", 8, fields=OFFENDING[shape]), later()]
    assert message(check, signed(blamed, book[::-1] if turned else book)).endswith(HIS)


EGRESS_PROXY = {"outboundTrafficPolicy": {"mode": "ALLOW_ANY", "egressProxy": {"host": "proxy.example.com"}}}
OPEN_TEMPLATES: dict[str, tuple[str, Manifest, Manifest]] = {
    "container": ("k8s-proxy-env", PROXY, {"f:containers": {'k:{"name":"engine"}': {"f:env": {}}}}),
    "host network": ("k8s-hostnetwork", {"hostNetwork": True, "containers": [container()]}, {"f:hostNetwork": {}}),
    "processes": ("k8s-privileged", {"hostPID": True, "containers": [container()]}, {"f:hostPID": {}}),
    "volume": (
        "k8s-privileged",
        {"volumes": [{"name": "x", "hostPath": {"path": "/"}}], "containers": [container()]},
        {"f:volumes": {}},
    ),
}
AFTERWARDS: dict[str, Manifest] = {
    "annotations of the object": {"f:metadata": {"f:annotations": {"f:a": {}}}},
    "replicas": {"f:spec": {"f:replicas": {}}},
    "another field of the pods": {"f:spec": {"f:template": {"f:spec": {"f:terminationGracePeriodSeconds": {}}}}},
}


@pytest.mark.parametrize("shape", OPEN_TEMPLATES)
@pytest.mark.parametrize("afterwards", AFTERWARDS)
@pytest.mark.parametrize("has_pods", [False, True])
def test_of_a_template_who_wrote_the_field_that_offends_is_named(shape: str, afterwards: str, has_pods: bool) -> None:
    check, spec, fields = OPEN_TEMPLATES[shape]
    book = [
        entry("helm", 8, fields={"f:spec": {"f:template": {"f:spec": fields}}}),
        entry("kubectl", 12, fields=AFTERWARDS[afterwards]),
    ]
    status = {"replicas": 1, "updatedReplicas": 1} if has_pods else {}
    workload = manifest(Deployment, "a", "inference", spec={"replicas": 1, "template": {"spec": spec}}, status=status)
    proxy_pod = pod("a-5d9c-x", "inference", ownerReferences=owned("ReplicaSet", "a-5d9c"), spec=spec)
    proxy_pod["metadata"]["labels"] = {"pod-template-hash": "5d9c"}
    assert message(check, *([proxy_pod] if has_pods else []), signed(workload, book)).endswith(HIS)


def test_of_a_cron_job_who_wrote_the_field_that_offends_is_named() -> None:
    night = manifest(CronJob, "a", "inference", spec={"jobTemplate": {"spec": {"template": {"spec": PROXY}}}})
    template = {"f:spec": {"f:jobTemplate": {"f:spec": {"f:template": {"f:spec": {"f:containers": {}}}}}}}
    book = [entry("helm", 8, fields=template), later("kubectl", 12, **{"f:spec": {"f:schedule": {}}})]
    assert message("k8s-proxy-env", signed(night, book)).endswith(HIS)


def test_of_an_object_of_the_mesh_who_wrote_its_spec_is_named() -> None:
    sidecar = manifest(Sidecar, "a", "inference", spec=EGRESS_PROXY)
    book = [
        entry("helm", 8, fields={"f:spec": {"f:outboundTrafficPolicy": {}}}),
        entry("kubectl", 12, fields=AFTERWARDS["annotations of the object"]),
    ]
    (finding,) = [
        candidate
        for candidate in findings("k8s-mesh-egress", [*sealed_cluster(), signed(sidecar, book)])
        if candidate.paths
    ]
    assert finding.message.endswith(HIS)


def test_of_two_who_wrote_the_field_the_later_is_named() -> None:
    book = [entry("helm", 8, fields=SPEC), entry("mallory", 11, fields=SPEC), later()]
    assert message("k8s-public-lb", signed(BLAMED["public load balancer"][1], book)).endswith(HERS)


def test_who_wrote_the_annotation_that_makes_it_public_is_named_before_who_wrote_the_type() -> None:
    name = "service.beta.kubernetes.io/azure-load-balancer-internal"
    public = manifest(Service, "a", "team", annotations={name: "false"}, spec={"type": "LoadBalancer"})
    book = [
        entry("kubectl-create", 7, fields=SPEC),
        entry("helm", 8, fields={"f:metadata": {"f:annotations": {f"f:{name}": {}}}}),
        later(),
    ]
    assert message("k8s-public-lb", signed(public, book)).endswith(HIS)


def test_where_no_manager_holds_the_field_the_last_writer_is_named() -> None:
    book = [entry("helm", 8, fields={"f:spec": {"f:ports": {}}}), later("mallory", 11)]
    assert message("k8s-public-lb", signed(BLAMED["public load balancer"][1], book)).endswith(HERS)


def test_who_wrote_only_the_status_is_never_named() -> None:
    book = [entry("cloud", 13, subresource="status", fields=SPEC), entry("helm", 8, fields=SPEC)]
    assert message("k8s-public-lb", signed(BLAMED["public load balancer"][1], book)).endswith(HIS)


@pytest.mark.parametrize("fields", [None, "x", [], {"f:spec": "x"}, {"f:spec": {"f:type": []}}, {"f:metadata": 7}])
def test_fields_that_cannot_be_read_change_no_verdict(fields: Any) -> None:
    book = [{**entry("helm", 8), "fieldsV1": fields}, later()]
    (finding,) = findings("k8s-public-lb", with_one(signed(BLAMED["public load balancer"][1], book)))
    assert (finding.verdict.value, finding.reason) == ("Fail", "LoadBalancerNotInternal")


def test_what_is_kept_of_fields_is_bounded_and_read_the_same_again() -> None:
    everything = {
        "f:spec": {f"f:{'x' * 200}{at}": {} for at in range(100)} | {"f:type": {"f:more": {"f:deep": {}}}},
        "f:endpoints": {},
    }
    book = [entry(f"m{at:04}" + "n" * 500, at % 24, fields=everything) for at in range(200)]
    book += [later("kubectl-label", 23), entry("z" * 300, 22, fields={"f:spec": {"f:egress": {}}})]
    short_record = record(book)
    assert len(str(short_record)) < 2**12
    assert record(short_record) == short_record
    for blamed_place in BLAMED_PLACES:
        assert last_writer(short_record, blamed_place) == last_writer(book, blamed_place)

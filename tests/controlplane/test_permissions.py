"""What the operator may do is what it does: every grant in manifests/rbac is used, and nothing is asked for in vain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.collect.kube.cache import LIST_REQUESTS
from hermetic.kinds import Kind
from testbed.api import Api
from testbed.audit import Audited, requests
from testbed.cloud_provider import PLANT_PUBLIC
from testbed.installation import wait_for
from testbed.openreports import definitions
from tests.controlplane.sealed_cluster import ATTESTATIONS, SealedCluster, sealed, sealed_cluster, sealed_module
from tests.scenarios import a_baked_model, a_share_model, reporting

__all__ = ["sealed", "sealed_module"]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/hermetic"
RBAC = Path(__file__).parents[2] / "manifests" / "rbac"
ROLES = (
    "clusterrole.yaml",
    "clusterrole-models.yaml",
    "clusterrole-optional.yaml",
    "role-lease.yaml",
    "role-coredns.yaml",
    "role-probe.yaml",
)
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Grant = tuple[str, str]  # (verb, resource)


def grants() -> set[Grant]:
    """Every verb on every resource that the operator's roles name, those for kinds that a cluster may not know too."""
    roles = [document for name in ROLES for document in _documents(name) if document["kind"].endswith("Role")]
    rules = [rule for role in roles for rule in role["rules"]]
    return {(verb, resource) for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}


def _documents(name: str) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load_all((RBAC / name).read_text())


def used(sealed: SealedCluster, since: int) -> Iterator[Audited]:
    sent = requests(sealed.plane.audit_log, since)
    return (request for request in sent if request.user == sealed.installation.user)


def exercised(sent: list[Audited]) -> set[Grant]:
    """The grants that these requests needed. A PATCH that made an object needed "create" as well."""
    granted = {(request.verb, request.resource) for request in sent if request.status < 400}
    return granted | {("create", r.resource) for r in sent if r.verb == "patch" and r.status == 201}


# Who writes these gives itself rights, or takes the policies away that narrow its own.
KINDS_OF_RIGHTS = frozenset(
    {
        "roles", "rolebindings", "clusterroles", "clusterrolebindings", "certificatesigningrequests",
        "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings", "validatingwebhookconfigurations", "mutatingwebhookconfigurations",
        "customresourcedefinitions", "apiservices",
    }
)  # fmt: skip


def test_no_grant_names_a_secret_a_wildcard_or_a_way_to_more_rights() -> None:
    for verb, resource in grants():
        assert "*" not in (verb, resource)
        assert verb not in {"escalate", "bind", "impersonate", "deletecollection"}
        assert not resource.startswith(("secrets", "serviceaccounts/token", "nodes/proxy", "pods/", "namespaces/"))
        assert resource != "namespaces" or verb in {"list", "watch"}, "to know the cluster, and which are being deleted"
        assert verb in {"get", "list", "watch"} or resource.split("/")[0] not in KINDS_OF_RIGHTS


def optional_kinds() -> list[dict[str, Any]]:
    """Definitions of the kinds of the optional role: nothing of them but that they are served."""
    installed = {rule["apiGroups"][0] for rule in next(_documents("clusterrole-optional.yaml"))["rules"]}
    kinds = {request.kind for request in LIST_REQUESTS if request.kind.group in installed}
    return [*map(_definition, sorted(kinds, key=lambda kind: kind.plural + kind.group)), *definitions()]


def _definition(kind: Kind) -> dict[str, Any]:
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/78458"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [{"name": kind.version, "served": True, "storage": True, "schema": anything}],
        },
    }


def test_every_grant_is_used_and_nothing_is_asked_for_in_vain(sealed: SealedCluster) -> None:
    _live_with_every_grant(sealed)


@pytest.fixture
def by_namespace(tmp_path: Path, component_logs: dict[str, Path]) -> Iterator[SealedCluster]:
    """The rights of `hermetic rbac` for one namespace, and an installation that bears no name of the default one."""
    elsewhere = {"watchNamespaces": ["team-a"], "lease": {"namespace": "isolation"}, "probeNamespace": "probes"}
    with sealed_cluster(tmp_path, component_logs, account="keeper", **elsewhere) as cluster:
        yield cluster


@pytest.mark.sampled(0)
def test_every_grant_is_used_where_writing_is_granted_by_namespace(by_namespace: SealedCluster) -> None:
    """Under other names too: a policy that named the default account would not know this one."""
    sent = _live_with_every_grant(by_namespace, "team-a")
    writes = {(r.namespace, r.resource) for r in sent if r.verb not in {"list", "watch", "get"} and r.namespace}
    assert {namespace for namespace, _ in writes} == {"team-a", "isolation", "probes", "default"}
    assert {resource for namespace, resource in writes if namespace == "default"} == {"events"}


def _live_with_every_grant(sealed: SealedCluster, namespace: str = "") -> list[Audited]:
    for crd in optional_kinds():
        sealed.api.create(CRDS, crd)
    names = [f"crd/{crd['metadata']['name']}" for crd in optional_kinds()]
    sealed.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    sealed.operator.stop()
    sealed.api.delete(LEASE.format(sealed.installation.namespace))  # its making is part of a whole life
    since = sealed.plane.audit_log.stat().st_size
    sealed.operator.start()
    _live_a_whole_life(sealed, namespace)
    assert sealed.operator.stop() == 0  # watches are recorded when they end

    sent = list(used(sealed, since))
    refused = {(r.verb, r.resource, r.status) for r in sent if r.status == 403}
    assert not refused, "asked for without a grant"
    beyond = {(verb, resource) for verb, resource in exercised(sent) - grants() if not resource.startswith("/")}
    assert not beyond, "used without being granted by these manifests; discovery and /version are everybody's"
    assert not grants() - exercised(sent), "granted and never used"
    return sent


def _live_a_whole_life(sealed: SealedCluster, namespace: str) -> None:
    """Evidence brought; an autoscaled model with two pods, moved to another folder, scaled to one, made public."""
    home = sealed.namespace(namespace)
    operator, api, namespace = sealed.operator, sealed.api, home.namespace
    for attestation in api.get(ATTESTATIONS)["items"]:
        api.delete(f"{ATTESTATIONS}/{attestation['metadata']['name']}")
    sealed.apply_audit()
    sealed.until("Unknown")  # so that the verdict changes afterwards, with an Event
    sealed.open_gate()
    path = f"/apis/hermetic.dev/v1alpha1/namespaces/{namespace}/modeldeployments/llama"
    core, policy = f"/api/v1/namespaces/{namespace}", f"/apis/policy/v1/namespaces/{namespace}"
    scalers = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"

    def ready() -> bool:
        live = api.get(path)
        conditions = {c["type"]: c for c in live.get("status", {}).get("conditions", [])}
        condition = conditions.get("Ready", {})
        return (condition.get("status"), condition.get("observedGeneration")) == (
            "True",
            live["metadata"]["generation"],
        )

    def claims() -> list[str]:
        return [item["metadata"]["name"] for item in api.get(f"{core}/persistentvolumeclaims")["items"]]

    home.apply(reporting(a_share_model(autoscaling={"minReplicas": 2, "maxReplicas": 2})))
    wait_for("Ready", ready, operator)
    (first,) = claims()
    share = {"account": "contosomodels", "share": "models", "folder": "llama-3-1-8b/bf16"}
    api.merge(path, {"spec": {"weights": {"azureFiles": share}, "autoscaling": None, "replicas": 1}})
    wait_for("Ready with other weights", ready, operator)
    wait_for("the old claim gone", lambda: first not in claims(), operator)
    wait_for("no autoscaler", lambda: not api.get(scalers)["items"], operator)
    wait_for("no budget", lambda: not api.get(f"{policy}/poddisruptionbudgets")["items"], operator)
    chosen = f"hermetic.dev/namespace={namespace}"
    volumes = "/api/v1/persistentvolumes"
    wait_for("the old volume gone", lambda: len(api.get(volumes, labelSelector=chosen)["items"]) == 1, operator)
    home.apply(reporting(a_baked_model("pair", accelerator={"count": 1, "nodes": 2}, endpoint={})))
    home.until("pair", "Serving")
    api.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"annotations": {PLANT_PUBLIC: "true"}}})
    api.merge(f"{core}/services/llama", {"metadata": {"annotations": {"touched": "yes"}}})
    wait_for("no Service", lambda: not _has_service(api, core), operator)
    wait_for("report", lambda: api.get("/apis/openreports.io/v1alpha1/clusterreports")["items"], operator)


def _has_service(api: Api, core: str) -> bool:
    return any(
        item["metadata"]["name"] == "llama" and not item["metadata"].get("deletionTimestamp")
        for item in api.get(f"{core}/services")["items"]
    )

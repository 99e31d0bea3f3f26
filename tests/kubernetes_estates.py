"""Estates of what a cluster's API server shows, built from manifests as people and controllers write them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import ASKED, question
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.nodes import Namespace, Node
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import NetworkPolicy
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.kubernetes.served import SERVED
from hermetic.audit.estate.kubernetes.services import EndpointSlice, Service
from hermetic.audit.estate.kubernetes.templates import DaemonSet
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, UnreadReason, fixed_json
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Evidence, Finding, Verdict
from hermetic.audit.policy.declarations import Policy

CLUSTER = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg"
    "/providers/Microsoft.ContainerService/managedClusters/aks"
)
REGISTRY = "contoso.azurecr.io"
POLICY = Policy(allowedRegistries=(REGISTRY,))
NODE = "aks-gpu-0"
Manifest = dict[str, Any]
MANY = 10_000
"""Characters of JSON from which on only the latest lists are kept."""
DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
IN_METADATA = ("labels", "annotations", "ownerReferences", "managedFields", "finalizers", *DELETION)

COREFILE = """.:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
    }
    forward . /etc/resolv.conf
    import custom/*.override
}
import custom/*.server
"""


def manifest(kind: type[KubernetesObject], name: str, namespace: str = "", **fields: Any) -> Manifest:
    """A manifest of this kind; those of `IN_METADATA` go into its metadata."""
    metadata: Manifest = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= {key: fields.pop(key) for key in IN_METADATA if key in fields}
    return {"apiVersion": kind.TYPE.rpartition("/")[0], "kind": kind.KIND, "metadata": metadata, **fields}


def pod(name: str, namespace: str = "inference", *, spec: Manifest | None = None, **fields: Any) -> Manifest:
    """A running pod of one container with an image from our own registry."""
    pod_spec = {"nodeName": NODE, "containers": [container()], **(spec or {})}
    return manifest(Pod, name, namespace, spec=pod_spec, **{"status": {"phase": "Running"}, **fields})


def container(**fields: Any) -> Manifest:
    """One container with an image from our own registry."""
    return {"name": "main", "image": f"{REGISTRY}/app@sha256:{'0' * 64}", **fields}


def owned(kind: str, name: str, version: str = "apps/v1") -> list[Manifest]:
    """The owner references of what a controller made."""
    return [{"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": True}]


def served_group(group: str, kind: str = "Thing") -> Manifest:
    """The definition of a kind, which shows that an API group is served."""
    name = {"name": f"{kind.lower()}s.{group}"}
    spec = {"group": group, "names": {"plural": f"{kind.lower()}s", "kind": kind}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": name, "spec": spec}


OF_TIGERA = served_group("operator.tigera.io", "Installation")
"""What is served wherever AKS runs Calico."""
OF_GATEKEEPER = served_group("templates.gatekeeper.sh", "ConstraintTemplate")


def sealed_cluster() -> list[Manifest]:
    """One GPU node under Cilium, a closed namespace with a pod, CoreDNS as AKS sets it up; nothing leads out."""
    return [*_platform(), *_api_server(), *_workload()]


def _platform() -> list[Manifest]:
    addresses = [{"type": "InternalIP", "address": "10.1.0.4"}, {"type": "Hostname", "address": NODE}]
    capacity = {"nvidia.com/gpu": "1", "cpu": "24"}
    agent = {
        "hostNetwork": True,
        "containers": [container(image="mcr.microsoft.com/c", securityContext={"privileged": True})],
        "volumes": [{"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}],
    }
    return [
        manifest(
            Node,
            NODE,
            labels={"kubernetes.azure.com/accelerator": "nvidia"},
            status={"addresses": addresses, "capacity": capacity},
        ),
        manifest(DaemonSet, "cilium", "kube-system"),
        pod(
            "cilium-x2b4c",
            "kube-system",
            ownerReferences=owned("DaemonSet", "cilium"),
            spec=agent,
            status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        ),
        manifest(ConfigMap, "coredns", "kube-system", data={"Corefile": COREFILE}),
    ]


def _api_server() -> list[Manifest]:
    labels = {"kubernetes.io/service-name": "kubernetes"}
    endpoints = [{"addresses": ["10.1.0.200"]}]
    spec = {"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{"port": 443}]}
    return [
        *(manifest(Namespace, name) for name in ("default", "kube-system", "inference")),
        manifest(Service, "kubernetes", "default", spec=spec),
        manifest(EndpointSlice, "kubernetes", "default", labels=labels, addressType="IPv4", endpoints=endpoints),
    ]


def _workload() -> list[Manifest]:
    closed = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    return [
        manifest(NetworkPolicy, "default-deny", "inference", spec=closed),
        pod("app-1", labels={"app": "app"}),
    ]


def answers(
    manifests: Iterable[Mapping[str, Any]], forbidden: Iterable[type[KubernetesObject]] = ()
) -> dict[Question, Answer]:
    """What a collector would say of these manifests, and of kinds that it was not allowed to list."""
    refused, listed, by_type = frozenset(forbidden), list(manifests), dict[tuple[str, str], list[Any]]()
    for manifest in listed:
        by_type.setdefault((manifest["apiVersion"], manifest["kind"]), []).append(manifest)
    texts = {kind_name: json.dumps(of_type) for kind_name, of_type in by_type.items()}
    answers_by_question = {SERVED: served(listed)}
    for kind, scope in ASKED:
        if kind in refused:
            problem = Problem(UnreadReason.FORBIDDEN, f"{kind.TYPE}: forbidden", permission=f"list {kind.TYPE}")
            answers_by_question[question(kind, scope)] = Answer((), (Evidence(_request(kind, scope), 403),), problem)
            continue
        text = texts.get((kind.TYPE.rpartition("/")[0], kind.KIND), "[]")
        answered = _answer_of_many if len(text) > MANY else _answer
        answers_by_question[question(kind, scope)] = answered(kind, scope, text)
    return answers_by_question


def _listing(kind: type[KubernetesObject], scope: str, text: str) -> Answer:
    """The answer to the question for a kind where these are all its objects; each call reads them anew."""
    bodies = [projected(kind, body) for body in json.loads(text) if _is_within(body, scope)]
    evidence = (Evidence(_request(kind, scope), 200, sha256(fixed_json(bodies).encode()).hexdigest()),)
    return Answer(tuple(Body(body, evidence) for body in bodies), evidence)


# Most clusters of tests are the sealed one and an object more: the same lists thousands of times.
_answer = lru_cache(1024)(_listing)
_answer_of_many = lru_cache(8)(_listing)


def _request(kind: type[KubernetesObject], scope: str) -> str:
    return f"GET /{kind.TYPE}?scope={scope}"


def served(manifests: Iterable[Mapping[str, Any]]) -> Answer:
    """What the API server would say that it serves: its own kinds, those of these manifests, and their definitions."""
    groups: dict[str, dict[str, str]] = {"apps": {"deployments": "Deployment"}}
    plurals = {(kind.TYPE.rpartition("/")[0], kind.KIND): kind.TYPE.rpartition("/")[2] for kind, _ in ASKED}
    for manifest in manifests:
        group = manifest["apiVersion"].rpartition("/")[0]
        groups.setdefault(group, {})[
            plurals.get((manifest["apiVersion"], manifest["kind"]), manifest["kind"].lower())
        ] = manifest["kind"]
        if manifest["kind"] == "CustomResourceDefinition":
            spec = manifest["spec"]
            groups.setdefault(spec["group"], {})[spec["names"]["plural"]] = spec["names"]["kind"]
    groups.pop("", None)
    bodies = [
        {"id": name, "kinds": [{"plural": plural, "kind": kind, "versions": ["v1"]} for plural, kind in kinds.items()]}
        for name, kinds in sorted(groups.items())
    ]
    evidence = (Evidence("GET /apis", 200, sha256(fixed_json(bodies).encode()).hexdigest()),)
    return Answer(tuple(Body(body, evidence) for body in bodies), evidence)


def estate(manifests: Iterable[Mapping[str, Any]], forbidden: Iterable[type[KubernetesObject]] = ()) -> Estate:
    """The estate of a cluster that holds exactly these objects."""
    return Estate(CLUSTER, ("kube",), answers(manifests, forbidden))


def findings(
    check: str,
    manifests: Iterable[Mapping[str, Any]],
    *,
    policy: Policy = POLICY,
    forbidden: Iterable[type[KubernetesObject]] = (),
) -> list[Finding]:
    """What one check finds in a cluster of exactly these objects."""
    chosen = next(candidate for candidate in CHECKS if candidate.page.id == check)
    return list(findings_of(chosen, estate(manifests, forbidden), policy))


def verdicts(check: str, manifests: Iterable[Mapping[str, Any]], **how: Any) -> dict[str, Verdict]:
    """The verdict by resource."""
    return {finding.resource: finding.verdict for finding in findings(check, manifests, **how)}


def with_one(change: Mapping[str, Any]) -> list[Manifest]:
    """The sealed cluster and one object more, or in the place of the one of its name."""
    name = _identity(change)
    return [*(manifest for manifest in copy.deepcopy(sealed_cluster()) if _identity(manifest) != name), dict(change)]


def _identity(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    return (manifest["kind"], manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])


def _is_within(manifest: Mapping[str, Any], scope: str) -> bool:
    return not scope or f"{manifest['metadata'].get('namespace', '')}/{manifest['metadata']['name']}" == scope

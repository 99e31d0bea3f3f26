"""The Jobs of the probe: for each pool and subnet one pod in the pod network and one in the node's network.

The first meets the Pod Security Standard `restricted`. The second has hostNetwork, which only the standard `privileged`
admits: it needs a namespace with `pod-security.kubernetes.io/enforce: privileged`, and nothing else should be there.
Both run once, without a service account token, and are removed `ttlSecondsAfterFinished` later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermetic.api.condition_updates import is_true
from hermetic.collect.probe.embedded_program import command
from hermetic.collect.probe.program.asking import QUESTIONS
from hermetic.collect.probe.targets import Targets

RUN_LABEL = "hermetic.dev/probe-run"
VANTAGE_LABEL = "hermetic.dev/probe-vantage"
POOL_ANNOTATION = "hermetic.dev/probe-pool"
SUBNET_ANNOTATION = "hermetic.dev/probe-subnet"
COMPONENT = ("app.kubernetes.io/component", "egress-probe")
MANAGED_BY = ("app.kubernetes.io/managed-by", "hermetic")
AUDIT_LABEL = "hermetic.dev/egress-audit"
SELECTOR = f"{COMPONENT[0]}={COMPONENT[1]},{MANAGED_BY[0]}={MANAGED_BY[1]}"
CONTAINER = "probe"

DEADLINE_SECONDS = 300
KEPT_SECONDS = 900
NOBODY = 65534
POOL_LABELS = ("kubernetes.azure.com/agentpool", "agentpool", "karpenter.sh/nodepool")
SUBNET_LABEL = "kubernetes.azure.com/network-subnet"
UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class ProbedNode:
    """The node from which a pool and subnet is probed."""

    pool: str
    subnet: str
    node: str


@dataclass(frozen=True, slots=True)
class ProbePods:
    """Where the pods run, and from which image: anything with Python 3.8 as `python3`, by digest."""

    namespace: str
    image: str
    host_namespace: str = ""
    """Namespace of pods with hostNetwork; the same one when empty."""
    pull_secrets: tuple[str, ...] = ()
    targets: Targets = field(default_factory=Targets)
    audit: str = ""
    """Name of the EgressAudit that asks for the probe: admission compares image and program with it. "" for none."""
    kept_seconds: int = KEPT_SECONDS
    """How long a finished Job stays with its answer, before the cluster removes it."""

    def namespace_for(self, *, host_network: bool) -> str:
        return self.host_namespace or self.namespace if host_network else self.namespace


def probe_job(pods: ProbePods, probed_node: ProbedNode, run: str, *, host_network: bool) -> dict[str, Any]:
    """One Job with one pod. `run` names the round: lower-case letters, digits and '-', at most 40 characters."""
    vantage = "host" if host_network else "pod"
    labels = {
        "app.kubernetes.io/name": "hermetic",
        COMPONENT[0]: COMPONENT[1],
        MANAGED_BY[0]: MANAGED_BY[1],
        RUN_LABEL: run,
        VANTAGE_LABEL: vantage,
        **({AUDIT_LABEL: pods.audit} if pods.audit else {}),
    }
    metadata = {
        "labels": labels,
        "annotations": {POOL_ANNOTATION: probed_node.pool, SUBNET_ANNOTATION: probed_node.subnet},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(probed_node, run, vantage),
            "namespace": pods.namespace_for(host_network=host_network),
            **metadata,
        },
        "spec": {
            # A second attempt would hide that the first one could not run.
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "ttlSecondsAfterFinished": pods.kept_seconds,
            "template": {"metadata": metadata, "spec": _pod(pods, probed_node, run, host_network=host_network)},
        },
    }


def job_name(probed_node: ProbedNode, run: str, vantage: str) -> str:
    """The same for the same node and round; at most as long as a label value, as the Job controller makes one of it."""
    identity = "\n".join((probed_node.pool, probed_node.subnet, probed_node.node))
    return f"probe-{run}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}-{vantage}"


def run_token(job: str, run: str) -> str:
    """The token that a pod must return, unique to round, node and vantage, so that answers cannot be confused."""
    return f"{run}/{job}"


def _pod(pods: ProbePods, probed_node: ProbedNode, run: str, *, host_network: bool) -> dict[str, Any]:
    secrets = {"imagePullSecrets": [{"name": name} for name in pods.pull_secrets]} if pods.pull_secrets else {}
    network = {"hostNetwork": True, "dnsPolicy": "Default"} if host_network else {"dnsPolicy": "ClusterFirst"}
    token = run_token(job_name(probed_node, run, "host" if host_network else "pod"), run)
    return {
        **network,
        **secrets,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {"nodeAffinity": _node_affinity(probed_node.node)},
        "tolerations": [{"operator": "Exists"}],
        "containers": [_container(pods.image, pods.targets.questions(token, host_network=host_network))],
    }


def _container(image: str, questions: str) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command(),
        "env": [{"name": QUESTIONS, "value": questions}],
        # It writes no file: what counts as ephemeral storage are the last lines of its log.
        "resources": {
            "requests": {"cpu": "50m", "memory": "32Mi", "ephemeral-storage": "16Mi"},
            "limits": {"cpu": "1", "memory": "128Mi", "ephemeral-storage": "64Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # The answer is read from the pod's status; after a crash it has the last log lines.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _node_affinity(node: str) -> dict[str, Any]:
    """Node affinity, as for a DaemonSet's pods: the scheduler accounts for the node's free resources."""
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [name]}]}}


def probed_nodes(
    nodes: Iterable[Mapping[str, Any]], turn: int = 0, again: frozenset[str] = frozenset()
) -> tuple[ProbedNode, ...]:
    """One node per pool and subnet, sorted: in even turns the oldest ready one, in odd turns the others one by one.

    The oldest, because a VM keeps a default outbound public address until it is deallocated. A pool without a ready
    node stays among them, so that its missing answer is reported. Nodes named in `again` come first: a leak of one
    node must not be forgotten because another node is asked.
    """
    by_pool_subnet: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for node in sorted(nodes, key=_preference):
        by_pool_subnet.setdefault(pool_and_subnet_of(node), []).append(node)
    return tuple(
        ProbedNode(pool, subnet, _node_of_turn(members, turn, again))
        for (pool, subnet), members in sorted(by_pool_subnet.items())
    )


def _node_of_turn(members: list[Mapping[str, Any]], turn: int, again: frozenset[str]) -> str:
    """The name of the node to ask. `members` are sorted by preference."""
    ready = [node["metadata"]["name"] for node in members if is_true(node, "Ready")]
    names = ready or [members[0]["metadata"]["name"]]
    if repeated := next((name for name in names if name in again), None):
        return str(repeated)
    other_names = names[1:]
    return str(other_names[turn // 2 % len(other_names)] if turn % 2 and other_names else names[0])


def pool_and_subnet_of(node: Mapping[str, Any]) -> tuple[str, str]:
    """(pool, subnet) from the labels that AKS sets on nodes."""
    labels = node["metadata"].get("labels") or {}
    pool = next((labels[label] for label in POOL_LABELS if labels.get(label)), UNNAMED)
    return (pool, labels.get(SUBNET_LABEL) or UNNAMED)


def _preference(node: Mapping[str, Any]) -> tuple[bool, str, str]:
    metadata = node["metadata"]
    return (not is_true(node, "Ready"), metadata.get("creationTimestamp") or "~", metadata["name"])

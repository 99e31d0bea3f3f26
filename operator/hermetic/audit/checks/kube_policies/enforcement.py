"""Which engine enforces policies, and which labels of a pod it sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.cluster.workloads import belongs_on_the_host_network
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.platform import engine_named_by
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

CILIUM, CALICO = "cilium", "calico-node"
"""Names of the engines' DaemonSets."""

# Cilium's default filter of labels (docs.cilium.io, "Limiting Identity-Relevant Labels"; cilium/cilium,
# pkg/labelsfilter/filter.go): patterns match from the start of a key, and the longer match decides.
_SEEN = tuple(map(re.compile, (
    r"io\.kubernetes\.pod\.namespace", r"io\.cilium\.k8s\.namespace\.labels", r"app\.kubernetes\.io",
    r"io\.cilium\.k8s\.policy\.cluster", r"io\.cilium\.k8s\.policy\.serviceaccount",
)))  # fmt: skip
_IGNORED = tuple(map(re.compile, (
    r"io\.kubernetes", r"kubernetes\.io", r".*beta\.kubernetes\.io", r"k8s\.io", r"topology\.kubernetes\.io",
    r"statefulset\.kubernetes\.io/pod-name", r"apps\.kubernetes\.io/pod-index",
    r"batch\.kubernetes\.io/job-completion-index", r"batch\.kubernetes\.io/controller-uid", r"controller-uid",
    r"pod-template-generation", r"pod-template-hash", r"controller-revision-hash", r"annotation", r"etcd_node",
)))  # fmt: skip


def enforces(estate: Estate, policy: Policy, engine: str) -> bool | None:
    """Whether this engine, and no other, has ready agents; None where that is not known.

    It cannot where pods are not readable, where two engines run (each has its own nodes), and where none does: another
    installation of the engine, in a namespace of its own, is not known as one.
    """
    pods = everywhere(estate, Pod)
    if pods.problem is not None:
        return None
    ready = {engine_named_by(pod) for _node, pod in ready_agents(pods) if is_recognised(estate, policy, pod)}
    if not ready or (engine in ready and len(ready) > 1):
        return None
    return engine in ready


def ready_agents(pods: Iterable[Pod]) -> Iterator[tuple[str, Pod]]:
    """Nodes and ready pods with the namespace and controller of an engine's agent, which may be a user's own."""
    for pod in pods:
        try:
            if engine_named_by(pod) and pod.is_ready:
                yield pod.spec.node_name or "", pod
        except FactDamaged:
            continue


def is_recognised(estate: Estate, policy: Policy, pod: Pod) -> bool:
    """Whether an agent works on its node's network and is AKS's own or trusted by the policy: a name proves nothing."""
    try:
        return pod.on_host_network and belongs_on_the_host_network(estate, policy, pod)
    except FactDamaged:
        return False


def seen_by_cilium(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that are part of a pod's identity by default: a selector that needs any other selects no pod."""
    return {key: value for key, value in labels.items() if _is_seen(key)}


def _is_seen(key: str) -> bool:
    ignored = min((match.end() for pattern in _IGNORED if (match := pattern.match(key))), default=0)
    return not ignored or max((match.end() for pattern in _SEEN if (match := pattern.match(key))), default=0) > ignored

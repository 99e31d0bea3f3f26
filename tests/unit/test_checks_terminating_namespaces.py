"""A namespace that is being deleted: what can still send packets counts, and what no pod can be made of does not.

kubernetes.io, Admission Controllers, NamespaceLifecycle: nothing new is created in a namespace with phase Terminating.
KEP-5080, Ordered Namespace Deletion (stable in 1.34): pods are deleted first, then everything else in no order. Before
that, policies may go before the pods (kubernetes/kubernetes issue 126587, CVE-2024-7598).
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.cilium_policies import CiliumClusterwideNetworkPolicy
from hermetic.audit.estate.kubernetes.nodes import Namespace
from hermetic.audit.estate.kubernetes.templates import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from hermetic.audit.model.findings import Verdict
from tests.kubernetes_estates import CLUSTER, container, manifest, owned, pod, sealed_cluster, verdicts

CHECK = "k8s-default-deny-egress"
FINE, OPEN = {CLUSTER: Verdict.PASS}, {"v1/Namespace team": Verdict.FAIL}
TERMINATING = {"phase": "Terminating"}
DELETED = "2026-09-01T10:00:00Z"
TEMPLATE = {"spec": {"containers": [container()]}}
KINDS = [Deployment, StatefulSet, ReplicaSet, ReplicationController, DaemonSet, Job]


def namespace(status: Any = TERMINATING, name: str = "team") -> Any:
    return manifest(Namespace, name, status=status)


def resting(kind: Any = Deployment) -> Any:
    """A controller without a pod; pods of its template would be open."""
    return manifest(kind, "web", "team", spec={"replicas": 2, "template": TEMPLATE}, status={"replicas": 0})


@pytest.mark.parametrize("kind", KINDS)
def test_template_without_pods_in_a_terminating_namespace_opens_nothing(kind: Any) -> None:
    assert verdicts(CHECK, [*sealed_cluster(), resting(kind), namespace()]) == FINE
    assert verdicts(CHECK, [*sealed_cluster(), resting(kind), namespace({"phase": "Active"})]) == OPEN


def test_cron_job_in_a_terminating_namespace_opens_nothing() -> None:
    nightly = manifest(CronJob, "night", "team", spec={"jobTemplate": {"spec": {"template": TEMPLATE}}})
    assert verdicts(CHECK, [*sealed_cluster(), nightly, namespace()]) == FINE


@pytest.mark.parametrize(
    "status",
    [{"phase": "Active"}, {}, None, {"phase": None}, {"phase": 7}, {"phase": "terminating"}, "Terminating"],
    ids=["active", "no phase", "no status", "null", "a number", "another spelling", "text"],
)
def test_namespace_that_is_not_known_to_be_terminating_excuses_no_template(status: Any) -> None:
    assert verdicts(CHECK, [*sealed_cluster(), resting(), namespace(status)]) == OPEN


def test_another_terminating_namespace_excuses_no_template() -> None:
    namespaces = [namespace(name=name) for name in ("tea", "team-2", "Team")]
    assert verdicts(CHECK, [*sealed_cluster(), resting(), *namespaces]) == OPEN


def test_namespaces_that_may_not_be_listed_excuse_no_template() -> None:
    assert verdicts(CHECK, [*sealed_cluster(), resting(), namespace()], forbidden=[Namespace]) == OPEN


STAYING_PODS = {
    "created before, not deleted yet": {},
    "pending": {"status": {"phase": "Pending"}},
    "without a phase": {"status": {}},
    "unknown, of a lost node": {"status": {"phase": "Unknown"}},
    "of a controller": {"ownerReferences": owned("ReplicaSet", "web-1")},
    "ending": {"deletionTimestamp": DELETED, "deletionGracePeriodSeconds": 30},
    "ending for a day": {
        "deletionTimestamp": DELETED,
        "deletionGracePeriodSeconds": 86400,
        "spec": {"terminationGracePeriodSeconds": 86400},
    },
    "held by a finalizer": {"deletionTimestamp": DELETED, "finalizers": ["example.com/stay"]},
}


@pytest.mark.parametrize("fields", STAYING_PODS.values(), ids=STAYING_PODS)
def test_pod_in_a_terminating_namespace_without_a_policy_still_fails(fields: Any) -> None:
    """However long it stays: it may send packets until it has ended."""
    staying = namespace({**TERMINATING, "conditions": [{"type": "NamespaceFinalizersRemaining", "status": "True"}]})
    assert verdicts(CHECK, [*sealed_cluster(), pod("web-1", "team", **fields), resting(), staying]) == OPEN


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_namespace_that_ends_forever_passes_once_its_pods_have_ended(phase: str) -> None:
    ended = pod("web-1", "team", status={"phase": phase}, finalizers=["example.com/stay"])
    assert verdicts(CHECK, [*sealed_cluster(), ended, resting(), namespace()]) == FINE


def test_policy_of_the_whole_cluster_closes_the_pods_of_a_terminating_namespace() -> None:
    """It is no object of the namespace, so that it outlives the pods."""
    closes = manifest(CiliumClusterwideNetworkPolicy, "deny", spec={"endpointSelector": {}, "egress": [{}]})
    assert verdicts(CHECK, [*sealed_cluster(), pod("web-1", "team"), namespace(), closes]) == FINE


@pytest.mark.parametrize("check", ["k8s-hostnetwork", "k8s-privileged", "k8s-image-origin"])
def test_pod_in_a_terminating_namespace_counts_for_every_check(check: str) -> None:
    hostile = container(image="evil.example/x:1", securityContext={"privileged": True})
    running = pod("web-1", "team", spec={"hostNetwork": True, "containers": [hostile]}, deletionTimestamp=DELETED)
    assert set(verdicts(check, [*sealed_cluster(), running, namespace()]).values()) == {Verdict.FAIL}

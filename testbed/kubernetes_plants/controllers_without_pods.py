"""Controllers that have no pods now: what they would run counts."""

from __future__ import annotations

from collections.abc import Callable

from testbed.kubernetes_plants.pieces import closed_namespace, container, manifest, put
from testbed.kubernetes_plants.plant import Manifest, Manifests, plant

CONTROLLERS = "Kubernetes: Workload management"
Spec = Callable[[Manifest], Manifest]


def _nightly(template: Manifest) -> Manifest:
    return {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": template}}}


def _suspended(template: Manifest) -> Manifest:
    return {"suspend": True, "template": template}


def _of_no_pods(template: Manifest) -> Manifest:
    return {"replicas": 0, "template": template}


def _paused(template: Manifest) -> Manifest:
    return {"replicas": 2, "paused": True, "template": template}


def _asleep(name: str, kind: str, version: str, spec: Spec) -> None:
    def made(manifests: Manifests) -> str:
        template = {"metadata": {}, "spec": {"hostNetwork": True, "containers": [container(manifests)]}}
        return put(manifests, manifest(version, kind, "night", closed_namespace(manifests), spec=spec(template)))

    made.__doc__ = f"A {kind} without pods has its node's network."
    plant("k8s-hostnetwork", "high", CONTROLLERS, name=name)(made)


_asleep("cron_job_on_the_host_network", "CronJob", "batch/v1", _nightly)
_asleep("suspended_job_on_the_host_network", "Job", "batch/v1", _suspended)
_asleep("deployment_of_no_pods_on_the_host_network", "Deployment", "apps/v1", _of_no_pods)
_asleep("paused_deployment_on_the_host_network", "Deployment", "apps/v1", _paused)
_asleep("stateful_set_of_no_pods_on_the_host_network", "StatefulSet", "apps/v1", _of_no_pods)


@plant("k8s-privileged", "high", CONTROLLERS)
def cron_job_with_a_privileged_container(manifests: Manifests) -> str:
    """A CronJob that runs at night is privileged."""
    of = container(manifests, securityContext={"privileged": True})
    spec = _nightly({"spec": {"containers": [of]}})
    return put(manifests, manifest("batch/v1", "CronJob", "night", closed_namespace(manifests), spec=spec))


@plant("k8s-default-deny-egress", "high", CONTROLLERS)
def cron_job_in_an_open_namespace(manifests: Manifests) -> str:
    """A CronJob runs at night in a namespace that no policy closes."""
    spec = _nightly({"spec": {"containers": [container(manifests)]}})
    put(manifests, manifest("batch/v1", "CronJob", "night", "open-at-night", spec=spec))
    return "v1/Namespace open-at-night"


@plant("k8s-privileged", "high", CONTROLLERS)
def daemon_set_without_a_node_for_it(manifests: Manifests) -> str:
    """A DaemonSet for machines that are not there yet is privileged."""
    of = container(manifests, securityContext={"privileged": True})
    spec = {"template": {"spec": {"nodeSelector": {"agentpool": "later"}, "containers": [of]}}}
    status = {"desiredNumberScheduled": 0, "currentNumberScheduled": 0, "numberReady": 0}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("apps/v1", "DaemonSet", "agent", namespace, spec=spec, status=status))


@plant("k8s-privileged", "high", CONTROLLERS)
def deployment_whose_pods_are_refused(manifests: Manifests) -> str:
    """A quota refuses the pods of a Deployment that is privileged."""
    of = container(manifests, securityContext={"privileged": True})
    spec, status = {"replicas": 2, "template": {"spec": {"containers": [of]}}}, {"unavailableReplicas": 2}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("apps/v1", "Deployment", "refused", namespace, spec=spec, status=status))


@plant("k8s-privileged", "high", CONTROLLERS)
def template_that_is_newer_than_its_pods(manifests: Manifests) -> str:
    """The next pod of a StatefulSet, which replaces pods only when one is deleted, is privileged."""
    of = container(manifests, securityContext={"privileged": True})
    spec = {"replicas": 2, "updateStrategy": {"type": "OnDelete"}, "template": {"spec": {"containers": [of]}}}
    status = {"replicas": 2, "currentReplicas": 2, "updatedReplicas": 0}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("apps/v1", "StatefulSet", "next", namespace, spec=spec, status=status))


@plant("k8s-privileged", "high", CONTROLLERS)
def replica_set_of_no_deployment(manifests: Manifests) -> str:
    """A ReplicaSet of no pods, which no Deployment made, is privileged."""
    of = container(manifests, securityContext={"privileged": True})
    spec = {"replicas": 0, "template": {"spec": {"containers": [of]}}}
    return put(manifests, manifest("apps/v1", "ReplicaSet", "set", closed_namespace(manifests), spec=spec))

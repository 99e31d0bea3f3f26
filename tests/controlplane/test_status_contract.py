"""The status as Flux and `kubectl wait` read it, at every single revision of a ModelDeployment's life."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from testbed.api import Api
from testbed.errors import ApiError
from testbed.fleet import Pool
from testbed.kubectl import Kubectl
from testbed.processes import Component
from tests.controlplane.deployments import FAILING_IMAGE, Deployments, failing
from tests.controlplane.kstatus import (
    condition_of,
    contradictions,
    course,
    kstatus,
    newest,
    revisions,
    waits_for,
)
from tests.scenarios import VLLM_IMAGE, a_baked_model, a_share_model, changed, reporting

pytestmark = pytest.mark.sampled(4, of="the contract of status")

Fleet = Callable[..., list[str]]


@pytest.fixture
def balanced(deployments: Deployments, cloud_provider: Component, fleet: Fleet) -> Deployments:  # noqa: ARG001
    """A namespace with GPU nodes to spare and load balancers that get addresses."""
    fleet(Pool("gpu"), 4)
    return deployments


def gone(deployments: Deployments, name: str) -> bool:
    try:
        deployments.get(name)
    except ApiError as error:
        return error.status == 404
    return False


def vllm(image: str) -> dict[str, Any]:
    return {"vllm": {"image": image, "version": "0.32.0"}}


# ---------------------------------------------------------------------- a whole life


def test_at_no_revision_of_its_life_does_a_deployment_lie(balanced: Deployments):
    """Create, progress, fail, recover, update, scale to zero and back, delete."""
    since = newest(balanced.api, balanced.collection)
    balanced.apply(failing(reporting(a_share_model()), "slow-start"))
    balanced.until("llama", "Starting")
    balanced.until("llama", "Serving")
    balanced.change("llama", engine=vllm(FAILING_IMAGE.format("crash-loop-kv-cache")))
    balanced.until("llama", "GpuMemoryTooSmall")
    balanced.change("llama", engine=vllm(VLLM_IMAGE))
    balanced.until("llama", "Serving")
    balanced.change("llama", drainSeconds=7)
    balanced.until("llama", "Serving")
    balanced.change("llama", replicas=0)
    balanced.until("llama", "ScaledToZero")
    balanced.change("llama", replicas=2)
    balanced.until("llama", "Serving")
    _delete_slowly(balanced)

    revisions_seen = revisions(balanced.api, balanced.collection, since, "llama")

    assert [line for revision in revisions_seen for line in contradictions(revision)] == []
    assert course(revisions_seen) == [
        *("InProgress", "Current"),
        *("InProgress", "Failed"),
        *("InProgress", "Current"),
        *("InProgress", "Current"),
        *("InProgress", "Current"),
        *("InProgress", "Current"),
        "Terminating",
    ]
    assert kstatus(revisions_seen[0]) == "InProgress", "no audit has run yet, and that is not ready"
    _transition_times_move_exactly_with_the_status(revisions_seen)
    _current_only_while_the_workload_is(balanced, revisions_seen, since)


def _delete_slowly(balanced: Deployments) -> None:
    """Delete it while a finalizer of others holds it for a moment, so that a revision shows it going."""
    path = f"{balanced.collection}/llama"
    balanced.api.merge(path, {"metadata": {"finalizers": ["example.com/held"]}})
    balanced.api.delete(path)
    balanced.api.merge(path, {"metadata": {"finalizers": None}})
    balanced.wait("the deployment is gone", lambda: gone(balanced, "llama"))


def _transition_times_move_exactly_with_the_status(history: list[dict[str, Any]]) -> None:
    for before, after in pairwise(history):
        for kind in ("Ready", "ImagesPinned", "WeightsVerified", "IsolationVerified", "EndpointPrivate", "Available"):
            old, new = condition_of(before, kind), condition_of(after, kind)
            if old is not None and new is not None and old["status"] == new["status"]:
                assert old["lastTransitionTime"] == new["lastTransitionTime"], kind


def _current_only_while_the_workload_is(balanced: Deployments, history: list[dict[str, Any]], since: str) -> None:
    """At every revision that says Current, the Deployment was of that very spec, rolled out and serving."""
    workloads = revisions(balanced.api, f"/apis/apps/v1/namespaces/{balanced.namespace}/deployments", since, "llama")
    for revision in history:
        if kstatus(revision) != "Current":
            continue
        moment = int(revision["metadata"]["resourceVersion"])
        earlier_workloads = [w for w in workloads if int(w["metadata"]["resourceVersion"]) < moment]
        assert earlier_workloads, "Current before there was a Deployment"
        assert _settled(revision["spec"], earlier_workloads[-1]), revision["metadata"]["resourceVersion"]


def _settled(spec: dict[str, Any], workload: dict[str, Any]) -> bool:
    status, pod = workload.get("status", {}), workload["spec"]["template"]["spec"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return (
        status.get("observedGeneration") == workload["metadata"]["generation"]
        and counts == [spec["replicas"]] * 3
        and pod["containers"][0]["image"] == spec["engine"]["vllm"]["image"]
        and pod["terminationGracePeriodSeconds"] == 50 + spec["drainSeconds"]
    )


def test_ready_is_never_said_of_a_spec_that_came_in_the_middle(balanced: Deployments):
    """A change that arrives while an earlier one is being written must not be vouched for with it."""
    since = newest(balanced.api, balanced.collection)
    balanced.apply(reporting(a_baked_model("llama", endpoint={})))
    balanced.until("llama", "Serving")
    for drain in range(30):
        balanced.change("llama", drainSeconds=drain)
        if drain % 3 == 0:
            balanced.wait("the change is seen", lambda d=drain: _grace(balanced) == 50 + d)
    balanced.until("llama", "Serving")

    revisions_seen = revisions(balanced.api, balanced.collection, since, "llama")
    assert [line for revision in revisions_seen for line in contradictions(revision)] == []
    _current_only_while_the_workload_is(balanced, revisions_seen, since)


def _grace(balanced: Deployments) -> int:
    workload = balanced.workload("llama")
    return workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] if workload else 0


def test_before_any_operator_looked_a_deployment_is_in_progress(
    installed: None,  # noqa: ARG001
    api: Api,
    kubectl: Kubectl,
    namespace: str,
):
    """Without the default of the CRD, kstatus would take an object without status for ready."""
    collection = f"/apis/hermetic.dev/v1alpha1/namespaces/{namespace}/modeldeployments"
    since = newest(api, collection)
    kubectl.within(namespace).apply(reporting(a_baked_model()))

    first = revisions(api, collection, since, "phi")[0]

    assert first["status"] == {"observedGeneration": -1}
    assert kstatus(first) == "InProgress"


# ---------------------------------------------------------------------- kubectl wait


def test_kubectl_wait_right_after_an_apply_waits_for_the_new_spec(balanced: Deployments):
    kubectl = balanced.kubectl.within(balanced.namespace)
    for drain in (11, 12, 13):
        manifest = reporting(a_baked_model("llama", endpoint={}, drainSeconds=drain))
        kubectl.apply(manifest)
        kubectl("wait", "--for=condition=Ready", "--timeout=60s", "mdep/llama")
        assert _grace(balanced) == 50 + drain, "said Ready of the spec before"
        assert not waits_for(balanced.get("llama"), "Ready")


def test_kubectl_wait_for_delete_and_for_the_address_work_as_documented(balanced: Deployments):
    kubectl = balanced.kubectl.within(balanced.namespace)
    kubectl.apply(reporting(a_baked_model("llama")))
    kubectl("wait", "--for=jsonpath={.status.endpoint.address}", "--timeout=60s", "mdep/llama")
    address = balanced.get("llama")["status"]["endpoint"]["address"]
    assert address.startswith("10.13.76.")
    kubectl("delete", "mdep", "llama", "--wait=false")
    kubectl("wait", "--for=delete", "--timeout=60s", "mdep/llama")


# ---------------------------------------------------------------------- what Ready repeats, and Events


def test_ready_repeats_the_first_condition_that_fails(balanced: Deployments):
    """An image that may not be used comes before isolation that is not proven."""
    enforced = a_baked_model("llama")
    elsewhere = changed(enforced, engine=vllm(VLLM_IMAGE.replace("contoso.azurecr.io", "ghcr.io")))
    balanced.apply(elsewhere)
    ready = balanced.until("llama", "RegistryNotAllowed")
    assert ready["message"] == balanced.condition("llama", "ImagesPinned")["message"]

    balanced.apply(enforced)
    ready = balanced.until("llama", "IsolationEvidenceMissing")
    assert ready["message"] == balanced.condition("llama", "IsolationVerified")["message"]
    assert balanced.condition("llama", "ImagesPinned")["status"] == "True"


def test_every_condition_change_is_told_by_one_event_at_most(balanced: Deployments):
    since = newest(balanced.api, balanced.collection)
    balanced.apply(failing(reporting(a_baked_model("llama", endpoint={})), "slow-start"))
    balanced.until("llama", "Serving")
    balanced.change("llama", replicas=0)
    balanced.until("llama", "ScaledToZero")

    changes = _changes(revisions(balanced.api, balanced.collection, since, "llama"))
    events = balanced.wait("the last event", lambda: _reasons(balanced) and balanced.events("llama"))

    assert len(events) <= len(changes)
    assert len({(event["reason"], event["note"]) for event in events}) == len(events), "said twice"
    assert {event["reason"] for event in events if event["type"] == "Warning"} == {"ServingNotEnforced"}


def _reasons(balanced: Deployments) -> bool:
    return "ScaledToZero" in {event["reason"] for event in balanced.events("llama")}


def _changes(history: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Every (type, status, reason) of an announced condition that differs from the revision before."""
    transitions: list[tuple[str, str, str]] = []
    last: dict[str, tuple[str, str, str]] = {}
    for revision in history:
        for kind in ("Ready", "IsolationVerified", "EndpointPrivate"):
            condition = condition_of(revision, kind)
            expected = (kind, condition["status"], condition["reason"]) if condition else None
            if expected and expected != last.get(kind):
                last[kind] = expected
                transitions.append(expected)
    return transitions

"""Names, labels and owners: they fit, they never collide, and they never change without the spec."""

from __future__ import annotations

import re

import pytest

from hermetic.objects.children import render
from hermetic.objects.names import Owner, digest, labels, volume_names, with_intent
from tests.renderings import OWNER_UID, RENDERINGS
from tests.scenarios import a_share_model
from tests.snapshots import owner_of, rendered, spec_of

LONGEST = Owner("n" * 63, "m" * 46, OWNER_UID)
LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_the_longest_names_fit_every_child_its_labels_and_its_pods(manifest):
    for child in render(LONGEST, spec_of(manifest)):
        name = child["metadata"]["name"]
        assert SUBDOMAIN.match(name)
        assert len(name) <= 253
        assert all(LABEL_VALUE.match(value) for value in child["metadata"]["labels"].values())
    # <name>-<replica set, 10>-<pod, 5> is the host name of a pod
    assert len(LONGEST.name) + 1 + 10 + 1 + 5 <= 63
    assert len(LONGEST.name) <= 63, "the name of a Service is a DNS label"


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_every_namespaced_child_is_owned_so_that_the_garbage_collector_takes_it(manifest):
    for kind, child in rendered(manifest).items():
        if kind == "PersistentVolume":
            continue
        assert child["metadata"]["namespace"] == "inference"
        assert child["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "hermetic.dev/v1alpha1",
                "kind": "ModelDeployment",
                "name": manifest["metadata"]["name"],
                "uid": OWNER_UID,
                "controller": True,
            }
        ]


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_no_child_has_a_finalizer(manifest):
    assert not any("finalizers" in child["metadata"] for child in rendered(manifest).values())


def test_children_are_printed_with_the_network_policy_first_and_the_workload_last():
    assert list(rendered(RENDERINGS["everything-said"])) == [
        "ServiceAccount",
        "NetworkPolicy",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "Service",
        "Deployment",
    ]


@pytest.mark.parametrize(("replicas", "there"), [(0, False), (1, False), (2, True), (9, True)])
def test_disruption_budget_exists_only_where_there_is_something_to_spare(replicas, there):
    children = rendered(a_share_model(replicas=replicas))
    assert ("PodDisruptionBudget" in children) == there
    if there:
        assert children["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
        assert children["PodDisruptionBudget"]["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_account_of_the_pods_has_no_token():
    account = rendered(a_share_model())["ServiceAccount"]
    assert account["automountServiceAccountToken"] is False
    assert "secrets" not in account
    assert "imagePullSecrets" not in account


def test_another_object_of_the_same_name_gets_another_volume():
    """A released volume cannot be bound again: the new object must not wait for the old one's."""
    source = {"driver": "d", "handle": "h"}
    first, second = (Owner("inference", "llama", uid) for uid in ("uid-1", "uid-2"))
    assert volume_names(first, source) != volume_names(second, source)


def test_namespace_and_name_cannot_be_shifted_into_the_same_volume_name():
    source = {"driver": "d", "handle": "h"}
    first_owner, other = Owner("a-b", "c", "uid-1"), Owner("a", "b-c", "uid-2")
    assert volume_names(first_owner, source)[0] != volume_names(other, source)[0]


def test_labels_depend_on_the_object_and_its_engine_only():
    assert labels(owner_of(a_share_model()), "vLLM") == {
        "app.kubernetes.io/name": "vllm",
        "app.kubernetes.io/instance": "llama",
        "app.kubernetes.io/component": "model-server",
        "app.kubernetes.io/managed-by": "hermetic",
        "hermetic.dev/modeldeployment": "llama",
    }


def test_digest_ignores_the_order_of_keys_and_nothing_else():
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1})
    assert len({digest(v) for v in ({"a": 1}, {"a": "1"}, {"a": None}, {}, {"b": 1}, [1, 2], [2, 1])}) == 7


@pytest.mark.parametrize("kind", ["Service", "Deployment"])
def test_intent_shows_a_field_that_was_dropped(kind):
    child = rendered(a_share_model())[kind]
    annotations = {k: v for k, v in child["metadata"]["annotations"].items() if k != "hermetic.dev/intent"}
    bare = {**child, "metadata": {**child["metadata"], "annotations": annotations}}
    assert with_intent(bare)["metadata"]["annotations"] == child["metadata"]["annotations"]
    dropped = {**bare, "spec": {k: v for k, v in bare["spec"].items() if k != "selector"}}
    assert with_intent(dropped)["metadata"]["annotations"] != child["metadata"]["annotations"]

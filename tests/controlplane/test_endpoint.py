"""The endpoint: waited for, private, and taken away the moment it is not; a stand-in simulates the cloud."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.api import Api
from testbed.cloud_provider import PLANT_PUBLIC, WITHHOLD
from testbed.kubectl import KubectlError
from testbed.processes import Component
from tests.controlplane.deployments import Deployments
from tests.controlplane.kstatus import condition_of, contradictions, kstatus, newest, revisions
from tests.scenarios import BAKED_IMAGE, a_baked_model, changed, reporting

pytestmark = pytest.mark.sampled(6, of="endpoints")


@pytest.fixture
def balanced(served: Deployments, cloud_provider: Component) -> Deployments:  # noqa: ARG001
    """GPUs to spare, and load balancers that get addresses."""
    return served


def switch(balanced: Deployments, name: str, value: str | None) -> None:
    """Throw a switch of the cloud for every Service of the namespace."""
    balanced.api.merge(f"/api/v1/namespaces/{balanced.namespace}", {"metadata": {"annotations": {name: value}}})


def service(balanced: Deployments, name: str = "llama") -> dict[str, Any] | None:
    return balanced.child("v1", "services", name)


def a_model(name: str = "llama", **balancer: Any) -> dict[str, Any]:
    return reporting(a_baked_model(name, endpoint={"internalLoadBalancer": balancer}))


def pod_uids(balanced: Deployments) -> set[str]:
    return {pod["metadata"]["uid"] for pod in balanced.pods("llama")}


def touched(balanced: Deployments) -> None:
    """Make the operator reconcile and write once more: what others opened in a NetworkPolicy is closed again."""
    path = f"/apis/networking.k8s.io/v1/namespaces/{balanced.namespace}/networkpolicies/llama"
    balanced.api.merge(path, {"spec": {"egress": [{}]}})
    balanced.wait("the hole is closed", lambda: not balanced.api.get(path)["spec"].get("egress"))


# ---------------------------------------------------------------------- waiting for an address


def test_address_that_is_long_in_coming_is_waited_for_and_then_told(balanced: Deployments):
    switch(balanced, WITHHOLD, "true")
    balanced.apply(a_model())

    ready = balanced.until("llama", "LoadBalancerPending")
    assert kstatus(balanced.get("llama")) == "InProgress"
    assert ready["message"] == balanced.condition("llama", "EndpointPrivate")["message"]
    assert balanced.condition("llama", "Available")["status"] == "True", "the pods serve all the while"
    assert "endpoint" not in balanced.get("llama")["status"]

    switch(balanced, WITHHOLD, None)
    balanced.until("llama", "Serving")
    live = service(balanced)
    assert live is not None
    address = live["status"]["loadBalancer"]["ingress"][0]["ip"]
    assert balanced.get("llama")["status"]["endpoint"] == {"url": f"http://{address}:8000/v1", "address": address}


def test_address_that_was_asked_for_is_the_one_that_is_told(balanced: Deployments):
    balanced.apply(a_model(address="10.13.76.201"))
    balanced.until("llama", "Serving")
    assert balanced.get("llama")["status"]["endpoint"]["address"] == "10.13.76.201"


def test_oldest_of_two_that_ask_for_one_address_has_it_until_it_goes(balanced: Deployments):
    balanced.apply(a_model("older", address="10.13.76.202"))
    balanced.until("older", "Serving")
    balanced.apply(a_model("younger", address="10.13.76.202"))

    ready = balanced.until("younger", "EndpointConflict")
    assert f"'{balanced.namespace}/older'" in ready["message"]
    assert balanced.workload("younger") is None
    assert balanced.condition("older")["status"] == "True"

    balanced.api.delete(f"{balanced.collection}/older")
    balanced.until("younger", "Serving")


def test_two_models_share_one_address_with_different_ports(balanced: Deployments):
    for name, port in (("first", 443), ("second", 8443)):
        model = a_model(name, address="10.13.76.203")
        model["spec"]["endpoint"]["servicePort"] = port
        balanced.apply(model)
    urls = []
    for name in ("first", "second"):
        balanced.until(name, "Serving")
        urls.append(balanced.get(name)["status"]["endpoint"]["url"])
    assert urls == ["http://10.13.76.203:443/v1", "http://10.13.76.203:8443/v1"]
    # With limits, the rule that denies all others would be for both.
    balanced.change("second", endpoint={"internalLoadBalancer": {"allowedSourceRanges": ["10.0.0.0/8"]}})
    message = balanced.until("second", "EndpointConflict")["message"]
    assert f"'{balanced.namespace}/first'" in message
    assert balanced.condition("first")["status"] == "True"
    for name in ("first", "second"):
        balanced.api.delete(f"{balanced.collection}/{name}")


# ---------------------------------------------------------------------- a public address


@pytest.fixture
def exposed(balanced: Deployments) -> Iterator[Deployments]:
    """A deployment to which the cloud gives a public address although a private one was asked for."""
    switch(balanced, PLANT_PUBLIC, "true")
    balanced.apply(a_model())
    balanced.until("llama", "PublicAddress")
    yield balanced
    switch(balanced, PLANT_PUBLIC, None)


def test_public_address_takes_the_service_away_and_says_so_aloud(exposed: Deployments):
    exposed.wait("the Service is gone", lambda: service(exposed) is None)
    model = exposed.get("llama")
    endpoint = condition_of(model, "EndpointPrivate")
    assert endpoint is not None
    assert (endpoint["status"], endpoint["reason"]) == ("False", "PublicAddress")
    assert "203.0.113." in endpoint["message"]
    ready = condition_of(model, "Ready")
    assert ready is not None
    assert ready["message"] == endpoint["message"]
    assert kstatus(model) == "Failed"
    assert "endpoint" not in model["status"]

    def warnings() -> list[dict[str, Any]]:
        return [event for event in exposed.events("llama") if event["reason"] == "PublicAddress"]

    (warning,) = exposed.wait("the Event", warnings)
    assert warning["type"] == "Warning"


def test_service_stays_away_whatever_else_happens_until_the_spec_changes(exposed: Deployments, api: Api):
    exposed.wait("the Service is gone", lambda: service(exposed) is None)
    services = f"/api/v1/namespaces/{exposed.namespace}/services"
    since = newest(api, services)
    switch(exposed, PLANT_PUBLIC, None)

    touched(exposed)
    api.merge(f"{exposed.collection}/llama", {"metadata": {"labels": {"team": "chat"}}})
    touched(exposed)
    exposed.operator.stop()
    exposed.operator.start()
    touched(exposed)
    assert revisions(api, services, since, "llama") == []
    assert exposed.condition("llama")["reason"] == "PublicAddress"

    exposed.change("llama", endpoint={"internalLoadBalancer": {"idleTimeoutMinutes": 15}})
    exposed.until("llama", "Serving")
    assert exposed.get("llama")["status"]["endpoint"]["address"].startswith("10.13.76.")


def test_service_is_taken_away_again_when_the_cloud_has_not_changed_its_mind(exposed: Deployments):
    exposed.wait("the Service is gone", lambda: service(exposed) is None)
    exposed.change("llama", endpoint={"internalLoadBalancer": {"idleTimeoutMinutes": 15}})
    exposed.until("llama", "PublicAddress")
    exposed.wait("the Service is gone again", lambda: service(exposed) is None)


def test_address_that_turns_public_under_a_serving_model_is_taken_away_and_its_pods_are_not(balanced: Deployments):
    since = newest(balanced.api, balanced.collection)
    balanced.apply(a_model())
    balanced.until("llama", "Serving")
    before = pod_uids(balanced)

    balanced.kubectl.within(balanced.namespace)("annotate", "service", "llama", f"{PLANT_PUBLIC}=true")

    balanced.until("llama", "PublicAddress")
    balanced.wait("the Service is gone", lambda: service(balanced) is None)
    assert pod_uids(balanced) == before
    assert balanced.condition("llama", "Available")["status"] == "True"
    revisions_seen = revisions(balanced.api, balanced.collection, since, "llama")
    assert [line for revision in revisions_seen for line in contradictions(revision)] == []


# ---------------------------------------------------------------------- by hand


@pytest.mark.parametrize("value", ["false", "True", ""])
def test_the_service_cannot_be_made_public_by_hand(value: str, balanced: Deployments):
    """The policy of the installation refuses what the cloud would take for public."""
    balanced.apply(a_model())
    balanced.wait("the Service is there", lambda: service(balanced))
    internal = "service.beta.kubernetes.io/azure-load-balancer-internal"
    with pytest.raises(KubectlError, match="exactly"):
        balanced.kubectl.within(balanced.namespace)(
            "annotate", "service", "llama", "--overwrite", f"{internal}={value}"
        )


# ---------------------------------------------------------------------- a spec that is refused


def test_spec_that_is_refused_gets_fewer_pods_and_no_new_ones_and_keeps_its_walls(balanced: Deployments):
    balanced.apply(reporting(a_baked_model("llama", replicas=2)))
    balanced.until("llama", "Serving")
    before = pod_uids(balanced)
    refused = {"engine": {"vllm": {"image": BAKED_IMAGE, "version": "0.1.0"}}}
    balanced.apply(changed(reporting(a_baked_model("llama", replicas=1)), **refused))
    balanced.until("llama", "EngineVersionUnsupported")
    balanced.wait("one pod is left", lambda: len(pod_uids(balanced)) == 1)
    touched(balanced)
    assert pod_uids(balanced) < before

    balanced.apply(reporting(a_baked_model("llama", replicas=1)))
    balanced.until("llama", "Serving")
    assert pod_uids(balanced) < before, "the template that runs is the one that is asked for again"

"""The stand-in for the cloud provider gives addresses by the real one's rule, and by no kinder one."""

from __future__ import annotations

import ipaddress
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed.api import Api
from testbed.cloud_provider import ASKED_ADDRESS, FINALIZER, INTERNAL, PLANT_PUBLIC, WITHHOLD
from testbed.processes import Component, wait_until
from tests.sampled_groups import TEST_BED_CONTROL_PLANE

pytestmark = TEST_BED_CONTROL_PLANE

PRIVATE = ipaddress.ip_network("10.13.76.0/24")
PUBLIC = ipaddress.ip_network("203.0.113.0/24")


class Services:
    """LoadBalancer Services of one namespace."""

    def __init__(self, api: Api, namespace: str, provider: Component) -> None:
        self.api = api
        self.namespace = namespace
        self._path = f"/api/v1/namespaces/{namespace}/services"
        self._provider = provider

    def create(self, name: str, **annotations: str) -> None:
        spec = {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 8000}]}
        self.api.create(self._path, {"metadata": {"name": name, "annotations": annotations}, "spec": spec})

    def get(self, name: str) -> dict[str, Any]:
        return self.api.get(f"{self._path}/{name}")

    def annotate(self, name: str, **annotations: str | None) -> None:
        self.api.merge(f"{self._path}/{name}", {"metadata": {"annotations": annotations}})

    def delete(self, name: str) -> None:
        self.api.delete(f"{self._path}/{name}")

    def names(self) -> set[str]:
        return {service["metadata"]["name"] for service in self.api.get(self._path)["items"]}

    def ingress(self, name: str) -> list[dict[str, Any]]:
        ingress_points: list[dict[str, Any]] = self.get(name)["status"]["loadBalancer"].get("ingress", [])
        return ingress_points

    def address(self, name: str) -> ipaddress.IPv4Address | None:
        ingress = self.ingress(name)
        return ipaddress.IPv4Address(ingress[0]["ip"]) if ingress else None

    def served(self, name: str) -> ipaddress.IPv4Address:
        self.until(f"address of {name}", lambda: self.address(name) is not None)
        address = self.address(name)
        assert address is not None
        return address

    def complaints(self, name: str) -> list[str]:
        events = self.api.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]
        return [
            event["message"]
            for event in events
            if event["involvedObject"]["name"] == name and event["reason"] == "SyncLoadBalancerFailed"
        ]

    def until(self, what: str, state: Any) -> None:
        wait_until(what, state, [self._provider], timeout=20)


@pytest.fixture
def services(api: Api, namespace: str, cloud_provider: Component) -> Iterator[Services]:
    services = Services(api, namespace, cloud_provider)
    yield services
    for name in services.names():
        services.delete(name)
    services.until("all Services gone", lambda: not services.names())


def test_internal_service_gets_a_private_address(services: Services) -> None:
    services.create("model", **{INTERNAL: "true"})

    assert services.served("model") in PRIVATE
    assert services.ingress("model")[0]["ipMode"] == "VIP"


@pytest.mark.parametrize("almost", ["True", "TRUE", "yes", "1", " true", "", None])
def test_anything_but_exactly_true_gets_a_public_address(almost: str | None, services: Services) -> None:
    services.create("model", **({} if almost is None else {INTERNAL: almost}))

    assert services.served("model") in PUBLIC


def test_asked_address_is_given(services: Services) -> None:
    services.create("model", **{INTERNAL: "true", ASKED_ADDRESS: "10.13.76.40"})

    assert str(services.served("model")) == "10.13.76.40"


def test_taken_address_is_refused_until_its_holder_is_gone(services: Services) -> None:
    services.create("first", **{INTERNAL: "true", ASKED_ADDRESS: "10.13.76.41"})
    services.served("first")
    services.create("second", **{INTERNAL: "true", ASKED_ADDRESS: "10.13.76.41"})
    services.until("event", lambda: len(services.complaints("second")) == 1)
    assert "10.13.76.41 is already allocated" in services.complaints("second")[0]
    assert services.address("second") is None

    services.delete("first")

    assert str(services.served("second")) == "10.13.76.41"


@pytest.mark.parametrize("asked", ["not-an-address", "203.0.113.9", "fd00::1"])
def test_address_that_no_subnet_has_is_refused(asked: str, services: Services) -> None:
    services.create("model", **{INTERNAL: "true", ASKED_ADDRESS: asked})

    services.until("event", lambda: services.complaints("model"))
    assert services.address("model") is None


def test_two_services_never_share_an_address(services: Services) -> None:
    names = [f"model-{number}" for number in range(20)]
    for name in names:
        services.create(name, **{INTERNAL: "true"})

    assert len({services.served(name) for name in names}) == len(names)


def test_planted_public_address_appears_and_disappears(services: Services) -> None:
    services.create("model", **{INTERNAL: "true"})
    assert services.served("model") in PRIVATE

    services.annotate("model", **{PLANT_PUBLIC: "true"})
    services.until("public address", lambda: services.address("model") in PUBLIC)

    services.annotate("model", **{PLANT_PUBLIC: None})
    services.until("private address", lambda: services.address("model") in PRIVATE)


def test_namespace_can_throw_the_switch_before_the_service_exists(
    services: Services, api: Api, make_namespace: Callable[[], str], cloud_provider: Component
) -> None:
    elsewhere = Services(api, make_namespace(), cloud_provider)
    path = f"/api/v1/namespaces/{services.namespace}"
    api.merge(path, {"metadata": {"annotations": {WITHHOLD: "true"}}})

    services.create("waiting", **{INTERNAL: "true"})
    elsewhere.create("later", **{INTERNAL: "true"})
    elsewhere.served("later")
    assert services.address("waiting") is None
    elsewhere.delete("later")

    api.merge(path, {"metadata": {"annotations": {WITHHOLD: None}}})
    assert services.served("waiting") in PRIVATE


def test_withheld_address_is_taken_back(services: Services) -> None:
    services.create("model", **{INTERNAL: "true"})
    services.served("model")

    services.annotate("model", **{WITHHOLD: "true"})

    services.until("no address", lambda: services.address("model") is None)


def test_deleted_service_waits_for_the_cloud_to_clean_up(services: Services) -> None:
    services.create("model", **{INTERNAL: "true"})
    services.served("model")
    assert FINALIZER in services.get("model")["metadata"]["finalizers"]

    services.delete("model")

    services.until("Service gone", lambda: "model" not in services.names())


def test_service_that_is_no_longer_balanced_loses_its_address(services: Services) -> None:
    services.create("model", **{INTERNAL: "true"})
    services.served("model")

    path = f"/api/v1/namespaces/{services.namespace}/services/model"
    services.api.merge(path, {"spec": {"type": "ClusterIP"}})

    services.until("no address", lambda: services.address("model") is None)
    services.until("no finalizer", lambda: "finalizers" not in services.get("model")["metadata"])


def test_addresses_survive_a_restart_of_the_provider(services: Services, cloud_provider: Component) -> None:
    services.create("model", **{INTERNAL: "true"})
    before = services.served("model")

    cloud_provider.stop(signal.SIGKILL)
    cloud_provider.start()
    services.create("next", **{INTERNAL: "true"})

    assert services.served("next") != before
    assert services.served("model") == before

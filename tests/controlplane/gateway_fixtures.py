"""The Gateway API on the control plane of the tests, and a stand-in for a controller of it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.errors import ApiError
from testbed.fleet import Pool, add_nodes, remove_nodes
from testbed.gateway import controller, definitions
from testbed.gateway.definitions import GROUP
from testbed.gateway.snapshot import Manifest
from testbed.installation import wait_for
from testbed.processes import Component
from tests.gateway_objects import CLASS, a_class
from tests.namespaces import empty_namespace, make_namespace

GATEWAY_NAMESPACE = "gateways"
ENVOY_IMAGE = "contoso.azurecr.io/envoyproxy/envoy@sha256:" + "0" * 64
"""kwok runs no container."""


@pytest.fixture(scope="module")
def gateway_api(api: Api) -> Iterator[None]:
    """The kinds are served before the operator starts: it asks for what was not served once a minute."""
    definitions.install(api)
    yield
    definitions.uninstall(api)


@pytest.fixture(scope="module")
def gateway_namespace(api: Api, gateway_api: None) -> Iterator[str]:  # noqa: ARG001
    # namespaces of the control plane stay for the modules that follow
    with contextlib.suppress(ApiError):
        make_namespace(api, GATEWAY_NAMESPACE)
    yield GATEWAY_NAMESPACE
    empty_namespace(api, GATEWAY_NAMESPACE)


@pytest.fixture(scope="module")
def gateway_controller(
    api: Api,
    cluster: Path,
    gateway_namespace: str,  # noqa: ARG001
    cloud_provider: Component,  # noqa: ARG001
    component_logs: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Component]:
    """The stand-in with its class, and a node for the pods of its data plane."""
    nodes = add_nodes(api, Pool(f"edge{secrets.token_hex(2)}", "Standard_D16s_v5"), 1)
    component = controller.component(cluster, tmp_path_factory.mktemp("gateways") / "controller.log", ENVOY_IMAGE)
    component_logs[component.name] = component.log
    component.start()
    api.create(f"/apis/{GROUP}/v1/gatewayclasses", {**a_class(), "metadata": {"name": CLASS}})
    yield component
    api.delete(f"/apis/{GROUP}/v1/gatewayclasses/{CLASS}")
    component.stop()
    del component_logs[component.name]
    remove_nodes(api, nodes)


class GatewayObjects:
    """Gateways and routes of a test, gone at its end; waited for by what their conditions say."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._created: list[str] = []

    def create(self, manifest: Manifest) -> Manifest:
        plural = f"{manifest['kind'].lower()}s"
        collection = f"/apis/{GROUP}/v1/namespaces/{manifest['metadata']['namespace']}/{plural}"
        meta = {name: manifest["metadata"][name] for name in ("name", "namespace")}
        created = self._api.create(collection, {**manifest, "metadata": meta})
        self._created.append(f"{collection}/{meta['name']}")
        return created

    def live(self, manifest: Manifest) -> Manifest:
        meta = manifest["metadata"]
        return self._api.get(
            f"/apis/{GROUP}/v1/namespaces/{meta['namespace']}/{manifest['kind'].lower()}s/{meta['name']}"
        )

    def conditions(self, manifest: Manifest) -> dict[str, dict[str, Any]]:
        """By type; of a route those of its first parent, {} before it has any."""
        status = self.live(manifest).get("status", {})
        holder = (status.get("parents") or [{}])[0] if manifest["kind"] == "HTTPRoute" else status
        return {condition["type"]: condition for condition in holder.get("conditions") or []}

    def until(self, manifest: Manifest, kind: str, reason: str) -> dict[str, Any]:
        """Wait until a condition of the present generation gives this reason."""

        def condition() -> dict[str, Any] | None:
            generation = self.live(manifest)["metadata"]["generation"]
            present = self.conditions(manifest).get(kind, {})
            is_meant = present.get("reason") == reason and present.get("observedGeneration") == generation
            return present if is_meant else None

        reached: dict[str, Any] = wait_for(f"{kind} of {manifest['metadata']['name']} says {reason}", condition)
        return reached

    def delete_all(self) -> None:
        for path in reversed(self._created):
            try:
                self._api.delete(path)
            except ApiError as error:
                if error.status != 404:
                    raise
        for path in self._created:
            wait_for(f"the end of {path}", lambda path=path: self._is_gone(path))

    def _is_gone(self, path: str) -> bool:
        try:
            self._api.get(path)
        except ApiError as error:
            if error.status == 404:
                return True
            raise
        return False


@pytest.fixture
def gateway_objects(api: Api, gateway_api: None) -> Iterator[GatewayObjects]:  # noqa: ARG001
    objects = GatewayObjects(api)
    yield objects
    objects.delete_all()

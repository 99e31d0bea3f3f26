"""Everything in this folder needs a real API server; fake GPU nodes and load balancers are made here."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed import cloud_provider as azure
from testbed.api import Api
from testbed.fleet import Pool, add_nodes, remove_nodes
from testbed.processes import Component
from tests.controlplane.deployments import deployments, gpu_nodes, hermetic, served
from tests.controlplane.fault_fixtures import behind, proxy, start_behind
from tests.controlplane.gateway_fixtures import gateway_api, gateway_controller, gateway_namespace, gateway_objects
from tests.controlplane.operator_fixtures import installed, operator, start_operator

__all__ = [
    "behind",
    "deployments",
    "gateway_api",
    "gateway_controller",
    "gateway_namespace",
    "gateway_objects",
    "gpu_nodes",
    "hermetic",
    "installed",
    "operator",
    "proxy",
    "served",
    "start_behind",
    "start_operator",
]

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.controlplane)


@pytest.fixture
def fleet(api: Api) -> Iterator[Callable[..., list[str]]]:
    """`fleet(Pool("gpu", "Standard_NC24ads_A100_v4"), 3)`: nodes of a pool, gone after the test.

    The pool's name gets a random end, so that a test never meets nodes that an earlier one is still losing.
    """
    namespaces: list[str] = []

    def add(pool: Pool, count: int = 1) -> list[str]:
        names = add_nodes(api, replace(pool, name=f"{pool.name}{secrets.token_hex(2)}"), count)
        namespaces.extend(names)
        return names

    yield add
    remove_nodes(api, namespaces)


@pytest.fixture(scope="session")
def cloud_provider(
    cluster: Path, component_logs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Component]:
    """The stand-in that gives LoadBalancer Services their addresses."""
    component = azure.component(cluster, tmp_path_factory.mktemp("cloud-provider") / "cloud-provider.log")
    component.start()
    component_logs[component.name] = component.log
    yield component
    component.stop()
    del component_logs[component.name]

"""Two real nodes with four GPUs each, between which NetworkPolicies are enforced; the fixtures are those of tests/node.

What is kept for the whole session is made here again: the fixtures of the folder above keep the one node's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.api import Api
from testbed.demo.estate import Estate
from testbed.errors import CannotRunError
from testbed.images.oci import Image
from testbed.kubectl import Kubectl
from testbed.node.handle import RunningNode, running_node
from tests.node.conftest import give_toolbox
from tests.node.serving import install_operator


@pytest.fixture(scope="session")
def node(component_logs: dict[str, Path]) -> Iterator[RunningNode]:
    """The first node, with the second beside it."""
    try:
        with running_node("--nodes", "2", "--enforce-policies") as running:
            logs = {f"two nodes {log.relative_to(running.folder)}": log for log in running.log_files()}
            component_logs.update(logs)
            yield running
            for name in logs:
                del component_logs[name]
    except CannotRunError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def cluster(node: RunningNode) -> Path:
    return node.kubeconfig


@pytest.fixture(scope="session")
def kubectl(node: RunningNode) -> Kubectl:
    return node.kubectl


@pytest.fixture(scope="session")
def api(cluster: Path) -> Api:
    return Api(cluster)


@pytest.fixture(scope="session")
def estate(node: RunningNode, tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Every image of the samples, given to both nodes."""
    prepared = Estate.prepare(tmp_path_factory.mktemp("estate"))
    node.import_images(prepared.archive)
    return prepared


@pytest.fixture(scope="session")
def hermetic(estate: Estate, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The operator as a pod of one of the nodes."""
    return install_operator(estate, kubectl, tmp_path_factory.mktemp("install"))


@pytest.fixture(scope="session")
def toolbox(node: RunningNode, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """An image with a shell, on both nodes."""
    return give_toolbox(node, tmp_path_factory.mktemp("images"))

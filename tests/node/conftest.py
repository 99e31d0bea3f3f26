"""Everything in this folder runs on a real kubelet with containerd. What is not there is stood in for at its own
boundary: Azure Files by a CSI plug-in, GPUs by a device plug-in, the cloud's load balancers by a small controller.

    node           the running node: run programs on it (`inside`) or beside it (`from_client`), break its parts
    inside         `inside("curl", URL)` returns what the program printed
    kubectl, api, namespace, make_namespace   as everywhere, on this node's cluster
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.api import Api
from testbed.errors import CannotRunError
from testbed.kubectl import Kubectl
from testbed.node.handle import RunningNode, running_node

HERE = Path(__file__).resolve().parent
ACCOUNT = "contosomodels"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.node)


@pytest.fixture(scope="session")
def node(component_logs: dict[str, Path]) -> Iterator[RunningNode]:
    """One node for the whole session, with four GPUs."""
    try:
        with running_node() as running:
            logs = {f"node {log.stem}": log for log in running.log_files()}
            component_logs.update(logs)
            yield running
            for name in logs:
                del component_logs[name]
    except CannotRunError as reason:
        pytest.skip(str(reason))


# The cluster fixtures of the session, once more: those of the other folders belong to another cluster.


@pytest.fixture(scope="session")
def cluster(node: RunningNode) -> Path:
    return node.kubeconfig


@pytest.fixture(scope="session")
def kubectl(node: RunningNode) -> Kubectl:
    return node.kubectl


@pytest.fixture(scope="session")
def api(cluster: Path) -> Api:
    return Api(cluster)


@pytest.fixture
def inside(node: RunningNode) -> Callable[..., str]:
    """Runs a program on the node and returns its output; a failing one raises with what it said."""

    def run(*command: str) -> str:
        done = node.inside(*command)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    return run


@pytest.fixture
def share(node: RunningNode, namespace: str) -> Path:
    """A share of the account `contosomodels` that is the test's own: name it in volumes by `share.name`."""
    folder = node.shares / ACCOUNT / namespace
    folder.mkdir(parents=True)
    return folder

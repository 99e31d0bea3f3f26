"""Killed at any write, before it reached the API server or after it was done there: the end is the same as without.

The writes of one life (create, move to another folder, delete) are counted by the proxy, the operator's process is
killed at the n-th, and started again as a restarted container is. Then everything in the namespace is compared with
what an undisturbed run left: no orphan, no duplicate, no field that differs.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.fault_proxy import FaultProxy
from testbed.installation import CONFIGURATION, OperatorProcess, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from testbed.processes import wait_until
from tests.controlplane.deployments import Deployments, module_namespace
from tests.controlplane.end_state import end_state
from tests.scenarios import Manifest, a_share_model, changed, reporting

# no pods: their pace is not the operator's, and everything that is written is written without them too
CREATED = reporting(a_share_model(replicas=0))
MOVED = changed(
    CREATED,
    weights={"azureFiles": {"account": "contosomodels", "share": "models", "folder": "llama-3-1-8b/bf16"}},
    endpoint={"internalLoadBalancer": {"idleTimeoutMinutes": 9}},
)


@dataclass(frozen=True)
class Rig:
    """One operator behind one proxy for the whole module, watching every namespace."""

    proxy: FaultProxy
    operator: OperatorProcess
    api: Api
    kubectl: Kubectl

    def deployments(self, namespace: str) -> Deployments:
        return Deployments(self.api, self.kubectl, namespace, self.operator)

    def killed_at(self, write: int, *, after: bool, namespace: str, act: Callable[[], object]) -> None:
        """Does something that makes the operator write, kills it at the n-th write for this namespace, restarts it."""
        process = self.operator.component
        # the name of a volume holds its namespace too
        path = rf"^(?!.*/(leases|events)(/|\?|$)).*{namespace}"
        self.proxy.at_write(write, lambda: process.stop(signal.SIGKILL), path, after=after)
        act()
        wait_until(f"kill at write {write}", lambda: process.exit_code is not None, ())
        self.operator.start()


@pytest.fixture(scope="module")
def rig(
    controlplane: ControlPlane,
    installed: None,  # noqa: ARG001
    api: Api,
    kubectl: Kubectl,
    tmp_path_factory: pytest.TempPathFactory,
    component_logs: dict[str, Path],
) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("crash")
    with FaultProxy(controlplane) as proxy:
        kubeconfig = operator_kubeconfig(api, controlplane.kubeconfig, folder / "operator.kubeconfig", proxy.server)
        operator = OperatorProcess(folder, kubeconfig, dict(CONFIGURATION), "crashing")
        component_logs["crashing"] = operator.component.log
        operator.start()
        yield Rig(proxy, operator, api, kubectl)
        operator.stop()
        del component_logs["crashing"]


@pytest.fixture(scope="module")
def created(rig: Rig) -> Iterator[str]:
    """A namespace in which the model was created without a kill."""
    with module_namespace(rig.api, "created") as namespace:
        deployments = rig.deployments(namespace)
        deployments.apply(CREATED)
        settled(deployments, volumes=1)
        yield namespace


@pytest.fixture(scope="module")
def moved(rig: Rig, created: str) -> Iterator[str]:
    """A namespace in which the model was created and then moved, without a kill."""
    with module_namespace(rig.api, "moved") as namespace:
        deployments = rig.deployments(namespace)
        deployments.apply(CREATED)
        settled(deployments, volumes=1)
        deployments.apply(MOVED)
        settled(deployments, volumes=1)
        assert end_state(rig.api, namespace) != end_state(rig.api, created)
        yield namespace


def settled(deployments: Deployments, *, volumes: int) -> None:
    """Wait until the spec is applied and the old volume is gone."""
    deployments.until("llama", "ScaledToZero")

    def is_bound() -> bool:
        state = end_state(deployments.api, deployments.namespace)
        phases = [item["status"]["phase"] for name, item in state.items() if name.startswith("persistentvolume")]
        return phases == ["Bound"] * 2 * volumes

    deployments.wait("every claim bound", is_bound)


def ends_as(deployments: Deployments, undisturbed: str) -> None:
    """The namespace comes to look like the undisturbed one; when it does not, the difference is what the test shows.

    Both are read each time: a status that follows late, as one that waits for an address, follows in both.
    """

    def both() -> tuple[dict[str, Manifest], dict[str, Manifest]]:
        return end_state(deployments.api, deployments.namespace), end_state(deployments.api, undisturbed)

    def is_alike() -> bool:
        state, expected = both()
        return state == expected

    try:
        deployments.wait("the undisturbed end state", is_alike)
    finally:
        state, expected = both()
        assert state == expected


moments = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])


@pytest.mark.sampled(2)
@moments
@pytest.mark.parametrize("write", range(1, 8))
def test_a_create_that_is_killed_ends_in_the_same_state(
    rig: Rig, created: str, namespace: str, write: int, after: bool
) -> None:
    deployments = rig.deployments(namespace)

    rig.killed_at(write, after=after, namespace=namespace, act=lambda: deployments.apply(CREATED))

    ends_as(deployments, created)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("write", range(1, 8))
def test_a_change_that_is_killed_ends_in_the_same_state(rig: Rig, moved: str, namespace: str, write: int) -> None:
    deployments = rig.deployments(namespace)
    deployments.apply(CREATED)
    settled(deployments, volumes=1)

    rig.killed_at(write, after=True, namespace=namespace, act=lambda: deployments.apply(MOVED))

    ends_as(deployments, moved)


@moments
def test_a_delete_that_is_killed_leaves_nothing(rig: Rig, namespace: str, after: bool) -> None:
    deployments = rig.deployments(namespace)
    deployments.apply(CREATED)
    settled(deployments, volumes=1)

    rig.killed_at(1, after=after, namespace=namespace, act=lambda: rig.api.delete(f"{deployments.collection}/llama"))

    wait_for("nothing left", lambda: end_state(rig.api, namespace) == {}, rig.operator)

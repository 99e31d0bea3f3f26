"""Fixtures and words for tests in which something goes wrong: a proxy that misbehaves, and an operator behind it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError
from testbed.fault_proxy import FaultProxy
from testbed.faults import Request
from testbed.installation import OperatorProcess, wait_for
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments
from tests.controlplane.operator_fixtures import StartOperator

WATCHED = frozenset(
    {
        "modeldeployments", "egressaudits", "egressattestations", "nodes", "pods", "events", "services", "ingresses",
        "endpointslices", "deployments", "serviceaccounts", "networkpolicies", "persistentvolumes",
        "persistentvolumeclaims", "poddisruptionbudgets", "horizontalpodautoscalers",
    }
)  # fmt: skip
LEASE = "/apis/coordination.k8s.io/v1/namespaces/hermetic-system/leases/hermetic"


@dataclass(frozen=True)
class ProxiedDeployments(Deployments):
    """One namespace whose operator reaches the API server through the proxy only; tests themselves go past it."""

    proxy: FaultProxy

    def reconciles(self, name: str) -> list[dict[str, Any]]:
        """The log lines of every reconcile of one deployment, first to last."""
        return [
            line
            for line in self.operator.log_lines()
            if line.get("event") == "reconcile" and (line["ns"], line["name"]) == (self.namespace, name)
        ]

    def writes_to(self, path: str) -> list[Request]:
        """The operator's requests to write what the pattern matches, whatever came of them."""
        return self.proxy.writes(path)

    def landed(self, path: str) -> list[Request]:
        """Those of `writes_to` that the API server took."""
        return self.proxy.landed(path)


@pytest.fixture
def proxy(controlplane: ControlPlane) -> Iterator[FaultProxy]:
    """In front of the API server; its seed is printed, and `--replay SEED` repeats what chance did."""
    with FaultProxy(controlplane) as proxy:
        yield proxy


@pytest.fixture
def start_behind(
    # the proxy first: it must outlive the operator, which gives its Lease back through it
    proxy: FaultProxy,
    start_operator: StartOperator,
    api: Api,
    kubectl: Kubectl,
    namespace: str,
) -> Callable[..., ProxiedDeployments]:
    """`start_behind(**configuration)`: an operator behind the proxy, ready and watching unless `wait=False`."""

    def start(*, wait: bool = True, **configuration: Any) -> ProxiedDeployments:
        operator = start_operator(server=proxy.server, wait=wait, **configuration)
        if wait:
            wait_for("watches", lambda: {open_watch.resource for open_watch in proxy.open_watches} >= WATCHED, operator)
        return ProxiedDeployments(api, kubectl, namespace, operator, proxy)

    return start


@pytest.fixture
def behind(start_behind: Callable[..., ProxiedDeployments]) -> ProxiedDeployments:
    """The operator behind the proxy with its default configuration, ready."""
    return start_behind()


def lease_holder(api: Api) -> str:
    """Who holds the operator's Lease; "" when it is not held."""
    try:
        return str(api.get(LEASE)["spec"].get("holderIdentity") or "")
    except ApiError as error:
        if error.status != 404:
            raise
        return ""


def terminated(operator: OperatorProcess) -> tuple[int | None, float]:
    """SIGTERM; returns the exit code and the seconds it took."""
    began = time.monotonic()
    return operator.stop(signal.SIGTERM), time.monotonic() - began


def arrives(proxy: FaultProxy, path: str, operator: OperatorProcess) -> Request:
    """Wait until a write to what the pattern matches has reached the proxy."""
    return wait_for(f"write to {path}", lambda: proxy.writes(path), operator)[-1]  # type: ignore[no-any-return]

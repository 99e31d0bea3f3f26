"""The two operators, started in the same way: as a process with the token of an account of its own."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from bench.cluster import PEER, Cluster
from bench.machine import Usage, usage
from testbed.certificates import write_private
from testbed.installation import ACCOUNT, REPOSITORY, OperatorProcess, operator_kubeconfig
from testbed.processes import Component

PEER_TOKEN = "/api/v1/namespaces/bench-peer/serviceaccounts/peer/token"
OPERATOR_NAMESPACE = "hermetic-system"
QUIET_SECONDS = 2.0
BUSY_CORE_SHARE = 0.03


@dataclass(frozen=True)
class Contestant:
    """An operator by name, the user it is to the API server, and how its process is made for one namespace."""

    name: str
    user: str
    prepare: Callable[[Cluster, str], Process]


@dataclass(frozen=True)
class Process:
    """What is started, and how it says that it is ready."""

    component: Component
    ready: Callable[[], bool]


@dataclass
class Running:
    """One live process of a contestant; `started` in seconds since the epoch."""

    contestant: Contestant
    component: Component
    ready: Callable[[], bool]
    started: float

    @property
    def pid(self) -> int:
        assert self.component.pid is not None
        return self.component.pid

    def usage(self) -> Usage:
        """What it has cost so far."""
        return usage(self.pid)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self.component.stop(timeout=30.0)

    def hold(self, seconds: float) -> None:
        """Let time pass; RuntimeError with the log's end when the process does not outlive it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.raise_if_dead()
            time.sleep(0.1)

    def raise_if_dead(self) -> None:
        """RuntimeError with the log's end when the process ended."""
        if self.component.exit_code is not None:
            raise RuntimeError(f"{self.contestant.name} ended\n{self.component.tail()}")


def start(contestant: Contestant, cluster: Cluster, namespace: str, timeout: float = 180.0) -> Running:
    """Start it, and return when it has listed everything and come to rest."""
    running = launch(contestant, cluster, namespace)
    wait_until_idle(running, cluster, timeout)
    return running


@contextmanager
def running_in(contestant: Contestant, cluster: Cluster, namespace: str) -> Iterator[Running]:
    """It at rest in a namespace of its own; stopped, and the namespace emptied, at the end."""
    cluster.make_namespace(namespace)
    running = start(contestant, cluster, namespace)
    try:
        yield running
    finally:
        running.stop()
        cluster.empty(namespace)


def launch(contestant: Contestant, cluster: Cluster, namespace: str) -> Running:
    """Start it, and return at once."""
    process = contestant.prepare(cluster, namespace)
    started = time.time()
    process.component.start()
    return Running(contestant, process.component, process.ready, started)


def wait_until_idle(running: Running, cluster: Cluster, timeout: float) -> float:
    """Wait until the process has done next to nothing for two seconds; returns when those began, since the epoch.

    Next to nothing: less than 3 % of a core, and no request but for its Lease.
    """
    deadline = time.time() + timeout
    quiet_since, spent, mark = time.time(), running.usage().cpu_seconds, cluster.trail.mark()
    while time.time() - quiet_since < QUIET_SECONDS:
        if time.time() > deadline:
            raise TimeoutError(
                f"{running.contestant.name} is not idle after {timeout:.0f} s\n{running.component.tail()}"
            )
        running.hold(0.1)
        has_requests = any(not r.is_lease for r in cluster.trail.since(mark, running.contestant.user))
        worked = running.usage().cpu_seconds - spent > BUSY_CORE_SHARE * QUIET_SECONDS
        if has_requests or worked:
            quiet_since, spent, mark = time.time(), running.usage().cpu_seconds, cluster.trail.mark()
    return quiet_since


def _hermetic(cluster: Cluster, namespace: str) -> Process:
    kubeconfig = operator_kubeconfig(cluster.api, cluster.plane.kubeconfig, cluster.folder / "hermetic.kubeconfig")
    configuration = {
        "registries": [{"host": "contoso.azurecr.io", "namespaces": ["*"]}],
        "shares": [{"account": "contosomodels", "share": "models", "namespaces": ["*"]}],
        "watchNamespaces": [namespace],
        "isolation": {"minimumEnforcement": "Report"},
        "integrity": {"minimumPolicy": "Off"},
    }
    account, environment = _as_in_a_pod(kubeconfig, cluster.folder / "hermetic-service-account")
    process = OperatorProcess(
        cluster.folder, kubeconfig, configuration, module=("bench.in_pod", str(account)), environment=environment
    )
    return Process(process.component, process.ready)


def _as_in_a_pod(kubeconfig: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """Write the CA and the token of a kubeconfig as a pod finds them; returns the folder and a pod's variables."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, server = config["clusters"][0]["cluster"], urlsplit(config["clusters"][0]["cluster"]["server"])
    folder.mkdir(exist_ok=True)
    (folder / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    (folder / "namespace").write_text(OPERATOR_NAMESPACE)
    write_private(folder / "token", config["users"][0]["user"]["token"].encode())
    return folder, {"KUBERNETES_SERVICE_HOST": server.hostname or "", "KUBERNETES_SERVICE_PORT": str(server.port)}


def _peer(cluster: Cluster, namespace: str) -> Process:
    kubeconfig = _account_kubeconfig(cluster, PEER_TOKEN, cluster.folder / "peer.kubeconfig")
    component = Component(
        "peer",
        [sys.executable, "-m", "kopf", "run", "--standalone", f"--namespace={namespace}", "-m", "bench.peer.handlers"],
        cluster.folder / "peer.log",
        {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(REPOSITORY), "USER": "bench"},
    )
    # kopf knows no readiness: who needs it waits until the process is at rest.
    return Process(component, lambda: True)


def _account_kubeconfig(cluster: Cluster, tokens: str, path: Path) -> Path:
    token = cluster.api.create(tokens, {"spec": {"expirationSeconds": 36000}})["status"]["token"]
    config = yaml.safe_load(cluster.plane.kubeconfig.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    return write_private(path, json.dumps(config).encode())


HERMETIC = Contestant("hermetic", ACCOUNT, _hermetic)
KOPF = Contestant("kopf", PEER, _peer)
CONTESTANTS = (HERMETIC, KOPF)

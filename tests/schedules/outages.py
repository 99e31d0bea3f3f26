"""What happens to every namespace of a batch: ends of the operator, of its watches, of the API server and of etcd."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

from testbed.errors import ComponentError
from tests.schedules.real_cluster import RealCluster, insistently


def _kill(cluster: RealCluster, chance: random.Random) -> None:
    operator = cluster.operators[0]
    operator.component.stop(signal.SIGKILL)
    time.sleep(chance.uniform(0.0, 2.0))
    operator.component.start()


def _two(cluster: RealCluster, chance: random.Random) -> None:
    """A second operator waits for the Lease; then the first is killed, and is not started again."""
    cluster.start_operator()
    time.sleep(chance.uniform(1.0, 5.0))
    cluster.operators.pop(0).component.stop(signal.SIGKILL)


def _pause(cluster: RealCluster, chance: random.Random) -> None:
    """The process is stopped, for longer than its Lease lasts at times, and goes on with what it knew."""
    operator = cluster.operators[0].component
    if operator.pid is None or operator.exit_code is not None:
        return
    os.kill(operator.pid, signal.SIGSTOP)
    time.sleep(chance.choice((1.0, 5.0, 25.0)))
    os.kill(operator.pid, signal.SIGCONT)


def _cut(cluster: RealCluster, chance: random.Random) -> None:
    cluster.proxy.cut_watches(expired=chance.random() < 0.5)


def _api_server(cluster: RealCluster, chance: random.Random) -> None:
    cluster.plane.stop_apiserver()
    time.sleep(chance.uniform(0.0, 3.0))
    _serve(cluster)


def _etcd(cluster: RealCluster, _chance: random.Random) -> None:
    try:
        cluster.plane.restart_etcd()
    except ComponentError:  # the API server ended meanwhile, as it does where etcd answers too late
        _serve(cluster)


def _serve(cluster: RealCluster) -> None:
    """What a kubelet does: an API server that ends while it starts is started again."""

    def serve() -> None:
        cluster.plane.stop_apiserver()
        cluster.plane.start_apiserver()

    insistently(serve)


OUTAGES: dict[str, Callable[[RealCluster, random.Random], None]] = {
    "operator killed": _kill,
    "two operators": _two,
    "operator paused": _pause,
    "watches broken": _cut,
    "API server restarted": _api_server,
    "etcd restarted": _etcd,
}

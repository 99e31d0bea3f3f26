"""A restart with a thousand models that serve, and with ten thousand: how soon the operator is ready and idle, what it
writes and weighs."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from bench.client import Settling, apply_all
from bench.cluster import Cluster, wait
from bench.contestants import HERMETIC, launch, start, wait_until_idle
from bench.traffic import count
from bench.workload import model

MODELS = 1000
LARGE_MODELS = 10_000
RESTARTS = 3
TIMEOUT = 600.0
LARGE_TIMEOUT = 3600.0

Figures = dict[str, Any]


def measure() -> Figures:
    """Hermetic alone: the peer's restart is measured with a hundred, which already takes it long."""
    return _measured(MODELS, RESTARTS, TIMEOUT)


def measure_large() -> Figures:
    """The same with ten thousand, and one restart. To fill the cluster takes most of an hour."""
    return _measured(LARGE_MODELS, 1, LARGE_TIMEOUT)


def _measured(models: int, restarts: int, timeout: float) -> Figures:
    with Cluster(models) as cluster:
        namespace = "restart"
        cluster.make_namespace(namespace)
        filled = _fill(cluster, namespace, models, timeout)
        return {"fill": filled, "restarts": [_restart(cluster, namespace, timeout) for _ in range(restarts)]}


def _fill(cluster: Cluster, namespace: str, models: int, timeout: float) -> Figures:
    """So many models, made by the operator itself from nothing."""
    running = start(HERMETIC, cluster, namespace)
    began, before = time.time(), running.usage()
    with Settling(cluster.api, namespace) as settling:
        apply_all(cluster.user_kubeconfig, namespace, [model(number) for number in range(models)])
        settled = settling.wait_for(models, timeout)
    wait_until_idle(running, cluster, timeout)
    after = running.usage()
    running.stop()
    return {
        "settled_seconds": round(settled - began, 1),
        "cpu_seconds": round(after.cpu_seconds - before.cpu_seconds, 1),
        "peak_rss": round(after.peak_rss, 1),
    }


def _restart(cluster: Cluster, namespace: str, timeout: float) -> Figures:
    mark = cluster.trail.mark()
    running = launch(HERMETIC, cluster, namespace)
    try:
        wait("/readyz", running.ready, timeout, every=0.05)
        ready = time.time()
        idle = wait_until_idle(running, cluster, timeout)
        cost = running.usage()
    finally:
        running.stop()
    return {
        "seconds_to_ready": round(ready - running.started, 2),
        "seconds_to_idle": round(idle - running.started, 2),
        "cpu_seconds": round(cost.cpu_seconds, 2),
        "rss": round(cost.rss, 1),
        "peak_rss": round(cost.peak_rss, 1),
        **asdict(count(cluster.trail.since(mark, HERMETIC.user))),
    }

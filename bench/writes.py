"""Requests to the API server per thing that happens to a model: counted in the audit log, one user at a time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from bench.client import Settling, apply_all
from bench.cluster import Cluster
from bench.contestants import CONTESTANTS, Contestant, Running, launch, start, wait_until_idle
from bench.traffic import Counts, Request, by_model, count
from bench.workload import Manifest, model

SAMPLES = 5
MODELS = 100
REST_SECONDS = 60
TIMEOUT = 240.0

Figures = dict[str, Any]


def measure() -> Figures:
    """Per contestant and act: the median over five models, or the sum over a hundred."""
    with Cluster(MODELS) as cluster:
        return {contestant.name: _of(contestant, cluster) for contestant in CONTESTANTS}


def _of(contestant: Contestant, cluster: Cluster) -> Figures:
    namespace = f"writes-{contestant.name}"
    cluster.make_namespace(namespace)
    running = start(contestant, cluster, namespace)
    try:
        figures = {name: _act(running, cluster, namespace, change) for name, change in ACTS.items()}
        _fill(cluster, namespace)
        wait_until_idle(running, cluster, TIMEOUT)
        figures["rest"] = _rest(running, cluster)
        running.stop()
        running, figures["restart"] = _restart(contestant, cluster, namespace)
        return figures
    finally:
        running.stop()
        cluster.empty(namespace)


def _act(running: Running, cluster: Cluster, namespace: str, change: Callable[[Manifest], None]) -> Figures:
    """Apply the changed models one after the other, and count what each of them led to."""
    manifests = [model(number) for number in range(SAMPLES)]
    for manifest in manifests:
        change(manifest)
    mark = cluster.trail.mark()
    apply_all(cluster.user_kubeconfig, namespace, manifests)
    wait_until_idle(running, cluster, TIMEOUT)
    requests = by_model(cluster.trail.since(mark, running.contestant.user))
    counts = [count(requests.get(manifest["metadata"]["name"], ())) for manifest in manifests]
    return _medians(counts)


def _medians(counts: Iterable[Counts]) -> Figures:
    rows = [asdict(counted) for counted in counts]
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]} | {
        "most_writes": max(row["writes"] for row in rows)
    }


def _fill(cluster: Cluster, namespace: str) -> None:
    """The rest of the hundred, serving."""
    with Settling(cluster.api, namespace) as settling:
        apply_all(cluster.user_kubeconfig, namespace, [model(number) for number in range(SAMPLES, MODELS)])
        settling.wait_for(MODELS, TIMEOUT)


def _rest(running: Running, cluster: Cluster) -> Figures:
    """A minute without a change."""
    mark, before = cluster.trail.mark(), running.usage()
    running.hold(REST_SECONDS)
    after = running.usage()
    return _sum(cluster.trail.since(mark, running.contestant.user)) | {
        "cpu_seconds": round(after.cpu_seconds - before.cpu_seconds, 2),
        "rss": round(after.rss, 1),
    }


def _restart(contestant: Contestant, cluster: Cluster, namespace: str) -> tuple[Running, Figures]:
    mark = cluster.trail.mark()
    running = launch(contestant, cluster, namespace)
    idle = wait_until_idle(running, cluster, TIMEOUT)
    figures = _sum(cluster.trail.since(mark, contestant.user))
    return running, figures | {"seconds_to_idle": round(idle - running.started, 1)}


def _sum(requests: list[Request]) -> Figures:
    return asdict(count(requests))


def _create(manifest: Manifest) -> None:
    """As it is."""


def _admit_a_client(manifest: Manifest) -> None:
    manifest["spec"]["endpoint"]["allowedClients"] = [{"namespaceSelector": {"matchLabels": {"team": "chat"}}}]


def _roll_out(manifest: Manifest) -> None:
    _admit_a_client(manifest)
    manifest["spec"]["engine"]["vllm"]["maxModelLength"] = 8192


def _label(manifest: Manifest) -> None:
    _roll_out(manifest)
    manifest["metadata"]["labels"] = {"team": "chat"}


# Each builds on the one before it; "apply again" changes nothing.
ACTS: dict[str, Callable[[Manifest], None]] = {
    "create": _create,
    "update of the network policy": _admit_a_client,
    "update of the pods": _roll_out,
    "label change": _label,
    "apply again": _label,
}

"""Models that arrive at a steady rate: how soon each has its children, and what an operator weighs with one model."""

from __future__ import annotations

import statistics
from typing import Any

from bench import floor
from bench.burst import moments_applied, moments_written, percentile
from bench.client import Settling, apply_all
from bench.cluster import USER, Cluster
from bench.contestants import CONTESTANTS, Contestant, Running, running_in, wait_until_idle
from bench.workload import model

PER_SECOND = 20
MODELS = 400
ROUNDS = 3
TIMEOUT = 300.0

Figures = dict[str, Any]


def measure() -> Figures:
    """Per contestant the median of three rounds, which the contestants and the plain loop take in turns."""
    rounds: dict[str, list[Figures]] = {"floor": [], **{contestant.name: [] for contestant in CONTESTANTS}}
    with Cluster(MODELS) as cluster:
        for number in range(ROUNDS):
            waits = floor.measure_steadily(cluster, f"steady-floor-{number}", MODELS, PER_SECOND)
            rounds["floor"].append(_latency(waits))
            for contestant in CONTESTANTS:
                rounds[contestant.name].append(_round(contestant, cluster, f"steady-{contestant.name}-{number}"))
    return {name: {"median": _median(figures), "rounds": figures} for name, figures in rounds.items()}


def _round(contestant: Contestant, cluster: Cluster, namespace: str) -> Figures:
    with running_in(contestant, cluster, namespace) as running:
        return {**_with_one_model(running, cluster, namespace), **_steady(running, cluster, namespace)}


def _with_one_model(running: Running, cluster: Cluster, namespace: str) -> Figures:
    """Resident memory once the first model serves and the operator is at rest."""
    with Settling(cluster.api, namespace) as settling:
        apply_all(cluster.user_kubeconfig, namespace, [model(MODELS)])
        settling.wait_for(1, TIMEOUT)
    wait_until_idle(running, cluster, TIMEOUT)
    return {"rss_one_model": round(running.usage().rss, 1)}


def _steady(running: Running, cluster: Cluster, namespace: str) -> Figures:
    mark, before = cluster.trail.mark(), running.usage()
    with Settling(cluster.api, namespace) as settling:
        models = [model(number) for number in range(MODELS)]
        apply_all(cluster.user_kubeconfig, namespace, models, per_second=PER_SECOND)
        settling.wait_for(MODELS + 1, TIMEOUT)
    wait_until_idle(running, cluster, TIMEOUT)
    applied = moments_applied(cluster.trail.since(mark, USER))
    written = moments_written(cluster.trail.since(mark, running.contestant.user), MODELS)
    cpu_seconds = running.usage().cpu_seconds - before.cpu_seconds
    waits = [written[name] - applied[name] for name in applied]
    return {**_latency(waits), "cpu_ms_per_model": round(1000 * cpu_seconds / MODELS, 1)}


def _latency(waits: list[float]) -> Figures:
    ordered = sorted(waits)
    return {
        "p50_ms": round(1000 * percentile(ordered, 50)),
        "p99_ms": round(1000 * percentile(ordered, 99)),
        "longest_ms": round(1000 * ordered[-1]),
    }


def _median(rounds: list[Figures]) -> Figures:
    return {key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}

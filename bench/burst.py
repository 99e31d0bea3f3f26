"""Two hundred models at once: how soon their children are written, how soon they all serve, and what that costs."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import Any

from bench import floor
from bench.client import Settling, apply_all
from bench.cluster import USER, Cluster
from bench.contestants import CONTESTANTS, Contestant, Running, running_in, wait_until_idle
from bench.traffic import PARENT, Request, count
from bench.workload import CHILDREN, model, owner_of

MODELS = 200
ROUNDS = 3
TIMEOUT = 300.0

Figures = dict[str, Any]


def measure() -> Figures:
    """Per contestant the median of three rounds, which the contestants take in turns, and the rounds themselves.

    `floor` is taken in the same turns: the same children without an operator.
    """
    rounds: dict[str, list[Figures]] = {"floor": [], **{contestant.name: [] for contestant in CONTESTANTS}}
    with Cluster(MODELS) as cluster:
        for number in range(ROUNDS):
            rounds["floor"].append(floor.measure(cluster, f"burst-floor-{number}", MODELS, TIMEOUT))
            for contestant in CONTESTANTS:
                rounds[contestant.name].append(_round(contestant, cluster, f"burst-{contestant.name}-{number}"))
    return {name: {"median": _median(figures), "rounds": figures} for name, figures in rounds.items()}


def _round(contestant: Contestant, cluster: Cluster, namespace: str) -> Figures:
    with running_in(contestant, cluster, namespace) as running:
        return _burst(running, cluster, namespace)


def _burst(running: Running, cluster: Cluster, namespace: str) -> Figures:
    mark, before = cluster.trail.mark(), running.usage()
    with Settling(cluster.api, namespace) as settling:
        apply_all(cluster.user_kubeconfig, namespace, [model(number) for number in range(MODELS)])
        settled = settling.wait_for(MODELS, TIMEOUT)
    wait_until_idle(running, cluster, TIMEOUT)
    after = running.usage()
    applied = moments_applied(cluster.trail.since(mark, USER))
    requests = cluster.trail.since(mark, running.contestant.user)
    written = moments_written(requests, MODELS)
    waits = sorted(written[name] - applied[name] for name in applied)
    began = min(applied.values())
    return {
        "applied_seconds": round(max(applied.values()) - began, 2),
        "written_seconds": round(max(written.values()) - began, 2),
        "settled_seconds": round(settled - began, 2),
        "p50_seconds": round(percentile(waits, 50), 2),
        "p99_seconds": round(percentile(waits, 99), 2),
        "cpu_seconds": round(after.cpu_seconds - before.cpu_seconds, 2),
        "rss_before": round(before.rss, 1),
        "peak_rss": round(after.peak_rss, 1),
        **asdict(count(requests)),
    }


def moments_applied(requests: list[Request]) -> dict[str, float]:
    """When the API server had taken each model."""
    return {request.name: request.at for request in requests if request.resource == PARENT and request.verb == "patch"}


def moments_written(requests: list[Request], models: int) -> dict[str, float]:
    """When the last child of each model was first written; raises ValueError when one never was."""
    first: dict[str, dict[str, float]] = {}
    for request in requests:
        if request.is_write and request.status < 300 and request.resource in CHILDREN:
            first.setdefault(owner_of(request.name), {}).setdefault(request.resource, request.at)
    incomplete = [name for name, children in first.items() if children.keys() != CHILDREN]
    if incomplete or len(first) != models:
        raise ValueError(f"{len(first)} of {models} models have children, {len(incomplete)} of them not all")
    return {name: max(children.values()) for name, children in first.items()}


def percentile(ordered: list[float], percent: int) -> float:
    """Nearest rank."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _median(rounds: list[Figures]) -> Figures:
    return {key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}

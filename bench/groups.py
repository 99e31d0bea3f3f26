"""What the create of a model of two nodes costs in requests, as bench/writes.py counts those of other models."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import Any

from bench.client import apply_all
from bench.cluster import Cluster
from bench.contestants import HERMETIC, running_in, wait_until_idle
from bench.traffic import by_model, count
from bench.workload import Manifest, model

SAMPLES = 5
TIMEOUT = 400.0

Figures = dict[str, Any]


def measure() -> Figures:
    """Requests for one model, on simulated nodes: the median of several."""
    with Cluster(2 * SAMPLES) as cluster, running_in(HERMETIC, cluster, "groups") as running:
        mark = cluster.trail.mark()
        apply_all(cluster.user_kubeconfig, "groups", [_of_two_nodes(model(number)) for number in range(SAMPLES)])
        wait_until_idle(running, cluster, TIMEOUT)
        counts = [asdict(count(requests)) for requests in by_model(cluster.trail.since(mark, HERMETIC.user)).values()]
        return {"samples": SAMPLES, **{key: statistics.median(row[key] for row in counts) for key in counts[0]}}


def _of_two_nodes(manifest: Manifest) -> Manifest:
    manifest["spec"]["accelerator"]["nodes"] = 2
    return manifest

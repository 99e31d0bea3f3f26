"""An audit of one cluster among tens of thousands of resources: how long, against what the quota allows at all.

Azure is the stand-in, with ARM's token buckets, Resource Graph's window and 30 ms for every answer. The auditor is the
command as people run it, in a process of its own; its time is from start to exit, report written. The peer
(`per_resource.py`) reads the same smaller estate in the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import launched
from bench.estate import LARGE, PLAIN, SMALL, Size, estate_of
from bench.per_resource import read_everything
from hermetic.audit.estate.snapshot import from_json
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.run import evaluate
from testbed.azure.ids import subscription_of
from testbed.azure.operations import is_poll
from testbed.azure.quota import Quota
from testbed.azure.requests import ArmRequest
from testbed.azure.server import ArmStandIn
from testbed.azure.several_clusters import several_clusters

LATENCY = 0.03
MIB = 1024.0
NOWHERE = "http://127.0.0.1:1"
"""Where nothing listens."""
UNREACHABLE = 4
SEVERAL = 20
"""Clusters of one subscription that one run audits."""
SNAPSHOT = "snapshot.json"
REPORT = "report.json"

Figures = dict[str, Any]


def measure(large: Size = LARGE, small: Size = SMALL) -> Figures:
    """The large audit, the small one beside the peer, and how fast the checks evaluate what was seen."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audited = _audited(large, folder)
        policy = _saved(large, folder)
        return {
            "large": audited,
            "evaluation": _evaluated(folder / SNAPSHOT, policy),
            "small": _audited(small, folder),
            "plain": {**_audited(PLAIN, folder), "start_cpu_seconds": _start(folder)},
            "peer": _read_by_the_peer(small),
        }


def measure_several(count: int = SEVERAL) -> Figures:
    """One run about so many plain clusters of one subscription, beside one run about one of them."""
    with tempfile.TemporaryDirectory() as name:
        return {"single": _audited_together(1, Path(name)), "several": _audited_together(count, Path(name))}


def _stand_in(size: Size) -> ArmStandIn:
    return ArmStandIn(estate_of(size), quota=Quota(), latency=LATENCY)


def _command(arm: ArmStandIn, folder: Path, *more: str) -> list[str]:
    """With the policy file of the estate: Azure alone does not show the default outbound of scale set interfaces."""
    policy = folder / "policy.json"
    policy.write_text(json.dumps(arm.estate.policy))
    program = [sys.executable, "-m", "hermetic", "audit", "--policy", str(policy)]
    return [*program, "--azure", arm.estate.cluster, "--arm-endpoint", arm.url, "--output", "json", *more]


def _saved(size: Size, folder: Path) -> Policy:
    """The same audit, saved, and its policy: by an Azure without quota or delay, for no time is taken."""
    with ArmStandIn(estate_of(size)) as arm:
        command = _command(arm, folder, "--save-snapshot", str(folder / SNAPSHOT))
        environment = {**os.environ, "HERMETIC_ARM_TOKEN": arm.token}
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=True)
        return Policy.model_validate(arm.estate.policy)


def _start(folder: Path) -> float:
    """Processor seconds of an audit that finds out that Azure is not there: what starting takes, and nothing else."""
    with ArmStandIn(estate_of(PLAIN)) as arm:
        command = [NOWHERE if part == arm.url else part for part in _command(arm, folder, "--retry-budget", "0")]
        code, cost = _cost_of(command, folder, "any")
    if code != UNREACHABLE:
        raise RuntimeError(f"an audit of nothing ended with {code}")
    return float(cost["cpu_seconds"])


def _cost_of(command: list[str], folder: Path, token: str) -> tuple[int, Figures]:
    """Its exit code and what it cost (see `bench.launched`); its report lies in the folder."""
    file, launcher = folder / "cost.json", [sys.executable, "-I", "-S", str(Path(launched.__file__))]
    with (folder / REPORT).open("wb") as out:
        environment = {**os.environ, "HERMETIC_ARM_TOKEN": token}
        ended = subprocess.run([*launcher, str(file), *command], stdout=out, env=environment, check=False)
    return ended.returncode, json.loads(file.read_text())


def _audited(size: Size, folder: Path) -> Figures:
    with _stand_in(size) as arm:
        command = _command(arm, folder)
        began = time.monotonic()
        code, cost = _cost_of(command, folder, arm.token)
        seconds = time.monotonic() - began
        if code != 0:
            raise RuntimeError(f"the audit of a sealed estate ended with {code}")
        requests = list(arm.requests)
        resources = len(arm.estate.resources)
    bound = quota_bound(requests)
    report = json.loads((folder / REPORT).read_text())
    return {
        "resources": resources,
        "seconds": round(seconds, 2),
        "collecting_seconds": round(requests[-1].at - requests[0].at, 2),
        "quota_bound_seconds": round(bound, 2),
        "ratio": round(seconds / bound, 2) if bound else None,
        "requests": len(requests),
        "by_lane": dict(Counter(" ".join(_lane(request)).strip() for request in requests)),
        "refused_429": sum(request.status == 429 for request in requests),
        "verdict": report["verdict"],
        "findings": len(report["findings"]),
        **cost,
    }


def _audited_together(count: int, folder: Path) -> Figures:
    """One `hermetic audit --clusters` about sealed clusters: what it cost, and what it took of the quota."""
    estate, clusters = several_clusters(count)
    listed, policy = folder / "clusters.txt", folder / "policy.json"
    listed.write_text("\n".join(clusters))
    policy.write_text(json.dumps(estate.policy))
    program = [sys.executable, "-m", "hermetic", "audit", "--policy", str(policy)]
    with ArmStandIn(estate, quota=Quota(), latency=LATENCY) as arm:
        reports = folder / f"reports-{count}"
        command = [*program, "--arm-endpoint", arm.url, "--clusters", str(listed), "--reports", str(reports)]
        began = time.monotonic()
        code, cost = _cost_of(command, folder, arm.token)
        seconds = time.monotonic() - began
        if code != 0:
            raise RuntimeError(f"the audit of {count} sealed clusters ended with {code}")
        requests = list(arm.requests)
    return {
        "clusters": count,
        "resources": len(estate.resources),
        "seconds": round(seconds, 2),
        "quota_bound_seconds": round(quota_bound(requests), 2),
        "requests": len(requests),
        "by_sort": dict(Counter(_lane(request)[0] for request in requests)),
        "refused_429": sum(request.status == 429 for request in requests),
        **cost,
    }


def quota_bound(requests: Iterable[ArmRequest], quota: Quota | None = None) -> float:
    """Seconds before which the last of these requests could not have been admitted, had all been ready at once.

    Per subscription (reads - 250) / 25 and (actions - 200) / 10; for Resource Graph a window of 5 s for each 15 queries
    that come before. The lanes are independent, so the slowest counts. The time that answers take is not in it.
    """
    quota = quota or Quota()
    bounds = [0.0]
    for (sort, _), count in Counter(_lane(request) for request in requests).items():
        if sort == "graph":
            bounds.append((count - 1) // quota.graph * quota.graph_seconds)
        elif sort == "reads":
            bounds.append((count - quota.reads) / quota.reads_per_second)
        else:
            bounds.append((count - quota.actions) / quota.actions_per_second)
    return max(bounds)


def _lane(request: ArmRequest) -> tuple[str, str]:
    if request.is_graph:
        return "graph", ""
    sort = "reads" if request.method == "GET" or is_poll(request.path) else "actions"
    return sort, subscription_of(request.path).lower()


def _evaluated(snapshot: Path, policy: Policy) -> Figures:
    """Findings per second: with everything read from bodies first, and of an estate that was read before."""
    estate = from_json(snapshot.read_bytes()).estate()
    durations = []
    for _ in range(4):
        began = time.monotonic()
        findings = len(evaluate(estate, policy))
        durations.append(time.monotonic() - began)
    again = min(durations[1:])
    return {
        "findings": findings,
        "first_seconds": round(durations[0], 2),
        "findings_per_second_first": round(findings / durations[0]),
        "seconds": round(again, 2),
        "findings_per_second": round(findings / again),
        "snapshot_mib": round(snapshot.stat().st_size / MIB**2, 1),
    }


def _read_by_the_peer(size: Size) -> Figures:
    with _stand_in(size) as arm:
        read = read_everything(arm.url, arm.token, arm.estate)
        bound = quota_bound(arm.requests)
    return {**asdict(read), "seconds": round(read.seconds, 2), "quota_bound_seconds": round(bound, 2)}

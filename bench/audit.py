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

from bench.estate import LARGE, SMALL, Size, estate_of
from bench.per_resource import read_everything
from hermetic.audit.auditing import judge
from hermetic.audit.estate.snapshot import from_json
from hermetic.audit.policy import Policy
from testbed.azure.ids import subscription_of
from testbed.azure.operations import is_poll
from testbed.azure.quota import Quota
from testbed.azure.requests import ArmRequest
from testbed.azure.server import ArmStandIn

LATENCY = 0.03
MIB = 1024.0

Figures = dict[str, Any]


def measure(large: Size = LARGE, small: Size = SMALL) -> Figures:
    """The large audit, the small one beside the peer, and how fast the checks judge what was seen."""
    with tempfile.TemporaryDirectory() as folder:
        report, snapshot = Path(folder) / "report.json", Path(folder) / "snapshot.json"
        audited = _audited(large, report)
        _saved(large, snapshot)
        return {
            "large": audited,
            "judging": _judged(snapshot),
            "small": _audited(small, report),
            "peer": _read_by_the_peer(small),
        }


def _stand_in(size: Size) -> ArmStandIn:
    return ArmStandIn(estate_of(size), quota=Quota(), latency=LATENCY)


def _command(arm: ArmStandIn, *more: str) -> list[str]:
    program = [sys.executable, "-m", "hermetic", "audit"]
    return [*program, "--azure", arm.estate.cluster, "--arm-endpoint", arm.url, "--output", "json", *more]


def _saved(size: Size, snapshot: Path) -> None:
    """The same audit, saved: by an Azure without quota or delay, for no time is taken."""
    with ArmStandIn(estate_of(size)) as arm:
        command = _command(arm, "--save-snapshot", str(snapshot))
        environment = {**os.environ, "HERMETIC_ARM_TOKEN": arm.token}
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=True)


def _audited(size: Size, report: Path) -> Figures:
    with _stand_in(size) as arm:
        command = _command(arm)
        began = time.monotonic()
        with report.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, env={**os.environ, "HERMETIC_ARM_TOKEN": arm.token})
            _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"the audit of a sealed estate ended with {process.returncode}")
        requests = list(arm.requests)
        resources = len(arm.estate.resources)
    bound = quota_bound(requests)
    told = json.loads(report.read_text())
    return {
        "resources": resources,
        "seconds": round(seconds, 2),
        "collecting_seconds": round(requests[-1].at - requests[0].at, 2),
        "quota_bound_seconds": round(bound, 2),
        "ratio": round(seconds / bound, 2) if bound else None,
        "requests": len(requests),
        "by_lane": dict(Counter(" ".join(_lane(request)).strip() for request in requests)),
        "refused_429": sum(request.status == 429 for request in requests),
        "verdict": told["verdict"],
        "findings": len(told["findings"]),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_rss": round(used.ru_maxrss / MIB, 1),
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


def _judged(snapshot: Path) -> Figures:
    """Findings per second: with everything read from bodies first, and of an estate that was read before."""
    estate, policy = from_json(snapshot.read_bytes()).estate(), Policy()
    taken = []
    for _ in range(4):
        began = time.monotonic()
        findings = len(judge(estate, policy))
        taken.append(time.monotonic() - began)
    again = min(taken[1:])
    return {
        "findings": findings,
        "first_seconds": round(taken[0], 2),
        "findings_per_second_first": round(findings / taken[0]),
        "seconds": round(again, 2),
        "findings_per_second": round(findings / again),
        "snapshot_mib": round(snapshot.stat().st_size / MIB**2, 1),
    }


def _read_by_the_peer(size: Size) -> Figures:
    with _stand_in(size) as arm:
        read = read_everything(arm.url, arm.token, arm.estate)
        bound = quota_bound(arm.requests)
    return {**asdict(read), "seconds": round(read.seconds, 2), "quota_bound_seconds": round(bound, 2)}

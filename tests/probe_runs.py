"""Runs of the probe as a collector hands them over: sealed ones to start from, and what a test makes of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hermetic.audit.checks import probe
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Body, Problem
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Evidence, Finding
from hermetic.audit.policy.declarations import Policy
from hermetic.collect.probe.readings import question
from hermetic.collect.probe.targets import Targets

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
CLUSTER = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/gpu/providers/Microsoft.ContainerService/managedClusters/sealed"
)
PLACE = "agentPools/gpu/subnets/nodes"
ALLOWED = Policy(allowed_dns_servers=("10.0.0.4",))
HELD_NAMES = ["r2:;/3"] * 3
TARGETS = Targets(
    public_addresses=("198.51.100.1", "198.51.100.2", "203.0.113.3", "2001:db8::4"),
    storage_names=("stranger.blob.core.windows.net",),
)
UNEXPECTED_ADDRESS = "198.51.100.30"


def sealed(targets: Targets = TARGETS, *, host_network: bool) -> dict[str, Any]:
    """What a pod says of a sealed network. Storage resolves to a public address: only so can it be called at all."""
    questions = json.loads(targets.questions("r1/job", host_network=host_network))
    own = ["10.0.0.4"] if host_network else ["10.96.0.10"]
    documents = {
        "loadbalancer": [200, {"public": [], "more": 0, "outboundRules": 0}],
        "network": [200, []],
        "compute": [
            200,
            {"subscriptionId": SUBSCRIPTION, "resourceGroupName": "MC_gpu", "vmScaleSetName": "s", "vmId": "v"},
        ],
    }
    return {
        "v": 1,
        "run": questions["run"],
        "controls": [["s/2"], ["s/3"]],
        "targets": [_held(row) for row in questions["targets"]],
        "names": ["r2:;/4" for _ in questions["names"]],
        "dns": ["r2:;/3" for _ in [*own, *questions["resolvers"]]],
        "known": ["r2:;/3" for _ in [*own, *questions["resolvers"]]],
        "clusterName": ["r0:10.96.0.1;/1" if not host_network else "r3:;/1"],
        "imds": ["o/1"] * 3 if questions["imds"] else [],
        "servers": [*own, *questions["resolvers"]],
        "metadata": documents if questions["imds"] else {},
        "v4": ["10.0.0.1 eth0"],
        "v6": [],
        "v6Addresses": [],
        "nameservers": own,
    }


def _held(row: Sequence[Any]) -> str:
    return "e101/0" if ":" in row[2] else "t"


def run(answers: Mapping[str, Any] | str, *, host_network: bool, targets: Targets = TARGETS, **facts: Any) -> Body:
    """The body of one run: `answers` as an object, or the very line."""
    line = answers if isinstance(answers, str) else json.dumps(answers)
    name = "probe-host" if host_network else "probe-pod"
    value = {
        "id": f"Pod probes/{name}",
        "pool": "gpu",
        "subnet": "nodes",
        "node": "gpu-0",
        "hostNetwork": host_network,
        "observedAt": "2026-09-01T10:00:00Z",
        "questions": targets.questions("r1/job", host_network=host_network),
        "answer": line,
        **facts,
    }
    digest = hashlib.sha256(line.encode()).hexdigest()
    return Body(value, (Evidence(f"Pod probes/{name} on gpu-0: termination message", None, digest),))


def both(
    pod: Mapping[str, Any] | str | None = None, host: Mapping[str, Any] | str | None = None, targets: Targets = TARGETS
) -> list[Body]:
    """A run from each vantage: sealed where nothing else is given."""
    return [
        run(sealed(targets, host_network=False) if pod is None else pod, host_network=False, targets=targets),
        run(sealed(targets, host_network=True) if host is None else host, host_network=True, targets=targets),
    ]


def changed(*, host_network: bool = False, targets: Targets = TARGETS, **fields: Any) -> dict[str, Any]:
    """A sealed answer with some of its fields replaced."""
    return {**sealed(targets, host_network=host_network), **fields}


def called(
    answers: Mapping[tuple[str, str, int], str], *, host_network: bool = False, targets: Targets = TARGETS
) -> dict[str, Any]:
    """A sealed answer, with other answers of the targets (kind, address, port)."""
    probe_answers = sealed(targets, host_network=host_network)
    questions = json.loads(targets.questions("r1/job", host_network=host_network))
    left = dict(answers)
    probe_answers["targets"] = [
        left.pop((row[1], row[2], row[3]), answer)
        for row, answer in zip(questions["targets"], probe_answers["targets"], strict=True)
    ]
    assert not left, f"not asked: {sorted(left)}"
    return probe_answers


def estate(bodies: Sequence[Body], problem: Problem | None = None) -> Estate:
    """An estate that only the probe was asked for."""
    return Estate(CLUSTER, ["probe"], {question(CLUSTER): Answer(tuple(bodies), (), problem)})


def findings(check: str, bodies: Sequence[Body], policy: Policy | None = None, **wanted: Any) -> list[Finding]:
    """The findings of one check of the probe's family."""
    (rule,) = (candidate for candidate in probe.CHECKS if candidate.page.id == check)
    return list(findings_of(rule, estate(bodies, **wanted), policy or Policy()))


def finding(check: str, bodies: Sequence[Body], policy: Policy | None = None) -> Finding:
    """The one finding of a check where every run stands for one place."""
    (check_finding,) = findings(check, bodies, policy)
    assert check_finding.resource == PLACE
    return check_finding

"""One round of the probe on a cluster: its Jobs applied, its pods read.

No state is kept between two calls, so an operator may call `start` and `read` from any reconcile, before or after a
restart, and the command line in a loop: the same round always has the same Jobs. The cluster removes finished Jobs.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermetic.audit.estate.questions import Answer, Question
from hermetic.collect.probe.job import (
    DEADLINE_SECONDS,
    RUN_LABEL,
    SELECTOR,
    ProbedNode,
    ProbePods,
    probe_job,
    probed_nodes,
)
from hermetic.collect.probe.readings import ExpectedPod, Round, expected_pods, read_round
from hermetic.errors import Forbidden, NotFound, Rejected
from hermetic.kinds import JOB, NODE, POD, Kind
from hermetic.ports import Clock, KubeApi, Manifest

POLL_SECONDS = 2.0
PATIENCE_SECONDS = DEADLINE_SECONDS + 30
IMAGE_POLICY = "hermetic-operator-probe-image"
"""Admission policy that compares the image with the EgressAudit in the API server's cache, which may lag briefly."""


class ProbeRounds:
    """The rounds of one cluster."""

    def __init__(self, kube: KubeApi, pods: ProbePods) -> None:
        self._kube = kube
        self._pods = pods

    async def nodes(self) -> list[Manifest]:
        """The nodes of the cluster; `probed_nodes` chooses among them."""
        return [node async for page, _ in self._kube.pages(NODE) for node in page]

    async def start(self, run: str, probed_nodes: Sequence[ProbedNode]) -> Mapping[str, str]:
        """Apply every Job of a round; existing ones stay unchanged.

        Returns by Job name why one was refused finally. Raises transient errors: call again.
        """
        refused: dict[str, str] = {}
        for expected_pod in expected_pods(probed_nodes):
            job = probe_job(self._pods, expected_pod.probed_node, run, host_network=expected_pod.host_network)
            try:
                await self._kube.apply(job)
            except (Forbidden, NotFound, Rejected) as refusal:
                if IMAGE_POLICY in refusal.message:
                    raise
                refused[expected_pod.job(run)] = f"the Job was refused: {refusal.message}"
        return refused

    async def read(
        self, run: str, probed_nodes: Sequence[ProbedNode], refused: Mapping[str, str] | None = None
    ) -> Round:
        """The state of the round now, after every Job of it was applied or refused.

        A pod is not awaited any more when nothing can run it: its Job failed or was removed, or its node was removed.
        """
        pods = await self._list_round(POD, run)
        jobs = {job["metadata"]["name"]: job for job in await self._list_round(JOB, run)}
        removed = {
            pod.job(run): "its Job was removed" for pod in expected_pods(probed_nodes) if pod.job(run) not in jobs
        }
        failed = {name: failure for name, job in jobs.items() if (failure := failure_of_job(job))}
        failures = {**removed, **failed, **(refused or {})}
        round_state = read_round(self._pods, run, probed_nodes, pods, failures)
        removed_nodes = await self._removed_nodes(round_state.awaited)
        if not removed_nodes:
            return round_state
        unreachable = [pod for pod in round_state.awaited if pod.probed_node.node in removed_nodes]
        failures.update({pod.job(run): "its node was removed" for pod in unreachable})
        return read_round(self._pods, run, probed_nodes, pods, failures)

    async def _removed_nodes(self, awaited: Iterable[ExpectedPod]) -> frozenset[str]:
        """Names of the nodes of these pods that the cluster has no more."""
        names = sorted({pod.probed_node.node for pod in awaited})
        return frozenset([name for name in names if not await self._has_node(name)])

    async def _has_node(self, name: str) -> bool:
        pages = self._kube.pages(NODE, field_selector=f"metadata.name={name}")
        return any([page async for page, _ in pages])

    async def whole_round(
        self, run: str, probed_nodes: Sequence[ProbedNode], clock: Clock, patience: float = PATIENCE_SECONDS
    ) -> Answer:
        """Start a round and wait until every pod has answered or failed, for `patience` seconds at most."""
        refused = await self.start(run, probed_nodes)
        deadline = clock.monotonic() + patience
        while True:
            round_state = await self.read(run, probed_nodes, refused)
            if not round_state.awaited or clock.monotonic() >= deadline:
                return round_state.answer
            await asyncio.sleep(POLL_SECONDS)

    async def _list_round(self, kind: Kind, run: str) -> list[Manifest]:
        namespaces = sorted({self._pods.namespace_for(host_network=host) for host in (False, True)})
        selector = f"{SELECTOR},{RUN_LABEL}={run}"
        return [
            item
            for namespace in namespaces
            async for page, _ in self._kube.pages(kind, namespace=namespace, label_selector=selector)
            for item in page
        ]


def failure_of_job(job: Mapping[str, Any]) -> str:
    """Why a Job will not give an answer; "" while it may. A crashed program has ended, and its message is read."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            hint = " (no pod was let in: see the events of the Job)" if not job["status"].get("failed") else ""
            return f"{condition.get('reason', 'Failed')}: {condition.get('message', '')}{hint}"
    return ""


class ProbeAnswerer:
    """The probe as a source of an audit: one round of all pools, started by the first question, answers every one."""

    def __init__(self, probing: ProbeRounds, clock: Clock) -> None:
        self._probing = probing
        self._clock = clock
        self._answer: Answer | None = None

    async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
        """The runs, and a problem when a pod did not answer. Raises the errors of the API server for a list."""
        if self._answer is None:
            nodes = probed_nodes(await self._probing.nodes())
            self._answer = await self._probing.whole_round(secrets.token_hex(4), nodes, self._clock)
        return dict.fromkeys(questions, self._answer)

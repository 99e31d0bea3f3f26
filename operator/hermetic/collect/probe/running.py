"""One round of the probe on a cluster: its Jobs applied, its pods read.

Nothing is remembered between two calls, so an operator may call `start` and `look` from any reconcile, before or after
a restart, and the command line in a loop: the same round always means the same Jobs. Finished Jobs are removed by the
cluster itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from hermetic.audit.estate.questions import Answer
from hermetic.collect.probe.job import DEADLINE_SECONDS, RUN_LABEL, SELECTOR, ProbePods, Seat, probe_job
from hermetic.collect.probe.readings import Round, read_round, wanted_pods
from hermetic.errors import ApiRefused, Forbidden, NotFound, Rejected
from hermetic.kinds import JOB, NODE, POD, Kind
from hermetic.ports import Clock, KubeApi, Manifest

LOOK_AGAIN_SECONDS = 2.0
PATIENCE_SECONDS = DEADLINE_SECONDS + 30
IMAGE_POLICY = "hermetic-operator-probe-image"
"""Compares the image with the EgressAudit as the API server's own cache holds it, which may be behind for a moment."""


class Probing:
    """The rounds of one cluster."""

    def __init__(self, kube: KubeApi, pods: ProbePods) -> None:
        self._kube = kube
        self._pods = pods

    async def nodes(self) -> list[Manifest]:
        """The machines of the cluster; `seats` chooses among them."""
        return [node async for page, _ in self._kube.pages(NODE) for node in page]

    async def start(self, run: str, seats: Sequence[Seat]) -> Mapping[str, str]:
        """Applies every Job of a round; those that are there stay as they are.

        Returns by Job name why one was refused for good. What may pass by itself is raised: call again.
        """
        refused: dict[str, str] = {}
        for wanted in wanted_pods(seats):
            job = probe_job(self._pods, wanted.seat, run, host_network=wanted.host_network)
            try:
                await self._kube.apply(job)
            except (Forbidden, NotFound, Rejected) as refusal:
                if IMAGE_POLICY in refusal.message:
                    raise
                refused[wanted.job(run)] = _in_words(refusal)
        return refused

    async def look(self, run: str, seats: Sequence[Seat], refused: Mapping[str, str] | None = None) -> Round:
        """What the round has brought by now."""
        pods = await self._of_the_round(POD, run)
        jobs = await self._of_the_round(JOB, run)
        failed = {job["metadata"]["name"]: why for job in jobs if (why := _failure(job))}
        return read_round(self._pods, run, seats, pods, {**failed, **(refused or {})})

    async def whole_round(
        self, run: str, seats: Sequence[Seat], clock: Clock, patience: float = PATIENCE_SECONDS
    ) -> Answer:
        """Starts a round and waits until every pod has answered, or can no longer, for `patience` seconds at most."""
        refused = await self.start(run, seats)
        until = clock.monotonic() + patience
        while True:
            found = await self.look(run, seats, refused)
            if not found.awaited or clock.monotonic() >= until:
                return found.answer
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _of_the_round(self, kind: Kind, run: str) -> list[Manifest]:
        spaces = sorted({self._pods.namespace_for(host_network=host) for host in (False, True)})
        selector = f"{SELECTOR},{RUN_LABEL}={run}"
        return [
            item
            for space in spaces
            async for page, _ in self._kube.pages(kind, namespace=space, label_selector=selector)
            for item in page
        ]


def _failure(job: Mapping[str, Any]) -> str:
    """Why a Job will not bring an answer; "" while it may. A program that crashed has ended, and is read as it is."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            hint = " (no pod was let in: see the events of the Job)" if not job["status"].get("failed") else ""
            return f"{condition.get('reason', 'Failed')}: {condition.get('message', '')}{hint}"
    return ""


def _in_words(refusal: ApiRefused) -> str:
    return f"the Job was refused: {refusal.message}"

"""Runs the Job of a benchmark with the rights of the user, reads its result, and records it at the model."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from hermetic.cli.bench.job import BENCHMARK_LABEL, CONTAINER, DEADLINE_SECONDS, benchmark_job, benchmark_policy
from hermetic.cli.bench.planned import ModelObjects, PlannedBenchmark, plan_benchmark
from hermetic.cli.benchmarks import ANNOTATION, BenchmarkRecord, figures_in, records_of, stored
from hermetic.cli.status.reading import no_such_model
from hermetic.cli.status.report import report
from hermetic.collect.probe.readings import reasons_to_wait
from hermetic.collect.probe.running import failure_of_job
from hermetic.engines.benchmark import Load
from hermetic.errors import BenchmarkFailed, Conflict
from hermetic.kinds import JOB, MODEL_DEPLOYMENT, POD, SERVICE, Kind
from hermetic.kube.paging import named
from hermetic.objects.names import MODEL_LABEL
from hermetic.objects.workloads.registry import WORKLOAD_KINDS
from hermetic.ports import Clock, KubeApi, Manifest

POLL_SECONDS = 2.0
PATIENCE_SECONDS = DEADLINE_SECONDS + 30
WRITE_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class BenchmarkRequest:
    """The arguments of the command."""

    namespace: str
    name: str
    load: Load
    client_labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class BenchmarkOutcome:
    """The result of a run, and the records before it, newest first."""

    record: BenchmarkRecord
    earlier: tuple[BenchmarkRecord, ...]


@dataclass(frozen=True, slots=True)
class Runner:
    """One run. `note` gets a line on what happens."""

    api: KubeApi
    clock: Clock
    note: Callable[[str], None]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self, request: BenchmarkRequest) -> BenchmarkOutcome:
        """Run the Job to its end and record the result. Raises the errors of `plan_benchmark` and of the API server."""
        objects = await self._objects(request)
        planned = plan_benchmark(objects, request.load, request.client_labels)
        await self._must_be_alone(request)
        async with self._started(planned, request) as job:
            name = job["metadata"]["name"]
            self.note(f"Job {name} runs the benchmark; 'kubectl logs -n {request.namespace} job/{name}' shows its log")
            figures = figures_in(*await self._message(job), request.load.requests)
        record = BenchmarkRecord(self.clock.now(), planned.fingerprint, figures)
        return BenchmarkOutcome(record, await self._recorded(request, planned.pod.owner.uid, record))

    async def _objects(self, request: BenchmarkRequest) -> ModelObjects:
        model = await self._named(MODEL_DEPLOYMENT, request)
        if model is None:
            deployments = [other async for other in self._listed(MODEL_DEPLOYMENT, request.namespace, "")]
            raise no_such_model(request.name, request.namespace, deployments)
        selector = f"{MODEL_LABEL}={request.name}"
        pods = [pod async for pod in self._listed(POD, request.namespace, selector)]
        workloads = [live for kind in WORKLOAD_KINDS if (live := await self._named(kind, request)) is not None]
        service = await self._named(SERVICE, request)
        return ModelObjects(model, next(iter(workloads), None), service, report(model, pods, None))

    async def _must_be_alone(self, request: BenchmarkRequest, own: Manifest | None = None) -> None:
        """Two benchmarks at the same time would measure each other. `own`: a Job that gives way to older ones."""
        async for job in self._listed(JOB, request.namespace, f"{BENCHMARK_LABEL}={request.name}"):
            if own is not None and _goes_first(own, job):
                continue
            conditions = (job.get("status") or {}).get("conditions") or ()
            if not any(end.get("type") in {"Complete", "Failed"} and end.get("status") == "True" for end in conditions):
                name = job["metadata"]["name"]
                raise BenchmarkFailed(
                    f"another benchmark of '{request.name}' runs: Job {name}",
                    fix=f"wait until it ends, or end it: kubectl delete job {name} --namespace {request.namespace}",
                )

    @asynccontextmanager
    async def _started(self, planned: PlannedBenchmark, request: BenchmarkRequest) -> AsyncIterator[Manifest]:
        """The applied Job with its NetworkPolicy. Only a Job that ended without a result stays, for its log."""
        job = await self.api.apply(benchmark_job(planned.pod, planned.engine, secrets.token_hex(3)))
        has_failed = False
        try:
            # Another command may have made its Job since the first look.
            await self._must_be_alone(request, job)
            await self.api.apply(benchmark_policy(planned.pod, job))
            try:
                yield job
            except BenchmarkFailed:
                has_failed = True
                raise
        finally:
            if not has_failed:
                metadata = job["metadata"]
                names = {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
                await self.api.delete(JOB, **names)

    async def _message(self, job: Manifest) -> tuple[str, str]:
        """The termination message of the Job's container, and how the container ended."""
        metadata = job["metadata"]
        selector = f"batch.kubernetes.io/job-name={metadata['name']}"
        fix = f"kubectl describe job {metadata['name']} --namespace {metadata['namespace']}"
        until, waits = self.clock.monotonic() + PATIENCE_SECONDS, "no pod yet"
        while self.clock.monotonic() < until:
            async for pod in self._listed(POD, metadata["namespace"], selector):
                if (ended := _ended(pod)) is not None:
                    end = f"{ended.get('reason') or 'ended'}, exit code {ended.get('exitCode')}"
                    return str(ended.get("message") or ""), end
                reasons = "; ".join(reasons_to_wait(pod))
                if reasons and reasons != waits:
                    waits = reasons
                    self.note(f"the pod of the benchmark waits: {waits}")
            live = await named(self.api, JOB, metadata["name"], namespace=metadata["namespace"])
            if live is None:
                raise BenchmarkFailed(f"the Job was deleted before it gave a result; {waits}")
            if failure := failure_of_job(live):
                raise BenchmarkFailed(f"the Job ended without a result: {failure}; {waits}", fix=fix)
            await self.pause(POLL_SECONDS)
        raise BenchmarkFailed(f"the Job gave no result within {PATIENCE_SECONDS} s: {waits}", fix=fix)

    async def _recorded(
        self, request: BenchmarkRequest, uid: str, record: BenchmarkRecord
    ) -> tuple[BenchmarkRecord, ...]:
        """Add the record to the annotation; returns the earlier records. A model that was replaced gets none."""
        for _ in range(WRITE_ATTEMPTS):
            live = await self._named(MODEL_DEPLOYMENT, request)
            if live is None or live["metadata"]["uid"] != uid:
                break
            earlier = records_of(live)
            patch = _patch(live, stored((record, *earlier)))
            try:
                await self.api.patch(patch)
            except Conflict:
                continue
            return earlier
        raise BenchmarkFailed(f"the result was not recorded: '{request.name}' was replaced or changes all the time")

    async def _named(self, kind: Kind, request: BenchmarkRequest) -> Manifest | None:
        return await named(self.api, kind, request.name, namespace=request.namespace)

    async def _listed(self, kind: Kind, namespace: str, selector: str) -> AsyncIterator[Manifest]:
        async for page, _ in self.api.pages(kind, namespace=namespace, label_selector=selector):
            for item in page:
                yield item


def _goes_first(own: Manifest, other: Manifest) -> bool:
    """Whether `own` is the same Job, or older. Of two that were made in the same second neither is."""
    if own["metadata"]["uid"] == other["metadata"].get("uid"):
        return True
    times = [str(job["metadata"].get("creationTimestamp") or "") for job in (own, other)]
    return times[0] < times[1]


def _ended(pod: Manifest) -> dict[str, Any] | None:
    """The end of the container, once the kubelet has reported it."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if status.get("name") == CONTAINER:
            ended: dict[str, Any] | None = (status.get("state") or {}).get("terminated")
            return ended
    return None


def _patch(model: Manifest, text: str) -> Manifest:
    metadata = model["metadata"]
    names = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {
        "apiVersion": MODEL_DEPLOYMENT.api_version,
        "kind": MODEL_DEPLOYMENT.kind,
        "metadata": {**names, "annotations": {ANNOTATION: text}},
    }

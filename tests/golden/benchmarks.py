"""The Job and the NetworkPolicy of `hermetic bench` as reviewed text: shapes, live objects, the name of each file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hermetic.cli.bench.job import BENCHMARK_LABEL, benchmark_job, benchmark_policy
from hermetic.cli.bench.planned import ModelObjects, PlannedBenchmark, plan_benchmark
from hermetic.cli.status.report import report
from hermetic.engines.benchmark import Load
from tests.renderings import OWNER_UID, RENDERINGS
from tests.scenarios import Manifest
from tests.snapshots import rendered

FOLDER = Path(__file__).resolve().parent / "benchmarks"
SHAPES = ("share", "image-volume", "sglang-guarded-without-tls", "tls-and-api-key")
LOAD = Load(requests=64, concurrency=8, input_tokens=1024, output_tokens=128)
JOB_UID = "0b6a1c80-3c39-4f4f-8f9e-6d9f0a2d7c11"


def shape(name: str) -> Manifest:
    """A rendering that admits the pod of a benchmark."""
    manifest = RENDERINGS[name.removesuffix("-without-tls")]
    spec, endpoint = manifest["spec"], dict(manifest["spec"].get("endpoint") or {})
    if name.endswith("-without-tls"):
        endpoint.pop("tls", None)
    entry = {"podSelector": {"matchLabels": {BENCHMARK_LABEL: manifest["metadata"]["name"]}}}
    endpoint["allowedClients"] = [*endpoint.get("allowedClients", ()), entry]
    return {**manifest, "spec": {**spec, "endpoint": endpoint}}


def admitting(manifest: Manifest, **endpoint: Any) -> Manifest:
    """A model whose only client is its benchmark; `endpoint` has further fields, or other clients."""
    entry = {"podSelector": {"matchLabels": {BENCHMARK_LABEL: manifest["metadata"]["name"]}}}
    return {**manifest, "spec": {**manifest["spec"], "endpoint": {"allowedClients": [entry], **endpoint}}}


def live(manifest: Manifest, pods: int = 1, **model: Any) -> ModelObjects:
    """The objects of a model that serves; `model` replaces parts of the ModelDeployment."""
    children = rendered(manifest)
    name = manifest["metadata"]["name"]
    metadata = {**manifest["metadata"], "namespace": "inference", "uid": OWNER_UID, "generation": 1}
    ready = {"type": "Ready", "status": "True", "reason": "Serving", "message": ""}
    status = {"observedGeneration": 1, "conditions": [ready]}
    deployed = {**manifest, "metadata": metadata, "status": status, **model}
    service = children["Service"]
    service = {**service, "spec": {**service["spec"], "clusterIP": "10.0.171.24"}}
    served = [serving_pod(name, number) for number in range(pods)]
    return ModelObjects(deployed, children["Deployment"], service, report(deployed, served, None))


def serving_pod(name: str, number: int = 0) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{number}",
            "namespace": "inference",
            "labels": {"hermetic.dev/modeldeployment": name},
        },
        "spec": {"nodeName": "aks-gpu-0"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def planned(name: str) -> PlannedBenchmark:
    return plan_benchmark(live(shape(name)), LOAD, {})


def objects_of(benchmark: PlannedBenchmark) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The Job, and the NetworkPolicy of the Job once it was created."""
    job = benchmark_job(benchmark.pod, benchmark.engine, "0c1d2e")
    return job, benchmark_policy(benchmark.pod, {**job, "metadata": {**job["metadata"], "uid": JOB_UID}})


def as_text(name: str) -> str:
    return yaml.safe_dump_all(objects_of(planned(name)), sort_keys=False, width=120, explicit_start=True)


def file_of(name: str) -> Path:
    return FOLDER / f"{name}.yaml"

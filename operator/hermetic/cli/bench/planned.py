"""Whether a benchmark of a model can run now, and what it runs: pure, from the objects of the model.

Raises InputError where the command or the model has to change first, and BenchmarkFailed where it is a matter of time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from hermetic.api.endpoint import ClientSelector
from hermetic.api.image_references import digest_of
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.text import first_of
from hermetic.api.weights import SOURCES
from hermetic.cli.bench.job import BENCHMARK_LABEL, BenchmarkPod, pod_labels
from hermetic.cli.status.report import DeploymentReport
from hermetic.engines.benchmark import Load
from hermetic.engines.registry import engine_of
from hermetic.errors import BenchmarkFailed, InputError
from hermetic.objects.names import Owner, digest
from hermetic.objects.pod import ENGINE

Manifest = Mapping[str, Any]
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace has with its name."""


@dataclass(frozen=True, slots=True)
class ModelObjects:
    """The live objects of one model, and the report on it."""

    model: Manifest
    workload: Manifest | None
    service: Manifest | None
    report: DeploymentReport


@dataclass(frozen=True, slots=True)
class PlannedBenchmark:
    """A benchmark that can run. `engine`: the container of the engine in the template of the workload."""

    pod: BenchmarkPod
    engine: Manifest
    load: Load
    fingerprint: Mapping[str, str]


def plan_benchmark(objects: ModelObjects, load: Load, client_labels: Mapping[str, str]) -> PlannedBenchmark:
    """Plan the benchmark of a model that serves. What no waiting can change is refused first."""
    metadata = objects.model["metadata"]
    owner = Owner(metadata["namespace"], metadata["name"], metadata["uid"])
    spec = _spec_of(objects.model)
    _command(owner, spec, load, url="")
    _must_fit(spec, load)
    _must_be_admitted(owner, spec, client_labels)
    workload, service = _must_serve(objects)
    command = _command(owner, spec, load, _url(spec, service))
    template = workload["spec"]["template"]
    engine = next(container for container in template["spec"]["containers"] if container["name"] == ENGINE)
    pod = BenchmarkPod(owner, spec, template, command, client_labels)
    return PlannedBenchmark(pod, engine, load, _fingerprint(objects, spec, engine, load))


def _command(owner: Owner, spec: ModelDeploymentSpec, load: Load, url: str) -> tuple[str, ...]:
    """The command line of the engine's benchmark."""
    command = engine_of(spec).benchmark(spec, load, url)
    if isinstance(command, str):
        raise InputError(
            f"'{owner.name}' cannot be benchmarked by its own engine, {engine_of(spec).name}: {command}",
            fix="measure it from outside with a client of the OpenAI API",
        )
    if spec.accelerator.nodes > 1:
        raise InputError(
            f"'{owner.name}' in namespace '{owner.namespace}' has several nodes, and a benchmark has one pod",
            fix="measure it from outside with a client of the OpenAI API",
        )
    return command


def _must_serve(objects: ModelObjects) -> tuple[Manifest, Manifest]:
    """The workload and the Service of a model that is ready."""
    report = objects.report
    if report.ready.truth != "True" or not report.serving or objects.workload is None or objects.service is None:
        reason = report.ready.reason if report.ready.truth != "True" else "no pod serves"
        raise BenchmarkFailed(
            f"'{report.name}' in namespace '{report.namespace}' does not serve: {reason}",
            fix=f"hermetic status {report.name} --namespace {report.namespace}",
        )
    return objects.workload, objects.service


def _spec_of(model: Manifest) -> ModelDeploymentSpec:
    try:
        return ModelDeploymentSpec.model_validate(model["spec"])
    except ValidationError as damage:
        first = damage.errors(include_url=False, include_context=False)[0]
        field = ".".join(("spec", *map(str, first["loc"])))
        raise InputError(
            f"this release of the command cannot read the model: `{field}`: {first['msg']}",
            fix="use the command of the release that is installed in the cluster",
        ) from damage


def _url(spec: ModelDeploymentSpec, service: Manifest) -> str:
    """By the address of the Service: the Job asks no name server."""
    address = str(service["spec"].get("clusterIP") or "")
    host = f"[{address}]" if ":" in address else address
    return f"{'http' if spec.endpoint.tls is None else 'https'}://{host}:{spec.endpoint.client_port}"


def _must_fit(spec: ModelDeploymentSpec, load: Load) -> None:
    longest, tokens = _longest(spec), load.input_tokens + load.output_tokens
    if longest is None or tokens <= longest:
        return
    output_tokens = min(load.output_tokens, longest // 2)
    raise InputError(
        f"--input-tokens {load.input_tokens} and --output-tokens {load.output_tokens} are {tokens} tokens, and the "
        f"model takes {longest}",
        fix=f"--input-tokens {longest - output_tokens} --output-tokens {output_tokens}",
    )


def _longest(spec: ModelDeploymentSpec) -> int | None:
    """The context of the server: as the spec states it, else that of the model where no flag changes it."""
    serving, facts = engine_of(spec).serving(spec), spec.weights.facts
    if serving.max_model_length is not None or facts is None or facts.not_computed or serving.not_computed:
        return serving.max_model_length
    return facts.max_model_length or None


def _must_be_admitted(owner: Owner, spec: ModelDeploymentSpec, client_labels: Mapping[str, str]) -> None:
    """The NetworkPolicy of the model follows `allowedClients`, and the Job's pod is a client as any other."""
    clients, labels = spec.endpoint.allowed_clients, pod_labels(owner, client_labels)
    if any(is_admitted(client, owner.namespace, labels) for client in clients):
        return
    options = first_of(list(_label_options(clients, owner.namespace)), 3)
    raise InputError(
        f"the NetworkPolicy of '{owner.name}' does not admit the pod of the benchmark: no entry of "
        f"`endpoint.allowedClients` selects its labels in namespace '{owner.namespace}'"
        + (f"; with the labels of a client it is admitted: {options}" if options else ""),
        fix=_admitting_command(owner, is_first=not clients),
    )


def _admitting_command(owner: Owner, *, is_first: bool) -> str:
    """The command that adds the entry; a list that is there keeps its entries."""
    entry = {"podSelector": {"matchLabels": {BENCHMARK_LABEL: owner.name}}}
    if is_first:
        merged = json.dumps({"spec": {"endpoint": {"allowedClients": [entry]}}})
        return f"kubectl patch mdep {owner.name} --namespace {owner.namespace} --type merge --patch '{merged}'"
    appended = json.dumps([{"op": "add", "path": "/spec/endpoint/allowedClients/-", "value": entry}])
    return f"kubectl patch mdep {owner.name} --namespace {owner.namespace} --type json --patch '{appended}'"


def is_admitted(client: ClientSelector, namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether an entry selects a pod with these labels in the model's own namespace.

    Of the namespace only the label with its name is known: an entry that selects by another one does not count.
    """
    spaces, pods = client.namespace_selector, client.pod_selector
    in_namespace = spaces is None or spaces.match_labels.items() <= {NAMESPACE_NAME: namespace}.items()
    return in_namespace and (pods is None or pods.match_labels.items() <= labels.items())


def _label_options(clients: Sequence[ClientSelector], namespace: str) -> Iterator[str]:
    """The options that make the pod one of the clients in the namespace."""
    for client in clients:
        labels = client.pod_selector.match_labels if client.pod_selector is not None else {}
        if labels and is_admitted(client, namespace, labels):
            yield " ".join(f"--client-label {key}={value}" for key, value in labels.items())


def _fingerprint(objects: ModelObjects, spec: ModelDeploymentSpec, engine: Manifest, load: Load) -> Mapping[str, str]:
    """Everything that a result depends on, as far as the objects of the model show it."""
    accelerator, report = spec.accelerator, objects.report
    status = objects.model.get("status") or {}
    several = f"{accelerator.nodes} nodes with " if accelerator.nodes > 1 else ""
    gpus = f"{several}{accelerator.count} x {accelerator.resource}"
    drivers = sorted({str(entry["driver"]) for entry in status.get("accelerators") or () if entry.get("driver")})
    return {
        "engine": report.engine,
        "image": digest_of(engine["image"]) or engine["image"],
        "weights": _weights(spec),
        "gpus": ", ".join((gpus, *sorted(accelerator.instance_types))),
        "driver": ", ".join(drivers),
        "arguments": digest({name: engine.get(name) for name in ("command", "args", "env")})[:16],
        "replicas": str(report.serving),
        "load": _load_text(load),
    }


def _weights(spec: ModelDeploymentSpec) -> str:
    """The root digest of the manifest where the model pins one, else its source."""
    integrity = spec.weights.integrity
    if integrity is not None and integrity.digest is not None:
        return integrity.digest
    name = next(name for name in SOURCES if getattr(spec.weights, name) is not None)
    source = getattr(spec.weights, name).model_dump(by_alias=True, mode="json", exclude_none=True)
    return f"source {digest({name: source})[:16]}"


def _load_text(load: Load) -> str:
    rate = f", {load.rate:g} a second" if load.rate is not None else ""
    return (
        f"{load.requests} requests, {load.concurrency} at a time{rate}, {load.input_tokens} tokens in, "
        f"{load.output_tokens} out"
    )

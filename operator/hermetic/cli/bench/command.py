"""`hermetic bench`: the engine's own benchmark from a Job, and its result beside the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import click

from hermetic.api.field_types import is_label
from hermetic.cli.bench.running import BenchmarkOutcome, BenchmarkRequest, Runner
from hermetic.cli.benchmarks import MEASURES, PARTS, changes, differing_parts, last_comparable
from hermetic.cli.options import Amount, common_options
from hermetic.cli.terminal import echo_fitted, note, write_json
from hermetic.engines.benchmark import Load
from hermetic.errors import InputError

SCHEMA = "hermetic.dev/bench/v1"
OWN_PREFIX = "hermetic.dev/"


@click.command(
    "bench",
    epilog="Example: hermetic bench llama-3-1-8b -n inference\n\n"
    "Example: hermetic bench llama-3-1-8b -n inference --requests 32 --concurrency 4\n\n"
    "Example: hermetic bench llama-3-1-8b -n inference --client-label app=chat -o json",
)
@click.argument("name", metavar="NAME")
@click.option("--namespace", "-n", help="Namespace. Default: that of the kubeconfig's context, else 'default'.")
@click.option("--requests", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Requests in all.")
@click.option("--concurrency", type=click.IntRange(1, 1024), default=8, show_default=True, help="Requests at a time.")
@click.option("--rate", type=Amount(0, min_open=True), help="Requests per second that begin. Default: no limit.")
@click.option("--input-tokens", type=click.IntRange(1), default=1024, show_default=True, help="Tokens of each prompt.")
@click.option("--output-tokens", type=click.IntRange(2), default=128, show_default=True, help="Tokens of each answer.")
@click.option(
    "--client-label",
    "client_labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Label of a client that the model admits, for the Job's pod. May be repeated.",
)
@common_options(cluster=True)
def command(name: str, namespace: str | None, client_labels: tuple[str, ...], **options: Any) -> None:
    """Run the engine's own benchmark against a model that serves, and record the result.

    A Job runs the image of the engine on a node that has it, for 90 s at most, with random prompts: no download, no
    GPU, no other image. Everything is created with your rights. The result is an annotation of the ModelDeployment,
    which 'hermetic status' shows, and is compared with the last one of the same fingerprint. Nothing depends on it.
    """
    load = Load(
        options["requests"],
        options["concurrency"],
        options["input_tokens"],
        options["output_tokens"],
        options["rate"],
    )
    connected = (options["kubeconfig"], options["context"])
    outcome, namespace = asyncio.run(_run(name, namespace, load, _labels(client_labels), connected))
    if options["output"] == "json":
        write_json(bench_document(name, namespace, outcome))
    else:
        for line in bench_lines(name, outcome):
            echo_fitted(line)


async def _run(
    name: str, namespace: str | None, load: Load, labels: dict[str, str], connected: tuple[str | None, str | None]
) -> tuple[BenchmarkOutcome, str]:
    from hermetic.controller.clock import SystemClock
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    kubeconfig, context = connected
    connection = await find_connection(kubeconfig=kubeconfig, context=context)
    chosen = namespace or connection.namespace or "default"
    async with KubernetesApi(connection) as api:
        outcome = await Runner(api, SystemClock(), note).run(BenchmarkRequest(chosen, name, load, labels))
    return outcome, chosen


def _labels(texts: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not is_label(key, value):
            raise InputError(
                f"--client-label '{text}': Kubernetes does not accept it; KEY is a name, or a DNS name with '/' and "
                "a name; a name and VALUE have at most 63 letters, digits, '-', '_' or '.'",
                fix="--client-label app=chat",
            )
        if key.startswith(OWN_PREFIX):
            raise InputError(
                f"--client-label '{text}': labels of {OWN_PREFIX} are Hermetic's own", fix="name the label of a client"
            )
        labels[key] = value
    return labels


def bench_document(name: str, namespace: str, outcome: BenchmarkOutcome) -> dict[str, Any]:
    """The outcome for programs. `comparedWith` is None where no earlier result has the same fingerprint."""
    before = last_comparable(outcome.earlier, outcome.record.fingerprint)
    last = outcome.earlier[0] if outcome.earlier else None
    differing = differing_parts(last.fingerprint, outcome.record.fingerprint) if before is None and last else ()
    return {
        "schema": SCHEMA,
        "namespace": namespace,
        "name": name,
        **outcome.record.as_json(),
        "comparedWith": before.as_json() if before is not None else None,
        "changePercent": changes(before, outcome.record) if before is not None else {},
        "differs": list(differing),
    }


def bench_lines(name: str, outcome: BenchmarkOutcome) -> Iterator[str]:
    """The outcome for people."""
    record, earlier = outcome.record, outcome.earlier
    before = last_comparable(earlier, record.fingerprint)
    percent = changes(before, record) if before is not None else {}
    yield f"{name}  {record.fingerprint['engine']}  {record.fingerprint['load']}"
    for key, (_, label) in MEASURES.items():
        change = f"  {percent[key]:+.1f} %" if key in percent else ""
        yield f"  {label:<16}  {record.figures[key]:>10.1f}{change}"
    if before is not None:
        yield f"Compared with the last result of the same fingerprint, of {before.as_json()['at']}."
    elif earlier:
        yield f"Not compared: the last result, of {earlier[0].as_json()['at']}, has another fingerprint:"
        for part in differing_parts(earlier[0].fingerprint, record.fingerprint):
            yield f"  {PARTS[part]}: {earlier[0].fingerprint[part] or '-'}, now {record.fingerprint[part] or '-'}"
    else:
        yield "Not compared: this is the first result of the model."

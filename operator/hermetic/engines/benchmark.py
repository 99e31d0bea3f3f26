"""The benchmark that an engine brings in its own image, as a command line: random data, offline, one result file.

Read in the source of the releases (no GPU was available):

- vLLM 0.33.0, `vllm bench serve` (vllm/benchmarks/serve.py): `--save-result` writes one JSON object. The key of the
  endpoint comes from OPENAI_API_KEY (vllm/benchmarks/lib/endpoint_request_func.py).
- SGLang 0.5.23, `python -m sglang.bench_serving` (sglang/benchmark/serving.py): `--output-file` appends one line of
  JSON. The data set `random` downloads texts, and `random-ids` does not (sglang/benchmark/datasets/random.py). The key
  comes from OPENAI_API_KEY as well. It verifies certificates, and has no option for an authority.

Both write the keys of FIGURES. A median is in both results without a flag, and so is the 99th percentile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.extra_arguments import WrittenFlag
from hermetic.engines.launch import model_path

RESULT_FILE = "/tmp/benchmark.json"  # noqa: S108 - in an emptyDir of the pod's own
API_KEY = "OPENAI_API_KEY"
"""The variable from which both benchmarks read the key of the endpoint."""
FIGURES = (
    "completed",
    "duration",
    "total_output_tokens",
    "request_throughput",
    "output_throughput",
    "median_ttft_ms",
    "p99_ttft_ms",
    "median_itl_ms",
    "p99_itl_ms",
)
"""Keys of the result file of both engines: counts, seconds, rates per second, milliseconds."""
_TOKENIZER_FLAGS = ("--tokenizer-mode", "--trust-remote-code")
"""Flags of the server that the benchmark of vLLM needs as well to read the same tokenizer."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a benchmark sends: `concurrency` requests at a time, each of exactly so many tokens.

    `rate`: requests per second at which they begin, None for at once.
    """

    requests: int
    concurrency: int
    input_tokens: int
    output_tokens: int
    rate: float | None = None


def vllm_benchmark(
    spec: ModelDeploymentSpec, flags: Mapping[str, WrittenFlag], load: Load, url: str
) -> tuple[str, ...]:
    """The command of vLLM. `flags`: those of the server by their names; `url`: of the Service, without a path.

    The certificate is for the name that clients use, and the Job calls the address of the Service: it is not verified.
    """
    return (
        "vllm", "bench", "serve", "--backend", "openai", "--base-url", url,
        "--model", spec.model.name, *_tokenizer(spec, flags),
        "--dataset-name", "random",
        "--random-input-len", str(load.input_tokens), "--random-output-len", str(load.output_tokens),
        *_pace(load), "--ignore-eos", "--num-warmups", str(load.concurrency), "--ready-check-timeout-sec", "30",
        "--percentile-metrics", "ttft,itl", "--metric-percentiles", "99",
        "--disable-tqdm", "--save-result", "--result-filename", RESULT_FILE,
        *(("--insecure",) if spec.endpoint.tls is not None else ()),
    )  # fmt: skip


def sglang_benchmark(spec: ModelDeploymentSpec, load: Load, url: str) -> tuple[str, ...] | str:
    """The command of SGLang, or one clause why it cannot be used."""
    if spec.endpoint.tls is not None:
        return (
            "the benchmark of SGLang verifies certificates with public authorities only, and `endpoint.tls` serves one "
            "of your own"
        )
    path = model_path(spec.weights)
    return (
        "python3", "-m", "sglang.bench_serving", "--backend", "sglang-oai", "--base-url", url,
        "--model", path, "--served-model-name", spec.model.name, "--tokenizer", path,
        "--dataset-name", "random-ids",
        "--random-input-len", str(load.input_tokens), "--random-output-len", str(load.output_tokens),
        # Without it lengths are drawn between 1 and these.
        "--random-range-ratio", "1",
        *_pace(load), "--warmup-requests", str(load.concurrency), "--disable-tqdm", "--output-file", RESULT_FILE,
    )  # fmt: skip


def _pace(load: Load) -> Iterator[str]:
    yield from ("--num-prompts", str(load.requests), "--max-concurrency", str(load.concurrency), "--seed", "0")
    if load.rate is not None:
        yield from ("--request-rate", f"{load.rate:g}")


def _tokenizer(spec: ModelDeploymentSpec, flags: Mapping[str, WrittenFlag]) -> Iterator[str]:
    """The tokenizer of the model folder, or another one that the server was given."""
    named = flags.get("--tokenizer")
    yield from ("--tokenizer", named.values[0] if named is not None and named.values else model_path(spec.weights))
    for name in _TOKENIZER_FLAGS:
        if (written := flags.get(name)) is not None:
            yield from (name, *written.values)

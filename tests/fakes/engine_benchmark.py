"""Stand-in of `vllm bench serve` and `python -m sglang.bench_serving`: their flags, their requests, their result files.

It takes no flag that the real parsers lack (vLLM 0.33.0, vllm/benchmarks/serve.py and datasets/datasets.py; SGLang
0.5.23, sglang/benchmark/serving.py), and writes the keys of their results. It measures by the clock of the HTTP
stand-in (`TimedEngine`), which stamps each token: a busy machine changes no figure.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import urllib.request
from pathlib import Path
from typing import Any

FLAGS = {
    "vllm": "backend base-url model tokenizer dataset-name random-input-len random-output-len num-prompts seed "
    "max-concurrency request-rate num-warmups ready-check-timeout-sec percentile-metrics metric-percentiles "
    "result-filename tokenizer-mode",
    "sglang": "backend base-url model served-model-name tokenizer dataset-name random-input-len random-output-len "
    "random-range-ratio num-prompts seed max-concurrency request-rate warmup-requests output-file",
}
SWITCHES = {
    "vllm": "ignore-eos disable-tqdm save-result insecure trust-remote-code",
    "sglang": "disable-tqdm",
}


def main(engine: str, words: list[str]) -> None:
    """Send the requests, `max-concurrency` in turn, and write the result file of the engine."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in FLAGS[engine].split():
        parser.add_argument(f"--{name}")
    for name in SWITCHES[engine].split():
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args(words)
    requests, lanes = int(options.num_prompts), int(options.max_concurrency)
    model = options.served_model_name if engine == "sglang" else options.model
    begins, ttfts, itls, tokens = [0.0] * lanes, [], [], 0
    for number in range(requests):
        lane = number % lanes
        stamps = _stamps(options.base_url, model, int(options.random_output_len), begins[lane])
        ttfts.append(stamps[0] - begins[lane])
        itls += [after - before for before, after in itertools.pairwise(stamps)]
        begins[lane], tokens = stamps[-1], tokens + len(stamps)
    sys.stdout.write(f"{requests} requests\n")
    result = _result(engine, requests, tokens, max(begins) / 1000, ttfts, itls)
    path = options.result_filename if engine == "vllm" else options.output_file
    with Path(path).open("a" if engine == "sglang" else "w", encoding="utf-8") as file:
        file.write(json.dumps(result) + ("\n" if engine == "sglang" else ""))


def _stamps(url: str, model: str, tokens: int, begin: float) -> list[float]:
    """The clock of the stand-in at each token of one answer, in milliseconds."""
    body = {"model": model, "prompt": "x", "max_tokens": tokens, "stream": True, "ignore_eos": True}
    headers = {"Content-Type": "application/json", "X-Clock": str(begin)}
    if key := os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        lines = [line.decode().removeprefix("data: ").strip() for line in answer]
    return [json.loads(line)["clock"] for line in lines if line and line != "[DONE]"]


def _result(
    engine: str, completed: int, tokens: int, seconds: float, ttfts: list[float], itls: list[float]
) -> dict[str, Any]:
    shared = {
        "duration": seconds,
        "completed": completed,
        "total_output_tokens": tokens,
        "request_throughput": completed / seconds,
        "output_throughput": tokens / seconds,
    }
    for name, values in (("ttft", ttfts), ("itl", itls)):
        shared[f"mean_{name}_ms"] = statistics.mean(values)
        shared[f"median_{name}_ms"] = statistics.median(values)
        shared[f"p99_{name}_ms"] = percentile(values, 0.99)
    if engine == "vllm":
        return {"date": "20261120-120000", "backend": "openai", "max_concurrency": 8, "failed": 0, **shared}
    return {
        "tag": None,
        "backend": "sglang-oai",
        "server_info": {"api_key": "hunter2"},
        **shared,
        "accept_length": None,
    }


def percentile(values: list[float], share: float) -> float:
    """As numpy computes it by default: linear between the two nearest ranks."""
    ordered, place = sorted(values), share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

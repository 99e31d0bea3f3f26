"""`python3 -m bench.gpu_check`: run the accelerator checks of a pod on this machine's GPUs, again and again.

Needs a GPU, its driver and a Python with torch, and nothing of the network. The runs end after `--runs` of them or
after `--seconds`, whichever comes first; every run is a process of its own, as it is in a pod. The result goes to
standard output and to `bench/results/gpu.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
PROGRAM = REPOSITORY / "operator" / "hermetic" / "in_container" / "accelerator_checks.py"
RESULT = REPOSITORY / "bench" / "results" / "gpu.json"


def run_program(
    program: str, *arguments: str, options: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The result of one run in a process of its own, with its exit code and wall clock in seconds.

    `options` are those of Python, `environment` variables beside those of this process.
    """
    with tempfile.TemporaryDirectory() as folder:
        message = Path(folder) / "termination-log"
        command = [sys.executable, "-I", "-B", *options, "-c", program, *arguments]
        began = time.monotonic()
        process = subprocess.run(
            [*command, "--policy", "Require", "--termination-log", str(message)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **(environment or {})},
        )
        seconds = round(time.monotonic() - began, 2)
        if not message.exists():
            return {"verdict": "None", "exitCode": process.returncode, "error": process.stderr[-400:]}
        result: dict[str, Any] = json.loads(message.read_bytes())
        return {**result, "exitCode": process.returncode, "processSeconds": seconds}


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Runs by verdict, and least, median and greatest of each figure."""
    verdicts = [result["verdict"] for result in results]
    numbers = {
        name: [result[name] for result in results if isinstance(result.get(name), (int, float))]
        for name in dict.fromkeys(name for result in results for name in result)
        if name not in ("gpus", "omitted", "exitCode")
    }
    spread = {
        name: {"least": min(values), "median": statistics.median(values), "greatest": max(values)}
        for name, values in numbers.items()
        if values
    }
    findings = [finding for result in results for finding in result.get("findings", ())]
    return {
        "product": results[0].get("product"),
        "driver": results[0].get("driver"),
        "gpus": results[0].get("gpus"),
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()},
        "runs": len(results),
        "verdicts": {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
        "findings": sorted({finding["reason"] for finding in findings}),
        "figures": spread,
    }


def main(arguments: list[str]) -> int:
    """Exit code 1 when a run did not pass: on a healthy GPU each of them must."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.gpu_check", description=__doc__)
    parser.add_argument("--count", type=int, default=1, help="GPUs that the checks expect")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=420)
    options = parser.parse_args(arguments)
    began = time.monotonic()
    results: list[dict[str, Any]] = []
    while len(results) < options.runs and time.monotonic() - began < options.seconds:
        results.append(run_program(PROGRAM.read_text(), "--count", str(options.count)))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    figures = json.dumps(summary(results), indent=2)
    print(figures)
    RESULT.write_text(figures + "\n")
    return 0 if all(result["verdict"] in ("Pass", "Warn") for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Results of benchmarks as a ModelDeployment carries them: an annotation with the last ones, newest first.

The command that ran a benchmark writes it with the rights of its user, and `hermetic status` shows the newest. The
operator neither reads nor writes it, and nothing depends on it. Pure, and tolerant: any client may have written it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from hermetic.api.text import cut, one_line, single_line
from hermetic.api.times import moment_in, timestamp
from hermetic.engines.benchmark import FIGURES
from hermetic.errors import BenchmarkFailed

ANNOTATION = "hermetic.dev/benchmarks"
MOST_RECORDS = 10
PARTS = {
    "engine": "engine",
    "image": "image",
    "weights": "weights",
    "gpus": "GPUs",
    "driver": "GPU driver",
    "arguments": "arguments",
    "replicas": "replicas",
    "load": "load",
}
"""The parts of a fingerprint, with their names for people. Two results are compared where all of them are equal."""
MEASURES = {
    "requestsPerSecond": ("request_throughput", "requests/s"),
    "outputTokensPerSecond": ("output_throughput", "output tokens/s"),
    "ttftMedianMs": ("median_ttft_ms", "TTFT median, ms"),
    "ttftP99Ms": ("p99_ttft_ms", "TTFT p99, ms"),
    "itlMedianMs": ("median_itl_ms", "ITL median, ms"),
    "itlP99Ms": ("p99_itl_ms", "ITL p99, ms"),
}
"""What is recorded: the key of the engines' result files, and the name for people."""
_LONGEST_PART = 1200
_MISSING_TOOL = re.compile(r"cannot start '|executable file not found|invalid choice: '?bench|No module named ")
"""In the end of a container whose image lacks python3, the engine's benchmark, or a package that it imports."""
_OTHER_IMAGE = (
    "the image lacks the benchmark or a part of it; use an image of the engine's own release, or measure the model "
    "from outside with a client of the OpenAI API"
)


@dataclass(frozen=True, slots=True)
class BenchmarkRecord:
    """One result. `fingerprint` has the keys of PARTS, `figures` those of MEASURES."""

    at: datetime
    fingerprint: Mapping[str, str]
    figures: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        """The record for programs, and as it is stored."""
        return {"at": timestamp(self.at), "fingerprint": dict(self.fingerprint), "figures": dict(self.figures)}


def records_of(model: Mapping[str, Any]) -> tuple[BenchmarkRecord, ...]:
    """The records of a ModelDeployment, newest first; entries of another form are left out."""
    text = (model["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        entries = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return ()
    parsed = [_parse_record(entry) for entry in entries] if isinstance(entries, list) else []
    records = [record for record in parsed if record is not None]
    return tuple(sorted(records, key=lambda record: record.at, reverse=True)[:MOST_RECORDS])


def stored(records: Sequence[BenchmarkRecord]) -> str:
    """The text of the annotation: the newest MOST_RECORDS."""
    newest = sorted(records, key=lambda record: record.at, reverse=True)[:MOST_RECORDS]
    return json.dumps([record.as_json() for record in newest], separators=(",", ":"), ensure_ascii=False)


def last_comparable(records: Sequence[BenchmarkRecord], fingerprint: Mapping[str, str]) -> BenchmarkRecord | None:
    """The newest record of the same fingerprint."""
    return next((record for record in records if dict(record.fingerprint) == dict(fingerprint)), None)


def differing_parts(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of PARTS in which two fingerprints differ."""
    return tuple(part for part in PARTS if before.get(part) != now.get(part))


def changes(before: BenchmarkRecord, now: BenchmarkRecord) -> dict[str, float]:
    """The change of each figure in percent of the earlier one; a figure that was 0 has none."""
    return {
        name: round(100 * (value - before.figures[name]) / before.figures[name], 1)
        for name, value in now.figures.items()
        if before.figures.get(name)
    }


def figures_in(message: str, end: str, requests: int) -> dict[str, float]:
    """The figures in the termination message of the Job's container. Raises BenchmarkFailed for any other end.

    `end`: how the container ended. A result with failed requests does not count: its rates are not those of the
    requested load.
    """
    try:
        answer = json.loads(message)
        error, figures = answer.get("error"), answer.get("figures") or {}
        values = {name: float(figures[name]) for name in FIGURES if name in figures}
    except (ValueError, TypeError, AttributeError, RecursionError) as damage:
        message = cut(one_line(message), 300)
        raise BenchmarkFailed(
            f"the benchmark ended without a result ({one_line(end)})" + f": {message}" * bool(message),
            fix=_OTHER_IMAGE if _MISSING_TOOL.search(message) else "",
        ) from damage
    if error:
        error, log = one_line(str(error)), single_line(str(answer.get("log") or ""), _LONGEST_PART)
        raise BenchmarkFailed(
            f"the benchmark failed: {error}" + f"; its output ends: {log}" * bool(log),
            fix=_OTHER_IMAGE if _MISSING_TOOL.search(f"{error} {log}") else "",
        )
    missing = [name for name in FIGURES if not isfinite(values.get(name, float("nan")))]
    if missing:
        raise BenchmarkFailed(f"the result of the benchmark lacks {', '.join(missing)}")
    completed = int(values["completed"])
    if completed != requests:
        raise BenchmarkFailed(
            f"{requests - completed} of {requests} requests failed, so the result is not recorded",
            fix="read the log of the Job, and lower --concurrency, --input-tokens or --output-tokens",
        )
    return {name: round(values[key], 3) for name, (key, _) in MEASURES.items()}


def summary(record: BenchmarkRecord) -> str:
    """The figures in one line."""
    figure = record.figures
    return (
        f"{figure['requestsPerSecond']:.3g} requests/s, {figure['outputTokensPerSecond']:.4g} output tokens/s, "
        f"TTFT {figure['ttftMedianMs']:.4g} ms (p99 {figure['ttftP99Ms']:.4g}), "
        f"ITL {figure['itlMedianMs']:.4g} ms (p99 {figure['itlP99Ms']:.4g})"
    )


def _parse_record(entry: Any) -> BenchmarkRecord | None:
    try:
        at, fingerprint, figures = moment_in(entry["at"]), entry["fingerprint"], entry["figures"]
        parts = {part: single_line(str(fingerprint.get(part, "")), _LONGEST_PART) for part in PARTS}
        values = {name: float(figures[name]) for name in MEASURES}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    return BenchmarkRecord(at, parts, values) if at is not None and all(map(isfinite, values.values())) else None

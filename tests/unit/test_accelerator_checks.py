"""The program that checks the GPUs of a pod: what NVML shows, and what becomes of it.

The library is simulated at its C interface (`testbed/simulated_nvml.py`). Faults of what torch
computes are in `tests/unit/test_accelerator_faults.py`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from types import SimpleNamespace
from typing import Any

import pytest

from hermetic.in_container import accelerator_checks
from hermetic.in_container.accelerator_checks import (
    MESSAGE_BYTES,
    Finding,
    NvmlError,
    Run,
    error_finding,
    main,
    termination_message,
)
from testbed.simulated_nvml import HEALTHY, SimulatedNvml, gpus_of_this_container

INVALID_ARGUMENT, NO_PERMISSION, FUNCTION_NOT_FOUND = 2, 4, 13


@pytest.fixture
def run_on(monkeypatch):
    """Run the checks on a machine with these GPUs, in an image without torch."""

    def run(*gpus: dict[str, Any], count: int | None = None, resource: str = "nvidia.com/gpu", **options: Any) -> Run:
        library = SimulatedNvml([{**HEALTHY, **gpu} for gpu in gpus], **options)
        monkeypatch.setattr(accelerator_checks, "ctypes", _with_library(lambda _name: library))
        monkeypatch.setitem(accelerator_checks.sys.modules, "torch", None)
        checks = Run(len(gpus) if count is None else count, resource)
        checks.check()
        return checks

    return run


def _with_library(load: Any) -> SimpleNamespace:
    names = ("c_void_p", "c_uint", "c_ulonglong", "byref", "create_string_buffer")
    real = {name: getattr(accelerator_checks.ctypes, name) for name in names}
    return SimpleNamespace(CDLL=load, **real)


def _reasons(run: Run) -> dict[str, str]:
    return {finding.reason: finding.level for finding in run.findings}


@pytest.mark.parametrize(
    ("gpu", "reason", "level"),
    [
        ({"rows": (0, 0, 1, 0)}, "RowRemapPending", "Fail"),
        ({"rows": (0, 0, 0, 1)}, "RowRemapFailed", "Fail"),
        ({"rows": (0, 513, 0, 0)}, "RowsRemapped", "Fail"),
        ({"errors": {(1, 7): 1}}, "SramUncorrectable", "Fail"),
        ({"errors": {(0, 7): 10_001}}, "MemoryErrors", "Warn"),
        ({"errors": {(0, 2): 20_000_001}}, "MemoryErrors", "Warn"),
        ({"ecc": (0, 1)}, "EccDisabled", "Warn"),
        ({"reasons": 0x8}, "ClocksThrottled", "Warn"),
        ({"reasons": 0x40 | 0x1}, "ClocksThrottled", "Warn"),
        ({"reasons": 0x80}, "ClocksThrottled", "Warn"),
    ],
)
def test_fault_of_one_gpu_is_reported_with_its_uuid(run_on, gpu, reason, level):
    findings = [finding for finding in run_on({}, gpu).findings if finding.reason == reason]
    assert [(finding.level, finding.gpu) for finding in findings] == [(level, "GPU-1")]


@pytest.mark.parametrize(("location", "name"), [(7, "SRAM"), (2, "DRAM")])
def test_corrected_errors_are_told_with_their_number_and_memory(run_on, location, name):
    (finding,) = [finding for finding in run_on({"errors": {(0, location): 10**8}}).findings if finding.level == "Warn"]
    assert finding.message == f"{10**8} corrected {name} errors"


@pytest.mark.parametrize(
    "gpu",
    [
        {},
        {"rows": (40, 512, 0, 0)},
        {"rows": None, "ecc": None, "mig": None},
        {"errors": {(0, 7): 10_000, (0, 2): 20_000_000}},
        {"reasons": 0x1 | 0x4 | 0x20},
        {"ecc": FUNCTION_NOT_FOUND},
        # MIG that only the next reset of the GPU turns on.
        {"mig": (0, 1)},
    ],
)
def test_healthy_gpu_has_only_the_finding_about_torch(run_on, gpu):
    run = run_on(gpu)
    assert _reasons(run) == {"TorchMissing": "Unknown"}
    assert run.result()["verdict"] == "Unknown"


def test_driver_before_535_names_clock_reasons_differently(run_on):
    assert "ClocksThrottled" in _reasons(run_on({"reasons": 0x8}, old_driver=True))


@pytest.mark.parametrize("count", [2, 8])
def test_missing_gpu_fails(run_on, count):
    run = run_on({}, count=count)
    assert _reasons(run) == {"GpuMissing": "Fail"}


def test_inactive_link_of_an_sxm_board_fails(run_on):
    findings = run_on({}, {"links": [1] * 17 + [0]}).findings
    assert [(finding.reason, finding.gpu) for finding in findings if finding.level == "Fail"] == [
        ("NvLinkInactive", "GPU-1")
    ]


@pytest.mark.parametrize("product", ["NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA GB200", "NVIDIA GB300"])
def test_board_with_all_of_its_18_links_is_healthy_and_with_17_is_not(run_on, product):
    assert "NvLinkInactive" not in _reasons(run_on({"product": product}, {"product": product}))
    reduced = {"product": product, "links": [1] * 17 + [0]}
    assert "NvLinkInactive" in _reasons(run_on({"product": product}, reduced))


@pytest.mark.parametrize(
    "gpus",
    [
        [{"product": "NVIDIA H100 NVL", "links": [1] * 12 + [0] * 6}] * 2,
        [{"product": "NVIDIA H200 NVL", "links": [1] * 12 + [0] * 6}] * 2,
        [{"product": "NVIDIA A10", "links": []}] * 2,
        [{"links": [0] * 18}],
        [{"mig": (1, 1), "links": [0] * 18}] * 2,
        # Links 12 to 17 of an A100 do not exist: "NVML_ERROR_INVALID_ARGUMENT if device or link is invalid".
        [{"product": "NVIDIA A100-SXM4-80GB", "links": [1] * 12, "beyond": INVALID_ARGUMENT}] * 8,
    ],
)
def test_links_that_the_form_factor_lacks_are_no_fault(run_on, gpus):
    assert "NvLinkInactive" not in _reasons(run_on(*gpus))


def test_lost_gpu_ends_as_a_fault_of_the_step(run_on):
    with pytest.raises(NvmlError) as refused:
        run_on({"lost": True})
    assert error_finding(refused.value, "NVML").reason == "AcceleratorError"


def test_memory_of_another_process_is_unknown():
    finding = error_finding(RuntimeError("CUDA out of memory. Tried to allocate 1.00 GiB"), "compute on GPU-0")
    assert (finding.level, finding.reason) == ("Unknown", "AcceleratorBusy")


@pytest.mark.parametrize(("policy", "code"), [("Require", 1), ("Warn", 0)])
def test_only_a_required_check_keeps_the_engine_from_starting(monkeypatch, tmp_path, capsys, policy, code):
    library = SimulatedNvml([{**HEALTHY, "rows": (0, 0, 1, 0)}])
    monkeypatch.setattr(accelerator_checks, "ctypes", _with_library(lambda _name: library))
    message = tmp_path / "termination-log"
    assert main(["--count", "1", "--policy", policy, "--termination-log", str(message)]) == code
    result = json.loads(message.read_text())
    assert (result["verdict"], result["driver"], result["gpus"]) == ("Fail", "580.159.04", 1)
    assert json.loads(capsys.readouterr().out) == result


def test_image_without_the_driver_library_is_unknown(monkeypatch, tmp_path):
    def load(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(accelerator_checks, "ctypes", _with_library(load))
    message = tmp_path / "termination-log"
    assert main(["--count", "1", "--policy", "Require", "--termination-log", str(message)]) == 0
    assert json.loads(message.read_text())["findings"][0]["reason"] == "NvmlMissing"


@pytest.fixture
def supervised(monkeypatch, tmp_path):
    """Run the program with these checks in its child process: (exit code, result)."""

    def run(check: Any, *words: str) -> tuple[int, dict[str, Any]]:
        monkeypatch.setattr(Run, "check", check)
        message = tmp_path / "termination-log"
        options = ("--count", "8", "--policy", "Require", "--termination-log", str(message))
        return main([*options, *words]), json.loads(message.read_text())

    return run


@pytest.mark.parametrize(
    ("step", "level", "reason", "code"),
    [
        ("NVML", "Fail", "AcceleratorNotResponding", 1),
        ("collective", "Fail", "AcceleratorNotResponding", 1),
        ("import of torch", "Unknown", "ChecksIncomplete", 0),
    ],
)
def test_step_that_never_ends_is_reported_by_another_process(supervised, step, level, reason, code):
    def hang(run: Run) -> None:
        run.begin(step)
        time.sleep(600)

    exit_code, result = supervised(hang, "--timeout", "0.3")
    assert (exit_code, result["findings"][0]["level"], result["findings"][0]["reason"]) == (code, level, reason)
    assert step in result["findings"][0]["message"]


def test_findings_before_a_hang_are_kept_and_the_worst_is_first(supervised):
    def hang(run: Run) -> None:
        run.findings.append(Finding("Warn", "ClocksThrottled", "GPU-3", "thermal slowdown"))
        run.figures["driver"] = "580.1"
        run.begin("compute on GPU-3")
        time.sleep(600)

    result = supervised(hang, "--timeout", "0.3")[1]
    assert [finding["reason"] for finding in result["findings"]] == ["AcceleratorNotResponding", "ClocksThrottled"]
    assert (result["verdict"], result["driver"]) == ("Fail", "580.1")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGXCPU])
def test_checks_that_are_killed_are_unknown_and_start_the_engine(supervised, number):
    def end(run: Run) -> None:
        run.begin("torch")
        os.kill(os.getpid(), number)

    exit_code, result = supervised(end)
    assert (exit_code, result["verdict"], result["findings"][0]["reason"]) == (0, "Unknown", "ChecksIncomplete")


@pytest.mark.parametrize(
    ("text", "level", "reason"),
    [
        ("CUDA error: an illegal memory access was encountered", "Fail", "AcceleratorError"),
        ("CUDA error: uncorrectable ECC error encountered", "Fail", "AcceleratorError"),
        ("HIP error: unspecified launch failure", "Fail", "AcceleratorError"),
        ("CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`", "Fail", "AcceleratorError"),
        ("NCCL Error 1: unhandled cuda error", "Fail", "AcceleratorError"),
        ("NCCL Error 2: unhandled system error", "Unknown", "ChecksIncomplete"),
        ("CUDA error: no kernel image is available for execution on the device", "Unknown", "ChecksIncomplete"),
        ("CUDA out of memory. Tried to allocate 1.00 GiB", "Unknown", "AcceleratorBusy"),
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", "Unknown", "AcceleratorBusy"),
        ("The NVIDIA driver on your system is too old (found version 11040).", "Unknown", "GpuDriverTooOld"),
        ("Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized", "Fail",
         "GpuInitializationFailed"),
        ("Error 803: system has unsupported display driver / cuda driver combination", "Fail",
         "GpuInitializationFailed"),
        ("CUDA unknown error - Setting the available devices to be zero. Error 999", "Fail", "GpuInitializationFailed"),
        ("No CUDA GPUs are available", "Fail", "GpuMissing"),
        ("module 'torch.cuda' has no attribute 'nccl'", "Unknown", "ChecksIncomplete"),
        ("libcudart.so.12: cannot open shared object file", "Unknown", "ChecksIncomplete"),
    ],
)  # fmt: skip
def test_error_is_a_fault_only_where_it_is_one_of_the_gpu(text, level, reason):
    finding = error_finding(RuntimeError(text), "compute on GPU-0")
    assert (finding.level, finding.reason) == (level, reason)


@pytest.mark.parametrize(
    ("code", "level"),
    [
        *((code, "Fail") for code in (9, 10, 11, 15, 16, 999)),
        *((code, "Unknown") for code in (1, 2, 3, 8, 12, 14, 17, 18, 1000)),
    ],
)
def test_refusal_of_nvml_is_a_fault_only_for_a_gpu_that_fails(code, level):
    assert error_finding(NvmlError("nvmlDeviceGetUUID", code), "NVML").level == level


def test_counter_that_the_container_may_not_read_is_unknown(run_on):
    run = run_on({"rows": NO_PERMISSION})
    assert _reasons(run) == {"CountersUnreadable": "Unknown", "TorchMissing": "Unknown"}


def test_mode_that_the_container_may_not_read_is_no_mode(run_on):
    run = run_on({"ecc": NO_PERMISSION})
    assert _reasons(run) == {"CountersUnreadable": "Unknown", "TorchMissing": "Unknown"}


@pytest.mark.parametrize("gpu", [{"rows": INVALID_ARGUMENT}, {"ecc": INVALID_ARGUMENT}, {"links": [], "beyond": 15}])
def test_other_refusal_of_a_property_ends_the_checks(run_on, gpu):
    with pytest.raises(NvmlError):
        run_on(gpu, gpu)


def test_driver_that_lacks_a_function_is_as_one_without_that_value(run_on, monkeypatch):
    def missing(_library: SimulatedNvml) -> None:
        raise AttributeError

    for function in ("nvmlDeviceGetEccMode", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetCurrPcieLinkWidth"):
        monkeypatch.setattr(SimulatedNvml, function, property(missing))
    product = {"product": "NVIDIA A100-SXM4-80GB"}
    run = run_on(product, product)
    assert _reasons(run) == {"TorchMissing": "Unknown"}


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"])
def test_parts_of_one_gpu_are_no_missing_gpus(run_on, resource):
    assert _reasons(run_on({"mig": (1, 1)}, count=4, resource=resource)) == {"TorchMissing": "Unknown"}


class SimulatedTorch:
    """The parts of torch that are asked before anything is computed."""

    def __init__(self, number: int, error: str = "") -> None:
        def initialize() -> None:
            raise RuntimeError(error)

        self.cuda = SimpleNamespace(device_count=lambda: number, init=initialize)


@pytest.fixture
def run_with_torch(monkeypatch):
    """Run the checks with this torch, which computes nothing, and note on which GPUs it would have."""

    def run(torch: SimulatedTorch, *gpus: dict[str, Any], count: int, resource: str) -> tuple[Run, list[Any]]:
        library = SimulatedNvml([{**HEALTHY, **gpu} for gpu in gpus])
        measured: list[Any] = []
        monkeypatch.setattr(accelerator_checks, "ctypes", _with_library(lambda _name: library))
        monkeypatch.setitem(accelerator_checks.sys.modules, "torch", torch)
        monkeypatch.setattr(accelerator_checks.os, "environ", {"NCCL_TOPO_FILE": "/opt/topology.xml"})
        monkeypatch.setattr(Run, "_measure_all", lambda _run, _torch, gpus, is_whole: measured.append((gpus, is_whole)))
        monkeypatch.setattr(Run, "_compare", lambda _run, _torch, uuids: measured.append(uuids))
        checks = Run(count, resource)
        checks.check()
        return checks, measured

    return run


def test_collective_stays_in_the_pod_and_gpus_have_the_order_of_nvml(run_with_torch):
    run_with_torch(SimulatedTorch(2), {}, {}, count=2, resource="nvidia.com/gpu")
    variables = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert accelerator_checks.os.environ == variables


def test_torch_that_sees_fewer_gpus_than_the_driver_fails(run_with_torch):
    run, measured = run_with_torch(SimulatedTorch(1), {}, {}, count=2, resource="nvidia.com/gpu")
    assert (_reasons(run), measured) == ({"GpuMissing": "Fail"}, [])


def test_parts_of_several_gpus_are_computed_on_once_and_the_rest_is_unknown(run_with_torch):
    run, measured = run_with_torch(
        SimulatedTorch(1), {"mig": (1, 1)}, {"mig": (1, 1)}, count=2, resource="nvidia.com/gpu"
    )
    assert _reasons(run) == {"ChecksIncomplete": "Unknown"}
    assert [is_whole for _, is_whole in measured] == [False]


@pytest.mark.parametrize(("number", "reasons"), [
    (8, {"NvmlMissing": "Unknown"}),
    (7, {"NvmlMissing": "Unknown", "GpuMissing": "Fail"}),
    (0, {"NvmlMissing": "Unknown", "GpuMissing": "Fail"}),
])  # fmt: skip
def test_amd_gpus_are_counted_by_torch_and_never_pass(run_with_torch, number, reasons):
    run, _ = run_with_torch(SimulatedTorch(number), count=8, resource="amd.com/gpu")
    assert _reasons(run) == reasons


def test_termination_message_keeps_its_form_when_findings_do_not_fit():
    findings = [Finding("Fail", "RowRemapPending", f"GPU-{index}", "x" * 200) for index in range(64)]
    message = termination_message({"verdict": "Fail", "seconds": 1.0, "findings": findings})
    result = json.loads(message)
    assert len(message) <= MESSAGE_BYTES
    assert len(result["findings"]) + result["omitted"] == 64
    assert result["omitted"] > 0


def test_container_with_a_simulated_driver_sees_its_own_gpus_and_their_faults(monkeypatch, tmp_path):
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "GPU-3,GPU-5")
    (tmp_path / "GPU-5.json").write_text(json.dumps({"rows": (0, 1, 1, 0)}))
    library = SimulatedNvml(gpus_of_this_container(tmp_path))
    monkeypatch.setattr(accelerator_checks, "ctypes", _with_library(lambda _name: library))
    monkeypatch.setitem(accelerator_checks.sys.modules, "torch", None)
    run = Run(2)
    run.check()
    assert [(finding.reason, finding.gpu) for finding in run.findings] == [("RowRemapPending", "GPU-5")]

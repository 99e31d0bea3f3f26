# Checks the GPUs of a pod before the engine loads a model, and writes the result to /dev/termination-log.
# Needs Python 3.8 and libnvidia-ml, which the container toolkit mounts; with torch it also computes and copies.
# Sources of the limits: NVIDIA's NVML reference, and the configuration of Azure/azurehpc-health-checks.
# Its text is a part of every pod template: a change of a letter restarts the models that are checked.
from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import json
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

MESSAGE_BYTES = 1000
"""The kubelet keeps the last 4,096 bytes of a termination message; the operator keeps 5 KiB of a pod."""
GIB = 1 << 30
INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND = 2, 3, 4, 13
ABSENT = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND})
"""nvmlReturn_t for a counter that this GPU or this driver does not have."""
FAULTS = frozenset({9, 10, 11, 15, 16, 999})
"""nvmlReturn_t for a driver or a GPU that fails: not loaded, timeout, interrupts, lost, must be reset, unknown."""
WHOLE_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
LEVELS = ("Fail", "Unknown", "Warn")
DRAM, SRAM = 2, 7
CORRECTED, UNCORRECTED = 0, 1
AGGREGATE = 1
LINKS = 18
SXM_LINKS = {"H100 80GB HBM3": 18, "H200": 18, "GB200": 18, "GB300": 18}
"""Active NVLinks of a healthy SXM board with several GPUs, by a part of the product's name."""
SLOWDOWN = {0x8: "hardware slowdown", 0x40: "thermal slowdown", 0x80: "power brake"}
CORRECTABLE_LIMITS = {SRAM: 10_000, DRAM: 20_000_000}
REMAPPED_ROWS_LIMIT = 512


class Finding(NamedTuple):
    """One fault. `level`: Fail, Warn or Unknown. `gpu`: its UUID, "" for a fault of the pod."""

    level: str
    reason: str
    gpu: str
    message: str


class NvmlError(Exception):
    """A call that NVML refused. `code`: its nvmlReturn_t."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function} returned {code}")
        self.code = code


class RemappedRows(NamedTuple):
    corrected: int
    uncorrected: int
    pending: int
    failure: int


class Gpu:
    """One GPU as NVML shows it. Counters that it does not have are None."""

    def __init__(self, library: ctypes.CDLL, index: int) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        self.unreadable: list[str] = []
        _call(library, "nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(self._handle))
        self.uuid = self._text("nvmlDeviceGetUUID")
        self.name = self._text("nvmlDeviceGetName")
        self.serial = self._text("nvmlDeviceGetSerial")

    def number(self, function: str, *arguments: int, kind: Any = ctypes.c_uint) -> int | None:
        value = kind()
        return value.value if self._answers(function, *arguments, ctypes.byref(value)) else None

    def numbers(self, function: str, count: int) -> list[int] | None:
        values = [ctypes.c_uint() for _ in range(count)]
        answered = self._answers(function, *map(ctypes.byref, values))
        return [value.value for value in values] if answered else None

    def remapped_rows(self) -> RemappedRows | None:
        counts = self.numbers("nvmlDeviceGetRemappedRows", 4)
        return RemappedRows(*counts) if counts else None

    def memory_errors(self, kind: int, location: int) -> int | None:
        return self.number("nvmlDeviceGetMemoryErrorCounter", kind, AGGREGATE, location, kind=ctypes.c_ulonglong)

    def is_partitioned(self) -> bool:
        modes = self.numbers("nvmlDeviceGetMigMode", 2)
        return bool(modes and modes[0])

    def active_links(self) -> tuple[int, int]:
        """(active, present) NVLinks; a link with a number beyond those of the GPU is not present."""
        states = [self.number("nvmlDeviceGetNvLinkState", link) for link in range(LINKS)]
        present = [state for state in states if state is not None]
        return sum(present), len(present)

    def clock_event_reasons(self) -> int | None:
        for function in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            if hasattr(self._library, function):
                return self.number(function, kind=ctypes.c_ulonglong)
        return None

    def _text(self, function: str) -> str:
        value = ctypes.create_string_buffer(96)
        return value.value.decode("utf-8", "replace") if self._answers(function, value, len(value)) else ""

    def _answers(self, function: str, *arguments: Any) -> bool:
        """False where there is no value, or none for this container. Raises NvmlError for other refusals."""
        try:
            _call(self._library, function, self._handle, *arguments)
        except AttributeError:
            return False
        except NvmlError as error:
            if error.code in ABSENT or (error.code == INVALID_ARGUMENT and function == "nvmlDeviceGetNvLinkState"):
                return False
            if error.code == NO_PERMISSION:
                self.unreadable.append(function)
                return False
            raise
        return True


def _call(library: ctypes.CDLL, function: str, *arguments: Any) -> None:
    code = getattr(library, function)(*arguments)
    if code:
        raise NvmlError(function, code)


# ---------------------------------------------------------------- what NVML shows


def device_findings(gpus: list[Gpu], count: int | None) -> Iterator[Finding]:
    """`count`: GPUs that the pod must see, None for parts of GPUs, of which several can be of one."""
    if not gpus or count not in (None, len(gpus)):
        message = f"the pod asked for {count or 'a part of'} GPUs, and the driver shows {len(gpus)}"
        yield Finding("Fail", "GpuMissing", "", message)
    for gpu in gpus:
        modes = gpu.numbers("nvmlDeviceGetEccMode", 2)
        if modes and not modes[0]:
            yield Finding("Warn", "EccDisabled", gpu.uuid, "memory error correction is disabled")


def memory_findings(gpu: Gpu) -> Iterator[Finding]:
    rows = gpu.remapped_rows()
    if rows and rows.failure:
        yield Finding("Fail", "RowRemapFailed", gpu.uuid, "a row of its memory could not be remapped")
    if rows and rows.pending:
        yield Finding("Fail", "RowRemapPending", gpu.uuid, "a row remap waits for a reset of the GPU")
    if rows and rows.uncorrected > REMAPPED_ROWS_LIMIT:
        message = f"{rows.uncorrected} rows are remapped after uncorrectable errors"
        yield Finding("Fail", "RowsRemapped", gpu.uuid, message)
    if gpu.memory_errors(UNCORRECTED, SRAM):
        message = f"{gpu.memory_errors(UNCORRECTED, SRAM)} uncorrectable SRAM errors"
        yield Finding("Fail", "SramUncorrectable", gpu.uuid, message)
    for location, limit in CORRECTABLE_LIMITS.items():
        errors = gpu.memory_errors(CORRECTED, location)
        if errors is not None and errors > limit:
            name = "SRAM" if location == SRAM else "DRAM"
            yield Finding("Warn", "MemoryErrors", gpu.uuid, f"{errors} corrected {name} errors")


def link_findings(gpus: list[Gpu]) -> Iterator[Finding]:
    if len(gpus) < 2:
        return
    for gpu in gpus:
        is_bridged = "NVL" in gpu.name  # a PCIe board, with fewer links by design
        expected = next((links for part, links in SXM_LINKS.items() if part in gpu.name and not is_bridged), None)
        active, present = gpu.active_links()
        if expected is not None and active < expected:
            message = f"{active} of {expected} NVLinks are active ({present} present)"
            yield Finding("Fail", "NvLinkInactive", gpu.uuid, message)


def throttle_findings(gpu: Gpu) -> Iterator[Finding]:
    reasons = gpu.clock_event_reasons() or 0
    names = [name for bit, name in SLOWDOWN.items() if reasons & bit]
    if names:
        yield Finding("Warn", "ClocksThrottled", gpu.uuid, ", ".join(names))


def pcie_findings(gpu: Gpu) -> Iterator[Finding]:
    """To be asked under load: an idle link lowers its generation."""
    for label, current, maximum in (
        ("generation", "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkGeneration"),
        ("width", "nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkWidth"),
    ):
        now, most = gpu.number(current), gpu.number(maximum)
        if now is not None and most is not None and now < most:
            message = f"PCIe {label} {now} of {most} under load"
            yield Finding("Warn", "PcieLinkReduced", gpu.uuid, message)


# ---------------------------------------------------------------- what torch computes and copies


FIGURE_NAMES = ("teraflops", "memoryGBs", "hostToDeviceGBs", "deviceToHostGBs")
"""Of the fields of Rates, in the result."""


class Rates(NamedTuple):
    """What one GPU reaches: TFLOP/s in bf16, and GB/s (10^9 bytes)."""

    teraflops: float
    memory_rate: float
    host_to_device_rate: float
    device_to_host_rate: float


def product_findings(torch: Any, index: int, uuid: str) -> tuple[float, list[Finding]]:
    """TFLOP/s of a bf16 product of 4096 x 4096 matrices, and faults of its result.

    The same product twice must have the same bits; a row of it must agree with the product in fp32.
    """
    device = torch.device("cuda", index)
    generator = torch.Generator(device=device).manual_seed(20261127)
    left, right = (torch.randn(4096, 4096, device=device, dtype=torch.bfloat16, generator=generator) for _ in range(2))
    product, repeated = left @ right, left @ right
    exact = left[17].float() @ right.float()
    # bf16 has 8 bits of mantissa; the sum of 4,096 products is computed in fp32.
    deviation = ((product[17].float() - exact).abs().max() / exact.abs().max()).item()
    findings = []
    if not deviation < 0.01:
        message = f"a bf16 product deviates from fp32 by {deviation:.3g} of its largest value"
        findings.append(Finding("Fail", "ComputeWrong", uuid, message))
    if not torch.equal(product, repeated):
        findings.append(Finding("Fail", "ComputeDiffers", uuid, "the same product twice has different bits"))
    seconds = _best_seconds(torch, device, lambda: torch.mm(left, right, out=product), repeats=30)
    return 2 * 4096**3 / seconds / 1e12, findings


def memory_rate(torch: Any, index: int) -> float:
    """GB/s of a copy of 1 GiB within the GPU's memory; bytes read and bytes written both count."""
    device = torch.device("cuda", index)
    source, target = (torch.empty(GIB, dtype=torch.uint8, device=device) for _ in range(2))
    return 2 * GIB / _best_seconds(torch, device, lambda: target.copy_(source), repeats=5) / 1e9


def host_rates(torch: Any, gpu: Gpu | None, index: int) -> tuple[float, float, list[Finding]]:
    """GB/s to the GPU and from it, best of 3 with 1 GiB of pinned memory, and faults of the link meanwhile."""
    device = torch.device("cuda", index)
    host = torch.empty(GIB, dtype=torch.uint8, pin_memory=True)
    remote = torch.empty(GIB, dtype=torch.uint8, device=device)
    to_device = GIB / _best_seconds(torch, device, lambda: remote.copy_(host, non_blocking=True), repeats=3) / 1e9
    for _ in range(4):
        remote.copy_(host, non_blocking=True)
    findings = [*pcie_findings(gpu)] if gpu is not None else []
    to_host = GIB / _best_seconds(torch, device, lambda: host.copy_(remote, non_blocking=True), repeats=3) / 1e9
    return to_device, to_host, findings


def peer_rate(torch: Any, uuids: list[str]) -> tuple[float, list[Finding]]:
    """The lowest GB/s of copies of 256 MiB between each pair of GPUs, and pairs whose copy differs."""
    rates, findings = [], []
    for source in range(len(uuids)):
        data = torch.arange(GIB // 16, dtype=torch.int32, device=f"cuda:{source}")
        for target in range(len(uuids)):
            if source == target:
                continue
            copy = torch.zeros_like(data, device=f"cuda:{target}")
            seconds = _best_seconds(torch, data.device, partial(copy.copy_, data), repeats=3)
            rates.append(data.nbytes / seconds / 1e9)
            if not torch.equal(copy.cpu(), data.cpu()):
                message = f"a copy to {uuids[target]} differs from its source"
                findings.append(Finding("Fail", "PeerCopyWrong", uuids[source], message))
    return min(rates), findings


def all_reduce_rate(torch: Any, count: int) -> tuple[float, list[Finding]]:
    """Bus bandwidth in GB/s of an all-reduce of 1 GiB over all GPUs (size / t x 2(n-1)/n), and a wrong sum."""
    elements = GIB // 4
    tensors = [torch.full((elements,), index + 1.0, device=f"cuda:{index}") for index in range(count)]
    sums = [torch.empty_like(tensor) for tensor in tensors]
    torch.cuda.nccl.all_reduce(tensors, sums)
    expected = count * (count + 1) / 2
    findings = [
        Finding("Fail", "CollectiveWrong", "", f"an all-reduce over {count} GPUs has a wrong sum")
        for total in sums
        if not bool((total == expected).all())
    ][:1]
    seconds = _best_seconds(torch, tensors[0].device, lambda: torch.cuda.nccl.all_reduce(tensors, sums), repeats=3)
    return GIB / seconds * 2 * (count - 1) / count / 1e9, findings


def _best_seconds(torch: Any, device: Any, action: Callable[[], object], repeats: int) -> float:
    action()
    best = float("inf")
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.device(device):
            torch.cuda.synchronize(device)
            begin.record()
            action()
            end.record()
            torch.cuda.synchronize(device)
        best = min(best, begin.elapsed_time(end) / 1000)
    return best


# ---------------------------------------------------------------- one run


class Run:
    """The result so far. `report` is called whenever a step begins, and at the end."""

    def __init__(self, count: int, resource: str = WHOLE_GPUS[0], report: Callable[[Run], None] | None = None) -> None:
        self.count = count
        self.resource = resource
        self.began = time.monotonic()
        self.step = "NVML"
        self.figures: dict[str, Any] = {}
        self.findings: list[Finding] = []
        self._report = report

    def check(self) -> None:
        self.begin("NVML")
        if self.resource.startswith("amd.com/"):
            self._check_amd()
            return
        gpus = self._devices()
        if gpus is None:
            return
        is_cut = self.resource.startswith("nvidia.com/mig-") or any(gpu.is_partitioned() for gpu in gpus)
        is_whole = self.resource in WHOLE_GPUS and not is_cut
        self.findings += device_findings(gpus, self.count if is_whole else None)
        for gpu in gpus:
            self.findings += [*memory_findings(gpu), *throttle_findings(gpu)]
        if is_whole:
            self.findings += link_findings(gpus)
        self._note_unreadable(gpus)
        if not self._has_failed():
            self._compute(gpus, is_whole=is_whole)

    def begin(self, step: str) -> None:
        self.step = step
        if self._report is not None:
            self._report(self)

    def _has_failed(self) -> bool:
        return any(finding.level == "Fail" for finding in self.findings)

    def _note_unreadable(self, gpus: list[Gpu]) -> None:
        for gpu in gpus:
            if gpu.unreadable:
                message = "this container may not read " + ", ".join(sorted({*gpu.unreadable}))
                self.findings.append(Finding("Unknown", "CountersUnreadable", gpu.uuid, message[:300]))

    def _devices(self) -> list[Gpu] | None:
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            self.findings.append(Finding("Unknown", "NvmlMissing", "", str(error)[:300]))
            return None
        _call(library, "nvmlInit_v2")
        count = ctypes.c_uint()
        _call(library, "nvmlDeviceGetCount_v2", ctypes.byref(count))
        driver = ctypes.create_string_buffer(80)
        _call(library, "nvmlSystemGetDriverVersion", driver, len(driver))
        gpus = [Gpu(library, index) for index in range(count.value)]
        self.figures.update(driver=driver.value.decode(), gpus=len(gpus), product=gpus[0].name if gpus else "")
        return gpus

    def _torch(self) -> Any:
        """The module; None, with a finding, where the image has none."""
        self.begin(IMPORT)
        # No packet outside of the pod, and the numbers of the GPUs as NVML counts them.
        os.environ.update(NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", CUDA_DEVICE_ORDER="PCI_BUS_ID")
        os.environ.pop("NCCL_TOPO_FILE", None)
        try:
            torch: Any = importlib.import_module("torch")
        except ImportError:
            message = "the image has no torch: compute, copies and collectives were not checked"
            self.findings.append(Finding("Unknown", "TorchMissing", "", message))
            return None
        self.begin("torch")
        return torch

    def _check_amd(self) -> None:
        message = "counters and links of AMD GPUs are not read: only computing and copies were checked"
        self.findings.append(Finding("Unknown", "NvmlMissing", "", message))
        torch = self._torch()
        if torch is None:
            return
        number = torch.cuda.device_count()
        is_whole = self.resource in WHOLE_GPUS
        self.figures.update(gpus=number)
        if not number or (is_whole and number != self.count):
            message = f"the pod asked for {self.count} GPUs, and torch shows {number}"
            self.findings.append(Finding("Fail", "GpuMissing", "", message))
            return
        self._measure_all(torch, [(None, f"number {index}") for index in range(number)], is_whole=is_whole)

    def _compute(self, gpus: list[Gpu], *, is_whole: bool) -> None:
        torch = self._torch()
        if torch is None:
            return
        number = torch.cuda.device_count()
        if not number:
            torch.cuda.init()  # raises the reason
        if not number or (is_whole and number != len(gpus)):
            message = f"the driver shows {len(gpus)} GPUs, and torch {number}"
            self.findings.append(Finding("Fail", "GpuMissing", "", message))
            return
        if not is_whole and self.count > 1:
            message = f"only the first of {self.count} parts of GPUs was computed on"
            self.findings.append(Finding("Unknown", "ChecksIncomplete", "", message))
        self._measure_all(torch, [(gpu, gpu.uuid) for gpu in gpus], is_whole=is_whole)
        if len(gpus) > 1 and is_whole:
            self._compare(torch, [gpu.uuid for gpu in gpus])

    def _measure_all(self, torch: Any, gpus: list[tuple[Gpu | None, str]], *, is_whole: bool) -> None:
        if not is_whole:  # its rates depend on who else uses the GPU
            self.begin(f"compute on {gpus[0][1]}")
            self.findings += product_findings(torch, 0, gpus[0][1])[1]
            return
        measured = [self._measure(torch, gpu, uuid, index) for index, (gpu, uuid) in enumerate(gpus)]
        for position, name in enumerate(FIGURE_NAMES):
            self.figures[name] = round(min(rates[position] for rates in measured), 1)

    def _measure(self, torch: Any, gpu: Gpu | None, uuid: str, index: int) -> Rates:
        self.begin(f"compute on {uuid}")
        teraflops, wrong = product_findings(torch, index, uuid)
        self.findings += wrong
        self.begin(f"memory of {uuid}")
        memory = memory_rate(torch, index)
        self.begin(f"host copies of {uuid}")
        to_device, to_host, reduced = host_rates(torch, gpu, index)
        self.findings += reduced
        torch.cuda.empty_cache()
        return Rates(teraflops, memory, to_device, to_host)

    def _compare(self, torch: Any, uuids: list[str]) -> None:
        self.begin("copies between GPUs")
        rate, findings = peer_rate(torch, uuids)
        self.figures["peerGBs"] = round(rate, 1)
        self.findings += findings
        self.begin("collective")
        rate, findings = all_reduce_rate(torch, len(uuids))
        self.figures["allReduceGBs"] = round(rate, 1)
        self.findings += findings

    def result(self) -> dict[str, Any]:
        findings = sorted(self.findings, key=lambda finding: LEVELS.index(finding.level))
        seconds = round(time.monotonic() - self.began, 1)
        verdict = findings[0].level if findings else "Pass"
        return {"verdict": verdict, "seconds": seconds, **self.figures, "findings": findings}


IMPORT = "import of torch"
"""The step that reads gigabytes of the image: a slow one says nothing about the GPU."""
NO_FAULT = ("no kernel image", "NCCL Error 2", "No space left on device")
"""Errors of an image without kernels for the GPU, and of a /dev/shm that is too small."""
BUSY = ("out of memory", "busy or unavailable")
OLD_DRIVER = ("driver on your system is too old", "driver version is insufficient")
UNINITIALIZED = re.compile(r"Error (802|803|999)\b|system not yet initialized|unsupported display driver")
DEVICE_ERROR = re.compile(r"CUDA error|HIP error|CUBLAS_STATUS|HIPBLAS_STATUS|NCCL Error|device-side assert")


def error_finding(error: BaseException, step: str) -> Finding:
    """A fault for an exception in a step; Unknown for one that says nothing about the GPU."""
    text = f"{step}: {type(error).__name__}: {error}".replace("\n", " ")[:300]
    level, reason = "Unknown", "ChecksIncomplete"
    if isinstance(error, NvmlError):
        level, reason = ("Fail", "AcceleratorError") if error.code in FAULTS else (level, reason)
    elif any(part in text for part in BUSY):
        reason = "AcceleratorBusy"
    elif any(part in text for part in OLD_DRIVER):
        reason = "GpuDriverTooOld"
    elif UNINITIALIZED.search(text):
        level, reason = "Fail", "GpuInitializationFailed"
    elif "GPUs are available" in text:
        level, reason = "Fail", "GpuMissing"
    elif DEVICE_ERROR.search(text) and not any(part in text for part in NO_FAULT):
        level, reason = "Fail", "AcceleratorError"
    return Finding(level, reason, "", text)


def termination_message(result: dict[str, Any]) -> bytes:
    """One line of JSON; findings that do not fit are counted in `omitted`."""
    findings = [finding._asdict() for finding in result["findings"]]
    for shown in range(len(findings), -1, -1):
        line = json.dumps({**result, "findings": findings[:shown], "omitted": len(findings) - shown}).encode()
        if len(line) <= MESSAGE_BYTES:
            break
    return line


def finish(run: Run, path: str, policy: str) -> int:
    """Writes the result and returns the exit code: 1 keeps the engine from starting."""
    result = run.result()
    line = termination_message(result)
    sys.stdout.write(line.decode() + "\n")
    sys.stdout.flush()
    with contextlib.suppress(OSError), open(path, "wb") as file:
        file.write(line)
    return 1 if result["verdict"] == "Fail" and policy == "Require" else 0


def check_in_child(count: int, resource: str, write: int) -> None:
    """Checks, and writes a line of JSON to the descriptor for each step; ends the process."""

    def report(run: Run, ended: bool = False) -> None:
        state = {"step": run.step, "figures": run.figures, "findings": run.findings, "ended": ended}
        line = json.dumps(state).encode() + b"\n"
        while line:
            line = line[os.write(write, line) :]

    run = Run(count, resource, report)
    try:
        try:
            run.check()
        except Exception as error:  # noqa: BLE001 - the pod must report whatever a driver does
            run.findings.append(error_finding(error, run.step))
        report(run, ended=True)
    finally:
        os._exit(0)


def supervise(count: int, resource: str, timeout: float) -> Run:
    """The result of a child process.

    A call into a driver that hangs returns to no thread of its process, and can hold the interpreter's lock.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        check_in_child(count, resource, write)
    os.close(write)
    run, pending, has_ended, is_open = Run(count, resource), b"", False, True
    while is_open and select.select([read], [], [], max(0.0, run.began + timeout - time.monotonic()))[0]:
        chunk = os.read(read, 1 << 16)
        is_open = bool(chunk)
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            state = json.loads(line)
            run.step, run.figures, has_ended = state["step"], state["figures"], state["ended"]
            run.findings = [Finding(*finding) for finding in state["findings"]]
    os.close(read)
    if is_open:
        os.kill(child, signal.SIGKILL)
        hanging = ("Unknown", "ChecksIncomplete") if run.step == IMPORT else ("Fail", "AcceleratorNotResponding")
        run.findings.append(Finding(*hanging, "", f"{run.step} did not end within {timeout:.0f} s"))
        return run
    status = os.waitpid(child, 0)[1]
    if not has_ended:
        end = f"by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"with status {status >> 8}"
        run.findings.append(Finding("Unknown", "ChecksIncomplete", "", f"{run.step}: the checks were ended {end}"))
    return run


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="accelerator_checks")
    parser.add_argument("--count", type=int, required=True, help="GPUs that the pod asked for")
    parser.add_argument("--resource", default=WHOLE_GPUS[0], help="extended resource that they are of")
    parser.add_argument("--policy", choices=("Require", "Warn"), default="Warn", help="Require: a Fail ends with 1")
    parser.add_argument("--timeout", type=float, default=120, help="seconds until a driver that hangs is reported")
    parser.add_argument("--termination-log", default="/dev/termination-log")
    options = parser.parse_args(words)
    run = supervise(options.count, options.resource, options.timeout)
    return finish(run, options.termination_log, options.policy)


if __name__ == "__main__":
    # The first process of a container has no default for SIGTERM.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    sys.exit(main(sys.argv[1:]))

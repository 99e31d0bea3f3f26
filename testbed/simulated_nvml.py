"""libnvidia-ml.so.1 of GPUs that are not there, at its C interface as ctypes calls it.

Return codes and out-parameters are those of NVIDIA's NVML reference (docs.nvidia.com/deploy/nvml-api). Tests hand
`SimulatedNvml` to the program that checks GPUs. The images of the stand-in engines have this file: in a container with
a driver (`FOLDER`, which the device plug-in mounts), ctypes loads this library, and it shows the GPUs that the
container got. A GPU is healthy unless a file of its name (`GPU-0.json`) in the folder says otherwise.
"""

# ruff: noqa: N802, SLF001 - names of the C library, and what ctypes.byref points to
from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path("/run/simulated-gpus")
LIBRARY = "libnvidia-ml.so.1"
NEXT_STATE = "next.json"
"""The state that the device plug-in gives to the next device that it hands out."""
UNINITIALIZED, NOT_SUPPORTED, GPU_IS_LOST = 1, 3, 15
AGGREGATE = 1
"""nvmlEccCounterType_t of errors over the life of the GPU, which a restart of the driver does not clear."""
HEALTHY: dict[str, Any] = {
    "product": "NVIDIA H100 80GB HBM3",
    "ecc": (1, 1),
    "rows": (0, 0, 0, 0),
    "mig": (0, 0),
    "links": [1] * 18,
    "reasons": 0,
    "errors": {},
    "lost": False,
    "beyond": NOT_SUPPORTED,
    "pcie": {"generation": (5, 5), "width": (16, 16)},
}
"""What NVML shows of a healthy GPU. `rows`: corrected, uncorrected, pending, failed; `beyond`: of a link too many;
`pcie`: present value and maximum."""


class SimulatedNvml:
    """The library on a machine with these GPUs; a value of None is NVML_ERROR_NOT_SUPPORTED, a number another
    refusal."""

    def __init__(self, gpus: list[dict[str, Any]], old_driver: bool = False) -> None:
        self._gpus, self._is_initialized = gpus, False
        if old_driver:  # before release 535
            self.nvmlDeviceGetCurrentClocksThrottleReasons = self._clocks
        else:
            self.nvmlDeviceGetCurrentClocksEventReasons = self._clocks

    def nvmlInit_v2(self) -> int:
        self._is_initialized = True
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        if not self._is_initialized:
            return UNINITIALIZED
        count._obj.value = len(self._gpus)
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, _length: int) -> int:
        text.value = b"580.159.04"
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        handle._obj.value = index + 1
        return GPU_IS_LOST if self._gpus[index]["lost"] else 0

    def nvmlDeviceGetUUID(self, handle: Any, text: Any, _length: int) -> int:
        text.value = str(self._of(handle).get("uuid", f"GPU-{handle.value - 1}")).encode()
        return 0

    def nvmlDeviceGetName(self, handle: Any, text: Any, _length: int) -> int:
        text.value = self._of(handle)["product"].encode()
        return 0

    def nvmlDeviceGetSerial(self, _handle: Any, _text: Any, _length: int) -> int:
        return NOT_SUPPORTED

    def nvmlDeviceGetEccMode(self, handle: Any, *modes: Any) -> int:
        return _fill(self._of(handle)["ecc"], modes)

    def nvmlDeviceGetRemappedRows(self, handle: Any, *rows: Any) -> int:
        return _fill(self._of(handle)["rows"], rows)

    def nvmlDeviceGetMigMode(self, handle: Any, *modes: Any) -> int:
        return _fill(self._of(handle)["mig"], modes)

    def nvmlDeviceGetMemoryErrorCounter(self, handle: Any, kind: int, counter: int, location: int, count: Any) -> int:
        errors = self._of(handle)["errors"] if counter == AGGREGATE else {}
        return _fill((errors.get((kind, location), 0),), (count,))

    def nvmlDeviceGetNvLinkState(self, handle: Any, link: int, state: Any) -> int:
        links = self._of(handle)["links"]
        return _fill((links[link],), (state,)) if link < len(links) else self._of(handle)["beyond"]

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle: Any, value: Any) -> int:
        return _fill((self._of(handle)["pcie"]["generation"][0],), (value,))

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle: Any, value: Any) -> int:
        return _fill((self._of(handle)["pcie"]["generation"][1],), (value,))

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: Any, value: Any) -> int:
        return _fill((self._of(handle)["pcie"]["width"][0],), (value,))

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: Any, value: Any) -> int:
        return _fill((self._of(handle)["pcie"]["width"][1],), (value,))

    def _clocks(self, handle: Any, reasons: Any) -> int:
        return _fill((self._of(handle)["reasons"],), (reasons,))

    def _of(self, handle: Any) -> dict[str, Any]:
        gpu: dict[str, Any] = self._gpus[handle.value - 1]
        return gpu


def _fill(values: tuple[int, ...] | list[int] | int | None, targets: tuple[Any, ...]) -> int:
    if values is None or isinstance(values, int):
        return NOT_SUPPORTED if values is None else values
    for value, target in zip(values, targets, strict=True):
        target._obj.value = value
    return 0


def gpus_of_this_container(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """What NVML shows of each GPU that the device plug-in gave to this container."""
    devices = [device for device in os.environ.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if device]
    return [{**HEALTHY, "uuid": device, **_state(folder / f"{device}.json")} for device in devices]


def _state(file: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return state


def install() -> None:
    """Let ctypes load this library where a program asks for the driver's."""
    loaded = ctypes.CDLL

    def load(name: str | None, *arguments: Any, **options: Any) -> Any:
        is_driver = name == LIBRARY
        return SimulatedNvml(gpus_of_this_container()) if is_driver else loaded(name, *arguments, **options)

    ctypes.CDLL = load  # type: ignore[assignment,misc]

"""The part of torch that the checks of GPUs use, with dialled rates, faults and errors; nothing is computed.

A tensor is the number of its bytes and one value that stands for all of its elements. Every operation lasts as long as
its GPU's rate says, on a clock that only operations move and that events read.
"""

# ruff: noqa: ARG002 - the signatures of torch
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GB = 1e9
SIZES = {"uint8": 1, "bfloat16": 2, "int32": 4, "float32": 4}
HOST = "cpu"


@dataclass
class Dials:
    """What the GPUs reach and what is wrong with them, by number of the GPU where they differ.

    Rates in TFLOP/s and GB/s (10^9 bytes). `deviation`: of a bf16 product, as a share of its value. `changed_copies`:
    pairs whose copies arrive changed. `errors`: the exception of an operation, by its name ('matmul', 'mm', 'copy', or
    'memory copy', 'host copy' and 'peer copy' for one kind of them, 'all_reduce').
    """

    teraflops: float = 700.0
    memory_gbs: float = 2400.0
    to_device_gbs: float = 54.0
    to_host_gbs: float = 52.0
    peer_gbs: float = 390.0
    all_reduce_gbs: float = 470.0
    slow: Mapping[int, float] = field(default_factory=dict)
    deviation: Mapping[int, float] = field(default_factory=dict)
    differing: frozenset[int] = frozenset()
    changed_copies: frozenset[tuple[int, int]] = frozenset()
    sum_error: float = 0.0
    errors: Mapping[str, Exception] = field(default_factory=dict)
    on_copy: Callable[[], None] = lambda: None

    def seconds(self, gpu: int, least: float) -> float:
        """`least`, times the share by which the GPU is slower than dialled."""
        return least / self.slow.get(gpu, 1.0)


@dataclass(frozen=True)
class Device:
    kind: str
    index: int = 0


class Tensor:
    """All elements have `value`; `bits` tells two results apart that have the same value."""

    def __init__(self, torch: SimulatedTorch, device: Device, elements: int, dtype: str, value: float = 0.0) -> None:
        self._torch, self.device, self.dtype = torch, device, dtype
        self.elements, self.value, self.bits = elements, value, 0

    @property
    def nbytes(self) -> int:
        return self.elements * SIZES[self.dtype]

    def __getitem__(self, _row: int) -> Tensor:
        return self._with(self.value)

    def __matmul__(self, other: Tensor) -> Tensor:
        return self._torch.product(self, other)

    def __sub__(self, other: Tensor) -> Tensor:
        return self._with(self.value - other.value)

    def __truediv__(self, other: Tensor) -> Tensor:
        return self._with(self.value / other.value)

    def __eq__(self, other: object) -> Any:
        return self._with(float(self.value == (other.value if isinstance(other, Tensor) else other)))

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self.value)

    def float(self) -> Tensor:
        return Tensor(self._torch, self.device, self.elements, "float32", self.value)

    def abs(self) -> Tensor:
        return self._with(abs(self.value))

    def max(self) -> Tensor:
        return self._with(self.value)

    def all(self) -> Tensor:
        return self._with(self.value)

    def item(self) -> Any:
        return self.value

    def cpu(self) -> Tensor:
        copy = self._with(self.value)
        copy.bits = self.bits
        return copy

    def copy_(self, source: Tensor, non_blocking: bool = False) -> Tensor:
        self._torch.copy(source, self)
        return self

    def _with(self, value: Any) -> Tensor:
        return Tensor(self._torch, self.device, self.elements, self.dtype, value)


class SimulatedTorch:
    """The module, on a machine with so many GPUs."""

    uint8, bfloat16, int32 = "uint8", "bfloat16", "int32"

    def __init__(self, number: int, dials: Dials | None = None) -> None:
        self.dials = dials or Dials()
        self.clock = self.synchronized = 0.0
        self.cuda = SimpleNamespace(
            device_count=lambda: number,
            init=lambda: None,
            Event=lambda enable_timing: Event(self, enable_timing),
            device=self._current,
            synchronize=self._synchronize,
            empty_cache=lambda: None,
            nccl=SimpleNamespace(all_reduce=self._all_reduce),
        )

    def device(self, kind: str, index: int) -> Device:
        return Device(kind, index)

    def Generator(self, device: Device) -> Any:  # noqa: N802 - a name of torch
        return SimpleNamespace(manual_seed=lambda _seed: None)

    def randn(self, rows: int, columns: int, *, device: Device, dtype: str, generator: Any) -> Tensor:
        return Tensor(self, device, rows * columns, dtype, 1.0)

    def empty(self, elements: int, *, dtype: str, device: Device | None = None, pin_memory: bool = False) -> Tensor:
        assert (device is None) == pin_memory, "memory of the host must be pinned"
        return Tensor(self, device or Device(HOST), elements, dtype)

    def arange(self, elements: int, *, dtype: str, device: str) -> Tensor:
        tensor = Tensor(self, _parsed(device), elements, dtype)
        tensor.bits = 1
        return tensor

    def zeros_like(self, tensor: Tensor, *, device: str) -> Tensor:
        return Tensor(self, _parsed(device), tensor.elements, tensor.dtype)

    def full(self, shape: tuple[int], value: float, *, device: str) -> Tensor:
        return Tensor(self, _parsed(device), shape[0], "float32", value)

    def empty_like(self, tensor: Tensor) -> Tensor:
        return Tensor(self, tensor.device, tensor.elements, tensor.dtype)

    def equal(self, left: Tensor, right: Tensor) -> bool:
        return (left.value, left.bits) == (right.value, right.bits)

    def mm(self, left: Tensor, right: Tensor, *, out: Tensor) -> None:
        self._fail("mm")
        gpu = left.device.index
        self.clock += self.dials.seconds(gpu, 2 * left.elements**1.5 / (self.dials.teraflops * 1e12))

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        self._fail("matmul")
        gpu = left.device.index
        is_tested = left.dtype == self.bfloat16
        result = Tensor(self, left.device, left.elements, left.dtype, 1.0)
        if is_tested:
            result.value += self.dials.deviation.get(gpu, 0.0)
            result.bits = int(self.clock * 1e9) if gpu in self.dials.differing else 0
            self.clock += 1e-3
        return result

    def copy(self, source: Tensor, target: Tensor) -> None:
        self._fail("copy")
        self.dials.on_copy()
        ends = (source.device, target.device)
        is_of_host = HOST in (source.device.kind, target.device.kind)
        self._fail("host copy" if is_of_host else "memory copy" if ends[0] == ends[1] else "peer copy")
        gpu = next(end.index for end in ends if end.kind != HOST)
        self.clock += self.dials.seconds(gpu, source.nbytes / (self._copy_rate(*ends) * GB))
        target.value, target.bits = source.value, source.bits
        if (source.device.index, target.device.index) in self.dials.changed_copies:
            target.bits += 1

    def _copy_rate(self, source: Device, target: Device) -> float:
        if source.kind == HOST:
            return self.dials.to_device_gbs
        if target.kind == HOST:
            return self.dials.to_host_gbs
        # A copy within the memory of a GPU reads and writes each byte.
        return self.dials.memory_gbs / 2 if source == target else self.dials.peer_gbs

    def _all_reduce(self, tensors: Sequence[Tensor], sums: Sequence[Tensor]) -> None:
        self._fail("all_reduce")
        number, size = len(tensors), tensors[0].nbytes
        self.clock += size * 2 * (number - 1) / number / (self.dials.all_reduce_gbs * GB)
        for total in sums:
            total.value = sum(tensor.value for tensor in tensors)
        sums[-1].value += self.dials.sum_error

    def _fail(self, operation: str) -> None:
        if (error := self.dials.errors.get(operation)) is not None:
            raise error

    def _synchronize(self, _device: Device) -> None:
        self.synchronized = self.clock

    @contextmanager
    def _current(self, _device: Device) -> Iterator[None]:
        yield


class Event:
    """A point in the time of the simulated GPUs."""

    def __init__(self, torch: SimulatedTorch, is_timed: bool) -> None:
        self._torch, self._at, self._is_timed = torch, 0.0, is_timed

    def record(self) -> None:
        self._at = self._torch.clock

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds. torch refuses events that were made without timing, and those that are not complete."""
        if not self._is_timed or not other._is_timed or other._at > self._torch.synchronized:
            raise RuntimeError("Both events must be created with enable_timing=True and be completed")
        return (other._at - self._at) * 1000


def _parsed(text: str) -> Device:
    kind, _, index = text.partition(":")
    return Device(kind, int(index))

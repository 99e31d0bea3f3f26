"""GPU sizes and storage of Azure: every value with its source, and whether it is confirmed.

The data are the TOML files in this folder. A value that is left out is not known; one that is listed as not
confirmed may be shown, but an answer that rests on it is never Fits.
"""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Generic, TypeVar

T = TypeVar("T")
PREFIX = "standard_"
LIKENESS = 0.8
"""Least similarity of two names of sizes, 0 to 1, of which one may be a slip for the other."""
GIB = 2**30
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    """One value of the catalogue, its source, and whether it is confirmed."""

    value: T
    source: str
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU model, or the fraction of one that a VM is given.

    `memory` is in bytes, as a process sees it; `capability` the CUDA compute capability, None for other vendors;
    `pcie_generation` that of its 16 lanes, None where it is not known. `has_slices`: it may be cut into slices (MIG).
    """

    key: str
    name: str
    vendor: str
    memory: Value[int]
    capability: float | None
    pcie_generation: int | None = None
    has_slices: bool = True


@dataclass(frozen=True, slots=True)
class Size:
    """One VM size. `nic` is in bytes per second and `nvme_disks` a number; None where it is not known."""

    name: str
    gpu: Gpu
    gpus: Value[int]
    vcpus: Value[int]
    ram: Value[int]
    cpu: str
    nic: Value[float] | None
    nvme_disks: Value[int] | None

    @property
    def confirmed(self) -> bool:
        """Whether number and memory of its GPUs are confirmed."""
        return self.gpus.confirmed and self.gpu.memory.confirmed


@dataclass(frozen=True, slots=True)
class Network:
    """The InfiniBand devices of one VM size; `rate`: bytes per second of each. `variables`: what NCCL needs there."""

    devices: Value[int]
    rate: Value[float]
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Storage:
    """One kind of storage; rates in bytes per second. `file`: the rate of one file, None without a cap."""

    name: str
    total: Value[float]
    file: Value[float] | None
    shared: bool


@functools.cache
def sizes() -> Mapping[str, Size]:
    """Every VM size, by its name."""
    gpus = {key: _gpu(key, entry) for key, entry in _read("gpus.toml").items()}
    return MappingProxyType({name: _size(name, entry, gpus) for name, entry in _read("sizes.toml").items()})


def nearest_size(name: str) -> str | None:
    """The size of the catalogue whose name is most like this one, in any case and without its prefix; None for none."""
    names = {size.lower(): size for size in sizes()}
    typed = name.lower()
    spelling = typed if typed.startswith(PREFIX) else PREFIX + typed
    match = difflib.get_close_matches(spelling, names, n=1, cutoff=LIKENESS)
    return names[match[0]] if match else None


@functools.cache
def storages() -> tuple[Storage, ...]:
    """Every kind of storage, in the order of the file."""
    return tuple(_storage(name, entry) for name, entry in _read("storage.toml").items())


@functools.cache
def interconnects() -> Mapping[str, Network]:
    """The InfiniBand of VM sizes, by name of the size; a size of the catalogue that is not in it has none."""
    return MappingProxyType({name: _network(entry) for name, entry in _read("interconnects.toml").items()})


@functools.cache
def slices() -> Mapping[str, Mapping[str, Value[int]]]:
    """Memory of the slices of a GPU (MIG) in bytes, by key of the GPU and by profile ('1g.10gb')."""
    return MappingProxyType({key: _slices(entry) for key, entry in _read("slices.toml").items()})


@functools.cache
def partitions() -> Mapping[str, Mapping[str, Value[int]]]:
    """Into how many equal parts an AMD GPU is divided, by key of the GPU and by mode ('cpx_nps4')."""
    return MappingProxyType({key: _modes(entry) for key, entry in _read("partitions.toml").items()})


@functools.cache
def rate_floors() -> Mapping[str, Mapping[str, Value[float]]]:
    """The lowest rates of healthy VMs by size and by key of floors.toml, in GB/s (10^9 bytes)."""
    keys = ("memory_gbs", "host_gbs", "peer_gbs", "all_reduce_gbs")
    return MappingProxyType(
        {
            size: {key: _stated(entry, key) for key in keys if key in entry}
            for size, entry in _read("floors.toml").items()
        }
    )


def _read(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__name__).joinpath(name).read_text("utf-8"))


def _value(entry: Mapping[str, Any], key: str, unit: float = 1) -> Value[Any] | None:
    if key not in entry:
        return None
    source = entry.get("sources", {}).get(key, entry["source"])
    return Value(entry[key] * unit, source, key not in entry.get("unconfirmed", ()))


def _stated(entry: Mapping[str, Any], key: str, unit: float = 1) -> Value[Any]:
    value = _value(entry, key, unit)
    if value is None:
        raise KeyError(key)
    return value


def _slices(entry: Mapping[str, Any]) -> Mapping[str, Value[int]]:
    stated = {key: _stated(entry, key, GIB) for key in entry if key not in {"source", "unconfirmed"}}
    return {key: Value(int(memory.value), memory.source, memory.confirmed) for key, memory in stated.items()}


def _modes(entry: Mapping[str, Any]) -> Mapping[str, Value[int]]:
    return {mode: _stated(entry, mode) for mode in entry if mode not in {"source", "sources", "unconfirmed"}}


def _gpu(key: str, entry: Mapping[str, Any]) -> Gpu:
    memory = _stated(entry, "memory_gib", GIB)
    memory_bytes = Value(int(memory.value), memory.source, memory.confirmed)
    return Gpu(
        key,
        entry["name"],
        entry["vendor"],
        memory_bytes,
        entry.get("capability"),
        entry.get("pcie_generation"),
        entry.get("slices", True),
    )


def _size(name: str, entry: Mapping[str, Any], gpus: Mapping[str, Gpu]) -> Size:
    return Size(
        name=name,
        gpu=gpus[entry["gpu"]],
        gpus=_stated(entry, "gpus"),
        vcpus=_stated(entry, "vcpus"),
        ram=_stated(entry, "ram_gib", GIB),
        cpu=entry["cpu"],
        nic=_value(entry, "nic_gbps", 1e9 / 8),
        nvme_disks=_value(entry, "nvme_disks"),
    )


def _network(entry: Mapping[str, Any]) -> Network:
    variables = MappingProxyType(dict(entry.get("variables", {})))
    return Network(_stated(entry, "devices"), _stated(entry, "gbps", 1e9 / 8), variables)


def _storage(name: str, entry: Mapping[str, Any]) -> Storage:
    return Storage(
        name, _stated(entry, "total_mib_s", MIB), _value(entry, "file_mib_s", MIB), entry["scope"] == "cluster"
    )

"""How long weights take from storage to the GPUs, and the resulting start-up budget.

The load is bounded by each step that the bytes pass: the total rate of the storage, the rate of one file times the
files that are read at once, the network of the node, and PCIe. The slowest one is the prediction. What the engine does
besides (imports, compiling, CUDA graphs) is in the budget, not in the load time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import GIB, Gpu, Storage, Value
from hermetic.sizing.memory import Fit

THREADS = 8
"""Files that vLLM reads at a time from NFS and Lustre."""
PCIE = {3: 12.5e9, 4: 25e9, 5: 50e9}
"""Bytes per second to one GPU by 16 lanes of each generation: 0.78 of 16, 32 and 64 GB/s, which is what is usable."""
IMPORTS = 60
COMPILING = 180
LEAST_BUDGET = 600
MOST_BUDGET = 3600


@dataclass(frozen=True, slots=True)
class LoadTime:
    """Seconds that the weights take; `bound` names the slowest step, `estimate`: it rests on unconfirmed values."""

    seconds: float
    bound: str
    estimate: bool


@dataclass(frozen=True, slots=True)
class Files:
    """The files to read: bytes in total, how many files, and the size of the largest."""

    total: int
    count: int
    largest: int


def files_of(facts: ModelFacts) -> Files:
    """The files of a model; as one file where their number is not known."""
    shards = facts.shards
    if shards is None:
        return Files(facts.parameter_bytes, 1, facts.parameter_bytes)
    return Files(facts.parameter_bytes, shards.count, min(shards.largest_bytes, facts.parameter_bytes))


def pcie_rate(gpu: Gpu | None, gpus: int = 1) -> float:
    """Bytes per second that these GPUs can be given; those of generation 4 where their generation is not known."""
    generation = gpu.pcie_generation if gpu is not None else None
    return gpus * PCIE[generation or 4]


def load_time(
    files: Files, storage: Storage, *, nic: Value[float] | None, pcie: float, replicas: int = 1, threads: int = THREADS
) -> LoadTime:
    """The time until the weights are on the GPUs of a node, while `replicas` of them start together.

    `pcie` is what all its GPUs can be given, `nic` the network of the node, in bytes per second. `nic` None: not known,
    so it bounds nothing and the result is an estimate. Storage on the node needs no network.
    """
    sharing = replicas if storage.shared else 1
    bounds: list[tuple[float, str, bool]] = [
        (files.total * sharing / storage.total.value, "what the storage delivers", storage.total.confirmed),
        (files.total / pcie, "PCIe of the GPUs", True),
    ]
    if storage.file is not None:
        bounds.append(
            (_by_file(files, storage.file.value, threads), "what single files deliver", storage.file.confirmed)
        )
    if storage.shared and nic is not None:
        bounds.append((files.total / nic.value, "the network of the node", nic.confirmed))
    seconds, bound, confirmed = max(bounds)
    unknown_network = storage.shared and nic is None
    return LoadTime(seconds, bound, not confirmed or unknown_network)


def _by_file(files: Files, rate: float, threads: int) -> float:
    at_once = max(1, min(files.count, threads))
    return max(files.total / (at_once * rate), files.largest / rate)


def startup_budget(load: LoadTime) -> int:
    """Seconds that a pod should be given until it serves: imports, load, compiling; 600 to 3600."""
    needed = IMPORTS + load.seconds + COMPILING
    return min(MOST_BUDGET, max(LEAST_BUDGET, math.ceil(needed / 60) * 60))


def files_wanted(storage: Storage, nic: Value[float] | None) -> int:
    """Into how many files a model should be split so that the per-file cap is not the bound; 1 without such a cap."""
    if storage.file is None:
        return 1
    fastest = min(storage.total.value, nic.value) if nic is not None else storage.total.value
    return max(1, math.ceil(fastest / storage.file.value))


USABLE_STEPS = 10
"""Steps per second below which offloading is not advised: one step makes one token of every request."""


@dataclass(frozen=True, slots=True)
class Offload:
    """`missing` bytes of each GPU stay in the memory of the node and pass PCIe once per step."""

    missing: int
    seconds_per_step: float
    advised: bool


def offload(fit: Fit) -> Offload | None:
    """The cost of offloaded and of missing bytes; None where there are none, or it cannot be computed."""
    missing = 0 if fit.needed is None else min(max(0, fit.needed - fit.allowed), fit.weights)
    total = fit.offloaded + missing
    if not total:
        return None
    seconds = total / pcie_rate(fit.gpu)
    return Offload(total, seconds, seconds * USABLE_STEPS <= 1)


def offload_clause(fit: Fit) -> str:
    """One clause about the weights that the deployment keeps in the memory of the node; "" where it keeps none there.

    Every step reads all of them (vllm/config/offload.py of 0.33.0), and gives each request one token. No rate is named
    where the GPU is connected by other means than PCIe, and with settings that are not computed: speculative decoding
    gives more tokens a step.
    """
    if not fit.offloaded:
        return ""
    clause = f"{fit.offloaded / GIB:.1f} GiB of the weights of each GPU stay in the memory of the node"
    if fit.gpu.pcie_generation is not None and not fit.serving.not_computed:
        rate = pcie_rate(fit.gpu) / fit.offloaded
        clause += f", of which each token reads all over PCIe: at most {rate:.1f} tokens/s a request"
    if fit.needed is not None:
        clause += f"; without `--cpu-offload-gb` each GPU would need {(fit.needed + fit.offloaded) / GIB:.1f} GiB"
    return clause


@dataclass(frozen=True, slots=True)
class HostCache:
    """`size` bytes of key-value cache in the memory of the node: the tokens in them, and how fast they return."""

    size: int
    tokens: int
    tokens_per_second: int


def host_cache(fit: Fit) -> HostCache | None:
    """The key-value cache in the memory of the node; None without one, or where the cache is not computed.

    Both numbers are of requests of the longest context. Each GPU reads its part over PCIe of its own.
    """
    size, serving = fit.serving.host_cache, fit.serving
    if not size or fit.cache is None or not fit.context:
        return None
    token = fit.cache.request_bytes(fit.context) / fit.context
    return HostCache(size, int(size / (token * serving.gpus)), int(pcie_rate(fit.gpu) / token))

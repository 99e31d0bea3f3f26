"""What a pod gets for one unit of its extended resource: a whole GPU, a part of one (a slice or a partition), or a GPU
that others share.

A slice of NVIDIA (MIG) and a partition of AMD have memory of their own, which sizing can count on. A GPU that is shared
by time has not: the pods on it take memory from each other. With the single strategy of either vendor the device
plug-in offers parts as `nvidia.com/gpu` or `amd.com/gpu`, and only labels of the node tell them from whole GPUs: those
of GPU feature discovery, or of AMD's node labeller. Sources: docs.nvidia.com, 'MIG Support in Kubernetes' and
'Time-Slicing GPUs in Kubernetes'; https://github.com/ROCm/k8s-device-plugin, docs/user-guide/configuration.md and
cmd/k8s-node-labeller/main.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hermetic.sizing.catalogue import GIB, MIB, Gpu, Value, partitions, slices

WHOLE_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
"""Extended resources of whole GPUs, unless labels of the node say otherwise."""
PRODUCT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
SHARING, REPLICAS = "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas"
PARTITION_MODE, VRAM = "amd.com/gpu.compute-memory-partition", "amd.com/gpu.vram"
"""Labels of AMD's node labeller: the mode as 'cpx_nps4', and whole GiB of a GPU or of a partition as '24G'."""
SLICE_PREFIX = "nvidia.com/mig-"
_PROFILE = r"[0-9]g\.[0-9]+gb"
_RESOURCE = re.compile(rf"{re.escape(SLICE_PREFIX)}(?P<profile>{_PROFILE})(\.me(\.all)?)?")
_PRODUCT = re.compile(r".*-MIG-(?P<profile>.+)")
_MODE = re.compile(r"[sdtqc]px_nps[1248]")
_PARTITION = re.compile(rf"amd\.com/(?P<mode>{_MODE.pattern})")
_COMPUTING_SLICES = 7
_UNDIVIDED_SLICES = "the GPUs are slices (MIG), and engines do not divide a model over slices"
_UNDIVIDED_PARTITIONS = (
    "the GPUs are partitions, and whether an engine that divides a model over partitions computes correctly is not "
    "confirmed (https://github.com/vllm-project/vllm/issues/20125)"
)


@dataclass(frozen=True, slots=True)
class Offer:
    """One unit of an extended resource: a GPU with the memory that the pod gets, and why that memory is not certain.

    `unknown`: clauses that prevent the answer Fits. With one, `gpu` is the most that the pod can get. `undivided`: why
    nothing is computed for a model that is divided over several of it; "" for whole GPUs.
    """

    gpu: Gpu
    unknown: tuple[str, ...] = ()
    undivided: str = ""


def offered(
    gpu: Gpu, resource: str, labels: Mapping[str, str] | None = None, *, units_per_gpu: float | None = None
) -> Offer:
    """What one `resource` on a VM with these GPUs is.

    `labels` are those of a node of that VM size. `units_per_gpu`: how many of the resource the node lists for each of
    its GPUs; None where no node is known.
    """
    if resource in WHOLE_GPUS:
        read_labels = _labelled if resource == "nvidia.com/gpu" else _labelled_amd
        return _counted(read_labels(gpu, labels or {}), resource, units_per_gpu)
    if resource == "nvidia.com/gpu.shared":
        return _shared(gpu)
    if resource.startswith(SLICE_PREFIX):
        return _slice(gpu, resource)
    match = _PARTITION.fullmatch(resource)
    if match is None:
        return Offer(gpu, (f"the memory of '{resource}' is not computed",))
    offer = _partition(gpu, match["mode"])
    if units_per_gpu is not None or offer.gpu == gpu:
        return offer
    clause = f"no node lists '{resource}', and no source says that VMs of Azure with {gpu.name} offer partitions"
    return replace(offer, unknown=(*offer.unknown, clause))


def vendor_of(resource: str) -> str:
    """The vendor of the GPUs behind an extended resource."""
    return "amd" if resource.startswith("amd.com/") else "nvidia"


def why_not_offered(resource: str, gpu: Gpu) -> str:
    """A clause where no VM with these GPUs can offer the resource; "" where one may."""
    if vendor_of(resource) != gpu.vendor:
        return f"it has GPUs of {gpu.name}, and the deployment asks for {resource}"
    if resource.startswith(SLICE_PREFIX) and not gpu.has_slices:
        return f"{gpu.name} has no slices (MIG), and the deployment asks for {resource}"
    return ""


def sliced_profile(labels: Mapping[str, str]) -> str | None:
    """The profile of the slices that the node offers as `nvidia.com/gpu`; None where labels name none."""
    match = _PRODUCT.fullmatch(labels.get(PRODUCT, "").removesuffix("-SHARED"))
    return match["profile"] if match is not None else None


def memory_label(labels: Mapping[str, str]) -> int | None:
    """MiB of one GPU, or of one slice where `nvidia.com/gpu` is a slice; None without a number above 0."""
    amount = labels.get(MEMORY, "")
    return int(amount) if re.fullmatch(r"[1-9][0-9]{0,8}", amount) else None


def partition_mode(labels: Mapping[str, str]) -> str | None:
    """The mode of the partitions that the node offers as `amd.com/gpu`; None where no label names one."""
    mode = labels.get(PARTITION_MODE, "")
    return mode if _MODE.fullmatch(mode) else None


def is_shared(labels: Mapping[str, str]) -> bool:
    """Whether the node offers each GPU, or each slice, several times."""
    strategy, replicas = labels.get(SHARING, "none"), labels.get(REPLICAS, "")
    if labels.get(PRODUCT, "").endswith("-SHARED"):
        return True
    return strategy != "none" and replicas not in {"", "0", "1"}


def _labelled(gpu: Gpu, labels: Mapping[str, str]) -> Offer:
    if is_shared(labels):
        return _shared(gpu)
    profile = sliced_profile(labels)
    if profile is None:
        return Offer(gpu)
    mebibytes = memory_label(labels)
    if mebibytes is None:
        clause = (
            f"the node offers slices {profile} (MIG) as 'nvidia.com/gpu', and no label {MEMORY} states their memory"
        )
        return Offer(gpu, (clause,), _UNDIVIDED_SLICES)
    memory = min(mebibytes * MIB, gpu.memory.value)
    stated = Value(memory, f"label {MEMORY} of the node", gpu.memory.confirmed)
    return Offer(_cut(gpu, profile, stated), undivided=_UNDIVIDED_SLICES)


def _labelled_amd(gpu: Gpu, labels: Mapping[str, str]) -> Offer:
    if (mode := partition_mode(labels)) is not None:
        return _partition(gpu, mode)
    match = re.fullmatch(r"([1-9][0-9]{0,3})G", labels.get(VRAM, ""))
    # The label is rounded to whole GiB, and a whole GPU has somewhat less than the vendor says.
    if match is None or int(match[1]) * GIB > 0.75 * gpu.memory.value:
        return Offer(gpu)
    memory = Value(int((int(match[1]) - 0.5) * GIB), f"label {VRAM} of the node", gpu.memory.confirmed)
    return Offer(_part(gpu, f"partition of {gpu.name}", memory), undivided=_UNDIVIDED_PARTITIONS)


def _counted(offer: Offer, resource: str, units_per_gpu: float | None) -> Offer:
    """The same; Unknown where a node lists more of it than the VM has GPUs, and no label says why."""
    if units_per_gpu is None or units_per_gpu <= 1 or offer.undivided or offer.unknown:
        return offer
    clause = f"a node lists more '{resource}' than the VM has GPUs: each is a part of a GPU, or shared with other pods"
    return replace(offer, unknown=(clause,))


def _shared(gpu: Gpu) -> Offer:
    return Offer(gpu, ("GPUs shared by time guarantee no memory: other pods on the GPU may take it",))


def _slice(gpu: Gpu, resource: str) -> Offer:
    match = _RESOURCE.fullmatch(resource)
    memory = slices().get(gpu.key, {}).get(match["profile"]) if match is not None else None
    if match is None or memory is None:
        return Offer(gpu, (f"the memory of a slice '{resource}' of {gpu.name} is not known",), _UNDIVIDED_SLICES)
    return Offer(_cut(gpu, match["profile"], memory), undivided=_UNDIVIDED_SLICES)


def _cut(gpu: Gpu, profile: str, memory: Value[int]) -> Gpu:
    name = f"slice {profile} of {gpu.name}"
    if re.fullmatch(_PROFILE, profile):
        name += f" with {profile[0]}/{_COMPUTING_SLICES} of its computing slices"
    return _part(gpu, name, memory)


def _partition(gpu: Gpu, mode: str) -> Offer:
    number = partitions().get(gpu.key, {}).get(mode)
    if number is None:
        return Offer(gpu, (f"the memory of a partition '{mode}' of {gpu.name} is not known",), _UNDIVIDED_PARTITIONS)
    if number.value == 1:
        return Offer(gpu)
    source = f"{gpu.memory.source}, {number.source}"
    memory = Value(gpu.memory.value // number.value, source, gpu.memory.confirmed and number.confirmed)
    name = f"partition {mode} of {gpu.name} with 1/{number.value} of its computing"
    return Offer(_part(gpu, name, memory), undivided=_UNDIVIDED_PARTITIONS)


def _part(gpu: Gpu, name: str, memory: Value[int]) -> Gpu:
    # What a part of a GPU gets of the PCIe rate is not published.
    return replace(gpu, name=name, memory=memory, pcie_generation=None)

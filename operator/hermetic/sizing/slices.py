"""What a pod gets for one unit of its extended resource: a whole GPU, a slice of one (MIG), or a GPU that others share.

A slice has memory of its own, which sizing can count on. A GPU that is shared by time has not: the pods on it take
memory from each other. Single strategy of MIG: the device plug-in offers slices as `nvidia.com/gpu`, and only the
labels of feature discovery on the node tell them from whole GPUs. Source: docs.nvidia.com, 'MIG Support in Kubernetes'
and 'Time-Slicing GPUs in Kubernetes'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hermetic.sizing.catalogue import MIB, Gpu, Value, slices

WHOLE_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
"""Extended resources of whole GPUs, unless labels of the node say otherwise."""
PRODUCT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
SHARING, REPLICAS = "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas"
SLICE_PREFIX = "nvidia.com/mig-"
_PROFILE = r"[0-9]g\.[0-9]+gb"
_RESOURCE = re.compile(rf"{re.escape(SLICE_PREFIX)}(?P<profile>{_PROFILE})(\.me(\.all)?)?")
_PRODUCT = re.compile(r".*-MIG-(?P<profile>.+)")
_COMPUTING_SLICES = 7


@dataclass(frozen=True, slots=True)
class Offer:
    """One unit of an extended resource: a GPU with the memory that the pod gets, and why that memory is not certain.

    `unknown`: clauses that prevent the answer Fits. With one, `gpu` is the most that the pod can get. `is_slice`: it is
    a slice, and engines do not divide a model over slices.
    """

    gpu: Gpu
    unknown: tuple[str, ...] = ()
    is_slice: bool = False


def offered(gpu: Gpu, resource: str, labels: Mapping[str, str] | None = None) -> Offer:
    """What one `resource` on a VM with these GPUs is; `labels` are those of a node of that VM size."""
    if resource in WHOLE_GPUS:
        return _labelled(gpu, labels or {}) if resource == "nvidia.com/gpu" else Offer(gpu)
    if resource == "nvidia.com/gpu.shared":
        return _shared(gpu)
    if resource.startswith(SLICE_PREFIX):
        return _slice(gpu, resource)
    return Offer(gpu, (f"the memory of a slice '{resource}' is not computed",))


def vendor_of(resource: str) -> str:
    """The vendor of the GPUs behind an extended resource."""
    return "amd" if resource.startswith("amd.com/") else "nvidia"


def sliced_profile(labels: Mapping[str, str]) -> str | None:
    """The profile of the slices that the node offers as `nvidia.com/gpu`; None where labels name none."""
    match = _PRODUCT.fullmatch(labels.get(PRODUCT, "").removesuffix("-SHARED"))
    return match["profile"] if match is not None else None


def memory_label(labels: Mapping[str, str]) -> int | None:
    """MiB of one GPU, or of one slice where `nvidia.com/gpu` is a slice; None without a number above 0."""
    amount = labels.get(MEMORY, "")
    return int(amount) if re.fullmatch(r"[1-9][0-9]{0,8}", amount) else None


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
        return Offer(gpu, (clause,), is_slice=True)
    memory = min(mebibytes * MIB, gpu.memory.value)
    stated = Value(memory, f"label {MEMORY} of the node", gpu.memory.confirmed)
    return Offer(_cut(gpu, profile, stated), is_slice=True)


def _shared(gpu: Gpu) -> Offer:
    return Offer(gpu, ("GPUs shared by time guarantee no memory: other pods on the GPU may take it",))


def _slice(gpu: Gpu, resource: str) -> Offer:
    match = _RESOURCE.fullmatch(resource)
    memory = slices().get(gpu.key, {}).get(match["profile"]) if match is not None else None
    if match is None or memory is None:
        return Offer(gpu, (f"the memory of a slice '{resource}' of {gpu.name} is not known",), is_slice=True)
    return Offer(_cut(gpu, match["profile"], memory), is_slice=True)


def _cut(gpu: Gpu, profile: str, memory: Value[int]) -> Gpu:
    # What a slice gets of the PCIe rate is not published.
    name = f"slice {profile} of {gpu.name}"
    if re.fullmatch(_PROFILE, profile):
        name += f" with {profile[0]}/{_COMPUTING_SLICES} of its computing slices"
    return replace(gpu, name=name, memory=memory, pcie_generation=None)

"""Compile caches that are staged with the weights: their key, what they hold of each engine, and how they are used.

The twin that makes them is a pod of the same spec. Files go back to the path where that pod wrote them, because Triton
keeps absolute paths. Every engine checks its own, longer key for each entry; the key here keeps caches away that would
only be searched in vain.

What can be used through links was read in the source of vLLM 0.24 and 0.33, SGLang 0.5.23, Triton (runtime/cache.py),
DeepGEMM (csrc/jit/compiler.hpp) and FlashInfer 0.7.0 (autotuner): they replace files and folders as a whole.

FlashInfer's kernels are left out (jit/core.py): it calls ninja, which writes its log in place and compares times of
files that a copy does not keep. It loads kernels without ninja from its packages alone, which vLLM's images contain.
What vLLM finds out about the machine (`gpu_p2p_access_cache_for_*.json`) is left out: another machine may differ.
Nothing public describes the caches of a NIM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from hermetic.api.engine import Member
from hermetic.api.engine_caches import EngineCaches
from hermetic.api.resources import Accelerator
from hermetic.api.staged_folders import CACHES
from hermetic.api.weights import Weights
from hermetic.engines.launch import InitContainer, model_path
from hermetic.engines.link_farm import copied, linked
from hermetic.sizing.catalogue import sizes
from hermetic.sizing.serving import Serving

FOLDERS: Mapping[Member, tuple[str, ...]] = MappingProxyType(
    {
        "vllm": (
            "vllm/torch_compile_cache",
            "vllm/modelinfos",
            "vllm/flashinfer_autotune_cache",
            "triton",
            "deep_gemm",
        ),
        # SGLang below 0.5.23 has DeepGEMM's beside its own folder.
        "sglang": ("triton", "deep_gemm", "sglang/deep_gemm"),
    }
)
"""Folders below `$HOME/.cache` of the engine that may be staged; of other engines none are known."""
NOT_STAGED = frozenset({"cache_key_factors.json"})
"""Files in them that may not: vLLM's list of its environment for people to read, in 0.24 to 0.28 with the API key."""
LINKED, COPIED = "linked", "copied"
"""The two parts of a staged cache."""


def part_of(name: str) -> str:
    """The part that a file of this name belongs to: COPIED where the engine could not use a link to it.

    vLLM opens its index for writing in place. Libraries are mapped as executable, which an image volume, mounted
    noexec, does not allow.
    """
    return COPIED if name == "vllm_compile_cache.py" or name.endswith(".so") else LINKED


def cache_key(engine: Member, version: str, serving: Serving, accelerator: Accelerator) -> EngineCaches | str:
    """The key of the caches that this deployment can use; or one clause why it can use none.

    The GPU model follows from `accelerator.instanceTypes` alone: the pod depends on the spec, not on the nodes.
    """
    if engine not in FOLDERS:
        return f"no public source documents how the compile caches of engine '{engine}' could be staged"
    if accelerator.resource != "nvidia.com/gpu":
        return f"compile caches are for whole NVIDIA GPUs, and `accelerator.resource` is '{accelerator.resource}'"
    if not accelerator.instance_types:
        return "`accelerator.instanceTypes` names no VM size, so that the GPU model is not known"
    vm_sizes = sizes()
    if unlisted := [name for name in accelerator.instance_types if name not in vm_sizes]:
        return f"the GPU model of VM size {', '.join(unlisted)} is not known"
    models = sorted({vm_sizes[name].gpu.key for name in accelerator.instance_types})
    if len(models) > 1:
        return f"`accelerator.instanceTypes` names several GPU models: {', '.join(models)}"
    return EngineCaches.model_validate(
        {
            "engine": engine,
            "version": version,
            "gpu": models[0],
            "tensorParallelSize": serving.tensor_parallel,
            "pipelineParallelSize": serving.pipeline_parallel,
        }
    )


def why_not_used(staged: Iterable[EngineCaches], key: EngineCaches | str) -> str:
    """One clause why none of the staged caches is used; "" where the key is among them."""
    if isinstance(key, str):
        return key
    staged_keys = list(staged)
    if key in staged_keys:
        return ""
    folders = ", ".join(repr(caches.folder) for caches in staged_keys)
    return f"the deployment needs '{key.folder}', and staged are {folders}"


def cache_containers(weights: Weights, key: EngineCaches | str, image: str, home: str) -> tuple[InitContainer, ...]:
    """The init containers that give the engine the staged caches of its key; none where there are none.

    `home` is the engine's home, on the volume 'cache'.
    """
    if isinstance(key, str) or why_not_used(weights.caches, key):
        return ()
    source, target = f"{model_path(weights)}/{CACHES}/{key.folder}", f"{home}/.cache"
    return (
        linked(image, f"{source}/{LINKED}", target, "cache", brings_code=True),
        copied(image, f"{source}/{COPIED}", target, "cache", brings_code=True),
    )

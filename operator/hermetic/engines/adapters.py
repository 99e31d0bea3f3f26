"""Where the adapters of a spec are: in the container, and below the folder that is mounted."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Sequence
from typing import Protocol

from hermetic.api.adapters import Adapter, is_part_of_the_model, lies_in
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.weights import Weights
from hermetic.engines.launch import WEIGHTS

ADAPTERS = "/adapters"


class Sources(Protocol):
    """The part of a spec that names where the model and its adapters are read from."""

    @property
    def weights(self) -> Weights: ...

    @property
    def adapters(self) -> Sequence[Adapter]: ...


def mounted_adapters(sources: Sources) -> Iterator[Adapter]:
    """The adapters beside the model: each is mounted, and verified, on its own."""
    return (adapter for adapter in sources.adapters if not is_part_of_the_model(adapter, sources.weights))


def adapter_path(weights: Weights, adapter: Adapter) -> str:
    """Absolute path of the adapter in the container."""
    if weights.baked_image is not None:
        return f"/{adapter.folder}"
    if weights.image_volume is not None:
        return f"{WEIGHTS}/{adapter.folder}"
    if lies_in(adapter.folder, weights.folder):
        return f"{WEIGHTS}/{folder_below(adapter.folder, weights.folder)}"
    return f"{ADAPTERS}/{adapter.name}"


def mounted_folder(sources: Sources) -> str:
    """The deepest folder of the share that holds the model and every adapter; "" for the whole share."""
    folders = [sources.weights.folder, *(adapter.folder for adapter in mounted_adapters(sources))]
    return posixpath.commonpath(folders) if all(folders) else ""


def folder_below(folder: str, parent: str) -> str:
    """The folder as a path from its parent; "" for the parent itself."""
    return folder.removeprefix(parent).lstrip("/")


def adapter_argument(spec: ModelDeploymentSpec, adapter: Adapter) -> str:
    """The argument of the engine's command line that names the adapter."""
    return sglang_adapter(spec, adapter) if spec.engine.sglang is not None else vllm_adapter(spec, adapter)


def vllm_adapter(spec: ModelDeploymentSpec, adapter: Adapter) -> str:
    """A value of `--lora-modules`. A path may hold '=', which the short form does not take.

    Source: docs.vllm.ai, "LoRA Adapters", New format for `--lora-modules`.
    """
    return json.dumps(
        {"name": adapter.name, "path": adapter_path(spec.weights, adapter), "base_model_name": spec.model.name},
        ensure_ascii=False,
    )


def sglang_adapter(spec: ModelDeploymentSpec, adapter: Adapter) -> str:
    """A value of `--lora-paths`: a name has no '=', so the first one ends it.

    Source: docs.sglang.io, "LoRA Serving", `lora_paths`.
    """
    return f"{adapter.name}={adapter_path(spec.weights, adapter)}"

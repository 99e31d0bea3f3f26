"""Whether a folder is one model: no cache of a download tool, no parent of models, and not without weights."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.adapter_configuration import CONFIGURATION as ADAPTER
from hermetic.weights.entries import FOLDER, NIM_PROFILES
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.tree import EntryKind, Tree

WEIGHTS = (
    ".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt", ".onnx", ".engine", ".plan", ".nemo", ".npz", ".npy",
    ".h5", ".msgpack", ".mlmodel", ".tflite", ".pdparams", ".pkl", ".ggml", ".tensors",
)  # fmt: skip
"""Endings of files with weights, of every form: whether an engine may read it is another question."""
_LOADED = (".safetensors", ".gguf")
_ADAPTER_TENSORS = "adapter_model.safetensors"
_OF_A_MODEL = frozenset({"config.json", "params.json", "model_index.json", ADAPTER, "modules.json"})
_MOST_MODELS = 100
_SNAPSHOTS, _BESIDE = "snapshots", ("blobs", "refs")
_LONGEST_REVISION = 256


@dataclass(slots=True)
class ModelLayout:
    """What is at the top of a folder and below it, as it is walked."""

    _has_weights: bool = False
    _is_at_top: bool = False
    _is_nim: bool = False
    _models: set[str] = field(default_factory=set)
    _files: int = 0
    _has_adapter: bool = False
    _has_model: bool = False

    @property
    def is_adapter(self) -> bool:
        """Whether the folder is an adapter. Some models have one of their own beside their weights: Granite Speech."""
        return self._has_adapter and not self._has_model

    def add(self, path: str) -> None:
        """Adds a file or a link to one."""
        folder, _, name = path.rpartition("/")
        self._files += not path.startswith(f"{FOLDER}/")
        is_weights = name.casefold().endswith(WEIGHTS)
        self._has_weights = self._has_weights or is_weights
        self._is_nim = self._is_nim or path == NIM_PROFILES or path.startswith("ngc/")
        if is_weights or name in _OF_A_MODEL:
            if not folder:
                self._is_at_top = True
                self._has_adapter = self._has_adapter or name == ADAPTER
                self._has_model = self._has_model or (name.endswith(_LOADED) and name != _ADAPTER_TENSORS)
            elif len(self._models) < _MOST_MODELS:
                self._models.add(folder)

    def finding(self) -> WeightsFinding | None:
        """Why the folder is no model; None where it may be one. A NIM cache has its models deep inside of it."""
        if self._models and not self._is_at_top and not self._is_nim:
            below = min(self._models, key=lambda folder: (folder.count("/"), folder))
            observed = "a folder with models in it" if len(self._models) > 1 else "a folder with a model in it"
            return WeightsFinding(WeightsReason.MODEL_BELOW, below, "the folder of one model", observed)
        if self._has_weights or self._is_nim:
            return None
        return WeightsFinding(WeightsReason.NO_WEIGHTS, "", "files of weights", f"{self._files} other files")


def cache_root(tree: Tree) -> WeightsFinding | None:
    """The finding for the root of a Hugging Face cache, or of one model in it; None for another folder.

    The layout: "Understand caching" of huggingface_hub, `models--ORG--NAME/{blobs,refs,snapshots}`.
    """
    if tree.lstat("config.json") is not None:
        return None
    for folder in ("", "hub/"):
        if _is_folder(tree, f"{folder}{_SNAPSHOTS}") and any(_is_folder(tree, f"{folder}{name}") for name in _BESIDE):
            return _below(_snapshot_of(tree, folder))
        with contextlib.suppress(OSError):
            models = (name for name in _names(tree, folder) if name.startswith("models--"))
            if (model := min(models, default="")) and _is_folder(tree, f"{folder}{model}/{_SNAPSHOTS}"):
                return _below(_snapshot_of(tree, f"{folder}{model}/"))
    return None


def _below(snapshot: str) -> WeightsFinding:
    expected = "the folder of one snapshot"
    return WeightsFinding(WeightsReason.MODEL_BELOW, snapshot, expected, "the cache of a download tool")


def _names(tree: Tree, folder: str) -> list[str]:
    """The names in a folder of the one that is open, whatever its path leads to by now."""
    return [path.name for path in Path(f"/proc/self/fd/{tree.descriptor}", folder).iterdir()]


def _is_folder(tree: Tree, path: str) -> bool:
    item = tree.lstat(path)
    return item is not None and item.kind is EntryKind.FOLDER


def _snapshot_of(tree: Tree, folder: str) -> str:
    """The snapshot that `refs/main` names, else the only one."""
    path = f"{folder}refs/main"
    reference = tree.lstat(path)
    revision = ""
    if reference is not None and reference.kind is EntryKind.FILE and reference.size < _LONGEST_REVISION:
        revision = (tree.small(path, _LONGEST_REVISION) or b"").decode(errors="replace").strip()
    if revision and "/" not in revision and _is_folder(tree, f"{folder}{_SNAPSHOTS}/{revision}"):
        return f"{folder}{_SNAPSHOTS}/{revision}"
    with contextlib.suppress(OSError):
        names = _names(tree, f"{folder}{_SNAPSHOTS}")
        if len(names) == 1:
            return f"{folder}{_SNAPSHOTS}/{names[0]}"
    return f"{folder}{_SNAPSHOTS}/REVISION"

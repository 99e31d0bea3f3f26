"""Values that name a model, an adapter or a file: as paths in the pod, with what must be staged for them.

A pod sees one folder of weights. A repository, a path of the host or another mount becomes a folder or file below it,
and a note says what to put there.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermetic.conversion.container_options import Mount
from hermetic.conversion.outcomes import Note, left_out
from hermetic.engines.allow_list import AllowedNames
from hermetic.engines.launch import WEIGHTS

WORK_FOLDER = "/vllm-workspace"
"""Where images of vLLM start, and hold the folder `examples` (docker/Dockerfile of vLLM: WORKDIR, COPY examples)."""
# Keys of the objects in values that name a model. Source: docs.vllm.ai, "Speculative Decoding". None: every key, as in
# a map of modalities to adapters.
_MODEL_KEYS: Mapping[str, frozenset[str] | None] = {
    "--speculative-config": frozenset({"model"}),
    "--default-mm-loras": None,
}
_FILE = re.compile(r"\S*\.(jinja2?|json|yaml|yml|txt|gguf)")
_NAMED_PATH = re.compile(r"([A-Za-z0-9._-]+)=(\S*/\S*)")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

Staged = tuple[str, tuple[Note, ...]]
"""A value as the pod reads it, and what must be staged for it."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """How values are read: the model of the command, the mounts of its container, and where its image starts."""

    model: str
    mounts: tuple[Mount, ...] = ()
    is_container: bool = False
    work_folder: str = ""

    def folder_of(self, name: str) -> Staged:
        """The path in the pod of a model, adapter or tokenizer."""
        if not name:
            return name, ()
        if name == self.model:
            return WEIGHTS, ()
        if path := self._path_in_pod(name):
            return path, ()
        folder = folder_name(name)
        message = (
            f"put it into the folder '{folder}' of the model's folder, then stage that: {WEIGHTS}/{folder} names it"
        )
        return f"{WEIGHTS}/{folder}", (Note("stage", name, message),)

    def file_of(self, name: str) -> Staged:
        """The path in the pod of a file."""
        if path := self._path_in_pod(name):
            return path, ()
        relative = posixpath.normpath(name)
        if self.work_folder and relative.startswith("examples/"):
            path = f"{self.work_folder}/{relative}"
            return path, (Note("replaced", name, f"by {path}, where images of vLLM have it"),)
        file = folder_name(name)
        message = f"put it into the folder of the model as '{file}' before staging; its path is {WEIGHTS}/{file}"
        return f"{WEIGHTS}/{file}", (Note("stage", name, message),)

    def _path_in_pod(self, name: str) -> str:
        """The path of what the image holds, or what lies below the model; "" for everything else."""
        folders = (WEIGHTS, *((self.work_folder,) if self.work_folder else ()))
        is_mounted = any(_is_below(name, mount.target) for mount in self.mounts)
        if any(_is_below(name, folder) for folder in folders):
            return posixpath.normpath(name)
        if is_path(self.model) and _is_below(name, self.model):
            return posixpath.normpath(f"{WEIGHTS}/{name[len(self.model.rstrip('/')) :]}")
        return posixpath.normpath(name) if self.is_container and name.startswith("/") and not is_mounted else ""


def is_path(name: str) -> bool:
    """Whether the model is named by a path and not by a repository."""
    return name.startswith(("/", "./", "../", "~"))


def folder_name(name: str) -> str:
    """The last part of a repository or path, in the characters of a folder."""
    return _UNSAFE.sub("-", posixpath.basename(name.rstrip("/")))[:96].strip("-.") or "model"


def _is_below(name: str, folder: str) -> bool:
    """Whether a path of a command line is inside a folder. Unlike a folder of a spec it may have '..' in it."""
    return name.startswith(folder.rstrip("/") + "/") and ".." not in name.split("/")


def staged_value(flag: str, key: str, value: str, flags: AllowedNames, files: ModelFiles) -> Staged:
    """The value of a flag, or of the dotted `key` of one, as the pod reads it. `flags` is the reviewed list."""
    paths = flags.paths.get(flag, "none")
    if key:
        return files.folder_of(value) if _names_a_model(flag, key, value, flags) else (value, ())
    if flag in _MODEL_KEYS and value.lstrip().startswith(("{", "[")):
        return _staged_object(flag, value, flags, files)
    is_template = "{{" in value or "{%" in value
    if paths not in ("data", "model", "adapter") or is_template or value in flags.keywords.get(flag, ()):
        return value, ()
    if paths != "model" and (named := _NAMED_PATH.fullmatch(value)):
        path, notes = files.folder_of(named[2])
        return f"{named[1]}={path}", notes
    if paths == "data":
        return files.file_of(value) if "/" in value or _FILE.fullmatch(value) else (value, ())
    return files.folder_of(value)


def _names_a_model(flag: str, key: str, value: str, flags: AllowedNames) -> bool:
    """Whether the value of this key of a flag is a model or an adapter."""
    keys = _MODEL_KEYS.get(flag, frozenset())
    return (keys is None or key in keys) and value not in flags.keywords.get(f"{flag}.{key}", ())


def _staged_object(flag: str, value: str, flags: AllowedNames, files: ModelFiles) -> Staged:
    """An object, or a list of objects, with its models as the pod reads them; unchanged where it is no JSON."""
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value, ()
    notes: list[Note] = []

    def staged(entry: Any) -> Any:
        if not isinstance(entry, dict):
            return entry
        texts = {key: inner for key, inner in entry.items() if isinstance(inner, str)}
        models = {key for key, inner in texts.items() if _names_a_model(flag, key, inner, flags)}
        paths = {key: files.folder_of(entry[key]) for key in models}
        notes.extend(note for key in sorted(models) for note in paths[key][1])
        return {key: paths[key][0] if key in models else inner for key, inner in entry.items()}

    result = [staged(entry) for entry in read] if isinstance(read, list) else staged(read)
    return compact_json(result) if result != read else value, tuple(notes)


def compact_json(value: Any) -> str:
    """The value as JSON in one line."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def unused_mounts(mounts: Sequence[Mount], model: str) -> Iterator[Note]:
    """Folders of the host, which a pod is not given."""
    for mount in mounts:
        is_weights = is_path(model) and (model == mount.target or _is_below(model, mount.target))
        reason = "stage the model in it; a pod mounts" if is_weights else "a pod mounts no folder of a host, only"
        yield left_out(f"volume {mount.target}", f"{reason} the staged weights")

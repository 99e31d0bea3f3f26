"""Reads a model's folder for its facts: `config.json` and the headers of its safetensors files, never the tensors.

`read_model_facts` is used by `hermetic plan --model` and staging; `hermetic.sizing.facts_file.file_content` returns
the bytes of the file that is stored with the weights. The folder is not trusted: only plain files are opened, and size,
number and nesting of everything read are bounded.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from hermetic.api.model_facts import MOST_BYTES, ModelFacts, StagedProfile
from hermetic.errors import InputError, ModelFactsUnusable, Unreachable
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.mistral_form import config_of_params
from hermetic.sizing.tensor_parts import part_of
from hermetic.weights.adapter_configuration import CONFIGURATION as ADAPTER
from hermetic.weights.entries import FOLDER, NIM_PROFILES
from hermetic.weights.safetensors_layout import (
    LARGEST_METADATA,
    METADATA,
    MOST_TENSORS,
    must_be_texts,
    wrong_with_length,
)
from hermetic.weights.streamed_json import JsonStream

PROFILES = NIM_PROFILES
_LARGEST_PROFILES = 2**20
_MOST_PROFILES = 64
_MOST_FILES = 100_000
# '- dcec66a5... (tensorrt_llm-h100-fp8-tp2-latency)', as documented in 'Utilities for NVIDIA NIM for LLMs'.
_LINE = re.compile(r"\b(?P<id>[0-9a-f]{64})\s+\((?P<name>[A-Za-z0-9_.:-]{1,128})\)")
_NOT_COMPUTED = "a NIM cache holds its models by profile: its bytes are those of all its files"

CONFIG, QUANTIZATION, INDEX = "config.json", "hf_quant_config.json", "model.safetensors.index.json"
PARAMS = "params.json"
"""Mistral's own form of config.json, which is read where that is not there."""
LARGEST_CONFIG = 4 * 2**20
LARGEST_INDEX = 64 * 2**20
MOST_ENTRIES = 100_000
MOST_FORMATS = 32
MOST_VALUES = 2_000_000
"""Values of one JSON document: bounds the memory of parsing."""


def read_model_facts(folder: Path, is_left_out: Callable[[str], bool] = lambda _name: False) -> ModelFacts:
    """The facts of the model in a folder; of a NIM cache, the profiles that it says it holds.

    `is_left_out`: whether a file of this name at the top of the folder counts as absent.

    Raises InputError where the folder or a file of it does not exist, Unreachable where it may not be read, and
    ModelFactsUnusable where a file is invalid: no JSON, too large, truncated, or a header that contradicts itself.
    """
    named = folder / PROFILES
    profiles = profiles_in(_bytes(named, _LARGEST_PROFILES)) if named.exists() else []
    if profiles and not (folder / CONFIG).exists():
        with _readable(folder):
            return _facts_of_cache(folder, profiles)
    config = _config(folder)
    ours = folder / QUANTIZATION
    quantization = _json(ours, LARGEST_CONFIG) if ours.exists() else None
    by_format: dict[str, int] = {}
    by_part: dict[str, int] = {}
    count = largest = 0
    for path in _shards(folder, is_left_out):
        size = _add_shard(path, by_format, by_part)
        count, largest = count + 1, max(largest, size)
    if not count:
        raise ModelFactsUnusable(f"{folder} holds no safetensors file", fix="name the folder that holds the model")
    facts = facts_of(config, TensorSums(by_format, count, largest, by_part), quantization)
    return facts.model_copy(update={"nim_profiles": profiles})


def read_adapter_configuration(folder: Path) -> Any:
    """The content of an adapter's configuration. Raises as `read_model_facts` does."""
    return _json(folder / ADAPTER, LARGEST_CONFIG)


def _config(folder: Path) -> Any:
    """The content of config.json, or of params.json by the keys of config.json."""
    params = folder / PARAMS
    if (folder / CONFIG).exists() or not params.exists():
        return _json(folder / CONFIG, LARGEST_CONFIG)
    return config_of_params(_json(params, LARGEST_CONFIG))


def _shards(folder: Path, is_left_out: Callable[[str], bool]) -> Iterator[Path]:
    """The safetensors files of the model: those of the index where there is one, else all of the folder."""
    index = folder / INDEX
    if not index.exists() or is_left_out(INDEX):
        yield from sorted(path for path in _plain_names(folder) if not is_left_out(path.name))
        return
    parsed = _json(index, LARGEST_INDEX)
    files = parsed.get("weight_map") if isinstance(parsed, dict) else None
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise ModelFactsUnusable(f"{index} has no weight_map")
    for name in sorted(set(files.values())):
        if "/" in name or "\0" in name or not name.endswith(".safetensors"):
            raise ModelFactsUnusable(f"{index} names {name[:80]!r}, which is not a safetensors file of this folder")
        yield folder / name


def _plain_names(folder: Path) -> list[Path]:
    with _readable(folder), os.scandir(folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(MOST_ENTRIES), strict=False)]
    matching_names = [name for name in names if name.endswith(".safetensors")]
    # Mistral's own form of the same tensors, which the engine reads only if there is no other.
    usual = [name for name in matching_names if not name.startswith("consolidated")]
    return [folder / name for name in usual or matching_names]


def _json(path: Path, largest: int) -> Any:
    content = _bytes(path, largest)
    if content.count(b",") + content.count(b"[") + content.count(b"{") > MOST_VALUES:
        raise ModelFactsUnusable(f"{path} holds more than {MOST_VALUES} values")
    try:
        return json.loads(content.decode())  # bytes may be in other encodings, which no engine reads
    except (ValueError, RecursionError) as error:
        why = "is nested too deeply" if isinstance(error, RecursionError) else f"is not JSON: {error}"
        raise ModelFactsUnusable(f"{path} {why}") from None


def _bytes(path: Path, largest: int) -> bytes:
    with _readable(path), _opened(path) as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ModelFactsUnusable(f"{path} is larger than {largest} bytes")
    return content


def _add_shard(path: Path, by_format: dict[str, int], by_part: dict[str, int]) -> int:
    """Adds the tensors of a safetensors file to the sums; returns its size. The header is read as a stream."""
    with _readable(path), _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if (wrong := wrong_with_length(size, length)) is not None:
            raise ModelFactsUnusable(f"{path} is not a safetensors file, or is cut short: {wrong[1]}, not {wrong[0]}")
        stream = JsonStream(_pieces(file, length))
        try:
            for name in stream.keys(MOST_TENSORS):
                if name == METADATA:
                    must_be_texts(stream.value(LARGEST_METADATA))
                    continue
                number_format, byte_count = tensor_bytes(name, stream.value())
                by_format[number_format] = by_format.get(number_format, 0) + byte_count
                if (part := part_of(name)) is not None:
                    by_part[part] = by_part.get(part, 0) + byte_count
                if len(by_format) > MOST_FORMATS:
                    raise ModelFactsUnusable(f"{path}: the header names more than {MOST_FORMATS} number formats")
            stream.finish()
        except ValueError as error:
            raise ModelFactsUnusable(f"{path}: {error}") from None
    return size


def _pieces(file: BinaryIO, length: int) -> Iterator[bytes]:
    while length > 0 and (piece := file.read(min(length, 2**16))):
        length -= len(piece)
        yield piece


def _opened(path: Path) -> BinaryIO:
    """A plain file, opened for reading. A pipe or a device would block, or never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ModelFactsUnusable(f"{path} is not a plain file")
    return os.fdopen(descriptor, "rb")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turns errors of the operating system into errors that name the path."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: No such file or directory", fix="name a folder that exists") from None
    except OSError as error:
        raise Unreachable(f"{path} cannot be read: {error.strerror or error}") from error


def tensor_bytes(name: str, tensor: Any) -> tuple[str, int]:
    """Number format and bytes of one tensor. Raises ValueError for an invalid entry."""
    offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
    number_format = tensor.get("dtype") if isinstance(tensor, dict) else None
    if not isinstance(number_format, str) or not 0 < len(number_format) <= 64:
        raise ValueError(f"tensor {name[:80]!r} has no number format")
    if not (isinstance(offsets, list) and len(offsets) == 2 and all(type(offset) is int for offset in offsets)):
        raise ValueError(f"tensor {name[:80]!r} has no offsets")
    begin, end = offsets
    if not 0 <= begin <= end:
        raise ValueError(f"tensor {name[:80]!r} ends before it begins")
    return number_format, end - begin


def profiles_in(content: bytes) -> list[StagedProfile]:
    """The profiles that a listing names, each once; everything else in it is ignored. Raises ModelFactsUnusable."""
    names_by_id = {matched["id"]: matched["name"] for matched in _LINE.finditer(content.decode(errors="replace"))}
    if not 0 < len(names_by_id) <= _MOST_PROFILES:
        raise ModelFactsUnusable(
            f"{PROFILES} names {len(names_by_id)} profiles, each as 'ID (NAME)'; it must name 1 to {_MOST_PROFILES}",
            fix="keep the lines of 'list-model-profiles' of the profiles that were downloaded",
        )
    return [StagedProfile(id=profile_id, name=name) for profile_id, name in names_by_id.items()]


def _facts_of_cache(folder: Path, profiles: list[StagedProfile]) -> ModelFacts:
    """The facts of a NIM cache. Raises ModelFactsUnusable for one of more than MOST_FILES files."""
    total = count = 0
    for parent, folders, names in os.walk(folder):
        # What staging writes itself does not count: the facts of a staged model are those of its source.
        folders[:] = [name for name in folders if name != FOLDER]
        for name in names:
            stat_result = Path(parent, name).lstat()
            total, count = total + stat_result.st_size * stat.S_ISREG(stat_result.st_mode), count + 1
        if count > _MOST_FILES:
            raise ModelFactsUnusable(f"{folder} holds more than {_MOST_FILES} files")
    return ModelFacts(
        model_type="nim",
        parameter_bytes=min(max(total, 1), MOST_BYTES),
        not_computed=[_NOT_COMPUTED],
        nim_profiles=profiles,
    )

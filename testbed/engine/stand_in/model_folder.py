"""Reads the model folder as far as an engine would before it serves, and fails where it would."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from .failures import (
    StartFailure,
    config_missing,
    context_too_long,
    custom_code,
    fetch_attempted,
    path_missing,
    shard_truncated,
    tensor_parallel_mismatch,
    tokenizer_missing,
    weights_missing,
    weights_unreadable,
)
from .settings import Settings

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt")
REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
HEADER_LENGTH = 8


def read_model(settings: Settings) -> int:
    """The context length that will be served. Raises StartFailure with vLLM's words for what is wrong."""
    config = _config(settings)
    _hold_to_local_code(settings, config)
    context = _context_length(settings, config)
    _hold_to_parallel_size(settings, config)
    folder = Path(settings.model)
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise StartFailure(tokenizer_missing())
    if settings.engine.reads_weights:
        _read_weights(folder)
    return context


def _config(settings: Settings) -> dict[str, Any]:
    folder = Path(settings.model)
    if not folder.is_dir():
        is_repository = REPOSITORY.fullmatch(settings.model) is not None
        raise StartFailure(fetch_attempted() if is_repository else path_missing(settings.model))
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    except OSError as error:
        raise StartFailure(config_missing(settings.model)) from error
    return config


def _text_part(config: dict[str, Any]) -> dict[str, Any]:
    nested = (config.get(key) for key in ("text_config", "llm_config", "language_config"))
    return next((part for part in nested if isinstance(part, dict)), config)


def _hold_to_local_code(settings: Settings, config: dict[str, Any]) -> None:
    if "auto_map" in config and not settings.engine.trust_remote_code:
        raise StartFailure(custom_code(settings.model))


def _context_length(settings: Settings, config: dict[str, Any]) -> int:
    keys = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    derived = next((int(part[key]) for part in (_text_part(config),) for key in keys if key in part), 2048)
    asked = settings.engine.max_model_len
    if asked is None or asked == -1:
        return derived
    if asked > derived and os.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        raise StartFailure(context_too_long(asked, derived))
    return asked


def _hold_to_parallel_size(settings: Settings, config: dict[str, Any]) -> None:
    part = _text_part(config)
    heads = part.get("num_attention_heads") or part.get("n_head")
    if heads and heads % settings.engine.tensor_parallel_size:
        raise StartFailure(tensor_parallel_mismatch(heads, settings.engine.tensor_parallel_size))


def _read_weights(folder: Path) -> None:
    shards = sorted(folder.glob("*.safetensors"))
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = [folder / name for name in sorted(set(json.loads(index.read_text())["weight_map"].values()))]
    if not shards and not any(folder.glob("*.bin")):
        raise StartFailure(weights_missing(str(folder)))
    for shard in shards:
        _read_shard(shard)


def _read_shard(shard: Path) -> None:
    """The header and the size it promises: a shard that was cut short fails here, as it does in vLLM."""
    try:
        with shard.open("rb") as file:
            length = int.from_bytes(file.read(HEADER_LENGTH), "little")
            header = file.read(min(length, 100 << 20))
    except OSError as error:
        raise StartFailure(weights_unreadable(str(shard))) from error
    try:
        tensors = [entry for name, entry in json.loads(header).items() if name != "__metadata__"]
    except ValueError as error:
        raise StartFailure(shard_truncated()) from error
    end = max((entry["data_offsets"][1] for entry in tensors), default=0)
    if shard.stat().st_size != HEADER_LENGTH + length + end:
        raise StartFailure(shard_truncated())

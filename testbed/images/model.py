"""A model that is small enough to make on the spot: the files an engine looks for, with weights of a few bytes.

Its safetensors file is a valid one (one tensor of two zeros), so that whatever reads headers, checks sizes or hashes
the folder has something true to read. No engine could answer with it; the stand-in engine does not try to.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

from testbed.images.layers import Entry


def model_files() -> dict[str, bytes]:
    """File name to content."""
    documents = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "torch_dtype": "bfloat16",
            "hidden_size": 8192,
            "num_hidden_layers": 80,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131072,
            "vocab_size": 2,
        },
        "generation_config.json": {"bos_token_id": 0, "eos_token_id": 1},
        "tokenizer.json": {"version": "1.0", "model": {"type": "BPE", "vocab": {"<s>": 0, "</s>": 1}, "merges": []}},
        "tokenizer_config.json": {"bos_token": "<s>", "eos_token": "</s>"},
    }
    files = {name: json.dumps(content, indent=1).encode() + b"\n" for name, content in documents.items()}
    return files | {"model.safetensors": _safetensors()}


def model_entries(folder: str) -> list[Entry]:
    """The model as files of an image layer."""
    return [Entry(f"{folder.strip('/')}/{name}", content=content) for name, content in model_files().items()]


def stage_model(folder: Path) -> None:
    """The model as files on a share, readable by every user as a stager must leave them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in model_files().items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o644)


def _safetensors() -> bytes:
    header = json.dumps({"lm_head.weight": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)
